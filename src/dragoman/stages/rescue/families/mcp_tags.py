"""MiroThinker, Cline and what models write that learned their prompts: `<use_mcp_tool><server_name>…</server_name>
<tool_name>NAME</tool_name><arguments>{…}</arguments></use_mcp_tool>`, now and then with several calls in it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman.stages.rescue.cursor import Action, Cursor, Family, NotACall, Parser, Tools
from dragoman.stages.rescue.json_calls import named_call

_END: Final = "</use_mcp_tool>"
_SERVER: Final = "<server_name>"
_LIMIT: Final = 400


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    cursor.stops = ("</arguments>", _END)
    yield from cursor.space()
    yield from cursor.expect(_SERVER)
    while True:
        yield from _inside(cursor, "</server_name>")
        yield from cursor.space()
        yield from cursor.expect("<tool_name>")
        name = tools.offered((yield from _inside(cursor, "</tool_name>")))
        if name is None:
            raise NotACall
        yield from cursor.space()
        yield from cursor.expect("<arguments>")
        yield from cursor.space()
        yield from named_call(cursor, name)
        yield from cursor.closing("</arguments>")
        if (yield from cursor.closing(_SERVER, _END)) != _SERVER:
            return


def _inside(cursor: Cursor, end: str) -> Generator[Action, None, str]:
    text, closed = yield from cursor.until(end, limit=_LIMIT)
    if not closed:
        raise NotACall
    return text.strip()


FAMILY = Family(
    name="mcp-tags",
    openers=("<use_mcp_tool>",),
    parse=_parse,
    source="https://github.com/ggml-org/llama.cpp (models/templates/MiroThinker-v1.jinja, read 2026-11-22)",
    residue=(
        "</use_mcp_tool>",
        "<|im_end|>",
    ),  # MiroThinker-v1.jinja, as above
)
