"""JetBrains AI Assistant with an Ollama server, emulated from what users report of it: "Test connection" asks `/` or
`/api/tags`, every listed model is shown (a 404 there reads as "Unexpected end of JSON input"), the chat is native."""

from __future__ import annotations

import json
from typing import Any

from gateway.emulated.talk import QUESTION, TOOL, Called, Talk, get, post, run
from gateway.running import Running

AGENT = "ktor-client"


def connects(running: Running) -> bool:
    """What the button in the settings does."""
    status, _, body = running.request("GET", "/", b"", {"user-agent": AGENT})
    return status == 200 and body == b"Ollama is running" and bool(get(running, "/api/tags")["models"])


def list_models(running: Running) -> dict[str, list[str]]:
    """The capabilities of the models that it offers."""
    found = {}
    for tag in get(running, "/api/tags")["models"]:
        _, body = post(running, "/api/show", {"model": tag["name"]}, AGENT)
        found[tag["name"]] = json.loads(body)["capabilities"]
    return found


def converse(running: Running, model: str) -> Talk:
    """Ask, run the calls, send the results."""
    assert connects(running)
    assert "tools" in list_models(running)[model]
    messages: list[Any] = [{"role": "system", "content": "You help."}, {"role": "user", "content": QUESTION}]
    said, calls = _turn(running, model, messages)
    replayed = [{"function": {"name": call.name, "arguments": call.arguments}} for call in calls]
    messages.append({"role": "assistant", "content": said, "tool_calls": replayed})
    messages += [{"role": "tool", "tool_name": call.name, "content": run(call)} for call in calls]
    text, more = _turn(running, model, messages)
    assert more == []
    return Talk(calls, text)


def _turn(running: Running, model: str, messages: list[Any]) -> tuple[str, list[Called]]:
    _, answer = post(running, "/api/chat", {"model": model, "messages": messages, "tools": [TOOL]}, AGENT)
    lines = [json.loads(line) for line in answer.splitlines()]
    assert lines[-1]["done"] is True
    calls = [
        Called("", call["function"]["name"], call["function"]["arguments"])
        for line in lines
        for call in line["message"].get("tool_calls") or ()
    ]
    return "".join(line["message"]["content"] for line in lines), calls
