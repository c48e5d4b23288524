"""Granite 3 and Phi-4-mini: a list of call objects after `<|tool_call|>`, with their keys in any order. Granite 20B:
one call object after `<function_call>`. (Granite 3.1 and 4 write Hermes' tags.)"""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from call_objects(cursor, tools, "<|/tool_call|>", "</|tool_call|>", "</function_call>")


FAMILY = Family(
    name="granite",
    openers=("<|tool_call|>", "<function_call>"),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/granite_tool_parser/ (read 2026-11-22)",
    residue=("<|end_of_text|>",),
)
