"""Poolside Laguna: `<tool_call>NAME`, then the arguments as JSON, `{…}</tool_call>`. It also writes GLM's form. In both
forms, and with a whole JSON call, it sometimes writes `<user>` for `<tool_call>`, and closes it with `</user>` or with
the right tag. Step-Audio 2 writes `function` in a line of its own before the name."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.argument_tags import argument_pairs
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import bare_name, begun, words_before
from dragoman.stages.rescue.json_calls import call_objects, named_call

_KEY: Final = "<arg_key>"
_SLIP: Final = "<user>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    ends = ("</tool_call>", "</user>") if opener == _SLIP else ("</tool_call>",)
    cursor.stops = ends
    yield from cursor.space()
    if opener == _SLIP and (yield from cursor.peek()) == "{":
        yield from call_objects(cursor, tools, *ends)
        return
    written = yield from bare_name(cursor)
    if written == "function" and not tools.offered(written) and (yield from cursor.take("\n")):
        written = yield from bare_name(cursor)
    name = yield from begun(tools, written)
    if opener == _SLIP and (
        (yield from cursor.sees(_KEY)) or (yield from words_before(cursor, (_KEY,), ("</arg_value>",), (_SLIP, *ends)))
    ):
        return (yield from argument_pairs(cursor, tools, name, ends=ends))
    yield from cursor.space()
    if (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name)
    yield from cursor.closing(*ends)


FAMILY = Family(
    name="laguna",
    openers=("<tool_call>", _SLIP),
    parse=_parse,
    source="https://github.com/ollama/ollama/pull/17603 (the parser of the model's forms, read 2026-11-21)",
    residue=("</tool_call>", "</assistant>"),
    value_ends=("</arg_value>",),
)
