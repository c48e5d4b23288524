"""A call's name told in several places of one wire: told alike it is one call, told otherwise none is delivered.

Every place says nothing, the name of one tool or that of another. The reference asks only which names were told.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.decoding import decode
from test_contradictions import delivered, frames

Told = dict[str, str]
ARGUMENTS = {"bell": "a"}
TOOLS = [{"name": name, "parameters": {"type": "object", "properties": {"bell": {}}}} for name in ("ring", "toll")]


def named(name: str) -> dict[str, Any]:
    return {"name": name} if name else {}


def entry_of(told: Told, arguments: object) -> dict[str, Any]:
    """An entry of `tool_calls`: `function`, `beside` it, and `custom` where it is told."""
    entry: dict[str, Any] = {"function": {**named(told["function"]), "arguments": arguments}, **named(told["beside"])}
    if told.get("custom"):
        entry["custom"] = named(told["custom"])
    return entry


def chat(told: Told) -> bytes:
    entry = {"index": 0, "id": "c", "type": "function", **entry_of(told, json.dumps(ARGUMENTS))}
    rows = [{"index": 0, "delta": {"tool_calls": [entry]}}, {"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    return frames(*({"id": "x", "choices": [row]} for row in rows), named=False) + b"data: [DONE]\n\n"


def chat_legacy(told: Told) -> bytes:
    entry = {"index": 0, "id": "c", "type": "function", **entry_of({**told, "beside": ""}, json.dumps(ARGUMENTS))}
    delta: dict[str, Any] = {"tool_calls": [entry]}
    if told["legacy"]:
        delta["function_call"] = {"name": told["legacy"], "arguments": json.dumps(ARGUMENTS)}
    rows = [{"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    return frames(*({"id": "x", "choices": [row]} for row in rows), named=False) + b"data: [DONE]\n\n"


def chat_whole(told: Told) -> bytes:
    message: dict[str, Any] = {"role": "assistant"}
    message["tool_calls"] = [{"id": "c", "type": "function", **entry_of(told, json.dumps(ARGUMENTS))}]
    if told["legacy"]:
        message["function_call"] = {"name": told["legacy"], "arguments": json.dumps(ARGUMENTS)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()


def ollama(told: Told, arguments: object = ARGUMENTS) -> bytes:
    message = {"role": "assistant", "content": "", "tool_calls": [entry_of(told, arguments)]}
    last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    rows = ({"message": message, "done": False}, last)
    return b"".join(json.dumps({"model": "m", **row}).encode() + b"\n" for row in rows)


def ollama_text(told: Told) -> bytes:
    return ollama(told, json.dumps(ARGUMENTS))


def responses(told: Told) -> bytes:
    """`start`, `final` arguments, `item`, `output`."""
    item = {"type": "function_call", "id": "fc", "call_id": "c", "arguments": json.dumps(ARGUMENTS)}
    at = {"output_index": 0, "item_id": "fc"}
    done = {"type": "response.function_call_arguments.done", "arguments": json.dumps(ARGUMENTS)}
    output = [{**item, **named(told["output"])}] if told["output"] else []
    return frames(
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "arguments": "", **named(told["start"])},
        },
        {**done, **at, **named(told["final"])},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, **named(told["item"])}},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output}},
    )


def gemini(told: Told) -> bytes:
    """The two spellings of the key; told alike they are refused as well."""
    calls = {key: {"name": name, "args": ARGUMENTS} for key, name in told.items() if name}
    candidate = {"content": {"parts": [calls]}, "index": 0, "finishReason": "STOP"}
    return frames({"candidates": [candidate]}, named=False)


def messages(told: Told) -> bytes:
    """`start`, and a second start of the same block."""
    block = {"type": "tool_use", "id": "c", "input": ARGUMENTS}
    rows: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}]
    for place in ("start", "restart"):
        if told[place]:
            rows.append({"type": "content_block_start", "index": 0, "content_block": {**block, "name": told[place]}})
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}
    return frames(*rows, {"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"})


#: name → (protocol, body, places)
BODIES: dict[str, tuple[str, Callable[[Told], bytes], tuple[str, ...]]] = {
    "chat": ("openai-chat", chat, ("function", "beside", "custom")),
    "chat-whole": ("openai-chat", chat_whole, ("function", "beside", "custom", "legacy")),
    "chat-legacy": ("openai-chat", chat_legacy, ("function", "legacy")),
    "ollama": ("ollama-chat", ollama, ("function", "beside")),
    "ollama-text": ("ollama-chat", ollama_text, ("function", "beside")),
    "responses": ("openai-responses", responses, ("start", "final", "item", "output")),
    "gemini": ("gemini-generate", gemini, ("functionCall", "function_call")),
    "messages": ("anthropic-messages", messages, ("start", "restart")),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_call_of_two_names_is_never_delivered(name: str):
    protocol, body, places = BODIES[name]
    tried = 0
    for names in itertools.product(("", "ring", "toll"), repeat=len(places)):
        told = dict(zip(places, names, strict=True))
        reply = decode(body(told), protocol, tools=TOOLS)  # type: ignore[arg-type]
        calls = [(call.name, call.values()) for call in reply.tool_calls] if delivered(reply) else []
        different = sorted({*names} - {""})
        if len(different) == 1 and (calls or names.count("") < len(names) - 1):
            may_refuse = protocol == "gemini-generate" or told.get("custom")  # two calls in one place, of two kinds
            assert calls == [(different[0], ARGUMENTS)] or (may_refuse and calls == []), told
        else:
            assert calls == [], told
            assert reply.error is not None or not different, told
        tried += 1
    assert tried == 3 ** len(places)
