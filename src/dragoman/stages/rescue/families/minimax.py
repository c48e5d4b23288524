"""MiniMax M2: `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">value</parameter></invoke>
</minimax:tool_call>`. A block holds any number of calls. M1 writes call objects, one per line, between `<tool_calls>`
tags, in which others write M2's calls."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import invoke_calls
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if opener == "<tool_calls>" and (yield from cursor.peek()) == "{":
        yield from call_objects(cursor, tools, "</tool_calls>")
    else:
        yield from cursor.expect("<invoke name=")
        yield from invoke_calls(cursor, tools, ends=("</minimax:tool_call>", "</tool_calls>"))


FAMILY = Family(
    name="minimax",
    openers=("<minimax:tool_call>", "<tool_calls>"),
    parse=_parse,
    source="https://github.com/MiniMax-AI/MiniMax-M2.5/issues/10",
    residue=("</invoke>", "</minimax:tool_call>", "</tool_calls>", "[e~["),
    value_ends=("</parameter>",),
)
