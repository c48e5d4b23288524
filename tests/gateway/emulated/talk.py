"""What the stand-ins share: a tool that can be run, and what a conversation came to."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from gateway.running import Running

QUESTION = "Weather?"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
DESCRIPTION = "Current weather of a city."
#: In the form that Ollama and OpenAI share.
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": DESCRIPTION, "parameters": PARAMETERS},
}


class Called(NamedTuple):
    """A call as a client understood it; `id` "" where the client knows none."""

    id: str
    name: str
    arguments: dict[str, Any]


class Talk(NamedTuple):
    """A tool round trip: what was called, and what was said after the results came."""

    calls: list[Called]
    text: str


def run(call: Called) -> str:
    """The tool."""
    assert call.name == "get_weather"
    return f"rain in {call.arguments['city']}"


def get(running: Running, path: str) -> Any:
    status, _, body = running.request("GET", path)
    assert status == 200, (path, body)
    return json.loads(body)


def post(running: Running, path: str, body: Any, agent: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of an answer that went well."""
    headers = {"content-type": "application/json", "user-agent": agent}
    status, answered, answer = running.request("POST", path, json.dumps(body).encode(), headers)
    assert status == 200, (path, answer)
    return answered, answer
