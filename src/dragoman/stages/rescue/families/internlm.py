"""InternLM 2 and 3: `<|action_start|><|plugin|>{"name": …, "parameters": {…}}<|action_end|>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    yield from cursor.expect("<|plugin|>")
    yield from call_objects(cursor, tools, "<|action_end|>")


FAMILY = Family(
    name="internlm",
    openers=("<|action_start|>",),
    parse=_parse,
    source="https://github.com/InternLM/InternLM/blob/main/chat/chat_format.md (read 2026-11-22)",
    residue=("<|action_end|>", "<|im_end|>"),
)
