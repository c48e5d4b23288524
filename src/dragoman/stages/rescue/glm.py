"""GLM 4.5 to 4.7, Laguna: `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>value</arg_value>…</tool_call>`, with a line
end after the name and between the tags in 4.5. Text in a value is as it stands, white space included."""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json
from dragoman.stages.rescue.cursor import Close, Cursor, Family, NotACall, Open, Parser, Piece, Tools
from dragoman.stages.rescue.xml_values import value_until

_NAME: Final = re.compile(r"[^\s<>{}]+")
_KEY: Final = re.compile(r"[^<>\n]+")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    written = yield from cursor.word(_NAME)
    name = tools.offered(written)
    if name is None:
        raise NotACall
    space = yield from cursor.space()
    mark = yield from cursor.take("<arg_key>", "</tool_call>")
    if not mark and (cursor.rest() or not space):
        raise NotACall
    yield Open(name)
    keys: list[str] = []
    while mark == "<arg_key>":
        key = (yield from cursor.word(_KEY)).strip()
        if not (yield from cursor.take("</arg_key>")) or not (yield from cursor.closing("<arg_value>")):
            break
        yield Piece(f"{', ' if keys else '{'}{_json.encode_text(key).decode()}: ")
        keys.append(key)
        if not (yield from value_until(cursor, tools, name, key, ("</arg_value>",), trim=False)):
            break
        mark = yield from cursor.closing("<arg_key>", "</tool_call>")
        if not mark and tools.has_required(name, keys):
            mark = "</tool_call>"  # it is missing
    is_whole = mark == "</tool_call>"
    if is_whole:
        yield Piece("}" if keys else "{}")
    yield Close(is_cut=not is_whole)


FAMILY = Family(
    name="glm",
    openers=("<tool_call>",),
    parse=_parse,
    source="https://docs.vllm.ai/en/v0.22.1/api/vllm/tool_parsers/glm47_moe_tool_parser/ (read 2026-11-21)",
)
