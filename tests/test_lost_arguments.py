"""Arguments that name no call: a call without any may have lost them, so it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman

TOOLS = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]


def chat(*deltas: dict[str, Any]) -> bytes:
    rows = [(delta, None) for delta in deltas] + [({}, "tool_calls")]
    chunks = [{"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in rows]
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


def events(*rows: dict[str, Any]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (row["type"].encode(), json.dumps(row).encode()) for row in rows)


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(entries)}


LOST = '{"query": "x"}'
NAMED = {"index": 0, "id": "a", "type": "function", "function": {"name": "search", "arguments": ""}}
ITEM = {"type": "function_call", "id": "f", "call_id": "c", "name": "search", "arguments": "", "status": "in_progress"}
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
STREAMS = {
    "chat, a new index": (
        "openai-chat", chat(calls(NAMED), calls({"index": 1, "id": "b", "function": {"arguments": LOST}})),
    ),
    "chat, before the call": (
        "openai-chat", chat(calls({"index": 1, "id": "b", "function": {"arguments": LOST}}), calls(NAMED)),
    ),
    "responses": (
        "openai-responses",
        events(
            {"type": "response.created", "response": RESPONSE},
            {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
            {"type": "response.function_call_arguments.delta", "item_id": "zz", "output_index": 5, "delta": LOST},
            {"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "status": "completed"}},
            {"type": "response.completed", "response": {**RESPONSE, "status": "completed"}},
        ),
    ),
    "messages": (
        "anthropic-messages",
        events(
            {"type": "message_start", "message": MESSAGE},
            {"type": "content_block_start", "index": 0,
             "content_block": {"type": "tool_use", "id": "t", "name": "search", "input": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": LOST}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("required", [[], ["query"]])
def test_no_call_runs_without_arguments_that_came(name: str, required: list[str]) -> None:
    protocol, body = STREAMS[name]
    parameters: dict[str, Any] = {**TOOLS[0]["parameters"], "required": required}  # type: ignore[dict-item]
    reply = dragoman.decode(body, protocol, tools=[{**TOOLS[0], "parameters": parameters}])
    assert not reply.tool_calls and reply.error is not None, reply.tool_calls
    assert reply.stop_reason == "error"
