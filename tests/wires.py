"""Frames of the five protocols' answers, each with the least that a server sends, and bodies made of them.

A test says what is special in its wire: members beside (`**more`), other labels, frames that are missing or come twice.
`at`: the number of a part or call; ids are made of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Frame: TypeAlias = dict[str, Any]


def body_of(protocol: str, frames: Iterable[Frame | str], *, is_whole: bool = False, is_named: bool = True) -> bytes:
    """The bytes of an answer; of a whole one the first frame. A frame may be JSON text already.

    `is_named`: an event that has a type tells it on a line of its own, too, as Messages and Responses do.
    """
    texts = [(frame, "") if isinstance(frame, str) else (json.dumps(frame), frame.get("type", "")) for frame in frames]
    if is_whole:
        return texts[0][0].encode()
    if protocol == "ollama-chat":
        return "".join(f"{text}\n" for text, _ in texts).encode()
    events = [(f"event: {name}\n" if name and is_named else "") + f"data: {text}\n\n" for text, name in texts]
    return "".join([*events, *(["data: [DONE]\n\n"] if protocol == "openai-chat" else [])]).encode()


# ---------------------------------------------------------------- openai-chat


def chat_chunk(delta: Frame, reason: str | None = None, **more: Any) -> Frame:
    return {"choices": [{"index": 0, "delta": delta, **({"finish_reason": reason} if reason else {})}], **more}


def chat_call(name: str, arguments: Any = "", /, at: int = 0, **more: Any) -> Frame:
    function = {"name": name, "arguments": arguments}
    return {"index": at, "id": f"c{at}", "type": "function", "function": function, **more}


def chat_piece(arguments: str, at: int = 0) -> Frame:
    return {"index": at, "function": {"arguments": arguments}}


def chat_stream(*calls: Frame, reason: str = "tool_calls") -> list[Frame]:
    """A chunk for each call, or piece of one, and the end."""
    return [*(chat_chunk({"tool_calls": [call]}) for call in calls), chat_chunk({}, reason)]


def chat_answer(*calls: Frame, reason: str = "tool_calls", **message: Any) -> Frame:
    """A whole answer; its calls have no index."""
    told = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    whole = {"role": "assistant", "content": None, **({"tool_calls": told} if told else {}), **message}
    return {"choices": [{"index": 0, "message": whole, "finish_reason": reason}]}


# ---------------------------------------------------------------- anthropic-messages


def tool_use(name: str, values: Any = None, /, at: int = 0, **more: Any) -> Frame:
    return {"type": "tool_use", "id": f"c{at}", "name": name, "input": {} if values is None else values, **more}


def block_start(block: Frame, at: int = 0) -> Frame:
    return {"type": "content_block_start", "index": at, "content_block": block}


def json_delta(text: str) -> Frame:
    return {"type": "input_json_delta", "partial_json": text}


def block_delta(delta: Frame, at: int = 0) -> Frame:
    return {"type": "content_block_delta", "index": at, "delta": delta}


def block_stop(at: int = 0) -> Frame:
    return {"type": "content_block_stop", "index": at}


def block_of(block: Frame, *deltas: Frame, at: int = 0) -> list[Frame]:
    """A block's start, its deltas and its stop."""
    return [block_start(block, at), *(block_delta(delta, at) for delta in deltas), block_stop(at)]


def messages_stream(*frames: Frame, reason: str = "tool_use", usage: Frame | None = None) -> list[Frame]:
    """The frames between the start and the end of a message."""
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage or {}}
    start = {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}
    return [start, *frames, end, {"type": "message_stop"}]


def messages_answer(*content: Frame, reason: str = "tool_use") -> Frame:
    head = {"type": "message", "id": "m", "role": "assistant", "model": "m"}
    return {**head, "content": list(content), "stop_reason": reason}


# ---------------------------------------------------------------- openai-responses


def function_call(name: str, arguments: Any = "", /, at: int = 0, **more: Any) -> Frame:
    return {
        "type": "function_call", "id": f"i{at}", "call_id": f"c{at}", "name": name, "arguments": arguments, **more
    }  # fmt: skip


def item_added(item: Frame, at: int = 0) -> Frame:
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def item_done(item: Frame, at: int = 0) -> Frame:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def arguments_delta(text: str, at: int = 0) -> Frame:
    return {"type": "response.function_call_arguments.delta", "output_index": at, "item_id": f"i{at}", "delta": text}


def arguments_done(text: str, at: int = 0) -> Frame:
    place = {"output_index": at, "item_id": f"i{at}"}
    return {"type": "response.function_call_arguments.done", **place, "arguments": text}


def responses_answer(*output: Frame, status: str = "completed", **more: Any) -> Frame:
    return {"id": "r", "object": "response", "status": status, "output": list(output), **more}


def responses_stream(*frames: Frame, output: Sequence[Frame] = ()) -> list[Frame]:
    """The frames between the start and the end of a response; `output`: what its end tells again."""
    start = {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}
    return [start, *frames, {"type": "response.completed", "response": responses_answer(*output)}]


# ---------------------------------------------------------------- gemini-generate


def gemini_chunk(*parts: Frame, reason: str | None = None, **more: Any) -> Frame:
    return {"candidates": [{"content": {"parts": list(parts)}, **({"finishReason": reason} if reason else {}), **more}]}


def gemini_call(name: str, values: Any) -> Frame:
    return {"functionCall": {"name": name, "args": values}}


def gemini_stream(*calls: Frame) -> list[Frame]:
    """A chunk for each object of a `functionCall`; the last one has the reason why the answer ends."""
    last = len(calls) - 1
    return [
        gemini_chunk({"functionCall": call}, reason="STOP" if at == last else None) for at, call in enumerate(calls)
    ]


#: The last chunk of a stream whose calls came before.
GEMINI_END = gemini_chunk({"text": ""}, reason="STOP")


def partial_args(values: dict[str, Any]) -> list[Frame]:
    """A piece of a streamed call for each value, a string or a number."""
    pieces = [{"jsonPath": f"$.{key}", f"{_kind(value)}Value": value} for key, value in values.items()]
    return [{"partialArgs": [piece], "willContinue": True} for piece in pieces]


def _kind(value: object) -> str:
    return "string" if isinstance(value, str) else "number"


# ---------------------------------------------------------------- ollama-chat


def ollama_call(name: str, arguments: Any, /, **more: Any) -> Frame:
    return {"function": {"name": name, "arguments": arguments}, **more}


def ollama_line(*calls: Frame, reason: str = "", **message: Any) -> Frame:
    """`reason`: why the answer ends with this line, nothing when it goes on."""
    told = {"role": "assistant", "content": "", **({"tool_calls": list(calls)} if calls else {}), **message}
    return {"model": "m", "message": told, "done": bool(reason), **({"done_reason": reason} if reason else {})}


def ollama_stream(*calls: Frame) -> list[Frame]:
    """A line for each call, and the end."""
    return [*(ollama_line(call) for call in calls), ollama_line(reason="stop")]
