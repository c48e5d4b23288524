"""Llama 4: a list of Python calls, `<|python_start|>[NAME(key="value"), …]<|python_end|>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects
from dragoman.stages.rescue.python_calls import python_calls


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if (yield from cursor.peek()) == "{":
        yield from call_objects(cursor, tools)
    else:
        yield from python_calls(cursor, tools)
    yield from cursor.closing("<|python_end|>")
    yield from cursor.closing("<|eom|>", "<|eot|>")


FAMILY = Family(
    name="llama4",
    openers=("<|python_start|>",),
    parse=_parse,
    source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/ (read 2026-11-21)",
    residue=("<|python_end|>", "<|eom|>", "<|eot|>"),
)
