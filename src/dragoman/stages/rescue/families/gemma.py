"""Gemma 4: `<|tool_call>call:NAME{key:<|"|>text<|"|>,n:5}<tool_call|>`. FunctionGemma: `<start_function_call>call:NAME
{key:<escape>text<escape>}<end_function_call>`. Keys have no quotes; strings stand between two quotation tokens.

dragoman also reads the slips that the servers' parsers accept: missing tags (the call must then be the whole message),
parentheses for braces or around them, equals signs for colons, plain or single quotes, and a missing quotation token:
the last one, or the first one of a text before which every text has its two.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman.codec.patterns import rare_pattern
from dragoman.gathered import GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import BODY, MORE, Action, Close, Cursor, Family, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.heads import head_until, named, plain
from dragoman.stages.rescue.quoted import DOTS
from dragoman.stages.rescue.typed_tags import refused_to_the_end
from dragoman.stages.rescue.xml_values import escaped
from dragoman.stages.torn_arguments import is_misspelt

_NAME: Final = rare_pattern(r"[^\s{}()<>]+")
_WORD: Final = rare_pattern(r"[^,{}()\[\]<\n]+")
_KEY: Final = rare_pattern(r"[^\t\r\n:=,{}()\[\]<\"']+")
_QUOTES: Final = ('<|"|>', "<escape>")
_ENDS: Final = {"{": "}", "(": ")", "[": "]"}
#: What closes a call, now and then twice, and what the model stops at.
_CLOSERS: Final = ("<tool_call|>", "<end_function_call>")
_BEHIND: Final = (*_CLOSERS, "<turn|>", "<|tool_response>", "<start_function_response>")
_MARKS: Final = rare_pattern(rf"(?:\s*+(?:{'|'.join(map(re.escape, _BEHIND))}))++\s*+")
_DEEPEST: Final = 64
#: Characters at the end of a text in which what closes its call is looked for.
_TAIL: Final = 256
#: What would be another member, in a text that nothing closed.
_MEMBER: Final = rare_pattern(r",\s*[^\s:,]+\s*:")
#: The same in one that was closed, as this form writes members.
_NEXT: Final = rare_pattern(r",(\w{1,64}):(?=\S)")
#: In a value without quotation marks: what shows that it is none, or two, the comma between them missing, or that words
#: stand behind it.
_NO_VALUE: Final = rare_pattern(
    r"\A(?:-?\d[\d.]*+|true|false|null)\s+[A-Za-z]|\A[:=]|\A\Z|[\"“”>|]|\d[^\w\s%]\Z|(?<!\w)'|'(?!\w)|[A-Za-z_]\w{0,80}\s{0,8}[:=](?!//)"
)
_FUSED: Final = "a text of it may hold the next argument: two readings"
_SLIP: Final = "a single quotation mark and no tag behind the call: it may end elsewhere"


class _Unreadable(Exception):
    """Not a value of this form; the message says what stands there."""


class _Nested(Exception):
    """The end of a text is followed by what ends no value: a call may stand in it."""


class _Cut(Exception):
    """The text ended inside a call."""


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if opener != "<call>" and not (yield from cursor.take("call:")):  # a token in pieces, or without its word
        yield from cursor.expect(":")
        yield from cursor.take("call:")
    yield from _call(cursor, tools)
    while (yield from cursor.closing("call:")):  # the next one in the same tag
        yield from _call(cursor, tools)


def _parse_bare(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    while True:
        yield from _call(cursor, tools)
        while (mark := (yield from cursor.closing(opener, *_BEHIND))) in _BEHIND:
            pass
        if not mark:
            return


def _call(cursor: Cursor, tools: Tools) -> Parser:
    """Parse one call from its name on."""
    name = yield from named(cursor, tools, _NAME)
    if mark := (yield from cursor.closing(*_CLOSERS)):  # no arguments, and no braces
        yield Open(name)
        yield Piece("{}")
        yield Close(mark)
        return
    yield from cursor.space()
    brace = yield from cursor.expect("{", "(")
    if (yield from cursor.sees(*DOTS)):
        raise NotACall
    yield Open(name)
    reader = _Reader(cursor)
    try:
        yield from reader.arguments(brace)
        if reader.holds_next(tools.schema(name).names()):
            raise _Unreadable(_FUSED)
        closed_by = (yield from cursor.closing(*_BEHIND)) if reader.is_slip else BODY
        yield Close(closed_by, "" if closed_by else _SLIP)
    except _Cut:
        yield Close("")
    except _Nested:
        yield from refused_to_the_end(cursor)
    except _Unreadable as problem:
        yield Close("", str(problem))
    if reader.is_unquoted:
        cursor.skip(len(cursor.rest()))  # markers, which prove nothing here


class _Reader:
    """Reads the arguments of one call.

    Attributes:
        is_slip: a text stood in single quotes: only what closes the call shows that it ended there.
        is_unquoted: a text had no quotation token at its end: only the end of the answer shows that none follows.
    """

    __slots__ = ("_cursor", "_is_bare", "_is_text", "_keys", "_open", "_told", "is_slip", "is_unquoted")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._open: list[str] = []  # what closes the brackets that are open
        self._is_text = False  # the last value stood between quotation tokens
        self._is_bare = False  # one before it stood without
        self._keys: set[str] = set()
        self._told: set[str] = set()  # what looks like a key in a text
        self.is_slip = self.is_unquoted = False

    def holds_next(self, names: frozenset[str]) -> bool:
        """Return whether a text holds what may be an argument that the call lacks: the tokens between were lost."""
        return not self._told.isdisjoint(names - self._keys)

    def arguments(self, brace: str) -> Parser:
        """Read the arguments from behind their brace or parenthesis on, in which an object may stand."""
        yield from self._cursor.space()
        if brace == "(" and (yield from self._cursor.take("{")):
            self._open.append(")")
            yield from self.members("{")
            if (yield from self._next()) != ")":
                raise _Unreadable("something stands behind the object of its arguments")
            self._close()
            return
        yield from self.members(brace)

    def members(self, brace: str) -> Parser:
        """Read the members of an object from behind its brace on."""
        cursor = self._cursor
        end = _ENDS[brace]
        self._open.append(end)
        yield Piece("{")
        lead = ""
        while (yield from self._next()) != end:
            quote = yield from cursor.take(*_QUOTES, '"', "'")
            if quote:
                written, closed = yield from head_until(cursor, quote)
                if not closed:
                    raise _Cut
                key = plain(written)
            else:
                key = (yield from cursor.word(_KEY)).strip()
            self._keys.add(key)
            yield from self._colon(key, brace)
            yield Piece(f"{lead}{_json.quoted(key)}: ")
            lead = ", "
            yield from self._value()
            yield from self._comma(end)
        self._close()
        yield Piece("}")

    def _colon(self, key: str, brace: str) -> Parser:
        """Read what stands behind a key: sometimes an equals sign, as in Python or before a quotation mark."""
        mark = yield from self._next()
        if mark not in ":=" or not key:
            raise _Unreadable("a key without its colon")
        self._cursor.skip(1)
        if mark == "=" and brace != "(" and not (yield from self._cursor.sees(*_QUOTES, '"', "'")):
            raise _Unreadable("a key without its colon")

    def _list(self) -> Parser:
        self._open.append("]")
        yield Piece("[")
        lead = ""
        while (yield from self._next()) != "]":
            yield Piece(lead)
            lead = ", "
            yield from self._value()
            yield from self._comma("]")
        self._close()
        yield Piece("]")

    def _value(self) -> Parser:
        cursor = self._cursor
        first = yield from self._next()
        if first in "{[":
            if len(self._open) >= _DEEPEST:
                raise _Unreadable(f"a value is nested deeper than {_DEEPEST} levels")
            cursor.skip(1)
            yield from self.members(first) if first == "{" else self._list()
            return
        quote = yield from cursor.take(*_QUOTES)
        self._is_text = bool(quote)
        if quote:
            yield from self._text(quote)
        elif first == '"':
            if not (yield from cursor.json_pieces()):
                raise _Cut
        elif first == "'":
            yield from self._single_quoted()
        else:
            word = (yield from cursor.word(_WORD)).strip()
            if not (yield from cursor.peek()):
                raise _Cut
            self._is_text = (yield from cursor.take(*_QUOTES)) != ""  # the token before it is missing
            is_json = not (self._is_text or isinstance(_json.decode(word), _json.Malformed))
            if (self._is_text and self._is_bare) or (not is_json and (_NO_VALUE.search(word) or is_misspelt(word))):
                raise _Unreadable("a value without quotation marks may be another one, or two")
            self._is_bare = True  # a text that lost its first token may begin here
            yield Piece(word if is_json else _json.quoted(word))

    def _text(self, quote: str) -> Parser:
        """Read a text from behind its quotation token on, live. At the end of the whole text that token may be
        missing.
        """
        cursor = self._cursor
        said = GatheredText()
        yield Piece('"')
        while True:
            rest = cursor.rest()
            place = rest.find(quote)
            if place >= 0:
                cursor.skip(place + len(quote))
                said.add(rest[:place])
                self._told.update(_NEXT.findall(said.text()))
                yield Piece(escaped(rest[:place]) + '"')
                return
            sure = len(rest) - len(_tail(rest, quote))
            if sure:
                said.add(rest[:sure])
                cursor.skip(sure)
                yield Piece(escaped(rest[:sure]))
            if cursor.ended:
                self._check_unquoted(said.text(), cursor.rest(), quote)
                yield Piece('"')
                return
            yield MORE

    def _check_unquoted(self, text: str, tail: str, quote: str) -> None:
        """Check that a text without its closing token can end in one place only: before what closes all brackets."""
        closers = "".join(reversed(self._open))
        is_broken = quote[:2] in text or quote[-2:] in text  # the token was there, in pieces
        brackets = tail.partition("<")[0]
        is_closed = "".join(brackets.split()) == closers and _MARKS.fullmatch(tail, len(brackets))
        if not is_closed or not set("{}()[]").isdisjoint(text) or _MEMBER.search(text) or is_broken:
            self._cursor.skip(len(tail))
            raise _Cut
        self.is_unquoted = True

    def _single_quoted(self) -> Parser:
        """Read a text in single quotes, its backslashes unchanged."""
        cursor = self._cursor
        self.is_slip = True
        cursor.skip(1)
        text = ""
        while True:
            piece, closed = yield from cursor.until("'")
            if not closed:
                raise _Cut
            text += piece
            following = yield from cursor.peek()
            if not (text[-1:].isalpha() and following.isalpha()):  # no apostrophe
                break
            text += "'"
        yield Piece(_json.quoted(text))

    def _next(self) -> Generator[Action, None, str]:
        """Return the next character that is no white space."""
        yield from self._cursor.space()
        mark = yield from self._cursor.peek()
        if not mark:
            raise _Cut
        return mark

    def _close(self) -> None:
        self._cursor.skip(1)
        self._open.pop()

    def _comma(self, end: str) -> Parser:
        mark = yield from self._next()
        if mark == ",":
            self._cursor.skip(1)
        elif mark != end:
            raise _Nested if self._is_text else _Unreadable("a value is followed by neither a comma nor its end")


def _tail(text: str, quote: str) -> str:
    """Return the end of a text that may close its call, or begin to: brackets, what stands behind a call, half of
    it.
    """
    tail = text[-_TAIL:]
    cut = len(tail)
    begun = tail.rfind("<")
    if begun >= 0 and any(mark.startswith(tail[begun:]) for mark in (*_BEHIND, quote)):
        cut = begun
    while True:
        bare = tail[:cut].rstrip()
        mark = next((mark for mark in _BEHIND if bare.endswith(mark)), "")
        if not mark:
            break
        cut = len(bare) - len(mark)
    return tail[len(tail[:cut].rstrip("]}) \t\r\n")) :]


FAMILY = Family(
    name="gemma",
    openers=("<|tool_call>", "<start_function_call>", "<call>"),
    parse=_parse,
    source="https://github.com/ollama/ollama (model/parsers/gemma4_test.go)",
    residue=(*_BEHIND, "}"),
    quotes=_QUOTES,
)
BARE = Family(
    name="gemma-bare",
    openers=("call:",),
    parse=_parse_bare,
    where="message",
    source="https://github.com/vllm-project/vllm (tests/tool_parsers/test_gemma4_regex_and_bare_calls.py)",
    residue=_BEHIND,
)
