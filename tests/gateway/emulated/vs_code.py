"""VS Code's Copilot Chat with an Ollama server of one's own, emulated (vscode-copilot-chat, read 2026).

It looks for models over Ollama's paths and chats over OpenAI's. A version before 0.6.4 is refused; `capabilities` must
be a list; without a context length it takes 32,768.
"""

from __future__ import annotations

import json
from typing import Any

from gateway.emulated.talk import QUESTION, TOOL, Called, Talk, get, post, run
from gateway.running import Running

AGENT = "GitHubCopilotChat/0.31.0"
_LEAST = (0, 6, 4)
_CONTEXT = 32_768


def list_models(running: Running) -> dict[str, dict[str, Any]]:
    """The models that it offers, each with its name, context and whether tools and images are sent."""
    version = tuple(int(number) for number in get(running, "/api/version")["version"].split("."))
    assert version >= _LEAST
    found = {}
    for tag in get(running, "/api/tags")["models"]:
        _, body = post(running, "/api/show", {"model": tag["model"]}, AGENT)
        shown = json.loads(body)
        info = shown["model_info"]
        assert isinstance(shown["capabilities"], list)
        found[tag["model"]] = {
            "name": shown.get("remote_model") or info["general.basename"],
            "context": info.get(f"{info['general.architecture']}.context_length") or _CONTEXT,
            "tools": "tools" in shown["capabilities"],
            "images": "vision" in shown["capabilities"],
        }
    return found


def converse(running: Running, model: str) -> Talk:
    """Ask, run the calls, send the results."""
    assert list_models(running)[model]["tools"]
    messages: list[Any] = [{"role": "system", "content": "You help."}, {"role": "user", "content": QUESTION}]
    said, calls, reason = _turn(running, model, messages)
    assert (reason == "tool_calls") == bool(calls)
    replayed = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in calls
    ]
    messages.append({"role": "assistant", "content": said, "tool_calls": replayed})
    messages += [{"role": "tool", "tool_call_id": call.id, "content": run(call)} for call in calls]
    text, more, reason = _turn(running, model, messages)
    assert (more, reason) == ([], "stop")
    return Talk(calls, text)


def _turn(running: Running, model: str, messages: list[Any]) -> tuple[str, list[Called], str]:
    body = {
        "model": model, "messages": messages, "tools": [TOOL], "stream": True, "n": 1, "temperature": 0.1, "top_p": 1,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    headers, answer = post(running, "/v1/chat/completions", body, AGENT)
    assert headers["content-type"].startswith("text/event-stream")
    events = [event.removeprefix(b"data: ") for event in answer.split(b"\n\n") if event and event[:1] != b":"]
    assert events[-1] == b"[DONE]"
    text, reasons = "", []
    pieces: dict[int, dict[str, str]] = {}
    for event in events[:-1]:
        for choice in json.loads(event)["choices"]:
            text += choice["delta"].get("content") or ""
            reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
            for delta in choice["delta"].get("tool_calls") or ():
                call = pieces.setdefault(delta["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] = delta.get("id") or call["id"]
                call["name"] += delta["function"].get("name") or ""
                call["arguments"] += delta["function"].get("arguments") or ""
    calls = [Called(call["id"], call["name"], json.loads(call["arguments"])) for _, call in sorted(pieces.items())]
    assert len({call.id for call in calls}) == len(calls)
    [reason] = reasons
    return text, calls, reason
