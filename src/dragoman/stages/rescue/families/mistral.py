"""Mistral: `[TOOL_CALLS]NAME[ARGS]{…}` for each call, from tokenizer v11 on. Some versions add `[CALL_ID]…`, some leave
out `[ARGS]`. Older models write `[TOOL_CALLS] [{"name": …, "arguments": …}]`."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import head_until, named
from dragoman.stages.rescue.json_calls import call_objects, named_call

_NAME: Final = re.compile(r"[^\s\[\]{}<>]+")
#: An id is one word: what else stands before the arguments may be another call.
_ID: Final = re.compile(r"[^\s\[\]{}<>]*+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    cursor.stops = (opener, "</s>")
    yield from cursor.space()
    if (yield from cursor.peek()) in ("[", "{"):
        yield from call_objects(cursor, tools)
    else:
        yield from _named(cursor, tools)
    yield from cursor.closing("[/TOOL_CALLS]", "</s>")


def _named(cursor: Cursor, tools: Tools) -> Parser:
    name = yield from named(cursor, tools, _NAME)
    yield from cursor.space()
    mark = yield from cursor.take("[CALL_ID]", "[ARGS]")
    call_id = ""
    if mark == "[CALL_ID]":
        call_id, mark = yield from head_until(cursor, "[ARGS]", "[TOOL_CALLS]")
        if mark != "[ARGS]" or not _ID.fullmatch(call_id.strip()):
            raise NotACall
    if mark:
        yield from cursor.space()
    elif (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name, call_id)


FAMILY = Family(
    name="mistral",
    openers=("[TOOL_CALLS]",),
    parse=_parse,
    source="https://docs.vllm.ai/en/latest/api/vllm/tool_parsers/mistral_tool_parser/ (read 2026-11-21)",
    residue=("</s>",),
)
