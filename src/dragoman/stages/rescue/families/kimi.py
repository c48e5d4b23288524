"""Kimi K2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}
<|tool_call_end|><|tool_calls_section_end|>`. The id `functions.NAME:0` holds the name. A message may begin with that
id: its server has taken away the tokens before it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import BODY, Action, Close, Cursor, Family, Open, Parser
from dragoman.stages.rescue.heads import bare_name, begun
from dragoman.stages.rescue.json_calls import named_call

_CALL: Final = "<|tool_call_begin|>"
_BEFORE: Final = ("functions.", "")
_CALL_END: Final = "<|tool_call_end|>"
_ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_SECTION_END: Final = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    """Parse one call, and those behind it that have lost their own marker: their number tells them."""
    cursor.stops = (_CALL_END, *_SECTION_END)
    if opener != _CALL:
        yield from cursor.space()
        yield from cursor.expect(_CALL)
    number = yield from _call(cursor, tools)
    while number.isdecimal() and not (yield from cursor.sees("<|")):
        number = str(int(number) + 1)
        ends = f":{number}{_ARGUMENTS}"
        if not (yield from cursor.sees(*(f"{before}{name}{ends}" for name in tools.names() for before in _BEFORE))):
            return
        yield from _call(cursor, tools)


def _call(cursor: Cursor, tools: Tools) -> Generator[Action, None, str]:
    """Parse a call from its id on, and return its number, "" if its tool was not offered."""
    yield from cursor.space()
    written = yield from bare_name(cursor)
    name = yield from begun(tools, written)
    yield from cursor.space()
    yield from cursor.expect(_ARGUMENTS)
    yield from cursor.space()
    if (yield from cursor.peek()) == '"':  # the object in a string
        yield Open(name, written)
        yield Close(BODY if (yield from cursor.json_pieces()) else "")
    else:
        yield from named_call(cursor, name, written, ends=(_CALL_END,))
    yield from cursor.closing(_CALL_END)
    yield from cursor.closing(*_SECTION_END)
    return written.rpartition(":")[2] if tools.has(name) else ""


FAMILY = Family(
    name="kimi",
    openers=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", _CALL),
    parse=_parse,
    source="https://huggingface.co/moonshotai/Kimi-K2-Thinking/blob/main/docs/tool_call_guidance.md (read 2026-11-21)",
    prompted=(_CALL, "", _ARGUMENTS),
    residue=(_CALL_END, *_SECTION_END),
)
