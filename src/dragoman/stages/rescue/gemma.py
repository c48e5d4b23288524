"""Gemma 4: `<|tool_call>call:NAME{key:<|"|>text<|"|>,n:5}<tool_call|>`; FunctionGemma: `<start_function_call>call:NAME
{key:<escape>text<escape>}<end_function_call>`. Keys are bare, texts stand between the quotation token."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman.stages.rescue.cursor import BODY, Action, Close, Cursor, Family, NotACall, Open, Parser, Piece, Tools
from dragoman.stages.rescue.xml_values import live_string

_NAME: Final = re.compile(r"[^\s{}<>]+")
_WORD: Final = re.compile(r"[^,{}\[\]<\n]+")
_KEY: Final = re.compile(r"[^\s:,{}\[\]<\"]+")
_QUOTES: Final = ('<|"|>', "<escape>")
#: What closes a call, now and then twice, and what the model stops at.
_BEHIND: Final = ("<tool_call|>", "<end_function_call>", "<turn|>", "<|tool_response>", "<start_function_response>")
_DEEPEST: Final = 64


class _Unreadable(Exception):
    """Not a value of this form; the message says what stands there."""


class _Cut(Exception):
    """The text ended inside a call."""


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if opener != "<call>":  # a token in pieces
        yield from cursor.take(":")
        yield from cursor.expect("call:")
    name = tools.offered((yield from cursor.word(_NAME)))
    yield from cursor.space()
    yield from cursor.expect("{")
    if name is None:
        raise NotACall
    yield Open(name)
    try:
        yield from _object(cursor, 1)
        yield Close(BODY)
    except _Cut:
        yield Close("")
    except _Unreadable as problem:
        yield Close("", str(problem))
    while (yield from cursor.closing(*_BEHIND)):
        pass


def _object(cursor: Cursor, depth: int) -> Parser:
    """The members from behind the brace on."""
    yield Piece("{")
    lead = ""
    while (yield from _next(cursor)) != "}":
        quote = yield from cursor.take(*_QUOTES, '"')
        if quote:
            key, closed = yield from cursor.until(quote)
            if not closed:
                raise _Cut
        else:
            key = yield from cursor.word(_KEY)
        if (yield from _next(cursor)) != ":" or not key:
            raise _Unreadable("a key without its colon")
        cursor.skip(1)
        yield Piece(f"{lead}{_json.encode_text(key).decode()}: ")
        lead = ", "
        yield from _value(cursor, depth)
        yield from _comma(cursor, "}")
    cursor.skip(1)
    yield Piece("}")


def _list(cursor: Cursor, depth: int) -> Parser:
    yield Piece("[")
    lead = ""
    while (yield from _next(cursor)) != "]":
        yield Piece(lead)
        lead = ", "
        yield from _value(cursor, depth)
        yield from _comma(cursor, "]")
    cursor.skip(1)
    yield Piece("]")


def _value(cursor: Cursor, depth: int) -> Parser:
    first = yield from _next(cursor)
    if first in "{[":
        if depth >= _DEEPEST:
            raise _Unreadable(f"a value is nested deeper than {_DEEPEST} levels")
        cursor.skip(1)
        yield from (_object if first == "{" else _list)(cursor, depth + 1)
        return
    quote = yield from cursor.take(*_QUOTES)
    if quote:
        if not (yield from live_string(cursor, (quote,), trim=False)):
            raise _Cut
    elif first == '"':
        if not (yield from cursor.json_pieces()):
            raise _Cut
    else:
        word = (yield from cursor.word(_WORD)).strip()
        if not (yield from cursor.peek()):
            raise _Cut
        is_json = not isinstance(_json.decode(word), _json.Malformed)
        yield Piece(word if is_json else _json.encode_text(word).decode())


def _next(cursor: Cursor) -> Generator[Action, None, str]:
    """The next character that is no white space."""
    yield from cursor.space()
    mark = yield from cursor.peek()
    if not mark:
        raise _Cut
    return mark


def _comma(cursor: Cursor, end: str) -> Parser:
    mark = yield from _next(cursor)
    if mark == ",":
        cursor.skip(1)
    elif mark != end:
        raise _Unreadable("a value is followed by neither a comma nor its end")


FAMILY = Family(
    name="gemma",
    openers=("<|tool_call>", "<start_function_call>", "<call>"),
    parse=_parse,
    source="https://github.com/ollama/ollama (model/parsers/gemma4_test.go)",
)
