"""Phi-4-mini: a list of call objects after `functools`. (The family granite reads those after `<|tool_call|>`.)"""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from call_objects(cursor, tools)
    yield from cursor.closing("]")


FAMILY = Family(
    name="phi4",
    openers=("functools[",),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/phi4mini_tool_parser/ (read 2026-11-22)",
    residue=("<|end|>",),
)
