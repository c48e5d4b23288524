"""Calls written as Python: `f(city="Oslo", days=3)`, one or several, their values read as JSON while they come.

Literals only: strings of either quote (also tripled, raw, side by side where no comma can be missing) with all escapes,
numbers (zero-padded too), `True`, `False`, `None` (and JSON's words), lists, tuples, sets, dicts. A call with anything
else in it fails alone; one that is part of a larger expression fails with the rest of its list.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman.codec.patterns import rare_pattern
from dragoman.gathered import GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import BODY, MORE, Action, Close, Cursor, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.heads import begun
from dragoman.stages.rescue.python_text import (
    CutShort,
    Unreadable,
    check_comma,
    ends_text,
    named_character,
    quoted_text,
    stands_alone,
)
from dragoman.stages.rescue.quoted import DOTS
from dragoman.stages.rescue.xml_values import escaped

_NAME: Final = rare_pattern(r"[\w.$/:-]+")
_KEY: Final = rare_pattern(r"\w+")
#: What an argument begins with, or ends a list of none, and what may become such.
_BEGINS: Final = rare_pattern(r"\s{0,40}(?:\w{1,64}\s{0,8}=|[\"'{)])")
_MAY_BEGIN: Final = rare_pattern(r"\s{0,40}(?:\w{1,64}\s{0,8})?")
_WORD: Final = rare_pattern(r"[^\s,()\[\]{}:'\"=]+")
_PLAIN: Final = rare_pattern(r"[^\"'\\]+")
_LITERALS: Final = {
    "True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null",
}  # fmt: skip
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "\n": "",
}  # fmt: skip
_HEXADECIMAL: Final = {"x": 2, "u": 4, "U": 8}
_OCTAL: Final = rare_pattern(r"[0-7]{1,3}")
_FLOAT: Final = rare_pattern(r"^[^xX]*[.eE]")
_ENDS: Final = {"[": "]", "(": ")", "{": "}"}
#: A word between two apostrophes: a key that lost its marks, perhaps.
_QUOTED: Final = rare_pattern(r"(?<=\w)'(\w{1,64})(?='\w)")
_PADDED: Final = rare_pattern(r"[+-]?0\d+")
#: What stands before the quotation marks of a text. Formatted ones are texts if they hold nothing to format.
_PREFIXES: Final = frozenset({"r", "R", "u", "U", "f", "F"})
_DEEPEST: Final = 64


def python_calls(
    cursor: Cursor, tools: Tools, *, is_listed: bool = False, first: str = ""
) -> Generator[Action, None, bool]:
    """Parse calls in a row, in a list or one per line. Return whether the list was closed.

    `is_listed`: the list's opening bracket was read already. `first`: the first call's name and bracket were.
    """
    if not is_listed and not first:
        yield from cursor.space()
        is_listed = (yield from cursor.take("[")) != ""
    while True:
        yield from _call(cursor, tools, first, is_listed=is_listed)
        first = ""
        separator = yield from cursor.closing(",", ";", "]")
        if separator == "]" or (separator and (yield from cursor.closing("]"))):
            return is_listed
        if not separator and (is_listed or not _NAME.match(cursor.rest().lstrip())):
            return False


def _call(cursor: Cursor, tools: Tools, written: str, *, is_listed: bool) -> Parser:
    """Parse one call; from behind its bracket on if its name was read already.

    Words in parentheses are no call where the name stands apart from them, or is no tool's.
    """
    if not written:
        yield from cursor.space()
        written = yield from cursor.word(_NAME)
        name = yield from begun(tools, written if tools.offered(written) else written.removesuffix(".call"))
        is_apart = (yield from cursor.space()) != ""
        yield from cursor.expect("(")
    else:
        is_apart = written[-1:].isspace()
        name = yield from begun(tools, written.rstrip())
    if (is_apart or not tools.has(name)) and not (yield from _begins_argument(cursor)):
        raise NotACall
    if (yield from cursor.sees(*DOTS)):
        raise NotACall
    yield Open(name)
    reader = _Reader(cursor, tools.schema(name).names())
    try:
        yield from reader.arguments()
        if not (yield from stands_alone(cursor, is_listed=is_listed)):
            reader.begin_list(is_listed=is_listed)
            raise Unreadable("it is part of a larger expression")
        yield Close(BODY)
    except CutShort:
        yield Close("")
    except Unreadable as problem:
        yield from reader.skip()
        yield Close("", str(problem))


def _begins_argument(cursor: Cursor) -> Generator[Action, None, bool]:
    """Return whether an argument comes next, or the end of them."""
    while not (cursor.ended or _MAY_BEGIN.fullmatch(cursor.rest()) is None):
        yield MORE
    return _BEGINS.match(cursor.rest()) is not None


class _Reader:
    """Reads the text between the parentheses of one call."""

    __slots__ = ("_cursor", "_is_joined", "_names", "_open", "_quote")

    def __init__(self, cursor: Cursor, names: frozenset[str]) -> None:
        """Create it. `names`: of the tool's arguments."""
        self._cursor = cursor
        self._names = names
        self._is_joined = False  # the last value was several strings side by side
        self._open = ["("]  # brackets that are open
        self._quote = ""  # of the string that is open

    def arguments(self) -> Parser:
        """Read `key=value, …)` as a JSON object; a single dict is the object."""
        cursor = self._cursor
        first = yield from self._next()
        if first == "{":
            cursor.skip(1)
            self._open.append(first)
            yield from self._dict()
            self._close()
            yield from self._expect(")", "only keyword arguments, or one dict, can be read")
            yield Piece("}")
            return
        lead = "{"
        while (yield from self._next()) != ")":
            key = yield from cursor.word(_KEY)
            yield from self._expect("=", "only keyword arguments can be read")
            yield Piece(f"{lead}{_json.quoted(key)}: ")
            lead = ", "
            yield from self._next()
            yield from self._value()
            yield from self._comma(")")
        self._close()
        yield Piece("{}" if lead == "{" else "}")

    def begin_list(self, *, is_listed: bool) -> None:
        """End the call. What follows it in its list is skipped."""
        self._open = ["["] if is_listed else []

    def skip(self) -> Parser:
        """Skip the rest of an unreadable call, respecting strings and brackets."""
        quote = self._quote
        while self._open:
            mark = yield from self._cursor.peek()
            if not mark:
                return
            self._cursor.skip(1)
            if quote:
                if mark == "\\":
                    self._cursor.skip(len((yield from self._cursor.peek())))
                elif mark == quote:
                    quote = ""
            elif mark in "\"'":
                quote = mark
            elif mark in _ENDS:
                self._open.append(mark)
            elif mark in ")]}":
                self._open.pop()

    # ------------------------------------------------------------ marks

    def _next(self) -> Generator[Action, None, str]:
        """Return the next character that is no white space."""
        yield from self._cursor.space()
        mark = yield from self._cursor.peek()
        if not mark:
            raise CutShort
        return mark

    def _expect(self, wanted: str, problem: str) -> Parser:
        if (yield from self._next()) != wanted:
            raise Unreadable(problem)
        if wanted == ")":
            self._close()
        else:
            self._cursor.skip(1)

    def _close(self) -> None:
        """Skip the end of the innermost bracket."""
        self._cursor.skip(1)
        self._open.pop()

    def _comma(self, end: str) -> Parser:
        mark = yield from self._next()
        if mark == ",":
            self._cursor.skip(1)
        elif mark != end:
            raise Unreadable("a value is not a literal")

    # ------------------------------------------------------------ values

    def _value(self) -> Parser:
        mark = yield from self._next()
        self._is_joined = False
        if mark in "\"'":
            yield from self._string(mark)
        elif mark in _ENDS:
            if len(self._open) > _DEEPEST:
                raise Unreadable(f"a value is nested deeper than {_DEEPEST} levels")
            self._cursor.skip(1)
            self._open.append(mark)
            is_dict = mark == "{" and (yield from self._dict_or_set())
            if mark != "{":
                yield from self._list(_ENDS[mark])
            self._close()
            self._is_joined = False
            yield Piece("}" if is_dict else "]")
        else:
            yield from self._word()

    def _list(self, end: str) -> Parser:
        yield Piece("[")
        count, commas = yield from self._items(end)
        if end == ")" and count and not commas:
            raise Unreadable("a value is not a literal")

    def _items(self, end: str) -> Generator[Action, None, tuple[int, int]]:
        """Read values up to the closing bracket. Return their number, and the number of commas behind them."""
        count = commas = 0
        while (yield from self._next()) != end:
            if count:
                yield Piece(", ")
            count += 1
            yield from self._value()
            self._check_item()
            commas += (yield from self._next()) == ","
            yield from self._comma(end)
        return count, commas

    def _check_item(self) -> None:
        """Refuse adjacent strings in a list: they are one string in Python, but a comma may be missing."""
        if self._is_joined:
            raise Unreadable("two texts stand side by side in a list: they may be one or two")

    def _dict_or_set(self) -> Generator[Action, None, bool]:
        """Read the content of braces; a colon behind its first value decides. Return whether it is a dict."""
        first = GatheredText()
        mark = yield from self._next()
        if mark == "}":
            yield Piece("{")
            return True
        for action in self._value():
            if isinstance(action, Piece):
                first.add(action.text)
            else:
                yield action
        is_dict = (yield from self._next()) == ":"
        if not is_dict:
            self._check_item()
        if is_dict and mark not in "\"'":
            raise Unreadable("a key of a dict is not a string")
        yield Piece("{" if is_dict else "[")
        yield Piece(first.text())
        if is_dict:
            self._cursor.skip(1)
            yield Piece(": ")
            yield from self._next()
            yield from self._value()
        yield from self._comma("}")
        if (yield from self._next()) != "}":
            yield Piece(", ")
            yield from self._members() if is_dict else self._items("}")
        return is_dict

    def _dict(self) -> Parser:
        yield Piece("{")
        yield from self._members()

    def _members(self) -> Parser:
        lead = ""
        while (mark := (yield from self._next())) != "}":
            yield Piece(lead)
            lead = ", "
            if mark not in "\"'":
                raise Unreadable("a key of a dict is not a string")
            yield from self._string(mark)
            yield from self._expect(":", "a value is not a literal")
            yield Piece(": ")
            yield from self._next()
            yield from self._value()
            yield from self._comma("}")

    def _word(self) -> Parser:
        word = yield from self._cursor.word(_WORD, 1 << 16)
        following = yield from self._cursor.peek()
        if not following:
            raise CutShort
        if word in _PREFIXES and following in "\"'":
            yield from self._string(following, word.lower())
        elif word in _LITERALS:
            yield Piece(_LITERALS[word])
        else:
            yield Piece(_number(word))

    # ------------------------------------------------------------ strings

    def _string(self, quote: str, prefix: str = "") -> Parser:
        """Read a string, or several adjacent ones, as one JSON string."""
        yield Piece('"')
        while True:
            yield from self._content(quote, prefix)
            mark = yield from self._next()
            if mark not in "\"'":
                break
            self._is_joined = True
            quote, prefix = mark, ""
        yield Piece('"')

    def _content(self, quote: str, prefix: str) -> Parser:
        cursor = self._cursor
        ahead = yield from cursor.peek(3)
        if ahead == quote * 3:
            quote = ahead
        cursor.skip(len(quote))
        self._quote = quote[0]
        before = ""
        said = GatheredText()  # the string as it stands, until an escape comes
        while True:
            rest = cursor.rest()
            found = _PLAIN.match(rest)
            if found is not None:
                before = found.group()[-1]
                said.add(found.group())
                cursor.skip(found.end())
                yield Piece(escaped(found.group()))
            elif not rest:
                if cursor.ended:
                    raise CutShort
                yield MORE
            elif rest[0] == "\\":
                before = ""
                said.add((yield from cursor.peek(2)) if "f" in prefix else "\\")
                yield from self._escape(is_raw="r" in prefix)
            elif (yield from cursor.peek(len(quote))) == quote and not (yield from self._is_apostrophe(before, quote)):
                _check_literal(prefix, said.text())
                if len(quote) > 1 or (yield from ends_text(cursor)):
                    cursor.skip(len(quote))
                    if not self._names.isdisjoint(_QUOTED.findall(said.text())):
                        raise Unreadable("a text may hold the next argument, its marks lost")
                else:
                    self._quote = ""
                    is_last = len(self._open) == 1
                    rest = yield from quoted_text(
                        cursor, said.text(), quote, is_last=is_last, is_joined=self._is_joined
                    )
                    _check_literal(prefix, rest)
                    yield Piece(escaped(rest))
                self._quote = ""
                return
            else:
                before = rest[0]
                said.add(before)
                cursor.skip(1)
                yield Piece(escaped(before))

    def _is_apostrophe(self, before: str, quote: str) -> Generator[Action, None, bool]:
        """Return whether a quote stands between letters, so that it cannot end its string (`'Martha's'`)."""
        if quote != "'" or not before.isalpha():
            return False
        is_between = (yield from self._cursor.peek(2))[1:].isalpha()
        if is_between:
            yield from check_comma(self._cursor)
        return is_between

    def _escape(self, *, is_raw: bool) -> Parser:
        cursor = self._cursor
        escape = yield from cursor.peek(2)
        if len(escape) < 2:
            raise CutShort
        cursor.skip(2)
        mark = escape[1]
        if is_raw:
            yield Piece(escaped(escape))
        elif mark in _ESCAPES:
            yield Piece(escaped(_ESCAPES[mark]))
        elif mark == "N":
            yield Piece(escaped((yield from named_character(cursor))))
        elif mark in _HEXADECIMAL:
            yield from self._hexadecimal(mark, _HEXADECIMAL[mark])
        elif mark in "01234567":
            found = _OCTAL.match(mark + (yield from cursor.peek(2)))
            assert found is not None
            cursor.skip(found.end() - 1)
            yield Piece(escaped(chr(int(found.group(), 8))))
        else:
            yield Piece(escaped(escape))  # Python keeps the backslash of what is no escape

    def _hexadecimal(self, mark: str, count: int) -> Parser:
        digits = yield from self._cursor.peek(count)
        if len(digits) < count:
            raise CutShort
        try:
            code = int(digits, 16)
        except ValueError:
            yield Piece(escaped("\\" + mark))  # a path, most likely
            return
        if code > 0x10FFFF:
            raise Unreadable("an escape names no character")
        self._cursor.skip(count)
        yield Piece(f"\\u{code:04x}" if code <= 0xFFFF else escaped(chr(code)))


def _check_literal(prefix: str, said: str) -> None:
    """Refuse a formatted text that holds something to format."""
    if "f" in prefix and not {"{", "}"}.isdisjoint(said):
        raise Unreadable("a value is not a literal")


def _number(word: str) -> str:
    """Return a number's own text if JSON has that form too."""
    found = _json.read_number(word)
    if found is not None:
        if abs(float(found)) == float("inf"):
            raise Unreadable("a number is not finite")
        return word
    padded = _PADDED.fullmatch(word)
    try:
        value = int(word) if padded else float(word) if _FLOAT.search(word) else int(word, 0)
        text = str(value)  # thousands of digits are written by nobody but the interpreter that refuses them
    except ValueError:
        raise Unreadable("a value is not a literal") from None
    if abs(value) == float("inf"):
        raise Unreadable("a number is not finite")
    return text
