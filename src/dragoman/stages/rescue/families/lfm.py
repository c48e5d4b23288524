"""Liquid LFM2: a list of Python calls, `<|tool_call_start|>[NAME(key="value"), …]<|tool_call_end|>`. The calls are JSON
objects if the system prompt asks for JSON. openPangu writes them, its tokens also as `[unused11]` and `[unused12]`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects
from dragoman.stages.rescue.python_calls import python_calls

_ENDS: Final = ("<|tool_call_end|>", "[unused12]")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    is_listed = (yield from cursor.take("[")) != ""
    yield from cursor.space()
    if (yield from cursor.peek()) == "{":
        yield from call_objects(cursor, tools)
        yield from cursor.closing("]")
    else:
        yield from python_calls(cursor, tools, is_listed=is_listed)
    yield from cursor.closing(*_ENDS)


FAMILY = Family(
    name="lfm",
    openers=("<|tool_call_start|>", "[unused11]"),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/lfm2_tool_parser/ (read 2026-11-21)",
    residue=_ENDS,
)
