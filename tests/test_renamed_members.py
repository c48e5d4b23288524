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

from dragoman.decoding import decode
from dragoman.events import Failure, Reply

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


def chat() -> list[Json]:
    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    rows = [chunk({"role": "assistant", "content": "I "}), chunk({"content": "see."})]
    for index, (name, _) in enumerate(CALLS):
        call = {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        rows.append(chunk({"tool_calls": [call]}))
        rows += [chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]}) for text in pieces(index)]
    return [*rows, chunk({}, "tool_calls")]


def chat_whole() -> list[Json]:
    calls = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for index, (name, arguments) in enumerate(CALLS)
    ]
    message = {"role": "assistant", "content": "I see.", "tool_calls": calls}
    return [{"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}]


def messages() -> list[Json]:
    rows: list[Json] = [
        {"type": "message_start", "message": {"id": "m", "model": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I see."}},
        {"type": "content_block_stop", "index": 0},
    ]
    for index, (name, _) in enumerate(CALLS, 1):
        block = {"type": "tool_use", "id": f"c{index}", "name": name, "input": {}}
        rows.append({"type": "content_block_start", "index": index, "content_block": block})
        for text in pieces(index - 1):
            delta = {"type": "input_json_delta", "partial_json": text}
            rows.append({"type": "content_block_delta", "index": index, "delta": delta})
        rows.append({"type": "content_block_stop", "index": index})
    rows.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}})
    return [*rows, {"type": "message_stop"}]


def messages_whole() -> list[Json]:
    blocks = [
        {"type": "tool_use", "id": f"c{at}", "name": name, "input": told} for at, (name, told) in enumerate(CALLS)
    ]
    content = [{"type": "text", "text": "I see."}, *blocks]
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
    return [{**body, "stop_reason": "tool_use", "usage": {"output_tokens": 9}}]


def responses() -> list[Json]:
    message = {"type": "message", "id": "t", "role": "assistant", "content": []}
    told = {**message, "content": [{"type": "output_text", "text": "I see."}]}
    rows: list[Json] = [
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "item_id": "t",
            "content_index": 0,
            "delta": "I see.",
        },
        {"type": "response.output_item.done", "output_index": 0, "item": told},
    ]
    for index, (name, arguments) in enumerate(CALLS, 1):
        item = {"type": "function_call", "id": f"f{index}", "call_id": f"c{index}", "name": name, "arguments": ""}
        rows.append({"type": "response.output_item.added", "output_index": index, "item": item})
        for text in pieces(index - 1):
            at = {"output_index": index, "item_id": f"f{index}"}
            rows.append({"type": "response.function_call_arguments.delta", **at, "delta": text})
        done = {**item, "arguments": json.dumps(arguments), "status": "completed"}
        rows.append({"type": "response.output_item.done", "output_index": index, "item": done})
    return [*rows, {"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed"}}]


def gemini() -> list[Json]:
    def chunk(part: Json, **more: Json) -> Json:
        return {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0, **more}]}

    calls = [{"functionCall": {"name": name, "args": told}} for name, told in CALLS]
    return [chunk({"text": "I see."}), chunk(calls[0]), chunk(calls[1], finishReason="STOP")]


def gemini_pieces() -> list[Json]:
    def chunk(call: Json, **more: Json) -> Json:
        return {"candidates": [{"content": {"parts": [{"functionCall": call}], "role": "model"}, "index": 0, **more}]}

    rows = [{"candidates": [{"content": {"parts": [{"text": "I see."}], "role": "model"}, "index": 0}]}]
    for name, told in CALLS:
        rows.append(chunk({"name": name, "willContinue": True}))
        for key, value in told.items():
            said = {"stringValue": value} if isinstance(value, str) else {"numberValue": value}
            rows.append(chunk({"partialArgs": [{"jsonPath": f"$.{key}", **said}], "willContinue": True}))
        rows.append(chunk({}))
    return [*rows, {"candidates": [{"content": {"parts": [], "role": "model"}, "index": 0, "finishReason": "STOP"}]}]


def ollama() -> list[Json]:
    def line(message: Json, **more: Json) -> Json:
        head = {"model": "m", "created_at": "2026-11-23T00:00:00Z"}
        return {**head, "message": {"role": "assistant", "content": "", **message}, "done": False, **more}

    calls = [{"function": {"name": name, "arguments": told}} for name, told in CALLS]
    rows = [line({"content": "I see."}), *(line({"tool_calls": [call]}) for call in calls)]
    return [*rows, line({}, done=True, done_reason="stop")]


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


def body(protocol: str, frames: list[Json], *, is_whole: bool) -> bytes:
    texts = [json.dumps(frame) for frame in frames]
    if is_whole:
        return texts[0].encode()
    if protocol == "ollama-chat":
        return "".join(f"{text}\n" for text in texts).encode()
    end = "data: [DONE]\n\n" if protocol == "openai-chat" else ""
    return ("".join(f"data: {text}\n\n" for text in texts) + end).encode()


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
