"""Qwen 3.6 in some agents' histories: the whole message is `[Calling tool: NAME({…})]`, or several of them."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.json_calls import named_call

_NAME: Final = re.compile(r"[^\s<>{}()\[\]]+")
_OPENER: Final = "[Calling tool:"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    while True:
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
        if not (yield from cursor.closing(_OPENER)):
            return


FAMILY = Family(
    name="calling-tool",
    openers=(_OPENER,),
    parse=_parse,
    source="https://github.com/waybarrios/vllm-mlx/issues/374",
    where="message",
)
