"""Models that imitate the histories of some servers and agents: the whole message is `[Calling tool: NAME({…})]` or
`[Calling tool="NAME" KEY="value"]`, or several of them."""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import BODY, Close, Cursor, Family, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.heads import begun
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.xml_values import member

_NAME: Final = re.compile(r"[^\s<>{}()\[\]]+")
_NAME_IN_QUOTES: Final = re.compile(r"[^\s<>{}()\[\]\"]+")
_KEY: Final = re.compile(r"[\w.-]+")
_PLAIN: Final = re.compile(r'[^"\\]+')
_LONGEST: Final = 1 << 24
_OPENERS: Final = ("[Calling tool:", "[Calling tool=")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    while opener:
        yield from (_call if opener[-1] == ":" else _call_in_attributes)(cursor, tools)
        opener = yield from cursor.closing(*_OPENERS)


def _call(cursor: Cursor, tools: Tools) -> Parser:
    """Parse `NAME({…})]`."""
    yield from cursor.space()
    name = tools.called((yield from cursor.word(_NAME)))
    yield from cursor.expect("(")
    yield from cursor.space()
    if name is None or (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name)
    for mark in (")", "]"):
        yield from cursor.space()
        yield from cursor.expect(mark)


def _call_in_attributes(cursor: Cursor, tools: Tools) -> Parser:
    """Parse `"NAME" KEY="value"]`. A quotation mark in a value has a backslash before it; any other backslash may be
    itself or an escape.
    """
    yield from cursor.expect('"')
    name = yield from begun(tools, (yield from cursor.word(_NAME_IN_QUOTES)))
    yield from cursor.expect('"')
    yield Open(name)
    keys: list[str] = []
    while not (yield from cursor.closing("]")):
        yield from cursor.space()
        key = yield from cursor.word(_KEY)
        yield from cursor.expect("=")
        yield from cursor.expect('"')
        if key in keys:
            raise NotACall
        value = [(yield from cursor.word(_PLAIN, _LONGEST))]
        while (yield from cursor.take("\\")):
            value += [(yield from cursor.expect('"')), (yield from cursor.word(_PLAIN, _LONGEST))]
        yield from cursor.expect('"')
        yield member(key, keys)
        yield Piece(_json.quoted("".join(value)))
    yield Piece("}" if keys else "{}")
    yield Close(BODY)


FAMILY = Family(
    name="calling-tool",
    openers=_OPENERS,
    parse=_parse,
    source="https://github.com/waybarrios/vllm-mlx/issues/374",
    where="message",
)
