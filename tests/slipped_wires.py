"""Answers whose calls are known, in all forms of the five protocols, and the slips of servers that leave one reading.

A slip is a function of an answer's frames. `SLIPS` has those of each form; any two of them may come together.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from wires import (
    Frame,
    arguments_delta,
    arguments_done,
    block_of,
    body_of,
    chat_answer,
    chat_call,
    chat_chunk,
    chat_piece,
    function_call,
    gemini_call,
    gemini_chunk,
    item_added,
    item_done,
    json_delta,
    messages_answer,
    messages_stream,
    ollama_call,
    ollama_line,
    responses_answer,
    responses_stream,
    tool_use,
)

Call: TypeAlias = tuple[str, dict[str, Any]]
Slip: TypeAlias = Callable[[list[Frame]], list[Frame]]
LS: Call = ("bash", {"command": "ls src"})
READ: Call = ("read", {"path": "src/app.py", "limit": 5})
NOW: Call = ("now", {})
#: The calls of an answer: alone, in both orders, alike, and three of them.
SETS = ([LS], [READ], [NOW], [LS, READ], [READ, LS], [LS, NOW], [NOW, LS], [LS, LS], [LS, READ, NOW], [LS, READ, LS])
TEXT = "I look."


def pieces_of(values: object) -> list[str]:
    text = json.dumps(values)
    return [piece for piece in (text[:1], text[1:9], text[9:]) if piece]


# ---------------------------------------------------------------- answers


def chat(calls: list[Call]) -> list[Frame]:
    frames = [chat_chunk({"role": "assistant", "content": TEXT})]
    for at, (name, values) in enumerate(calls):
        told = [chat_call(name, at=at), *(chat_piece(piece, at) for piece in pieces_of(values))]
        frames += [chat_chunk({"tool_calls": [one]}) for one in told]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [{**head, **frame} for frame in (*frames, chat_chunk({}, "tool_calls"))]


def chat_at_once(calls: list[Call]) -> list[Frame]:
    told = (chat_call(name, json.dumps(values), at=at) for at, (name, values) in enumerate(calls))
    return [chat([])[0], *({**chat([])[0], **chat_chunk({"tool_calls": [one]})} for one in told), chat([])[-1]]


def chat_whole(calls: list[Call]) -> list[Frame]:
    told = (chat_call(name, json.dumps(values), at=at) for at, (name, values) in enumerate(calls))
    return [{"id": "c", "object": "chat.completion", "created": 1, "model": "m", **chat_answer(*told, content=TEXT)}]


def messages(calls: list[Call]) -> list[Frame]:
    frames = block_of({"type": "text", "text": ""}, {"type": "text_delta", "text": TEXT})
    for at, (name, values) in enumerate(calls, 1):
        frames += block_of(tool_use(name, at=at), *map(json_delta, pieces_of(values)), at=at)
    return messages_stream(*frames)


def messages_whole(calls: list[Call]) -> list[Frame]:
    uses = (tool_use(name, values, at=at) for at, (name, values) in enumerate(calls))
    return [messages_answer({"type": "text", "text": TEXT}, *uses)]


def _items(calls: list[Call]) -> list[Frame]:
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    said = {"type": "message", "id": "m0", "role": "assistant", "status": "completed", "content": [part]}
    told = [
        function_call(name, json.dumps(values), at, status="completed") for at, (name, values) in enumerate(calls, 1)
    ]
    return [said, *told]


def responses(calls: list[Call]) -> list[Frame]:
    said, *told = _items(calls)
    place = {"output_index": 0, "content_index": 0, "item_id": "m0"}
    frames = [item_added({**said, "content": []}), {"type": "response.output_text.delta", **place, "delta": TEXT}]
    frames.append(item_done(said))
    for at, item in enumerate(told, 1):
        frames.append(item_added({**item, "arguments": "", "status": "in_progress"}, at))
        frames += [arguments_delta(piece, at) for piece in pieces_of(calls[at - 1][1])]
        frames += [arguments_done(item["arguments"], at), item_done(item, at)]
    return responses_stream(*frames, output=[said, *told])


def responses_whole(calls: list[Call]) -> list[Frame]:
    return [responses_answer(*_items(calls))]


def gemini(calls: list[Call]) -> list[Frame]:
    told = (gemini_chunk(gemini_call(name, values)) for name, values in calls)
    return [gemini_chunk({"text": TEXT}), *told, gemini_chunk({"text": ""}, reason="STOP")]


def gemini_whole(calls: list[Call]) -> list[Frame]:
    return [gemini_chunk({"text": TEXT}, *(gemini_call(*call) for call in calls), reason="STOP")]


def ollama(calls: list[Call]) -> list[Frame]:
    told = (ollama_line(ollama_call(name, values, id=f"c{at}")) for at, (name, values) in enumerate(calls))
    return [ollama_line(content=TEXT), *told, ollama_line(reason="stop")]


def ollama_whole(calls: list[Call]) -> list[Frame]:
    told = (ollama_call(name, values, id=f"c{at}") for at, (name, values) in enumerate(calls))
    return [ollama_line(*told, content=TEXT, reason="stop")]


# ---------------------------------------------------------------- slips


def objects(value: Any) -> Iterator[Frame]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


def each(change: Callable[[Frame], object]) -> Slip:
    """Every object of the frames changed."""

    def slip(frames: list[Frame]) -> list[Frame]:
        frames = json.loads(json.dumps(frames))  # an item that the end tells again is another object
        for one in list(objects(frames)):
            change(one)
        return frames

    return slip


def with_key(key: str, change: Callable[[Frame], object]) -> Slip:
    """The objects that have a key changed."""
    return each(lambda one: change(one) if key in one else None)


def of_type(type: str, change: Callable[[Frame], object]) -> Slip:
    return each(lambda one: change(one) if one.get("type") == type else None)


def lacks(key: str) -> Callable[[Frame], object]:
    return lambda one: one.pop(key, None)


def has(key: str, value: Any) -> Callable[[Frame], object]:
    """A change of one member; a function is given the value that it had."""

    def change(one: Frame) -> None:
        if key in one:
            one[key] = value(one[key]) if callable(value) else value

    return change


def gains(key: str, value: Any) -> Callable[[Frame], object]:
    return lambda one: one.__setitem__(key, value)


def renamed(key: str, other: str) -> Callable[[Frame], object]:
    return lambda one: one.__setitem__(other, one.pop(key)) if key in one else None


def within(key: str, change: Callable[[Frame], object]) -> Callable[[Frame], object]:
    return lambda one: change(one[key]) if isinstance(one.get(key), dict) else None


def without(*types: str) -> Slip:
    """The frames of other types."""
    return lambda frames: [frame for frame in frames if frame.get("type") not in types]


def numbered(key: str) -> Slip:
    """The frames, each with an id of its own."""
    return lambda frames: [{**frame, key: f"x{at}"} for at, frame in enumerate(frames)]


def between(other: Frame) -> Slip:
    """Another frame behind each but the last one."""
    return lambda frames: [told for frame in frames[:-1] for told in (frame, other)] + frames[-1:]


def as_object(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments


def unless_said(value: Any) -> Callable[[Any], Any]:
    """Arguments of nothing as another value."""
    return lambda arguments: value if arguments in ("{}", "", {}) else arguments


def input_of(frames: list[Frame], at: Any) -> Any:
    """What the pieces at an index tell together."""
    pieces = [
        frame["delta"].get("partial_json", "") for frame in frames if "delta" in frame and frame.get("index") == at
    ]
    return as_object("".join(pieces)) or {}


def numbers(first: int) -> Callable[[Frame], object]:
    """The index of each call."""
    count = itertools.count(first)
    return within("function", lambda function: function.__setitem__("index", next(count)))


def flatten(call: Frame) -> None:
    call.update(call.pop("function"))


NAMED = {
    "a prefix of the name": lambda name: name and f"functions.{name}",
    "a blank behind the name": lambda name: name and f"{name} ",
    "brackets behind the name": lambda name: name and f"{name}()",
}
FUNCTION = "function"
#: The conversation before, which an answer tells again.
BEFORE = [
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "tool_calls": [{"id": "b", "function": {"name": "bash", "arguments": '{"command": "pwd"}'}}]},
]
CHECK = {"index": 0, "finish_reason": None, "content_filter_results": {}, "content_filter_offsets": {"check_offset": 9}}
CHAT = {
    "the conversation before": with_key("choices", gains("messages", BEFORE)),
    "news of the server": with_key(
        "choices", gains("__verbose", {"content": "x", "generation_settings": {"tools": []}})
    ),
    "a mark of calls": with_key("choices", gains("tool_call_generating", True)),
    "no id": with_key(FUNCTION, lacks("id")),
    "an empty id": with_key(FUNCTION, has("id", "")),
    "no type": with_key(FUNCTION, lacks("type")),
    "an empty type": with_key(FUNCTION, has("type", "")),
    "no arguments as nothing": with_key("arguments", has("arguments", unless_said(""))),
    "null for no arguments": with_key("arguments", has("arguments", unless_said(None))),
    "stop": with_key("finish_reason", has("finish_reason", "stop")),
    "the older reason": with_key("finish_reason", has("finish_reason", "function_call")),
    "counts": with_key("choices", gains("usage", {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3})),
    "a message of the server": with_key("choices", gains("base_resp", {"status_code": 0, "status_msg": "success"})),
    **{words: with_key(FUNCTION, within(FUNCTION, has("name", change))) for words, change in NAMED.items()},
}
CHAT_STREAMED = CHAT | {
    "no index": with_key(FUNCTION, lacks("index")),
    "indices from one": with_key(FUNCTION, has("index", lambda at: type(at)(int(at) + 1))),
    "indices as text": with_key(FUNCTION, has("index", str)),
    "a role in each": with_key("delta", within("delta", gains("role", "assistant"))),
    "null for content": with_key("tool_calls", gains("content", None)),
    "an id for each chunk": numbered("id"),
    "the end twice": lambda frames: [*frames, frames[-1]],
    "an object for a call": with_key("tool_calls", has("tool_calls", lambda calls: calls[0])),
    "checks between": between({"id": "", "object": "", "created": 0, "model": "", "choices": [CHECK]}),
    "null for id and name behind": each(
        lambda one: (
            one.update(id=None, function={"name": None, **one[FUNCTION]})
            if FUNCTION in one and "id" not in one
            else None
        )
    ),
    "empty for id and name behind": each(
        lambda one: (
            one.update(id="", function={"name": "", **one[FUNCTION]}) if FUNCTION in one and "id" not in one else None
        )
    ),
}
WHOLE_ARGUMENTS = {
    "arguments as an object": with_key("arguments", has("arguments", as_object)),
    "arguments encoded twice": with_key("arguments", has("arguments", lambda text: json.dumps(text) if text else text)),
}
USE = "tool_use"
EDITS = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": 9}]}
MESSAGES = {
    "edits of the context": with_key("stop_reason", gains("context_management", EDITS)),
    "no id": of_type(USE, lacks("id")),
    "an empty id": of_type(USE, has("id", "")),
    "end_turn": with_key("stop_reason", has("stop_reason", "end_turn")),
    "the chat's reason": with_key("stop_reason", has("stop_reason", "tool_calls")),
    **{words: of_type(USE, has("name", change)) for words, change in NAMED.items()},
}
MESSAGES_STREAMED = MESSAGES | {
    "no input": of_type(USE, lacks("input")),
    "null for input": of_type(USE, has("input", None)),
    "an empty text for input": of_type(USE, has("input", "")),
    "no stops": without("content_block_stop"),
    "no index of the stops": of_type("content_block_stop", lacks("index")),
    "indices as text": with_key("index", has("index", str)),
    "no end": lambda frames: frames[:-1],
    "no start": lambda frames: frames[1:],
    "the start twice": lambda frames: [frames[0], *frames],
    "counts of null": of_type("message_delta", gains("usage", {"input_tokens": None, "output_tokens": 9})),
    "measures at the end": of_type("message_stop", gains("amazon-bedrock-invocationMetrics", {"latency": 9})),
    "pings between": between({"type": "ping"}),
    "the input at the start, too": lambda frames: [
        {**frame, "content_block": {**frame["content_block"], "input": input_of(frames, frame["index"])}}
        if frame.get("content_block", {}).get("type") == USE
        else frame
        for frame in frames
    ],
    "the start late": lambda frames: [frames[1], frames[2], frames[0], *frames[3:]],
    "empty pieces between": lambda frames: [
        told
        for frame in frames
        for told in (
            [frame, {**frame, "delta": json_delta("")}] if "partial_json" in frame.get("delta", {}) else [frame]
        )
    ],
    "early stops": lambda frames: [
        told
        for frame in frames
        for told in (
            [frame, {"type": "content_block_stop", "index": frame["index"]}]
            if len(frame.get("delta", {}).get("partial_json", "")) > 2
            else [frame]
        )
    ],
}
MESSAGES_WHOLE = MESSAGES | {
    "input as text": of_type(USE, has("input", json.dumps)),
    "null for no input": of_type(USE, has("input", unless_said(None))),
    "null among the blocks": with_key("content", lambda one: one["content"].insert(0, None)),
}
ITEM = "function_call"
RESPONSES = {
    "news of the server": with_key("output", gains("content_filters", [{"blocked": False}])),
    "no id": of_type(ITEM, lacks("id")),
    "no call id": of_type(ITEM, lacks("call_id")),
    "no state": of_type(ITEM, lacks("status")),
    "no arguments as nothing": of_type(ITEM, has("arguments", unless_said(""))),
    "null for no arguments": of_type(ITEM, has("arguments", unless_said(None))),
    **{words: of_type(ITEM, has("name", change)) for words, change in NAMED.items()},
}
RESPONSES_STREAMED = RESPONSES | {
    "no starts of items": without("response.output_item.added"),
    "no ends of arguments": without("response.function_call_arguments.done"),
    "no ends of items": without("response.output_item.done"),
    "no pieces": without("response.function_call_arguments.delta"),
    "no start": without("response.created"),
    "nothing at the end": lambda frames: [
        *frames[:-1],
        {**frames[-1], "response": {**frames[-1]["response"], "output": []}},
    ],
    "no index": with_key("output_index", lacks("output_index")),
    "an empty name at the ends of items": lambda frames: [
        {**frame, "item": {**frame["item"], "name": ""}}
        if frame["type"] == "response.output_item.done" and "name" in frame["item"]
        else frame
        for frame in frames
    ],
    "an empty message at the end": lambda frames: [
        *frames[:-1],
        {**frames[-1], "response": {**frames[-1]["response"], "output": [{"type": "message", "content": []}]}},
    ],
    "no ids of items": with_key("item_id", lacks("item_id")),
    "an id of an item for each event": lambda frames: [
        {**frame, "item_id": f"z{at}"} if "item_id" in frame else frame for at, frame in enumerate(frames)
    ],
    "other ids of calls at the end": lambda frames: [
        *frames[:-1],
        of_type(ITEM, has("call_id", lambda id: f"{id}_again"))(frames[-1:])[0],
    ],
}
CALL = "functionCall"
COUNTS = {"usageMetadata": {"promptTokenCount": 9}}
GEMINI = {
    "calls that a library ran": with_key(
        "candidates", gains("automaticFunctionCallingHistory", [gemini_call("b", {})])
    ),
    "arguments as text": with_key(CALL, within(CALL, has("args", json.dumps))),
    "null for no arguments": with_key(CALL, within(CALL, has("args", unless_said(None)))),
    "snake case": with_key(CALL, renamed(CALL, "function_call")),
    "arguments under another key": with_key(CALL, within(CALL, renamed("args", "arguments"))),
    "parameters": with_key(CALL, within(CALL, renamed("args", "parameters"))),
    "an empty id": with_key(CALL, within(CALL, gains("id", ""))),
    "a seal": with_key(CALL, gains("thoughtSignature", "QUJD")),
    "an envelope": lambda frames: [{"response": frame} for frame in frames],
    "a number for the reason": with_key("finishReason", has("finishReason", 1)),
    "an id for each chunk": numbered("responseId"),
    "a prefix of the name": with_key(CALL, within(CALL, has("name", lambda name: f"default_api.{name}"))),
}
GEMINI_STREAMED = GEMINI | {
    "counts first": lambda frames: [COUNTS, *frames],
    "counts between": between(COUNTS),
}
OLLAMA = {
    "arguments as text": with_key("arguments", has("arguments", json.dumps)),
    "no id": with_key(FUNCTION, lacks("id")),
    "an empty id": with_key(FUNCTION, has("id", "")),
    "null for no arguments": with_key("arguments", has("arguments", unless_said(None))),
    "no arguments as nothing": with_key("arguments", has("arguments", unless_said(""))),
    "index 0": with_key(FUNCTION, within(FUNCTION, gains("index", 0))),
    "no reason": with_key("done_reason", lacks("done_reason")),
    "parameters": with_key(FUNCTION, within(FUNCTION, renamed("arguments", "parameters"))),
    "flat calls": with_key(FUNCTION, flatten),
    "delta": with_key("message", renamed("message", "delta")),
    "a reason with the calls": each(
        lambda one: gains("done_reason", "tool_calls")(one) if "tool_calls" in one.get("message", {}) else None
    ),
    "numbers of the calls": lambda frames: [
        told for at, frame in enumerate(frames) for told in with_key(FUNCTION, numbers(max(at - 1, 0)))([frame])
    ],
    "hosts": with_key("done", gains("remote_host", "h")),
    **{words: with_key(FUNCTION, within(FUNCTION, has("name", change))) for words, change in NAMED.items()},
}


class Form(NamedTuple):
    """One way of a protocol to tell an answer."""

    protocol: str
    make: Callable[[list[Call]], list[Frame]]
    slips: dict[str, Slip]
    is_whole: bool = False

    def body(self, calls: list[Call], *slips: str) -> bytes:
        frames = self.make(calls)
        for slip in slips:
            frames = self.slips[slip](frames)
        return body_of(self.protocol, frames, is_whole=self.is_whole)


FORMS = (
    Form("openai-chat", chat, CHAT_STREAMED),
    Form("openai-chat", chat_at_once, CHAT_STREAMED | WHOLE_ARGUMENTS),
    Form("openai-chat", chat_whole, CHAT | WHOLE_ARGUMENTS, is_whole=True),
    Form("anthropic-messages", messages, MESSAGES_STREAMED),
    Form("anthropic-messages", messages_whole, MESSAGES_WHOLE, is_whole=True),
    Form("openai-responses", responses, RESPONSES_STREAMED),
    Form("openai-responses", responses_whole, RESPONSES | WHOLE_ARGUMENTS, is_whole=True),
    Form("gemini-generate", gemini, GEMINI_STREAMED),
    Form("gemini-generate", gemini_whole, GEMINI, is_whole=True),
    Form("ollama-chat", ollama, OLLAMA),
    Form("ollama-chat", ollama_whole, OLLAMA, is_whole=True),
)
