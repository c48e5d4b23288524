"""Jamba and Hunyuan A13B: a list of call objects, `<tool_calls>[…]</tool_calls>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if (yield from cursor.peek()) != "[":
        raise NotACall
    yield from call_objects(cursor, tools, "</tool_calls>")


FAMILY = Family(
    name="jamba",
    openers=("<tool_calls>",),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.18.2/api/vllm/tool_parsers/hunyuan_a13b_tool_parser/ (read 2026-11-22)",
    residue=("</tool_calls>",),
)
