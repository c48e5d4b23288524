"""Objects and lists of a wire in another form than their place has, and members in another object than their own.

Each object of each frame of a stream of text and two calls stands alone in a list, or as JSON text; each list of one is
left out; each member moves to the object around its own, or into one beside it. Calls run exactly as they were made or
not at all, and what is lost is an error or a deviation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.decoding import decode
from dragoman.events import Failure, Reply
from test_renamed_members import CALLS, STREAMS, TOOLS, body, told

Json = Any
ARGUMENTS = ("args", "arguments", "input")


def responses_whole() -> list[Json]:
    items = [
        {"type": "function_call", "id": f"f{at}", "call_id": f"c{at}", "name": name, "arguments": json.dumps(told)}
        for at, (name, told) in enumerate(CALLS)
    ]
    text = {"type": "message", "id": "t", "role": "assistant", "content": [{"type": "output_text", "text": "I see."}]}
    return [{"id": "r", "object": "response", "status": "completed", "model": "m", "output": [text, *items]}]


def gemini_whole() -> list[Json]:
    parts = [{"text": "I see."}, *({"functionCall": {"name": name, "args": told}} for name, told in CALLS)]
    return [{"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}]}]


def ollama_whole() -> list[Json]:
    calls = [{"function": {"name": name, "arguments": told}} for name, told in CALLS]
    message = {"role": "assistant", "content": "I see.", "tool_calls": calls}
    return [{"model": "m", "created_at": "2026-11-23T00:00:00Z", "message": message, "done": True}]


WIRES = STREAMS | {
    "openai-responses whole": responses_whole, "gemini-generate whole": gemini_whole, "ollama-chat whole": ollama_whole,
}  # fmt: skip


def wrapped(value: Json) -> Iterator[tuple[str, Json]]:
    """The value with one object or list in another form; arguments are left."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:

        def put(other: Json, key: Any = key) -> Json:
            copied = dict(value) if isinstance(value, dict) else list(value)
            copied[key] = other
            return copied

        if isinstance(item, dict | list) and key not in ARGUMENTS:
            yield f"{key} in a list", put([item])
            if item:  # else it may be a text
                yield f"{key} as text", put(json.dumps(item))
            if isinstance(item, list) and len(item) == 1:
                yield f"{key} without its list", put(item[0])
            yield from ((how, put(other)) for how, other in wrapped(item))


def moved(value: Json) -> Iterator[tuple[str, Json]]:
    """The value with one member moved to the object around its own, or into one beside it."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from ((how, [*value[:at], other, *value[at + 1 :]]) for how, other in moved(item))
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        inner = item[0] if isinstance(item, list) and len(item) == 1 else item
        if key not in ARGUMENTS and isinstance(inner, dict):
            for name, one in inner.items():
                if name not in value:
                    rest = {other: told for other, told in inner.items() if other != name}
                    yield f"{name} beside {key}", {**value, key: [rest] if inner is not item else rest, name: one}
            for name, one in value.items():
                if name != key and name not in inner:
                    into = {**inner, name: one}
                    others = {other: told for other, told in value.items() if other != name}
                    yield f"{name} into {key}", {**others, key: [into] if inner is not item else into}
        if key not in ARGUMENTS:
            yield from ((how, {**value, key: other}) for how, other in moved(item))


def reply_to(name: str, frames: list[Json]) -> Reply:
    protocol, _, form = name.partition(" ")
    return decode(body(protocol, frames, is_whole=form == "whole"), protocol, tools=TOOLS)  # type: ignore[arg-type]


def changes(frames: list[Json], change: Any) -> Iterator[tuple[str, list[Json]]]:
    for at, frame in enumerate(frames):
        yield from ((f"{at}: {how}", [*frames[:at], other, *frames[at + 1 :]]) for how, other in change(frame))


@pytest.mark.parametrize("change", [wrapped, moved], ids=["wrapped", "moved"])
@pytest.mark.parametrize("name", WIRES)
def test_what_stands_elsewhere_is_read_or_told(name: str, change: Any):
    frames = WIRES[name]()
    good = reply_to(name, frames)
    assert (told(good), good.text, good.error) == (CALLS, "I see.", None)
    known = {(one.code, one.where) for one in good.deviations}
    count = 0
    for how, other in changes(frames, change):
        count += 1
        reply = reply_to(name, other)
        calls = told(reply)
        are_made = all(call in CALLS for call in calls) and len(calls) <= len(CALLS)
        assert are_made or type(reply.error) is Failure, (how, calls)  # whose calls nobody runs
        if calls != CALLS or reply.text != "I see.":
            news = {(one.code, one.where) for one in reply.deviations} - known
            kept = [] if reply.native is None else list(map(bytes, reply.native.fields.values()))
            is_kept = calls == CALLS and any(word in text for text in kept for word in (b"I ", b"see."))
            assert reply.error is not None or news or is_kept, (how, calls, reply.text)
    assert count > 2


#: The objects and lists around what an answer says.
AROUND = {
    "candidates", "choices", "content", "content_block", "delta", "item", "message", "output", "parts", "response",
}  # fmt: skip


@pytest.mark.parametrize("name", WIRES)
def test_what_has_one_reading_is_read(name: str):
    tried = 0
    for how, other in changes(WIRES[name](), wrapped):
        key = how.split(": ")[1].split(" ")[0]
        if key in AROUND and not (key in ("content", "message") and "text" in how):
            reply = reply_to(name, other)
            assert (told(reply), reply.text, reply.error) == (CALLS, "I see.", None), how
            tried += 1
    assert tried
