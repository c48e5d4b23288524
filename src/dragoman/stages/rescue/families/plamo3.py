"""PLaMo 3: `<|plamo:begin_tool_request:plamo|>`, then a name and a JSON object, each in tags of its own (`tool_name`,
`tool_arguments`). `<|plamo:begin_tool_requests:plamo|>` holds any number of these. Tokens may tell that the arguments
are JSON."""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.heads import begun
from dragoman.stages.rescue.json_calls import named_call

_JSON: Final = "<|plamo:constrain|>json<|plamo:msg|>"
_NAME: Final = re.compile(r"[^\r\n<>]+")


def _begin(word: str) -> str:
    return f"<|plamo:begin_{word}:plamo|>"


def _end(word: str) -> str:
    return f"<|plamo:end_{word}:plamo|>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    cursor.stops = (_end("tool_arguments"), _end("tool_request"))
    if opener == _begin("tool_requests"):
        yield from cursor.space()
        yield from cursor.expect(_begin("tool_request"))
    yield from cursor.space()
    yield from cursor.expect(_begin("tool_name"))
    name = yield from begun(tools, (yield from cursor.word(_NAME)).strip())
    yield from cursor.expect(_end("tool_name"))
    yield from cursor.space()
    yield from cursor.expect(_begin("tool_arguments"))
    yield from cursor.space()
    yield from cursor.take(_JSON)
    yield from cursor.space()
    yield from named_call(cursor, name, ends=(_end("tool_arguments"),))
    yield from cursor.closing(_end("tool_arguments"))
    yield from cursor.closing(_end("tool_request"))
    yield from cursor.closing(_end("tool_requests"))


FAMILY = Family(
    name="plamo3",
    openers=(_begin("tool_requests"), _begin("tool_request")),
    parse=_parse,
    source="https://github.com/vllm-project/vllm (vllm/tool_parsers/plamo3_tool_parser.py, read 2026-11-22)",
    residue=(
        _end("tool_request"),
        _end("tool_requests"),
        "<|plamo:eos|>",
        "<|plamo:tag|>",
    ),  # its own tokens, and the turn tokens of PLaMo's tokenizer and template
)
