"""Every field of every stream event of the vendors' SDKs, each in the smallest stream that holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, get_args

import anthropic.types.beta as messages
import openai.types.chat as chat
import openai.types.responses as responses

from dragoman.codec.framing.body import write_event
from vendor_answers import LEAST
from vendor_answers import cases as answers
from vendor_types import Case, Json, Walk

#: Fields that say where an event belongs, or what it is.
_PLACES: Final = frozenset({
    "index", "type", "sequence_number", "output_index", "item_id", "content_index", "summary_index", "annotation_index",
    "command_index",
})  # fmt: skip
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


def stream(events: list[dict[str, Json]], protocol: str) -> bytes:
    """The events of a stream as its bytes."""
    if protocol == "ollama-chat":
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return wire(events) + (b"data: [DONE]\n\n" if protocol == "openai-chat" else b"")


def cases(protocol: str) -> Iterator[Case]:
    """Every field with a marked value; `body` is the list of events.

    A chunk of Gemini or Ollama has the type of a whole answer. What stands whole in an event of Responses, an item or
    the response, has the types of whole answers, too, and is tried there.
    """
    match protocol:
        case "openai-chat":
            yield from _of_chat()
        case "anthropic-messages":
            yield from _of_messages()
        case "openai-responses":
            yield from _of_responses()
        case _:
            yield from (case._replace(body=[case.body], base=None) for case in answers(protocol))


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


# ---------------------------------------------------------------- Responses

_ANSWER: Final = LEAST["openai-responses"]
_REASONED: Final = {"type": "reasoning", "id": "it_1", "summary": []}
_CALLED: Final = {"id": "it_1", "call_id": "call_1", "name": "plain"}
#: How an event's name begins → the item that it tells of when that is over, its growing text "hello".
_GROWN: Final[dict[str, dict[str, Json]]] = {
    "response.output_text": {**_ANSWER["output"][0], "id": "it_1"},
    "response.refusal": {
        **_ANSWER["output"][0], "id": "it_1", "content": [{"type": "refusal", "refusal": "hello"}],
    },
    "response.reasoning_text": {**_REASONED, "content": [{"type": "reasoning_text", "text": "hello"}]},
    "response.reasoning_summary_text": {**_REASONED, "summary": [{"type": "summary_text", "text": "hello"}]},
    "response.function_call_arguments": {**_CALLED, "type": "function_call", "arguments": '{"a":"hello"}'},
    "response.custom_tool_call_input": {**_CALLED, "type": "custom_tool_call", "input": "hello"},
}  # fmt: skip
#: Lists of an item that are empty while it grows, and texts that are "".
_GROWING: Final = {"content": [], "summary": [], "arguments": "", "input": ""}
#: Fields of an event that hold the growing text.
_TEXTS: Final = frozenset({"delta", "text", "refusal", "arguments", "input"})


def _of_responses() -> Iterator[Case]:
    walk = Walk()
    for kind in _members(responses.ResponseStreamEvent):
        name = str(get_args(kind.model_fields["type"].annotation)[0])
        item = next((each for start, each in _GROWN.items() if name.startswith(start)), None)
        if item is None:
            continue
        least: dict[str, Json] = {key: value for key, value in walk.least(kind, "").items() if key not in _TEXTS}
        whole = '{"a":"hello"}' if "arguments" in name else "hello"
        least |= {key: whole for key in walk.fields(kind) if key in _TEXTS}
        least |= {"output_index": 0, "item_id": "it_1"}
        least |= {key: 0 for key in walk.fields(kind) if key in ("content_index", "summary_index")}
        for field, (hint, _) in walk.fields(kind).items():
            if field in _TEXTS:
                mark = f"grown{len(name)}"
                text = json.dumps(_growing(item, least)).replace("hello", mark)
                yield Case(f"<{name}>.{field}", json.loads(text), None, field, (mark,), True)
                continue
            for found in _marked(walk, hint, field):
                events = _growing(item, {**least, field: found.value})  # told by the event alone
                at = "annotations[]" if field == "annotation" else field
                yield Case(f"<{name}>.{at}{found.path}", events, None, found.key, found.values, True)


def _growing(item: dict[str, Json], event: dict[str, Json]) -> list[dict[str, Json]]:
    """A response in which one item grows by an event."""
    started = {key: _GROWING.get(key, value) for key, value in item.items()}
    events = [
        {"type": "response.created", "response": {**_ANSWER, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**started, "status": "in_progress"}},
        event,
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}},
        {"type": "response.completed", "response": {**_ANSWER, "output": [{**item, "status": "completed"}]}},
    ]
    return [{"sequence_number": number, **each} for number, each in enumerate(events)]
