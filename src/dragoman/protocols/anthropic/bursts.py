"""Deltas that came together and let one block grow: their shape, told by the JSON reader itself.

What does not fit these Structs is read event by event (`decode.py`), which gives the same events.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from dragoman import _json

_Type: TypeAlias = Literal["content_block_delta"]


class _Text(msgspec.Struct, gc=False):
    text: str
    type: Literal["text_delta"]


class _Thinking(msgspec.Struct, gc=False):
    thinking: str
    type: Literal["thinking_delta"]


class _Json(msgspec.Struct, gc=False):
    partial_json: str
    type: Literal["input_json_delta"]


class _TextEvent(msgspec.Struct, gc=False):
    type: _Type
    index: int
    delta: _Text
    error: None = None


class _ThinkingEvent(msgspec.Struct, gc=False):
    type: _Type
    index: int
    delta: _Thinking
    error: None = None


class _JsonEvent(msgspec.Struct, gc=False):
    type: _Type
    index: int
    delta: _Json
    error: None = None


class Burst(NamedTuple):
    """`takes`: the type of the deltas; `block`: its index; `texts`: none of them empty."""

    takes: str
    block: int
    texts: list[str]


_decode_texts: Final = _json.lines_decoder(_TextEvent)
_decode_thinking: Final = _json.lines_decoder(_ThinkingEvent)
_decode_json: Final = _json.lines_decoder(_JsonEvent)


def read_burst(lines: list[bytes]) -> Burst | None:
    """What the events say together; None when they are not all of one kind, or not of one block."""
    first = lines[0]
    found: list[tuple[int, str]] = []
    if b'"text_delta"' in first:
        takes = "text_delta"
        found = [(event.index, event.delta.text) for event in _decode_texts(lines) or ()]
    elif b'"input_json_delta"' in first:
        takes = "input_json_delta"
        found = [(event.index, event.delta.partial_json) for event in _decode_json(lines) or ()]
    else:
        takes = "thinking_delta"
        found = [(event.index, event.delta.thinking) for event in _decode_thinking(lines) or ()]
    index = found[0][0] if found else 0
    texts = [text for at, text in found if at == index and text]
    return Burst(takes, index, texts) if found and len(texts) == len(found) else None
