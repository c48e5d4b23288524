"""Granite and small models of every kind: the whole message is Python calls, one per line, without a list."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.python_calls import python_calls


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from python_calls(cursor, tools, first=opener.removesuffix("("))


FAMILY = Family(
    name="python-lines",
    openers=("(",),
    parse=_parse,
    where="message",
    named=True,
    is_code=True,
    source="https://github.com/vllm-project/vllm (vllm/tool_parsers/granite_pythonic_tool_parser.py, read 2026-11-22)",
)
