"""Llama 3.1, 3.2, xLAM and small models: the whole message is `{"name": …, "parameters": {…}}`, or several of them."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.json_calls import call_object

#: Tags and tokens of families that write JSON, without the ones that open.
_ENDS: Final = ("</tool_call>", "</tool_calls>", "</TOOLCALL>", "[/TOOL_CALLS]", "</function_call>", "</tools>")

#: HyperCLOVA X Think 14B's, behind a prompt that ends with `assistant`.
_ROLE: Final = "-> tool/function_call"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if opener == _ROLE:
        yield from cursor.space()
        opener = yield from cursor.expect("[", "{")
    if opener == "[":
        yield from cursor.space()
        yield from cursor.expect("{")
    while True:
        yield from call_object(cursor, tools, is_message=True)
        found = yield from cursor.closing("{", ",", ";", "]")
        if found in (",", ";"):
            yield from cursor.space()
            found = yield from cursor.expect("{")
        if found != "{":
            break
    if (found == "]") != (opener == "["):
        raise NotACall


FAMILY = Family(
    name="bare-json",
    openers=("{", "[", _ROLE),
    parse=_parse,
    where="message",
    source="https://github.com/meta-llama/llama-models (models/llama3_1/prompt_format.md, read 2026-11-21)",
    residue=("}", *_ENDS),  # one brace too many
)
