"""Decide by Python's grammar where a text and a call end.

It covers quotation marks of a text's own kind, as in `'sed -n '1p' a'`, named characters, and expressions that go on
behind a call.
"""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Generator
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.rescue.cursor import MORE, Action, Cursor

#: Behind a quote: what shows that it is inside its text, what may stand behind the end of any text, the next argument
#: without its comma, and what stands behind the last text of the last call.
_WORD_BEGINS: Final = rare_pattern(r"[\w/$@~]")
_BEHIND: Final = rare_pattern(r"\s*[,)\]}:]")
_NEXT: Final = rare_pattern(r"\s*+\w++\s*+=")
_LAST: Final = rare_pattern(r"\s{0,8}\)\s{0,8}\]?\s{0,8}(?:<|\Z)")
_AHEAD: Final = 100
#: At the end of what stands before a quote: what begins an argument there.
_ARGUMENT: Final = rare_pattern(r"\s\w{1,64}\s{0,8}=\s{0,8}\Z")
#: The same of a text whose own quotation mark was lost: `'a, b='c'`.
_NEXT_ARGUMENT: Final = rare_pattern(r"[,(]\s{0,8}\w{1,64}\s{0,8}=\s{0,8}\Z")
#: The end of a call and the next one, in what would be its text.
_NEXT_CALL: Final = rare_pattern(r"\)\s{0,8}[,;\n]\s{0,8}[A-Za-z_][\w.-]{0,63}\(\s{0,8}(?:\)|\w{1,64}\s{0,8}=)")
#: Behind a call: what may follow it in a list, and what goes on with the expression that it, or its list, is part of.
_ITEM_ENDS: Final = rare_pattern(r"[,;\]`]|<[|｜/]|\Z")
_GOES_ON: Final = rare_pattern(
    r"[(+*%=&^@>/|-]|\[(?!unused|\|)|\.\w|!=|<(?![|｜/A-Za-z])|(?:if|or|and|for|in|is|not|else|async)(?:\W|\Z)"
)
_LONGEST_WORD: Final = 7
#: Characters behind a call in which that is told.
_FURTHEST: Final = 1000
_NAMED: Final = rare_pattern(r"\{([A-Za-z0-9 -]{1,100})\}")
_NAMED_BEGUN: Final = rare_pattern(r"(?:\{[A-Za-z0-9 -]{0,100})?")
_LONGEST_NAMED: Final = 102


class Unreadable(Exception):
    """Not a literal; the message says what stands there."""


class CutShort(Exception):
    """The text ended inside a call."""


def ends_text(cursor: Cursor) -> Generator[Action, None, bool]:
    """Return whether the next quote ends its text: one with a word right behind it does not."""
    return _WORD_BEGINS.match((yield from cursor.peek(2))[1:]) is None


def check_comma(cursor: Cursor) -> Generator[Action, None, None]:
    """Check that no argument with a missing comma begins behind the next quote, seemingly inside its text.

    Raises:
        Unreadable: one may.
    """
    if _NEXT.match((yield from cursor.peek(_AHEAD)), 1):
        raise Unreadable("a comma is missing behind a text, or it holds quotation marks of its own kind")


def quoted_text(
    cursor: Cursor, said: str, quote: str, *, is_last: bool, is_joined: bool
) -> Generator[Action, None, str]:
    """Read the rest of a text from the first such quote on, its own end skipped.

    It has one reading only if it is the last value of the last call, none of its quotes could end it, and Python cannot
    read it differently.

    Args:
        cursor: at the quote.
        said: the text so far, as it stands.
        quote: the quotation mark.
        is_last: no bracket is open but the call's own.
        is_joined: another text stands right before it.

    Raises:
        Unreadable: there is another reading.
        CutShort: the text ended.
    """
    yield from check_comma(cursor)
    pieces: list[str] = []
    count = 0
    if _NEXT_ARGUMENT.search(said[-_AHEAD:]):
        raise Unreadable("a text may hold the next argument, or quotation marks of its own kind")
    before = said if quote in said or is_joined else ""
    while True:
        if _ARGUMENT.search(before[-_AHEAD:]):
            raise Unreadable("a comma is missing before an argument, or a text holds quotation marks of its own kind")
        plain, mark = yield from cursor.until(quote, "\\")
        if not mark:
            raise CutShort
        pieces.append(plain)
        ahead = yield from cursor.peek(_AHEAD)
        if mark == quote and is_last and _LAST.match(ahead):
            break
        if mark != quote or "\\" in said or _BEHIND.match(ahead) or _NEXT.match(ahead):
            raise Unreadable("a text holds quotation marks of its own kind and may end at several of them")
        pieces.append(mark)
        count += 1
        before = plain
    if count % 2:  # one of them may be one too many
        raise Unreadable("a text holds an odd quotation mark of its own kind")
    text = "".join(pieces)
    if _NEXT_CALL.search(text):
        raise Unreadable("a text may hold the next call, or quotation marks of its own kind")
    try:
        ast.parse(f"f({quote}{said}{text}{quote})")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text
    raise Unreadable("a value is not a literal")


def named_character(cursor: Cursor) -> Generator[Action, None, str]:
    """Return the character of `\\N{NAME}`, from behind the letter on.

    Raises:
        Unreadable: Python knows none of this name.
        CutShort: the text ended.
    """
    ahead = yield from cursor.peek(_LONGEST_NAMED)
    found = _NAMED.match(ahead)
    if found is None and _NAMED_BEGUN.fullmatch(ahead):
        raise CutShort
    try:
        character = unicodedata.lookup(found[1]) if found is not None else ""
    except KeyError:
        character = ""
    if found is None or len(character) != 1:
        raise Unreadable("an escape names no character")
    cursor.skip(found.end())
    return character


def stands_alone(cursor: Cursor, *, is_listed: bool) -> Generator[Action, None, bool]:
    """Return whether a call whose bracket was read is a whole item of its list, or a whole statement, and nothing else
    follows.

    Nothing is skipped.
    """
    while True:
        ahead = cursor.rest()[:_FURTHEST]
        place, is_over = 0, cursor.ended or len(ahead) == _FURTHEST
        if is_listed:
            place = _first(ahead, 0, None)
            if len(ahead) - place >= 2 or is_over:
                if not _ITEM_ENDS.match(ahead, place) or (place == len(ahead) and not cursor.ended):
                    return False
                if ahead[place : place + 1] != "]":
                    return True
            place += 1
        place = _first(ahead, place, " \t")
        if is_over or ahead[place : place + 1] in ("\r", "\n") or len(ahead) - place >= _LONGEST_WORD:
            return _GOES_ON.match(ahead, place) is None
        yield MORE


def _first(text: str, start: int, space: str | None) -> int:
    """Return where, from `start` on, the first character stands that is none of these (of any white space: None)."""
    rest = text[start:]
    return len(text) - len(rest.lstrip(space))
