"""LM Studio's own form, which it asks for where a model has none: a call object,
`[TOOL_REQUEST]{"name": …, "arguments": {…}}[END_TOOL_REQUEST]`."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects

_END: Final = "[END_TOOL_REQUEST]"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from call_objects(cursor, tools, _END)


FAMILY = Family(
    name="lm-studio",
    openers=("[TOOL_REQUEST]",),
    parse=_parse,
    source="https://lmstudio.ai/docs/advanced/tool-use (read 2026-11-26)",
    residue=(_END,),
)
