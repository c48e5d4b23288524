"""Every field of every stream event of the vendors' SDKs, each in the smallest stream that holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, get_args

import anthropic.types.beta as messages
import openai.types.chat as chat

from dragoman.codec.framing.body import write_event
from vendor_answers import LEAST
from vendor_types import Case, Json, Walk

#: Fields that say where an event belongs, or what it is.
_PLACES: Final = frozenset({"index", "type"})
_CHUNK: Final = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
_START: Final = {**LEAST["anthropic-messages"], "content": [], "stop_reason": None}
_END: Final = {
    "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}
}  # fmt: skip
TEXT: Final = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    {"type": "content_block_stop", "index": 0},
]
#: Type of a delta → the block that takes it.
_TAKERS: Final[dict[str, Json]] = {
    "text_delta": {"type": "text", "text": ""},
    "citations_delta": {"type": "text", "text": "hello"},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "hello", "signature": ""},
    "input_json_delta": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    "compaction_delta": {"type": "compaction", "content": None},
}


def wire(events: list[dict[str, Json]]) -> bytes:
    """Server-sent events, with the name of their type where they have one."""
    return b"".join(write_event(json.dumps(event).encode(), str(event.get("type", ""))) for event in events)


def cases(protocol: str) -> Iterator[Case]:
    """Every field with a marked value; `body` is the list of events."""
    yield from {"openai-chat": _of_chat, "anthropic-messages": _of_messages}[protocol]()


def _of_chat() -> Iterator[Case]:
    walk = Walk()
    last = {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    first = {**_CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello"}}]}
    for name, (hint, _) in walk.fields(chat.ChatCompletionChunk).items():
        for found in walk.walk(hint, name):
            if not found.is_marked or found.key in _PLACES:
                continue
            value = found.value
            if name == "choices":
                told = value[0]
                value = [{**told, "index": 0, "finish_reason": None, "delta": _delta(told.get("delta") or {})}]
            event = {**_CHUNK, "choices": [], name: value}
            yield Case(name + found.path, [first, event, last], None, found.key, found.values, True)


def _delta(delta: dict[str, Json]) -> dict[str, Json]:
    """A delta with what must stand beside its field."""
    if "audio" in delta:
        return {**delta, "audio": {"id": "audio_1", "data": "QUJD", **delta["audio"]}}
    if "function_call" in delta:
        return {**delta, "function_call": {"name": "plain", "arguments": "{}", **delta["function_call"]}}
    if "tool_calls" not in delta:
        return delta
    call = {**delta["tool_calls"][0], "index": 0, "type": "function"}
    function = {"name": "plain", "arguments": "{}", **call.get("function", {})}
    return {**delta, "tool_calls": [{"id": "call_1", **call, "function": function}]}


def _of_messages() -> Iterator[Case]:
    walk = Walk()
    for name, (hint, _) in walk.fields(messages.BetaMessage).items():
        if name not in ("content", "stop_reason", "stop_sequence", "stop_details"):  # those come with the end
            for found in _marked(walk, hint, name):
                start = {"type": "message_start", "message": {**_START, name: found.value}}
                yield _case(f"message_start.message.{name}", found, [start, *TEXT, _END])
    start = {"type": "message_start", "message": _START}
    for block in _members(messages.BetaRawContentBlockStartEvent.model_fields["content_block"].annotation):
        for found in _marked(walk, block, "content_block"):
            opened = {**TEXT[0], "content_block": found.value}
            yield _case(f"content_block_start<{found.value['type']}>", found, [start, opened, TEXT[2], _END])
    for delta in _members(messages.BetaRawContentBlockDelta):
        for found in _marked(walk, delta, "delta"):
            kind = found.value["type"]
            opened = {**TEXT[0], "content_block": _TAKERS[kind]}
            grown = {**TEXT[1], "delta": found.value}
            found = found._replace(path=found.path.replace(".citation<", ".citations[]<"))
            block = f"content[]<{_TAKERS[kind]['type']}>.<{kind}>"
            yield _case(block, found, [start, opened, grown, TEXT[2], _END])
    for name, (hint, _) in walk.fields(messages.BetaRawMessageDeltaEvent).items():
        for found in _marked(walk, hint, name):
            value = {**_END.get(name, {}), **found.value} if isinstance(found.value, dict) else found.value
            if name == "delta":
                value["stop_reason"] = "stop_sequence" if found.key == "stop_sequence" else "end_turn"
            yield _case(f"message_delta.{name}", found, [start, *TEXT, {**_END, name: value}])


def _case(path: str, found: Any, events: list[Json]) -> Case:
    return Case(path + found.path, [*events, {"type": "message_stop"}], None, found.key, found.values, True)


def _marked(walk: Walk, hint: Any, key: str) -> Iterator[Any]:
    return (found for found in walk.walk(hint, key) if found.is_marked and found.key not in _PLACES)


def _members(hint: Any) -> list[Any]:
    found = get_args(hint)
    return [each for each in (get_args(found[0]) or found) if isinstance(each, type)]
