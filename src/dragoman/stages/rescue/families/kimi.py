"""Kimi K2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}
<|tool_call_end|><|tool_calls_section_end|>`. The id `functions.NAME:0` holds the name."""

from __future__ import annotations

from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import BODY, Close, Cursor, Family, Open, Parser
from dragoman.stages.rescue.heads import bare_name, begun
from dragoman.stages.rescue.json_calls import named_call

_CALL: Final = "<|tool_call_begin|>"
ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_CALL_END: Final = "<|tool_call_end|>"
_SECTION_END: Final = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
RESIDUE: Final = (_CALL_END, *_SECTION_END)
_OPENERS: Final = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", _CALL)


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call; the next one has its own marker."""
    if opener != _CALL:
        yield from cursor.space()
        yield from cursor.expect(_CALL)
    yield from cursor.space()
    yield from _call(cursor, tools, (yield from bare_name(cursor)))


def parse_named(cursor: Cursor, tools: Tools, written: str) -> Parser:
    """Parse calls from behind the name of the first on, before which its tokens were removed."""
    yield from _call(cursor, tools, written)
    while opener := (yield from cursor.closing(*_OPENERS)):
        yield from _parse(cursor, tools, opener)


def _call(cursor: Cursor, tools: Tools, written: str) -> Parser:
    cursor.stops = RESIDUE
    name = yield from begun(tools, written)
    yield from cursor.space()
    yield from cursor.expect(ARGUMENTS)
    yield from cursor.space()
    if (yield from cursor.peek()) == '"':  # the object in a string
        yield Open(name, written)
        yield Close(BODY if (yield from cursor.json_pieces()) else "")
    else:
        yield from named_call(cursor, name, written, ends=(_CALL_END,))
    yield from cursor.closing(_CALL_END)
    yield from cursor.closing(*_SECTION_END)


FAMILY = Family(
    name="kimi",
    openers=_OPENERS,
    parse=_parse,
    source="https://huggingface.co/moonshotai/Kimi-K2-Thinking/blob/main/docs/tool_call_guidance.md (read 2026-11-21)",
    residue=RESIDUE,
)
