"""Arguments that name no call: a call without any may have lost them, so it fails."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
import wires

TOOLS = [{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]


def chat(*deltas: dict[str, Any]) -> bytes:
    return wires.body_of("openai-chat", [*map(wires.chat_chunk, deltas), wires.chat_chunk({}, "tool_calls")])


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(entries)}


LOST = '{"query": "x"}'
NAMED = wires.chat_call("search", id="a")
STREAMS = {
    "chat, a new index": (
        "openai-chat", chat(calls(NAMED), calls({"index": 1, "id": "b", "function": {"arguments": LOST}})),
    ),
    "chat, before the call": (
        "openai-chat", chat(calls({"index": 1, "id": "b", "function": {"arguments": LOST}}), calls(NAMED)),
    ),
    "responses": (
        "openai-responses",
        wires.body_of("openai-responses", wires.responses_stream(
            wires.item_added(wires.function_call("search", status="in_progress")),
            wires.arguments_delta(LOST, 5) | {"item_id": "zz"},
            wires.item_done(wires.function_call("search", status="completed")),
        )),
    ),
    "messages": (
        "anthropic-messages",
        wires.body_of("anthropic-messages", wires.messages_stream(
            wires.block_start(wires.tool_use("search")), wires.block_delta(wires.json_delta(LOST), 1),
            wires.block_stop(),
        )),
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
