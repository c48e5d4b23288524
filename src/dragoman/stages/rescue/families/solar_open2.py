"""Solar Open 2: `<|tool_call:start|>NAME` and a line end, then `<|tool_arg:start|>KEY<|tool_arg:value|>value
<|tool_arg:end|>` for each argument, then `<|tool_call:end|>`. White space in a value is data."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Cursor, Family, NotACall, Parser
from dragoman.stages.rescue.heads import named, plain_until
from dragoman.stages.rescue.typed_tags import Tags, tagged_call

_CALL: Final = "<|tool_call:start|>"


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    yield from cursor.space()
    name = yield from named(cursor, tools)
    if not (yield from cursor.peek()):
        raise NotACall
    yield from tagged_call(cursor, tools, name, _TAGS)


def _head(cursor: Cursor) -> Generator[Action, None, tuple[str, str]]:
    return (yield from plain_until(cursor, "<|tool_arg:value|>")), ""


_TAGS: Final = Tags(
    ("<|tool_arg:start|>",), _head, ("<|tool_arg:end|>",), ("<|tool_call:end|>",), calls=(_CALL, "<|tool_arg:value|>")
)

FAMILY = Family(
    name="solar-open2",
    openers=(_CALL,),
    parse=_parse,
    source="https://github.com/vllm-project/vllm (tests/tool_parsers/test_solar_open2_tool_parser.py, read 2026-11-22)",
    residue=("<|tool_call:end|>",),  # its own token
    value_ends=("<|tool_arg:end|>",),
)
