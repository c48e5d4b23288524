"""A Python string whose text holds quotation marks of its own kind: `'sed -n '1p' a'`."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator
from typing import Final

from dragoman.stages.rescue.cursor import Action, Cursor

#: Behind a quote: what shows that it is inside its text, what may stand behind the end of any text, and what stands
#: behind the last one of the last call.
_WORD_BEGINS: Final = re.compile(r"[\w/$@~]")
_BEHIND: Final = re.compile(r"\s*[,)\]}:]")
_LAST: Final = re.compile(r"\s{0,8}\)\s{0,8}\]?\s{0,8}(?:<|\Z)")
_AHEAD: Final = 32


class Unreadable(Exception):
    """Not a literal; the message says what stands there."""


class CutShort(Exception):
    """The text ended inside a call."""


def ends_text(cursor: Cursor) -> Generator[Action, None, bool]:
    """Whether the quote that comes next ends its text: one with a word right behind it does not."""
    return _WORD_BEGINS.match((yield from cursor.peek(2))[1:]) is None


def quoted_text(cursor: Cursor, said: str, quote: str, *, is_last: bool) -> Generator[Action, None, str]:
    """The rest of a text from the first such quote on, its own end passed over.

    It has one reading only where it is the last value of the last call, none of its quotes could end it, and Python
    cannot read it otherwise.

    Args:
        cursor: at the quote.
        said: the text so far, as it stands.
        quote: the quotation mark.
        is_last: no bracket is open but the call's own.

    Raises:
        Unreadable: there is another reading.
        CutShort: the text ended.
    """
    pieces: list[str] = []
    while True:
        plain, mark = yield from cursor.until(quote, "\\")
        if not mark:
            raise CutShort
        pieces.append(plain)
        ahead = yield from cursor.peek(_AHEAD)
        if mark == quote and is_last and _LAST.match(ahead):
            break
        if mark != quote or "\\" in said or _BEHIND.match(ahead):
            raise Unreadable("a text holds quotation marks of its own kind and may end at several of them")
        pieces.append(mark)
    text = "".join(pieces)
    try:
        ast.parse(f"f({quote}{said}{text}{quote})")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text
    raise Unreadable("a value is not a literal")
