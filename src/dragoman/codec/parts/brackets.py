"""Find the brackets of JSON text. Those within strings do not count."""

from __future__ import annotations

import re
from typing import Final

#: A string, and what a string that is not closed ends with: nothing, or a backslash that escapes what comes next.
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|(\\?)\Z)', re.DOTALL)
_NO_BRACKET: Final = re.compile(r"[^{}\[\]]++")
_PEELED: Final = 8  # levels of nesting within one text that are seen through


def split_strings(text: str) -> tuple[str, str | None]:
    """Return the text without its strings, and the end of an unclosed one: "" or a backslash; None: all are closed."""
    parts = _STRING.split(text)
    return "".join(parts[::2]), parts[-2] if len(parts) > 1 else None


def most_closed(bare: str) -> int:
    """Return a bound of how many levels below its beginning a text without strings gets."""
    marks = _NO_BRACKET.sub("", bare)
    for _ in range(_PEELED):
        fewer = marks.replace("{}", "").replace("[]", "")
        if len(fewer) == len(marks):
            break
        marks = fewer
    return marks.count("}") + marks.count("]")
