"""What the arguments of one call may be, in each protocol, whole and streamed: the same reading everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.decoding import decode
from dragoman.types import ProtocolName

Json = Any
ARGUMENTS = {"city": "Paris"}
ROME = {"city": "Rome"}
TEXT, OTHER = json.dumps(ARGUMENTS), json.dumps(ROME)
TOOLS = [
    {
        "name": "ring",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    {"name": "stop", "parameters": {"type": "object", "properties": {}}},
]


def events(frames: list[Json]) -> bytes:
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode()


def chat(name: str, told: Json) -> Json:
    return {"id": "a", "type": "function", "function": {"name": name, "arguments": told}}


def chat_stream(name: str, told: Json) -> bytes:
    call = {"index": 0, **chat(name, told)}
    rows = [({"role": "assistant"}, None), ({"tool_calls": [call]}, None), ({}, "tool_calls")]
    choices = [{"index": 0, "delta": delta, "finish_reason": reason} for delta, reason in rows]
    return events([{"id": "x", "choices": [choice]} for choice in choices]) + b"data: [DONE]\n\n"


def chat_whole(name: str, told: Json) -> bytes:
    message = {"role": "assistant", "content": None, "tool_calls": [chat(name, told)]}
    return json.dumps(
        {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    ).encode()


def messages_stream(name: str, told: Json) -> bytes:
    block = {"type": "tool_use", "id": "a", "name": name, "input": told}
    rows: list[Json] = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    return events(rows)


def messages_whole(name: str, told: Json) -> bytes:
    block = {"type": "tool_use", "id": "a", "name": name, "input": told}
    head = {"id": "m", "type": "message", "role": "assistant", "content": [block]}
    return json.dumps({**head, "stop_reason": "tool_use"}).encode()


def item(name: str, told: Json) -> Json:
    return {"type": "function_call", "id": "f", "call_id": "a", "name": name, "arguments": told, "status": "completed"}


def responses_stream(name: str, told: Json) -> bytes:
    done = {"id": "r", "object": "response", "status": "completed", "output": [item(name, told)]}
    rows = [
        {"type": "response.output_item.added", "output_index": 0, "item": item(name, "")},
        {"type": "response.output_item.done", "output_index": 0, "item": item(name, told)},
        {"type": "response.completed", "response": done},
    ]
    return events(rows)


def responses_whole(name: str, told: Json) -> bytes:
    body = {"id": "r", "object": "response", "status": "completed", "output": [item(name, told)]}
    return json.dumps(body).encode()


def gemini(name: str, told: Json, **more: Json) -> Json:
    return {"candidates": [{"content": {"parts": [{"functionCall": {"name": name, "args": told}}]}, **more}]}


def gemini_stream(name: str, told: Json) -> bytes:
    return events([gemini(name, told), {"candidates": [{"finishReason": "STOP"}]}])


def gemini_whole(name: str, told: Json) -> bytes:
    return json.dumps(gemini(name, told, finishReason="STOP")).encode()


def ollama_line(name: str, told: Json, *, is_done: bool) -> bytes:
    call = {"function": {"name": name, "arguments": told}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return json.dumps({"model": "m", "message": message, "done": is_done}).encode() + b"\n"


def ollama_stream(name: str, told: Json) -> bytes:
    return ollama_line(name, told, is_done=False) + b'{"model": "m", "message": {"content": ""}, "done": true}\n'


def ollama_whole(name: str, told: Json) -> bytes:
    return ollama_line(name, told, is_done=True)


WAYS: list[tuple[ProtocolName, Any]] = [
    ("openai-chat", chat_stream), ("openai-chat", chat_whole), ("anthropic-messages", messages_stream),
    ("anthropic-messages", messages_whole), ("openai-responses", responses_stream),
    ("openai-responses", responses_whole), ("gemini-generate", gemini_stream), ("gemini-generate", gemini_whole),
    ("ollama-chat", ollama_stream), ("ollama-chat", ollama_whole),
]  # fmt: skip
#: A name and arguments → the calls that they are.
READ: dict[str, tuple[str, Json, list[tuple[str, Json]]]] = {
    "an object": ("ring", ARGUMENTS, [("ring", ARGUMENTS)]),
    "its text": ("ring", TEXT, [("ring", ARGUMENTS)]),
    "its text as text": ("ring", json.dumps(TEXT), [("ring", ARGUMENTS)]),
    "behind a placeholder": ("ring", "{}" + TEXT, [("ring", ARGUMENTS)]),
    "behind placeholders and space": ("ring", " {} \n{ }" + TEXT, [("ring", ARGUMENTS)]),
    "before a placeholder": ("ring", TEXT + "{}", [("ring", ARGUMENTS)]),
    "twice": ("ring", TEXT + TEXT, [("ring", ARGUMENTS)]),
    "of two calls": ("ring", TEXT + OTHER, [("ring", ARGUMENTS), ("ring", ROME)]),
    "of two calls, with their names": ("ringring", TEXT + OTHER, [("ring", ARGUMENTS), ("ring", ROME)]),
    "null": ("stop", None, [("stop", {})]),
    "the word null": ("stop", "null", [("stop", {})]),
    "blank": ("stop", " \n", [("stop", {})]),
}
#: Arguments that are none.
REFUSED: dict[str, Json] = {
    "a list": [ARGUMENTS],
    "the text of a list": json.dumps([ARGUMENTS]),
    "words": "Paris",
    "words as text": json.dumps("Paris"),
    "without its brace": TEXT[:-1],
    "without its quote": TEXT[:-2],
    "NaN": '{"city": NaN}',
}

each_way = pytest.mark.parametrize(("protocol", "way"), WAYS, ids=lambda value: getattr(value, "__name__", ""))


@each_way
@pytest.mark.parametrize("what", READ)
def test_arguments_are_read_alike(protocol: ProtocolName, way: Any, what: str):
    name, told, calls = READ[what]
    reply = decode(way(name, told), protocol, tools=TOOLS)
    assert [(call.name, call.values()) for call in reply.tool_calls] == calls
    assert (reply.error, reply.stop_reason, reply.text) == (None, "tool_use", "")
    assert len({call.id for call in reply.tool_calls}) == len(calls)


@each_way
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_arguments_is_refused_alike(protocol: ProtocolName, way: Any, what: str):
    reply = decode(way("ring", REFUSED[what]), protocol, tools=TOOLS)
    assert reply.tool_calls == [] and reply.failed_calls and reply.stop_reason == "error"


@each_way
@pytest.mark.parametrize("key", ["data", "response", "result", "body"])
def test_wrapped_answers_are_read_alike(protocol: ProtocolName, way: Any, key: str):
    lines = way("ring", TEXT if protocol.startswith("openai") else ARGUMENTS).decode().splitlines()
    starts = [("data: " if line.startswith("data: {") else "", line.removeprefix("data: ")) for line in lines]
    wrapped = [f'{start}{{"{key}": {line}}}' if line.startswith("{") else f"{start}{line}" for start, line in starts]
    reply = decode("\n".join(wrapped).encode(), protocol, tools=TOOLS)
    assert [(call.name, call.values()) for call in reply.tool_calls] == [("ring", ARGUMENTS)]
    assert "envelope" in {one.code for one in reply.deviations} and reply.error is None
