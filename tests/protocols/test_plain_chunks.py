"""Chunks that are read by one typed decode give what the long way gives: with each key told twice, of each type, left
out, renamed, and with further ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.events import Event
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.openai_chat.response import decode
from profiles import IS_SOAK

USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
#: What may stand in place of a value, or before it.
VALUES: tuple[Any, ...] = (None, "", "x", "\u00e9", 1, 0, True, [], ["x"], {}, {"a": 1}, '{"b": 2}')


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "f"}
    return {**head, "choices": [choice], **more}


def call(index: int = 0, arguments: str = '{"a": 1}') -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "type": "function", "function": {"name": "f", "arguments": arguments}}


STREAMS: tuple[list[dict[str, Any]], ...] = (
    [chunk({"role": "assistant", "content": None, "tool_calls": [call()]}), chunk({}, "tool_calls", usage=USAGE)],
    [chunk({"role": "assistant", "content": ""}), chunk({"tool_calls": [call(), call(1)]}), chunk({}, "tool_calls"),
     {**chunk({}), "choices": [], "usage": USAGE}],
    [chunk({"tool_calls": [call(arguments="")]}), chunk({"tool_calls": [call(1)]}, "tool_calls", usage=None)],
    [chunk({"content": ""}), {**chunk({}), "choices": [], "usage": {**USAGE, "error": {"message": "overloaded"}}}],
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        if isinstance(value, dict):
            yield (*path, key)
        yield from places(inner, (*path, key))


def written(value: Any, path: tuple[Any, ...], change: str, other: Any) -> str:
    """Write a value with one member changed: "twice" (before or behind), "other", "gone", "renamed" or "beside"."""
    if isinstance(value, list):
        inner = (written(each, path[1:] if path[:1] == (at,) else (), change, other) for at, each in enumerate(value))
        return f"[{','.join(inner)}]"
    if not isinstance(value, dict):
        return json.dumps(value)
    members = []
    for key, each in value.items():
        if path != (key,):
            members.append((key, written(each, path[1:] if path[:1] == (key,) else (), change, other)))
            continue
        told, more = (key, json.dumps(each)), (key, json.dumps(other))
        members += {
            "before": [more, told], "behind": [told, more], "other": [more], "gone": [],
            "renamed": [(key.title(), told[1])], "beside": [told, (f"x_{key}", more[1])],
        }[change]  # fmt: skip
    return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in members) + "}"


def events(frames: list[str]) -> list[Event]:
    decoder = PROTOCOLS["openai-chat"].decoder(new_id=lambda: "n" * 24, offered_names=frozenset({"f"}))
    body = "".join(f"data: {frame}\n\n" for frame in (*frames, "[DONE]"))
    return [*decoder.feed(body.encode()), *decoder.close()]


def test_the_short_way_and_the_long_way_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [[json.dumps(frame, separators=(",", ":")) for frame in stream] for stream in STREAMS]
    for stream, frames in zip(STREAMS, list(streams), strict=True):
        for at, frame in enumerate(stream):
            for path in places(frame):
                for change in ("before", "behind", "other", "gone", "renamed", "beside"):
                    some = VALUES if IS_SOAK else VALUES[len(streams) % 2 :: 2]
                    for other in some if change in ("before", "behind", "other") else VALUES[:1]:
                        streams.append([*frames[:at], written(frame, path, change, other), *frames[at + 1 :]])
    short = list(map(events, streams))
    monkeypatch.setattr(decode, "read_plain", lambda frame: None)
    differ = [frames for frames, seen in zip(streams, short, strict=True) if events(frames) != seen]
    assert len(streams) > 1500 and not differ, (len(differ), differ[:2])
