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
#: The same on a line of its own, where the tag is missing that closes the argument before it.
_UNCLOSED: Final = "\n<parameter="


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
    stop = ""
    while True:
        yield from cursor.space()
        mark = _PARAMETERS[0] if stop == _UNCLOSED else (yield from cursor.take(*_PARAMETERS, "</function>", end))
        if not keys:
            if not mark and cursor.rest():
                raise NotACall
            yield Open(name, in_tags=True)
        if mark not in _PARAMETERS:
            if mark:
                yield Piece("}" if keys else "{}")
            yield Close(mark)
            return
        written = yield from cursor.word(_NAME)
        key, closed = written.strip().strip("\"'"), (yield from cursor.take(">"))
        is_next = bool(closed) and tools.schema(name).has_member(key) and not tools.offered(key) and key not in keys
        if stop == _UNCLOSED and not is_next and (closed or cursor.rest()):
            return (yield from refused_to_the_end(cursor, f"{stop}{written}{closed}"))
        if not closed:
            yield Close("")
            return
        if key in keys:  # two readings
            yield from refused(cursor, ("</function>", end))
            return
        yield Piece(f"{', ' if keys else '{'}{_json.encode_text(key).decode()}: ")
        keys.append(key)
        stop = yield from value_until(
            cursor, tools, name, key, ("</parameter>", _UNCLOSED, "<parameter=", mark, "<function=", "<invoke name=")
        )
        if not stop:
            yield Close("")
            return
        if stop not in ("</parameter>", _UNCLOSED):  # `<parameter=` begins a call too, in a slip
            return (yield from refused_to_the_end(cursor, stop))


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
