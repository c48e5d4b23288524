"""A member or a type of a wire under another spelling: what it told is read, or somebody is told that it was not.

Each member of each frame of a stream of text and two calls, and each type that a frame names, is renamed, one at a
time. Calls run exactly as they were made or not at all, and what is lost is an error or a deviation.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

import wires
from dragoman.decoding import decode
from dragoman.events import Failure, Reply
from wires import Frame

Json = Any
TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {"bell": {}, "times": {}}}}
    for name in ("ring", "mute")
]
CALLS = [("ring", {"bell": "a b c", "times": 2}), ("mute", {"bell": "d"})]


def pieces(number: int) -> list[str]:
    """The arguments of the first call in two pieces, of the second in one."""
    text = json.dumps(CALLS[number][1])
    return [text[:9], text[9:]] if number == 0 else [text]


def chat() -> list[Frame]:
    calls: list[Frame] = []
    for at, (name, _) in enumerate(CALLS):
        calls += [wires.chat_call(name, at=at), *(wires.chat_piece(text, at) for text in pieces(at))]
    said = [wires.chat_chunk({"role": "assistant", "content": "I "}), wires.chat_chunk({"content": "see."})]
    return [{"id": "x", **frame} for frame in (*said, *wires.chat_stream(*calls))]


def chat_whole() -> list[Frame]:
    calls = [wires.chat_call(name, json.dumps(arguments), at) for at, (name, arguments) in enumerate(CALLS)]
    return [{"id": "x", "model": "m", **wires.chat_answer(*calls, content="I see.")}]


def messages() -> list[Frame]:
    blocks = wires.block_of({"type": "text", "text": ""}, {"type": "text_delta", "text": "I see."})
    for at, (name, _) in enumerate(CALLS, 1):
        blocks += wires.block_of(wires.tool_use(name, at=at), *map(wires.json_delta, pieces(at - 1)), at=at)
    return wires.messages_stream(*blocks, usage={"output_tokens": 9})


def messages_whole() -> list[Frame]:
    blocks = [wires.tool_use(*call, at) for at, call in enumerate(CALLS)]
    answer = wires.messages_answer({"type": "text", "text": "I see."}, *blocks)
    return [{**answer, "usage": {"output_tokens": 9}}]


def responses() -> list[Frame]:
    message = {"type": "message", "id": "t", "role": "assistant", "content": []}
    told = {**message, "content": [{"type": "output_text", "text": "I see."}]}
    place = {"output_index": 0, "item_id": "t", "content_index": 0}
    delta = {"type": "response.output_text.delta", **place, "delta": "I see."}
    frames: list[Frame] = [wires.item_added(message), delta, wires.item_done(told)]
    for at, (name, arguments) in enumerate(CALLS, 1):
        frames += [wires.item_added(wires.function_call(name, at=at), at)]
        frames += [wires.arguments_delta(text, at) for text in pieces(at - 1)]
        frames += [wires.item_done(wires.function_call(name, json.dumps(arguments), at, status="completed"), at)]
    *frames, last = wires.responses_stream(*frames)
    return [*frames, {**last, "response": {"id": "r", "model": "m", "status": "completed"}}]


def gemini() -> list[Frame]:
    parts = [{"text": "I see."}, *(wires.gemini_call(*call) for call in CALLS)]
    return [wires.gemini_chunk(part, reason="STOP" if part == parts[-1] else None, index=0) for part in parts]


def gemini_pieces() -> list[Frame]:
    calls: list[Frame] = []
    for name, told in CALLS:
        calls += [{"name": name, "willContinue": True}, *wires.partial_args(told), {}]
    parts = [{"text": "I see."}, *({"functionCall": call} for call in calls)]
    return [*(wires.gemini_chunk(part, index=0) for part in parts), wires.gemini_chunk(reason="STOP", index=0)]


def ollama() -> list[Frame]:
    calls = [wires.ollama_call(*call) for call in CALLS]
    return [wires.ollama_line(content="I see."), *wires.ollama_stream(*calls)]


STREAMS = {
    "openai-chat": chat, "openai-chat whole": chat_whole, "anthropic-messages": messages,
    "anthropic-messages whole": messages_whole, "openai-responses": responses, "gemini-generate": gemini,
    "gemini-generate in pieces": gemini_pieces, "ollama-chat": ollama,
}  # fmt: skip


def spellings(word: str) -> list[str]:
    return [f"{word}_x", f"x{word}", word.upper(), word.replace("_", "") + "s", word.title()]


def renamed(value: Json) -> Iterator[tuple[str, Json]]:
    """The value with one member, or one type that it names, under another spelling; what calls are given is left."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from ((how, [*value[:number], other, *value[number + 1 :]]) for how, other in renamed(item))
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        for word in spellings(key):
            if word not in value:
                yield f"{key} as {word}", {word if name == key else name: one for name, one in value.items()}
        if key == "type":
            for word in spellings(item):
                yield f"type {word}", {**value, key: word}
        if key not in ("args", "input") and not (key == "arguments" and isinstance(item, dict)):
            yield from ((how, {**value, key: other}) for how, other in renamed(item))


def body(protocol: str, frames: list[Frame], *, is_whole: bool) -> bytes:
    return wires.body_of(protocol, frames, is_whole=is_whole, is_named=False)


def told(reply: Reply) -> list[tuple[str, Json]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_spelt_otherwise_is_read_or_told(name: str):
    protocol, _, form = name.partition(" ")
    frames = STREAMS[name]()
    is_whole = form == "whole"
    good = decode(body(protocol, frames, is_whole=is_whole), protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert (told(good), good.text, good.error) == (CALLS, "I see.", None)
    known = {(one.code, one.where) for one in good.deviations}
    count = 0
    for how, other in renamed(copy.deepcopy(frames)):
        count += 1
        reply = decode(body(protocol, other, is_whole=is_whole), protocol, tools=TOOLS)  # type: ignore[arg-type]
        calls = told(reply)
        names = [call for call in calls if call in CALLS or (call[0] not in ("ring", "mute") and call[1] != {})]
        assert calls == names or type(reply.error) is Failure, (how, calls)  # whose calls nobody runs
        if calls != CALLS or reply.text != "I see.":
            news = {(one.code, one.where) for one in reply.deviations} - known
            kept = [] if reply.native is None else list(map(bytes, reply.native.fields.values()))
            is_kept = calls == CALLS and any(word in text for text in kept for word in (b'"I ', b'see."'))
            assert reply.error is not None or news or is_kept, (how, calls, reply.text)
    assert count > 40
