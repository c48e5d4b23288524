"""Answers with one call that takes no parameters, in every form in which wires tell that it has none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from test_keys_told_twice import Frame

_USAGE: Final = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _chat(arguments: str | None) -> Frame:
    function = {"name": "ring"} if arguments is None else {"name": "ring", "arguments": arguments}
    return {"id": "c0", "type": "function", "function": function}


def chat_stream(arguments: str | None = "") -> list[Frame]:
    def chunk(delta: Frame, reason: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    call = chunk({"tool_calls": [{"index": 0, **_chat(arguments)}]})
    last = {**chunk({}), "choices": [], "usage": _USAGE}
    return [chunk({"role": "assistant", "content": None}), call, chunk({}, "tool_calls"), last]


def chat_whole(arguments: str | None = "{}") -> list[Frame]:
    message = {"role": "assistant", "content": None, "tool_calls": [_chat(arguments)]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return [{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": _USAGE}]


def _item(arguments: str, status: str) -> Frame:
    item = {"type": "function_call", "id": "fc_0", "call_id": "c0", "name": "ring", "arguments": arguments}
    return item | {"status": status}


def _response(output: list[Frame], status: str) -> Frame:
    return {"id": "r", "object": "response", "created_at": 1, "status": status, "model": "m", "output": output}


def responses_stream(arguments: str = "{}") -> list[Frame]:
    place = {"item_id": "fc_0", "output_index": 0}
    kind = "response.function_call_arguments"
    grown = [{"type": f"{kind}.delta", **place, "delta": arguments}] if arguments else []
    done = _item(arguments, "completed")
    return [
        {"type": "response.created", "response": _response([], "in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": _item("", "in_progress")},
        *grown,
        {"type": f"{kind}.done", **place, "arguments": arguments},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": _response([done], "completed")},
    ]


def responses_whole(arguments: str = "{}") -> list[Frame]:
    return [_response([_item(arguments, "completed")], "completed")]


def messages_stream(*pieces: str) -> list[Frame]:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    block = {"type": "tool_use", "id": "c0", "name": "ring", "input": {}}
    grown = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in grown),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


def messages_whole() -> list[Frame]:
    block = {"type": "tool_use", "id": "c0", "name": "ring", "input": {}}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    return [message | {"stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}]


def gemini(call: Frame, *, is_stream: bool) -> list[Frame]:
    candidate: Frame = {"content": {"role": "model", "parts": [{"functionCall": call}]}, "index": 0}
    end: Frame = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
    told = {"responseId": "r", "modelVersion": "m"}
    if is_stream:
        return [{**told, "candidates": [candidate]}, {**told, "candidates": [end]}]
    return [{**told, "candidates": [{**candidate, "finishReason": "STOP"}]}]


def ollama(arguments: Any, *, is_stream: bool) -> list[Frame]:
    function = {"name": "ring"} if arguments is None else {"name": "ring", "arguments": arguments}
    line: Frame = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    message = {"role": "assistant", "content": "", "tool_calls": [{"id": "c0", "function": function}]}
    end = {"done": True, "done_reason": "stop"}
    if not is_stream:
        return [{**line, "message": message, **end}]
    return [
        {**line, "message": message, "done": False}, {**line, "message": {"role": "assistant", "content": ""}, **end},
    ]  # fmt: skip


BARE: dict[str, Callable[[], list[Frame]]] = {
    "openai-chat": chat_stream,
    "openai-chat, {}": lambda: chat_stream("{}"),
    "openai-chat, none": lambda: chat_stream(None),
    "openai-chat, whole": chat_whole,
    "openai-chat, none, whole": lambda: chat_whole(None),
    "openai-responses": responses_stream,
    "openai-responses, empty": lambda: responses_stream(""),
    "openai-responses, whole": responses_whole,
    "anthropic-messages": lambda: messages_stream(""),
    "anthropic-messages, {}": lambda: messages_stream("{}"),
    "anthropic-messages, at once": messages_stream,
    "anthropic-messages, whole": messages_whole,
    "gemini-generate": lambda: gemini({"name": "ring", "args": {}}, is_stream=True),
    "gemini-generate, none": lambda: gemini({"name": "ring"}, is_stream=True),
    "gemini-generate, whole": lambda: gemini({"name": "ring", "args": {}}, is_stream=False),
    "ollama-chat": lambda: ollama({}, is_stream=True),
    "ollama-chat, none": lambda: ollama(None, is_stream=True),
    "ollama-chat, at the end": lambda: ollama({}, is_stream=False),
}


def _text_behind(wire: str) -> list[Frame]:
    """The same with a text behind the call, told in pieces."""
    frames = BARE[wire]()
    if wire == "openai-chat":
        frames[2:2] = [{**frames[0], "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in "abc"]
    elif wire == "openai-responses":
        item = {"type": "message", "id": "m", "role": "assistant", "content": []}
        place = {"item_id": "m", "output_index": 1, "content_index": 0}
        grown = [{"type": "response.output_text.delta", **place, "delta": piece} for piece in "abc"]
        frames[-1:-1] = [{"type": "response.output_item.added", "output_index": 1, "item": item}, *grown]
    elif wire == "anthropic-messages":
        deltas = [{"type": "text_delta", "text": piece} for piece in "abc"]
        grown = [{"type": "content_block_delta", "index": 1, "delta": delta} for delta in deltas]
        start = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}
        frames[-2:-2] = [start, *grown, {"type": "content_block_stop", "index": 1}]
    elif wire == "gemini-generate":
        contents = [{"role": "model", "parts": [{"text": piece}]} for piece in "abc"]
        frames[1:1] = [{"candidates": [{"content": content, "index": 0}]} for content in contents]
    else:
        messages = [{"role": "assistant", "content": piece} for piece in "abc"]
        frames[1:1] = [{**frames[1], "message": message, "done": False} for message in messages]
        for frame in frames[1:-1]:
            frame.pop("done_reason")
    return frames


BEHIND: dict[str, Callable[[], list[Frame]]] = {
    f"{wire}, text behind": functools.partial(_text_behind, wire) for wire in BARE if "," not in wire
}
