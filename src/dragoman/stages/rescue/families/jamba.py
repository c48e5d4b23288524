"""Jamba and Hunyuan A13B: a list of call objects, `<tool_calls>[…]</tool_calls>`. MiniMax M1 writes the objects one a
line, and others write Claude's tags around them: `<function_calls>`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.json_calls import call_objects

_ENDS: Final = {"<tool_calls>": "</tool_calls>", "<function_calls>": "</function_calls>"}


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if (yield from cursor.peek()) not in ("[", "{"):
        raise NotACall
    yield from call_objects(cursor, tools, _ENDS[opener])


FAMILY = Family(
    name="jamba",
    openers=tuple(_ENDS),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.18.2/api/vllm/tool_parsers/hunyuan_a13b_tool_parser/ (read 2026-11-22)",
    residue=tuple(_ENDS.values()),
)
