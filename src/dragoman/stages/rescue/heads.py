"""What stands in the head of a call or of an argument: names, keys, types, attributes.

None of it holds markup or a line break. Where it seems to, the text was broken off there and went on as something else,
so that what follows is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman.stages.rescue.cursor import MORE, Action, Cursor, NotACall

#: Characters of a head.
_LONGEST: Final = 400
_MARKUP: Final = re.compile(r"[<>\r\n]")
_ATTRIBUTE: Final = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)')")


def plain(text: str) -> str:
    """A name, key or type without the white space around it; "" when it can be none."""
    bare = text.strip()
    return "" if _MARKUP.search(bare) else bare


def head_until(cursor: Cursor, *ends: str) -> Generator[Action, None, tuple[str, str]]:
    """Text up to the first of these, and which; ("…", "") when the text ends first. More than `_LONGEST` characters are
    no call, in however many pieces they come; then nothing is passed over."""
    longest = max(map(len, ends))
    while True:
        head = cursor.rest()[: _LONGEST + longest]
        places = [(place, -len(end), end) for end in ends if 0 <= (place := head.find(end)) <= _LONGEST]
        if places:
            place, _, cursor.marker = min(places)
            cursor.skip(place + len(cursor.marker))
            return head[:place], cursor.marker
        if len(head) == _LONGEST + longest:
            raise NotACall
        if cursor.ended:
            cursor.skip(len(head))
            return head, ""
        yield MORE


def plain_until(cursor: Cursor, end: str) -> Generator[Action, None, str]:
    """A name, key or type up to its end; "" when it can be none, or the text ends first."""
    text, closed = yield from head_until(cursor, end)
    return plain(text) if closed else ""


def attributes(cursor: Cursor, stop: str = ">") -> Generator[Action, None, dict[str, str]]:
    """The attributes up to the end of a tag; none when it does not end, holds markup, or tells one of them twice."""
    found = _ATTRIBUTE.findall((yield from plain_until(cursor, stop)))
    told = {key: double or single for key, double, single in found}
    return told if len(told) == len(found) else {}
