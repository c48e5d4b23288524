"""Llama 3: `<|python_tag|>`, then `{"name": …, "parameters": {…}}` or a Python call (`brave_search.call(query="…")`).
A `;` separates several objects. The custom format is `<function=NAME>{…}</function>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import bare_name, begun
from dragoman.stages.rescue.json_calls import call_objects, named_call
from dragoman.stages.rescue.python_calls import python_calls


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if opener == "<function=":
        yield from _custom(cursor, tools)
    else:
        yield from cursor.space()
        if (yield from cursor.peek()) == "{":
            yield from call_objects(cursor, tools)
        else:
            yield from python_calls(cursor, tools)
    yield from cursor.closing("<|eom_id|>", "<|eot_id|>")


def _custom(cursor: Cursor, tools: Tools) -> Parser:
    cursor.stops = ("</function>",)
    written = yield from bare_name(cursor)
    name = yield from begun(tools, written.strip("\"'"))
    yield from cursor.take(">")  # now and then it is missing
    yield from cursor.space()
    if (yield from cursor.peek()) != "{":
        raise NotACall
    yield from named_call(cursor, name)
    yield from cursor.closing("</function>")


FAMILY = Family(
    name="llama3",
    openers=("<|python_tag|>", "<function="),
    parse=_parse,
    source="https://github.com/meta-llama/llama-models (models/llama3_1/prompt_format.md, read 2026-11-21)",
    residue=("<|eom_id|>", "<|eot_id|>", "</function>"),
)
