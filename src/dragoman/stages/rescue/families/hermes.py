"""Hermes 2 Pro, Qwen 2.5, Qwen 3, Granite 3.1 and 4, Ernie 4.5 and many others: JSON between `<tool_call>` tags. Models
often leave out the closing tag. Or the name and its JSON arguments in tags of their own."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects, tagged_call


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    cursor.stops = ("</tool_call>",)
    yield from cursor.space()
    begun = yield from cursor.take("<name>", "<tool_name>", "<function>", "```json", "```")
    if begun[:1] == "<":
        yield from tagged_call(cursor, tools, begun[1:-1], "</tool_call>")
    else:
        yield from call_objects(cursor, tools)
        yield from cursor.closing("}")  # one too many
        if begun:
            yield from cursor.closing("```")
    yield from cursor.closing("</tool_call>")


FAMILY = Family(
    name="hermes",
    openers=("<tool_call>",),
    parse=_parse,
    source="https://github.com/NousResearch/Hermes-Function-Calling (README, read 2026-11-21)",
    residue=("</tool_call>", "}", "</tool_calls>"),
)
