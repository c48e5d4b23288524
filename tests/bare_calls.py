"""Answers with one call that takes no parameters, in every form in which wires tell that it has none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import wires
from wires import Frame

_USAGE: Final = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_CHAT: Final = {"id": "x", "created": 1, "model": "m"}
_OLLAMA: Final = {"created_at": "2026-01-01T00:00:00Z"}
_GEMINI: Final = {"responseId": "r", "modelVersion": "m"}


def _chat(arguments: str | None) -> Frame:
    call = wires.chat_call("ring", arguments)
    return call if arguments is not None else {**call, "function": {"name": "ring"}}


def chat_stream(arguments: str | None = "") -> list[Frame]:
    head = {**_CHAT, "object": "chat.completion.chunk"}
    deltas = [{"role": "assistant", "content": None}, {"tool_calls": [_chat(arguments)]}]
    chunks = [*(wires.chat_chunk(delta, **head) for delta in deltas), wires.chat_chunk({}, "tool_calls", **head)]
    return [*chunks, {**head, "choices": [], "usage": _USAGE}]


def chat_whole(arguments: str | None = "{}") -> list[Frame]:
    return [{**_CHAT, "object": "chat.completion", **wires.chat_answer(_chat(arguments)), "usage": _USAGE}]


def responses_stream(arguments: str = "{}") -> list[Frame]:
    done = wires.function_call("ring", arguments, status="completed")
    start, end = (
        wires.responses_answer(*output, status=status, created_at=1, model="m")
        for output, status in (((), "in_progress"), ((done,), "completed"))
    )
    return [
        {"type": "response.created", "response": start},
        wires.item_added(wires.function_call("ring", status="in_progress")),
        *([wires.arguments_delta(arguments)] if arguments else []),
        wires.arguments_done(arguments),
        wires.item_done(done),
        {"type": "response.completed", "response": end},
    ]


def responses_whole(arguments: str = "{}") -> list[Frame]:
    return [responses_stream(arguments)[-1]["response"]]


def messages_stream(*pieces: str) -> list[Frame]:
    start, *rest = wires.messages_stream(
        *wires.block_of(wires.tool_use("ring"), *map(wires.json_delta, pieces)), usage={"output_tokens": 3}
    )
    head = {"type": "message", "role": "assistant", "stop_reason": None}
    return [{**start, "message": {**head, **start["message"]}}, *rest]


def messages_whole() -> list[Frame]:
    return [{**wires.messages_answer(wires.tool_use("ring")), "usage": {"input_tokens": 1, "output_tokens": 1}}]


def gemini(call: Frame, *, is_stream: bool) -> list[Frame]:
    contents = [([{"functionCall": call}], None), ([{"text": ""}], "STOP")]
    if not is_stream:
        contents = [(contents[0][0], "STOP")]
    frames = [wires.gemini_chunk(*parts, reason=reason, index=0) for parts, reason in contents]
    for frame in frames:
        frame["candidates"][0]["content"]["role"] = "model"
    return [{**_GEMINI, **frame} for frame in frames]


def ollama(arguments: Any, *, is_stream: bool) -> list[Frame]:
    function = {"name": "ring"} if arguments is None else {"name": "ring", "arguments": arguments}
    call = {"id": "c0", "function": function}
    lines = wires.ollama_stream(call) if is_stream else [wires.ollama_line(call, reason="stop")]
    return [{**line, **_OLLAMA} for line in lines]


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
