"""dots: `<dots_function_call><invoke name="NAME"><parameter name="KEY">value</parameter></invoke>
</dots_function_call>`. A block holds any number of calls, or one call object."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import invoke_calls
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects

_END: Final = "</dots_function_call>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    if (yield from cursor.peek()) in ("{", "["):
        yield from call_objects(cursor, tools, _END)
    else:
        yield from cursor.expect("<invoke name=")
        yield from invoke_calls(cursor, tools, ends=(_END,))


FAMILY = Family(
    name="dots",
    openers=("<dots_function_call>",),
    parse=_parse,
    source="https://github.com/sgl-project/sglang (function_call/dots_detector.py, read 2026-11-22)",
    residue=(_END, "<|endofresponse|>"),  # the turn token: dots.llm1's chat template
    value_ends=("</parameter>",),
)
