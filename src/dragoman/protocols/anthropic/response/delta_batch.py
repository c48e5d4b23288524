"""Decode deltas that came together and let one block grow, with a Struct of their shape.

What does not fit these Structs is read event by event (`decode.py`), with the same result.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from dragoman import _json
from dragoman.codec.delta_batch import narrowed, read_alike
from dragoman.protocols.anthropic.wire import Delta, StreamEvent


class Burst(NamedTuple):
    """The deltas of one block. `takes`: their type; `block`: its index; `texts`: none of them empty."""

    takes: str
    block: int
    texts: list[str]


def _deltas(kind: str, key: str) -> Any:
    """Return a decoder of lines that each are a delta of one kind, with its text under this key."""
    delta = narrowed(Delta, {"type": Literal[kind], key: str})
    event = narrowed(StreamEvent, {"type": Literal["content_block_delta"], "index": int, "delta": delta})
    return _json.lines_decoder(event)


_decode_texts: Final = _deltas("text_delta", "text")
_decode_thinking: Final = _deltas("thinking_delta", "thinking")
_decode_json: Final = _deltas("input_json_delta", "partial_json")


def read_burst(lines: list[bytes]) -> Burst | None:
    """Return the combined deltas, or None if they are not all of one kind and block."""
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
    is_json = takes == "input_json_delta"
    if (is_json or not alike) and any(line.count(key) > 1 or (is_json and line.count(b'"index"') > 1) for line in told):
        return None  # it may be told twice; a delta holds the key each time
    if takes == "text_delta":
        found = [(event.index, event.delta.text) for event in _decode_texts(told) or ()]
    elif takes == "input_json_delta":
        found = [(event.index, event.delta.partial_json) for event in _decode_json(told) or ()]
    else:
        found = [(event.index, event.delta.thinking) for event in _decode_thinking(told) or ()]
    index = found[0][0] if found else 0
    texts = [text for at, text in found if at == index and text]
    return Burst(takes, index, alike or texts) if found and len(texts) == len(found) else None
