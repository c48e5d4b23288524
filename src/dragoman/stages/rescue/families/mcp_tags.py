"""MiroThinker, Cline, and models that learned their prompts: `<use_mcp_tool><server_name>…</server_name>
<tool_name>NAME</tool_name><arguments>{…}</arguments></use_mcp_tool>`. One block sometimes holds several calls."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import plain_until
from dragoman.stages.rescue.json_calls import tagged_call

_END: Final = "</use_mcp_tool>"
_SERVER: Final = "<server_name>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from cursor.space()
    yield from cursor.expect(_SERVER)
    while True:
        if not (yield from plain_until(cursor, "</server_name>")):
            raise NotACall
        yield from cursor.space()
        yield from cursor.expect("<tool_name>")
        yield from tagged_call(cursor, tools, "tool_name", _END)
        if (yield from cursor.closing(_SERVER, _END)) != _SERVER:
            return


FAMILY = Family(
    name="mcp-tags",
    openers=("<use_mcp_tool>",),
    parse=_parse,
    source="https://github.com/ggml-org/llama.cpp (models/templates/MiroThinker-v1.jinja, read 2026-11-22)",
    residue=("</use_mcp_tool>", "<|im_end|>"),  # MiroThinker-v1.jinja, as above
)
