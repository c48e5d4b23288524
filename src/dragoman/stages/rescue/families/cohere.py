"""Cohere Command A and R7B: `<|START_ACTION|>[{"tool_call_id": …, "tool_name": …, "parameters": {…}}, …]
<|END_ACTION|>`. If one call of the list cannot be read, only that call fails."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from call_objects(cursor, tools, "<|END_ACTION|>")


FAMILY = Family(
    name="cohere",
    openers=("<|START_ACTION|>",),
    parse=_parse,
    source="https://github.com/ollama/ollama (model/parsers/cohere_test.go)",
    residue=("<|END_ACTION|>", "<|END_OF_TURN_TOKEN|>"),
)
