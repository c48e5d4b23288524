"""Apertus: a list of objects, each with one call's name as its only key,
`<|tools_prefix|>[{"NAME": {…}}, …]<|tools_suffix|>`."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.heads import named
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.quoted import Begun

_NAME: Final = re.compile(r"[^\s\"'<>{}]+")
_END: Final = "<|tools_suffix|>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    cursor.stops = (_END,)
    yield from cursor.space()
    yield from cursor.expect("[")
    while True:
        yield from cursor.space()
        yield from cursor.expect("{")
        yield from cursor.space()
        yield from cursor.expect('"')
        name = yield from named(cursor, tools, _NAME)
        yield from cursor.expect('"')
        yield from cursor.space()
        yield from cursor.expect(":")
        yield Begun(name, is_body=True)
        yield from cursor.space()
        yield from named_call(cursor, name, wrapper="}")
        if not (yield from cursor.closing(",")):
            break
    yield from cursor.closing("]")
    yield from cursor.closing(_END)


FAMILY = Family(
    name="apertus",
    openers=("<|tools_prefix|>",),
    parse=_parse,
    source="https://github.com/sgl-project/sglang (function_call/apertus2509_detector.py, read 2026-11-22)",
    residue=(_END, "<|assistant_end|>"),  # the turn token: the chat template of swiss-ai/Apertus-8B-Instruct-2509
)
