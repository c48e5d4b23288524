"""Finds the brackets of JSON text; those within strings do not count."""

from __future__ import annotations

import re
from typing import Final

#: A string, and what a string that is not closed ends with: nothing, or a backslash that escapes what comes next.
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|(\\?)\Z)', re.DOTALL)
_NO_BRACKET: Final = re.compile(r"[^{}\[\]]++")
_PEELED: Final = 8  # levels of nesting within one text that are seen through
#: Characters that one search looks at: it holds the interpreter, and so every other answer, until it returns.
STRETCH: Final = 64 * 1024


def end_of(run: re.Pattern[str], text: str, position: int) -> int:
    """Where a run ends that begins here, looked at stretch by stretch.

    `run`: matches nothing at least, and what it matches may be matched in two parts, cut at any place where it can end.
    In a long text it may end early, where something begins that is longer than a stretch has left.
    """
    while True:
        stretch = min(len(text), position + STRETCH)
        end = run.match(text, position, stretch).end()  # type: ignore[union-attr]  # as above
        if end < stretch - 1 or end in (position, len(text)):  # a stretch may end between a backslash and its character
            return end
        position = end


def split_strings(text: str) -> tuple[str, str | None]:
    """The text without its strings, and how one ends that is not closed: "" or a backslash; None when all are."""
    parts = _STRING.split(text)
    return "".join(parts[::2]), parts[-2] if len(parts) > 1 else None


def most_closed(bare: str) -> int:
    """At most so many levels below its beginning does a text without strings ever get."""
    marks = _NO_BRACKET.sub("", bare)
    for _ in range(_PEELED):
        fewer = marks.replace("{}", "").replace("[]", "")
        if len(fewer) == len(marks):
            break
        marks = fewer
    return marks.count("}") + marks.count("]")
