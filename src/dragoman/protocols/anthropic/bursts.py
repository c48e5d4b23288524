"""Deltas that came together and let one block grow: their shape, told by the JSON reader itself.

What does not fit these Structs is read event by event (`decode.py`), which gives the same events.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from dragoman import _json
from dragoman.alike import read_alike

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
        takes, key = "text_delta", b'"text"'
    elif b'"input_json_delta"' in first:
        takes, key = "input_json_delta", b'"partial_json"'
    else:
        takes, key = "thinking_delta", b'"thinking"'
    alike = read_alike(lines, key)
    told = lines[:1] if alike else lines
    if takes == "text_delta":
        found = [(event.index, event.delta.text) for event in _decode_texts(told) or ()]
    elif takes == "input_json_delta":
        found = [(event.index, event.delta.partial_json) for event in _decode_json(told) or ()]
    else:
        found = [(event.index, event.delta.thinking) for event in _decode_thinking(told) or ()]
    index = found[0][0] if found else 0
    texts = [text for at, text in found if at == index and text]
    return Burst(takes, index, alike or texts) if found and len(texts) == len(found) else None
