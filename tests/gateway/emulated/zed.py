"""Zed's Ollama provider, emulated: as strict as its deserialiser (crates/ollama, read 2026).

Every line must be a chunk, a blank one is none. Only the first call of a chunk is read. One model whose `/api/show`
fails drops the whole list. Before November 2025 a call was an enum, so that any key beside `function` broke the line.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from gateway.emulated.talk import QUESTION, TOOL, Called, Talk, get, post, run
from gateway.running import Running

NEW = "Zed/0.230.1 (linux; x86_64)"
OLD = "Zed/0.205.3 (macos; aarch64)"
_CONTEXT = 16_384


class Details(msgspec.Struct):
    format: str
    family: str
    parameter_size: str
    quantization_level: str
    families: list[str] | None = None


class Tag(msgspec.Struct):
    name: str
    modified_at: str
    size: int
    digest: str
    details: Details


class Tags(msgspec.Struct):
    models: list[Tag]


class Show(msgspec.Struct):
    capabilities: list[str]
    model_info: dict[str, Any]


class Function(msgspec.Struct):
    name: str
    arguments: Any


class Call(msgspec.Struct):
    function: Function
    id: str | None = None


class OldCall(msgspec.Struct, forbid_unknown_fields=True):
    function: Function


class Message(msgspec.Struct):
    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[Call] | None = None


class OldMessage(msgspec.Struct):
    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[OldCall] | None = None


class Line(msgspec.Struct):
    model: str
    created_at: str
    message: Message
    done: bool
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None


class OldLine(msgspec.Struct):
    model: str
    created_at: str
    message: OldMessage
    done: bool
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None


def list_models(running: Running) -> dict[str, Show]:
    """The models that Zed shows."""
    found = {}
    for tag in msgspec.convert(get(running, "/api/tags"), Tags).models:
        if "-embed" not in tag.name:
            _, body = post(running, "/api/show", {"model": tag.name}, NEW)
            found[tag.name] = msgspec.json.decode(body, type=Show)
    return found


def converse(running: Running, model: str, *, agent: str = NEW) -> Talk:
    """Ask, run the calls, send the results."""
    shown = list_models(running)[model]
    assert "tools" in shown.capabilities  # else it sends none
    architecture = shown.model_info["general.architecture"]
    context = min(shown.model_info[f"{architecture}.context_length"], _CONTEXT)
    thinks = "thinking" in shown.capabilities
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    said, calls, _ = _turn(running, model, messages, agent=agent, context=context, thinks=thinks)
    messages.append({"role": "assistant", "content": said, "tool_calls": [_replayed(call, agent) for call in calls]})
    for call in calls:
        result = {"role": "tool", "tool_name": call.name, "content": run(call)}
        messages.append(result if agent == OLD else result | {"tool_call_id": call.id})
    text, more, reason = _turn(running, model, messages, agent=agent, context=context, thinks=thinks)
    assert (more, reason) == ([], "stop")
    return Talk(calls, text)


def _replayed(call: Called, agent: str) -> dict[str, Any]:
    function = {"function": {"name": call.name, "arguments": call.arguments}}
    return function if agent == OLD else {"id": call.id, **function}


def _turn(
    running: Running, model: str, messages: list[Any], *, agent: str, context: int, thinks: bool
) -> tuple[str, list[Called], str | None]:
    body = {
        "model": model, "messages": messages, "stream": True, "keep_alive": -1, "tools": [TOOL],
        "options": {"num_ctx": context, "num_predict": None, "stop": [], "temperature": 1.0, "top_p": None},
    }  # fmt: skip
    headers, answer = post(running, "/api/chat", body | ({"think": True} if thinks else {}), agent)
    assert headers["content-type"].startswith("application/x-ndjson")
    decoder = msgspec.json.Decoder(OldLine if agent == OLD else Line)
    lines = [decoder.decode(line) for line in answer.removesuffix(b"\n").split(b"\n")]
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    first = [line.message.tool_calls[0] for line in lines if line.message.tool_calls]
    assert all(isinstance(call.function.arguments, dict) for call in first)
    calls = [Called(getattr(call, "id", None) or "", call.function.name, call.function.arguments) for call in first]
    return "".join(line.message.content for line in lines), calls, lines[-1].done_reason
