"""Regular expressions: those that few answers need are compiled at first use; long texts are searched in stretches."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Final, cast

#: Characters that one search looks at: it holds the interpreter, and so every other answer, until it returns.
STRETCH: Final = 64 * 1024


def rare_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when something of it is first used.

    Of the hundreds of patterns most are for texts that few answers hold. Compiled at once, they would be a third of
    what it takes to start a program. A pattern that every answer needs is made with `re.compile`: its use costs less.
    The `re` of a match is the compiled pattern, not what is returned here.
    """
    return cast("re.Pattern[AnyStr]", _Rare(pattern, flags))


class _Compiled:
    pass


class _Rare:
    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._pattern, self._flags)
        vars(self).update({each: getattr(compiled, each) for each in dir(compiled) if not each.startswith("_")})
        cast("Any", self).__class__ = _Compiled  # without `__getattr__`, which costs every look at an attribute
        return getattr(compiled, name)


def end_of(run: re.Pattern[str], text: str, position: int) -> int:
    """Return where a run ends that begins here, searching in stretches.

    `run`: may match nothing, and a match may be split at any place where it can end. In a long text the result may be
    early, at something that is longer than the rest of a stretch.
    """
    while True:
        stretch = min(len(text), position + STRETCH)
        end = run.match(text, position, stretch).end()  # type: ignore[union-attr]  # as above
        if end < stretch - 1 or end in (position, len(text)):  # a stretch may end between a backslash and its character
            return end
        position = end
