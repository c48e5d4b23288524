"""Bodies of one protocol with the words of another, as Cursor sends them: they are read, and that is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conversations import reply
from gateway.running import Running, stream_of, whole_of

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
INPUT = [{"role": "user", "content": [{"type": "input_text", "text": "Weather in Paris?"}]}]
FLAT = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": SCHEMA}


def ask(running: Running, provider: str, stream: bool, **fields: Any) -> tuple[int, bytes]:
    running.answer((stream_of if stream else whole_of)(provider, reply("text")))
    body = json.dumps({"model": f"via-{provider}", "stream": stream, **fields}).encode()
    status, _, answer = running.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    return status, answer


def told(running: Running) -> str:
    return running.request("GET", "/metrics")[2].decode()


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic-messages"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_responses_body_is_read_and_answered_in_chat(running: Running, provider: str, stream: bool) -> None:
    status, answer = ask(running, provider, stream, input=INPUT, tools=[FLAT])
    assert status == 200
    assert b'"chat.completion' in answer
    sent = json.loads(running.provider.requests[-1].body)
    assert "Weather in Paris?" in json.dumps(sent["messages"])
    [tool] = sent["tools"]
    assert (tool.get("function") or tool).get("parameters", tool.get("input_schema")) == SCHEMA
    assert 'code="sibling-key"' in told(running)


@pytest.mark.parametrize(
    "tool",
    [
        FLAT,
        {"name": "get_weather", "description": "Weather.", "input_schema": SCHEMA},
        {"type": "function", "function": {"name": "get_weather", "input_schema": SCHEMA}},
    ],
    ids=["flat", "of Messages", "of Messages within a function"],
)
def test_a_tool_of_another_protocol_keeps_its_schema(running: Running, tool: dict[str, Any]) -> None:
    status, _ = ask(running, "openai-chat", False, messages=[{"role": "user", "content": "Hi"}], tools=[tool])
    assert status == 200
    [sent] = json.loads(running.provider.requests[-1].body)["tools"]
    assert sent["function"]["parameters"] == SCHEMA
    assert "input_schema" not in sent["function"]


@pytest.mark.parametrize("fields", [{}, {"input": 7}, {"messages": "Hi", "input": INPUT}])
def test_what_is_neither_is_refused(running: Running, fields: dict[str, Any]) -> None:
    status, answer = ask(running, "openai-chat", False, **fields)
    assert status == 400
    assert b"expected" in answer
