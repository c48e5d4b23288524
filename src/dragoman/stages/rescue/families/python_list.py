"""Llama 3.2, Llama 4, ToolACE: the whole message is a list of Python calls, `[NAME(key="value"), …]`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.python_calls import python_calls


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if not (yield from python_calls(cursor, tools, is_listed=True)):
        raise NotACall


FAMILY = Family(
    name="python-list",
    openers=("[",),
    parse=_parse,
    where="message",
    source="https://github.com/meta-llama/llama-models (models/llama3_2/text_prompt_format.md, read 2026-11-21)",
)
