"""Well-formed answers of the five protocols, as they are streamed and as they come whole: what others are made from."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
GEMINI, OLLAMA = "gemini-generate", "ollama-chat"
ARGUMENTS = '{"a": 1}'
CALLED = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "note", "arguments": ""}}


@dataclass(frozen=True)
class Base:
    """An event that lets something grow, with what comes before and after it.

    `path`: where its text stands. `texts`: what the plain events say.
    """

    protocol: str
    name: str
    value: dict[str, Any]
    path: tuple[str | int, ...]
    opening: tuple[bytes, ...]
    ending: tuple[bytes, ...] = ()
    texts: tuple[str, ...] = ("one", "two", "three", "four", "five", "six")

    def __str__(self) -> str:
        return f"{self.protocol} {self.name}"

    @property
    def is_batched(self) -> bool:
        """Whether its protocol reads events together."""
        return self.protocol not in (GEMINI, OLLAMA)

    def frame(self, text: str) -> bytes:
        """A plain event."""
        return self.written(self.value, text)

    def written(self, value: dict[str, Any], text: str | None = None) -> bytes:
        """An event of this kind; `text` is put where the text stands when there is still one."""
        if text is not None:
            value = copy.deepcopy(value)
            inner = value_at(value, self.path[:-1])
            if isinstance(inner, dict) and isinstance(inner.get(self.path[-1]), str):
                inner[self.path[-1]] = text
        return event(self.protocol, value, self.value.get("type", ""))


def value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    """What stands at a path; None where something else stands on the way."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def event(protocol: str, value: dict[str, Any], name: str = "") -> bytes:
    if protocol == OLLAMA:
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"
    line = f"event: {name}\n" if name and protocol in (RESPONSES, MESSAGES) else ""
    return f"{line}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}


def _named(protocol: str, *values: dict[str, Any]) -> tuple[bytes, ...]:
    return tuple(event(protocol, value, value.get("type", "")) for value in values)


# ---------------------------------------------------------------- streams

CHAT_END = (
    *_named(CHAT, chunk({}, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])),
    b"data: [DONE]\n\n",
)
#: What stands around the pieces of arguments, so that the call is whole.
LEAD, TAIL = '{"a": "', '"}'


def _grows(arguments: str) -> dict[str, Any]:
    return {"index": 0, "function": {"arguments": arguments}}


GROWN = _grows("x")
CREATED = {"type": "response.created", "response": {"id": "r", "object": "response", "model": "m", "output": []}}
COMPLETED = {"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed"}}


def _added(item: dict[str, Any]) -> tuple[bytes, ...]:
    return _named(RESPONSES, CREATED, {"type": "response.output_item.added", "output_index": 0, "item": item})


def _argument_delta(text: str) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text}


def _begun(block: dict[str, Any]) -> tuple[bytes, ...]:
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    return _named(MESSAGES, {"type": "message_start", "message": message}, start)


MESSAGES_END = _named(
    MESSAGES,
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
)


def _grown(delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def candidate(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}],
        "modelVersion": "m",
    }


def line(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"model": "m", "created_at": "2026-11-22T08:00:00.5Z"}
    return {**head, "message": {"role": "assistant", **message}, "done": False, **more}


_COUNTS = {"promptTokenCount": 5, "candidatesTokenCount": 7}
_LAST = candidate({"text": "."}, finishReason="STOP")
_DONE = line({"content": ""}, done=True, done_reason="stop", prompt_eval_count=5, eval_count=7)
_ITEM = {"type": "function_call", "id": "f", "call_id": "call_1", "name": "note", "arguments": ""}
_TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}}

BASES = [
    Base(
        CHAT,
        "text",
        chunk({"content": "x"}),
        ("choices", 0, "delta", "content"),
        _named(CHAT, chunk({"role": "assistant", "content": "0"})),
        CHAT_END,
    ),
    Base(
        CHAT,
        "arguments",
        chunk({"tool_calls": [GROWN]}),
        ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
        _named(CHAT, chunk({"tool_calls": [CALLED]}), chunk({"tool_calls": [_grows(LEAD)]})),
        (*_named(CHAT, chunk({"tool_calls": [_grows(TAIL)]})), *CHAT_END),
    ),
    Base(CHAT, "first text", chunk({"content": "x"}), ("choices", 0, "delta", "content"), (), CHAT_END),
    Base(
        CHAT,
        "usage",
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": {"prompt_tokens": 5, "completion_tokens": 7},
        },
        ("id",),
        _named(CHAT, chunk({"content": "0"})),
        CHAT_END,
    ),
    Base(
        CHAT,
        "completions text",
        {"id": "c", "object": "text_completion", "model": "m", "choices": [{"index": 0, "text": "x"}]},
        ("choices", 0, "text"),
        (),
        CHAT_END,
    ),
    Base(
        CHAT,
        "flat call",
        chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "name": "note", "arguments": "{}"}]}),
        ("model",),
        _named(CHAT, chunk({"content": "0"})),
        CHAT_END,
    ),
    Base(
        CHAT,
        "custom call",
        chunk(
            {"tool_calls": [{"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "note", "input": "x"}}]}
        ),
        ("model",),
        _named(CHAT, chunk({"content": "0"})),
        CHAT_END,
    ),
    Base(
        CHAT,
        "a call's kind alone",
        chunk({"tool_calls": [{"index": 0, "type": "custom"}]}),
        ("model",),
        _named(CHAT, chunk({"content": "0"})),
        CHAT_END,
    ),
    Base(
        RESPONSES,
        "text",
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x"},
        ("delta",),
        _added({"type": "message", "id": "m", "content": []}),
        _named(RESPONSES, COMPLETED),
    ),
    Base(
        RESPONSES,
        "arguments",
        _argument_delta("x"),
        ("delta",),
        (*_added(_ITEM), *_named(RESPONSES, _argument_delta(LEAD))),
        _named(RESPONSES, _argument_delta(TAIL), COMPLETED),
    ),
    Base(
        MESSAGES,
        "text",
        _grown({"type": "text_delta", "text": "x"}),
        ("delta", "text"),
        _begun({"type": "text", "text": ""}),
        MESSAGES_END,
    ),
    Base(
        MESSAGES,
        "thinking",
        _grown({"type": "thinking_delta", "thinking": "x"}),
        ("delta", "thinking"),
        _begun({"type": "thinking", "thinking": ""}),
        MESSAGES_END,
    ),
    Base(
        MESSAGES,
        "arguments",
        _grown({"type": "input_json_delta", "partial_json": "x"}),
        ("delta", "partial_json"),
        (*_begun(_TOOL_USE), *_named(MESSAGES, _grown({"type": "input_json_delta", "partial_json": LEAD}))),
        (*_named(MESSAGES, _grown({"type": "input_json_delta", "partial_json": TAIL})), *MESSAGES_END),
    ),
    Base(
        GEMINI,
        "text",
        {**candidate({"text": "x"}), "usageMetadata": _COUNTS},
        ("candidates", 0, "content", "parts", 0, "text"),
        _named(GEMINI, candidate({"text": "0"})),
        _named(GEMINI, _LAST),
    ),
    Base(
        GEMINI,
        "call",
        candidate({"functionCall": {"name": "note", "args": {"a": 1}}}),
        ("modelVersion",),
        _named(GEMINI, candidate({"text": "0"})),
        _named(GEMINI, _LAST),
    ),
    Base(
        OLLAMA,
        "text",
        line({"content": "x"}),
        ("message", "content"),
        _named(OLLAMA, line({"content": "0"})),
        _named(OLLAMA, _DONE),
    ),
    Base(
        OLLAMA,
        "generate",
        {"model": "m", "created_at": "2026-11-22T08:00:00.5Z", "response": "x", "thinking": "Hm", "done": False},
        ("response",),
        (),
        _named(OLLAMA, _DONE),
    ),
    Base(
        OLLAMA,
        "call",
        line({"content": "", "tool_calls": [{"function": {"name": "note", "arguments": {"a": 1}}}]}),
        ("model",),
        _named(OLLAMA, line({"content": "0"})),
        _named(OLLAMA, _DONE),
    ),
]

#: What says something under the name of a field that is seldom filled.
RARE_VALUES: dict[str, list[Any]] = {
    CHAT: [{"google": {"thought_signature": "s"}}, {"google": {"thought": True}}],
    GEMINI: ["MAX_TOKENS", {"blockReason": "SAFETY"}],
    RESPONSES: [{"reason": "max_output_tokens"}],
    MESSAGES: [{"thinking_tokens": 3}],
}

# ---------------------------------------------------------------- whole answers


def whole_chat(message: dict[str, Any], reason: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def whole_message(*content: dict[str, Any], reason: str) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 3}
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    return {**whole, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def whole_response(*output: dict[str, Any]) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12, **details}
    whole = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m", "error": None}
    return {**whole, "output": list(output), "usage": usage}


_SAID = {"type": "output_text", "text": "Hi", "annotations": []}
_WHOLE_CALL = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": ARGUMENTS}}
WHOLE: list[tuple[str, dict[str, Any]]] = [
    (CHAT, whole_chat({"content": None, "tool_calls": [_WHOLE_CALL]}, "tool_calls")),
    (CHAT, whole_chat({"content": "Hi"}, "stop")),
    (
        RESPONSES,
        whole_response({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [_SAID]}),
    ),
    (RESPONSES, whole_response({**_ITEM, "arguments": ARGUMENTS, "status": "completed"})),
    (MESSAGES, whole_message({"type": "text", "text": "Hi"}, {**_TOOL_USE, "input": {"a": 1}}, reason="tool_use")),
    (MESSAGES, whole_message({"type": "text", "text": "Hi"}, reason="end_turn")),
    (
        GEMINI,
        {
            **candidate({"text": "Hi"}, {"functionCall": {"name": "note", "args": {"a": 1}}}, finishReason="STOP"),
            "usageMetadata": _COUNTS,
        },
    ),
    (
        GEMINI,
        {**candidate({"text": "Hm", "thought": True}, {"text": "Hi"}, finishReason="STOP"), "usageMetadata": _COUNTS},
    ),
    (
        OLLAMA,
        line({"content": "Hi", "thinking": "Hm"}, done=True, done_reason="stop", prompt_eval_count=5, eval_count=7),
    ),
    (
        OLLAMA,
        line(
            {"content": "", "tool_calls": [{"id": "1", "function": {"name": "note", "arguments": {"a": 1}}}]},
            done=True,
            done_reason="stop",
        ),
    ),
]
