"""Open WebUI's Ollama connection, emulated (utils/response.py and routers/ollama.py, read 2026).

It turns lines into OpenAI's chunks: a call's index is its `index`, else its function's, else 0, and calls of one index
are one call. `expires_at` of a running model is read as an ISO date.
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

from gateway.emulated.talk import QUESTION, TOOL, Called, Talk, get, post, run
from gateway.running import Running

AGENT = "Python/3.11 aiohttp/3.13.0"


def list_models(running: Running) -> list[str]:
    """The models that it offers; those that run are asked for too."""
    assert get(running, "/api/version")["version"]
    for loaded in get(running, "/api/ps")["models"]:
        datetime.fromisoformat(loaded["expires_at"])
    return [tag["model"] for tag in get(running, "/api/tags")["models"]]


def converse(running: Running, model: str, *, stream: bool = True) -> Talk:
    """Ask, run the calls, send the results."""
    assert model in list_models(running)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    said, calls = _turn(running, model, messages, stream=stream)
    replayed = [
        {"id": call.id, "index": number, "function": {"name": call.name, "arguments": call.arguments}}
        for number, call in enumerate(calls)
    ]
    messages.append({"role": "assistant", "content": said, "tool_calls": replayed})
    messages += [{"role": "tool", "tool_call_id": call.id, "content": run(call)} for call in calls]
    text, more = _turn(running, model, messages, stream=stream)
    assert more == []
    return Talk(calls, text)


def _turn(running: Running, model: str, messages: list[Any], *, stream: bool) -> tuple[str, list[Called]]:
    body = {"model": model, "messages": messages, "tools": [TOOL], "stream": stream, "options": {}}
    _, answer = post(running, "/api/chat", body, AGENT)
    lines = [json.loads(line) for line in answer.splitlines()]
    assert lines[-1]["done"] is True
    assert stream or len(lines) == 1
    text = "".join(line["message"].get("content") or "" for line in lines)
    merged: dict[int, Called] = {}
    for line in lines:
        for call in line["message"].get("tool_calls") or ():
            index = call.get("index", call["function"].get("index", 0))
            assert index not in merged, "two calls of one index would become one"
            id = call.get("id") or f"call_{uuid.uuid4()}"
            merged[index] = Called(id, call["function"]["name"], call["function"]["arguments"])
    usage = lines[-1]
    assert usage["total_duration"] >= 0 and usage["eval_duration"] > 0  # it divides by it
    return text, [merged[index] for index in sorted(merged)]
