"""MiniMax M2: `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">value</parameter></invoke>
</minimax:tool_call>`. A block holds any number of calls. Some write them in `<tool_calls>`, or `<tool_call>`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import invoke_calls
from dragoman.stages.rescue.cursor import Cursor, Family, Parser

_ENDS: Final = ("</minimax:tool_call>", "</tool_calls>", "</tool_call>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    yield from cursor.expect("<invoke name=")
    yield from invoke_calls(cursor, tools, ends=_ENDS)


FAMILY = Family(
    name="minimax",
    openers=tuple(end.replace("/", "") for end in _ENDS),
    parse=_parse,
    source="https://github.com/MiniMax-AI/MiniMax-M2.5/issues/10",
    residue=("</invoke>", *_ENDS, "[e~["),
    value_ends=("</parameter>",),
)
