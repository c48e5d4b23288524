"""What the arguments of one call may be, in each protocol, whole and streamed: the same reading everywhere."""

from __future__ import annotations

import json
from typing import Any

import wires
from dragoman.decoding import decode
from dragoman.types import ProtocolName
from for_each import for_each

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


def chat_stream(name: str, told: Json) -> bytes:
    start = wires.chat_chunk({"role": "assistant"})
    return wires.body_of("openai-chat", [start, *wires.chat_stream(wires.chat_call(name, told))])


def chat_whole(name: str, told: Json) -> bytes:
    return json.dumps(wires.chat_answer(wires.chat_call(name, told))).encode()


def messages_stream(name: str, told: Json) -> bytes:
    frames = wires.messages_stream(*wires.block_of(wires.tool_use(name, told)))
    return wires.body_of("anthropic-messages", frames, is_named=False)


def messages_whole(name: str, told: Json) -> bytes:
    return json.dumps(wires.messages_answer(wires.tool_use(name, told))).encode()


def responses_stream(name: str, told: Json) -> bytes:
    start, done = (wires.function_call(name, text, status="completed") for text in ("", told))
    frames = wires.responses_stream(wires.item_added(start), wires.item_done(done), output=[done])
    return wires.body_of("openai-responses", frames[1:], is_named=False)


def responses_whole(name: str, told: Json) -> bytes:
    return json.dumps(wires.responses_answer(wires.function_call(name, told, status="completed"))).encode()


def gemini_stream(name: str, told: Json) -> bytes:
    end = {"candidates": [{"finishReason": "STOP"}]}
    return wires.body_of("gemini-generate", [wires.gemini_chunk(wires.gemini_call(name, told)), end])


def gemini_whole(name: str, told: Json) -> bytes:
    return json.dumps(wires.gemini_chunk(wires.gemini_call(name, told), reason="STOP")).encode()


def ollama_stream(name: str, told: Json) -> bytes:
    return wires.body_of("ollama-chat", wires.ollama_stream(wires.ollama_call(name, told)))


def ollama_whole(name: str, told: Json) -> bytes:
    return wires.body_of("ollama-chat", [wires.ollama_line(wires.ollama_call(name, told), reason="stop")])


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

each_way = for_each(("protocol", "way"), WAYS, ids=lambda value: getattr(value, "__name__", ""))


@each_way
@for_each("what", READ)
def test_arguments_are_read_alike(protocol: ProtocolName, way: Any, what: str):
    name, told, calls = READ[what]
    reply = decode(way(name, told), protocol, tools=TOOLS)
    assert [(call.name, call.values()) for call in reply.tool_calls] == calls
    assert (reply.error, reply.stop_reason, reply.text) == (None, "tool_use", "")
    assert len({call.id for call in reply.tool_calls}) == len(calls)


@each_way
@for_each("what", REFUSED)
def test_what_is_no_arguments_is_refused_alike(protocol: ProtocolName, way: Any, what: str):
    reply = decode(way("ring", REFUSED[what]), protocol, tools=TOOLS)
    assert reply.tool_calls == [] and reply.failed_calls and reply.stop_reason == "error"


@each_way
@for_each("key", ["data", "response", "result", "body"])
def test_wrapped_answers_are_read_alike(protocol: ProtocolName, way: Any, key: str):
    lines = way("ring", TEXT if protocol.startswith("openai") else ARGUMENTS).decode().splitlines()
    starts = [("data: " if line.startswith("data: {") else "", line.removeprefix("data: ")) for line in lines]
    wrapped = [f'{start}{{"{key}": {line}}}' if line.startswith("{") else f"{start}{line}" for start, line in starts]
    reply = decode("\n".join(wrapped).encode(), protocol, tools=TOOLS)
    assert [(call.name, call.values()) for call in reply.tool_calls] == [("ring", ARGUMENTS)]
    assert "envelope" in {one.code for one in reply.deviations} and reply.error is None
