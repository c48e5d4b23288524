"""OLMo 3: Python calls, one per line, `<function_calls>NAME(key="value")` … `</function_calls>`. Literals are JSON's:
`true`, `false`, `null`. Others write such calls in `<tool_call>`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.python_calls import python_calls

_ENDS: Final = {"<function_calls>": "</function_calls>", "<tool_call>": "</tool_call>"}


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from python_calls(cursor, tools)
    yield from cursor.closing(_ENDS[opener])


FAMILY = Family(
    name="olmo",
    openers=tuple(_ENDS),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.19.1/api/vllm/tool_parsers/olmo3_tool_parser/ (read 2026-11-21)",
    residue=tuple(_ENDS.values()),
)
