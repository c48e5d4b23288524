"""Qwen3-Coder, Qwen 3.5, Nemotron: `<function=NAME><parameter=KEY>value</parameter></function>`, in `<tool_call>` tags.
The opening tag may be missing."""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json
from dragoman.stages.rescue.cursor import Close, Cursor, Family, NotACall, Open, Parser, Piece, Tools
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.typed_tags import refused, refused_to_the_end
from dragoman.stages.rescue.xml_values import value_until

_NAME: Final = re.compile(r"[^<>\n]+")
#: What begins an argument; the second one as others write it.
_PARAMETERS: Final = ("<parameter=", "<parameter name=")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if opener == "<tool_calls>":
        yield from cursor.space()
        opener = yield from cursor.expect("<tool_call>")
    if opener == "<tool_call>":
        yield from cursor.space()
        yield from cursor.expect("<function=", "<parameter=")  # quirk: Qwen 3.8 writes the one for the other
    yield from function_tag(cursor, tools, end="</tool_call>", is_wrapped=opener == "<tool_call>")
    yield from cursor.closing("</tool_call>")


def function_tag(cursor: Cursor, tools: Tools, *, end: str, is_wrapped: bool = True) -> Parser:
    """The call from behind `<function=` on. `end`: the tag around it, which ends it too, if it is there."""
    written = yield from cursor.word(_NAME)
    yield from cursor.expect(">")
    name = tools.offered(written.strip().strip("\"'"))
    if name is None:
        raise NotACall
    yield from cursor.space()
    if (yield from cursor.peek()) == "{":  # Llama's custom format
        if not is_wrapped:
            raise NotACall
        cursor.stops = ("</function>", end)
        yield from named_call(cursor, name)
        yield from cursor.closing("</function>")
        return
    keys: list[str] = []
    while True:
        yield from cursor.space()
        mark = yield from cursor.take(*_PARAMETERS, "</function>", end)
        if not keys:
            if not mark and cursor.rest():
                raise NotACall
            yield Open(name, in_tags=True)
        if mark not in _PARAMETERS:
            if mark:
                yield Piece("}" if keys else "{}")
            yield Close(mark)
            return
        key = yield from cursor.word(_NAME)
        if not (yield from cursor.take(">")):
            yield Close("")
            return
        key = key.strip().strip("\"'")
        if key in keys:  # two readings
            yield from refused(cursor, ("</function>", end))
            return
        yield Piece(f"{', ' if keys else '{'}{_json.encode_text(key).decode()}: ")
        keys.append(key)
        stop = yield from value_until(
            cursor, tools, name, key, ("</parameter>", "<parameter=", mark, "<function=", "<invoke name=")
        )
        if not stop:
            yield Close("")
            return
        if stop != "</parameter>":
            yield from refused_to_the_end(cursor, stop)  # `<parameter=` begins a call too, in a slip
            return


FAMILY = Family(
    name="qwen-xml",
    openers=("<tool_call>", "<function=", "<tool_calls>"),
    parse=_parse,
    source="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct (chat template, read 2026-11-21)",
    residue=(
        "</function>",
        "</tool_call>",
        "</tool_calls>",
        "<|im_end|>",
        "<|endoftext|>",
    ),
    value_ends=("</parameter>",),
)
