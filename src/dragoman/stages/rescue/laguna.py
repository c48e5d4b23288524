"""Poolside Laguna: `<tool_call>NAME` and the arguments as JSON, `{…}</tool_call>` (beside GLM's form)."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser, Tools
from dragoman.stages.rescue.json_calls import named_call

_NAME: Final = re.compile(r"[^\s<>{}]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    cursor.stops = ("</tool_call>",)
    yield from cursor.space()
    name = tools.offered((yield from cursor.word(_NAME)))
    if name is None:
        raise NotACall
    yield from cursor.space()
    if (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name)
    yield from cursor.closing("</tool_call>")


FAMILY = Family(
    name="laguna",
    openers=("<tool_call>",),
    parse=_parse,
    source="https://github.com/ollama/ollama/pull/17603 (the parser of the model's forms, read 2026-11-21)",
)
