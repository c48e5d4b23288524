"""LongCat: a call object between `<longcat_tool_call>` tags. Or the name and its arguments in tags:
`<longcat_tool_call>NAME<longcat_arg_key>KEY</longcat_arg_key><longcat_arg_value>value</longcat_arg_value>…`.
`<longcat_tool_all>` may stand around calls, or in place of their tags."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import argument_pairs
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.heads import named
from dragoman.stages.rescue.json_calls import call_objects

_CALL: Final = "<longcat_tool_call>"
_END: Final = "</longcat_tool_call>"
_ALL: Final = "<longcat_tool_all>"
_ALL_END: Final = "</longcat_tool_all>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    cursor.stops = (_END, _ALL_END)
    yield from cursor.space()
    if opener == _ALL and (yield from cursor.take(_CALL)):
        yield from cursor.space()
    if (yield from cursor.peek()) in ("{", "["):
        yield from call_objects(cursor, tools, *cursor.stops)
        return
    name = yield from named(cursor, tools)
    yield from argument_pairs(cursor, tools, name, prefix="longcat_", ends=cursor.stops)


FAMILY = Family(
    name="longcat",
    openers=(_CALL, _ALL),
    parse=_parse,
    source="https://community.vercel.com/t/parsing-custom-xml-tool-calls-from-longcat-flash-models-in-vercel-ai-sdk/33601",
    residue=(_END, _ALL_END, "</longcat_s>"),  # the turn token: the model card of LongCat-Flash-Chat
    value_ends=("</longcat_arg_value>",),
)
