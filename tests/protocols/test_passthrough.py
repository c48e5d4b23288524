"""What is told of a whole answer without reading it is what reading it tells; nothing odd is told of at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cases import load_cases
from dragoman.events import Deviation, Event, Failure, Finish, ToolCallEnd, ToolCallFailed
from dragoman.proofs import is_of_the_wire
from dragoman.protocols import PROTOCOLS
from for_each import for_each

CASES = load_cases()


def read(protocol: str, body: bytes) -> list[Event]:
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: "call_made_up")
    return [*decoder.feed(body), *decoder.close()]


def check_told(protocol: str, body: bytes) -> bool:
    """Whether it is told of; then it is as it is read."""
    told = PROTOCOLS[protocol].check_whole(body)
    if told is None:
        return False
    events = read(protocol, body)
    assert not [event for event in events if isinstance(event, Failure | ToolCallFailed)]
    assert not [
        event
        for event in events
        if isinstance(event, Deviation) and event.severity != "note" and is_of_the_wire(event.code)
    ]
    end = events[-1]
    assert isinstance(end, Finish)
    assert (told.reason, told.native_reason, told.usage, told.cost) == (
        end.reason,
        end.native_reason,
        end.usage,
        end.cost,
    )
    return True


@for_each("case", CASES, ids=lambda case: f"{case.protocol}/{case.name}")
def test_every_case_of_the_corpus(case):
    check_told(case.protocol, case.wire)
    assert PROTOCOLS[case.protocol].check_whole(case.wire[:-2]) is None


def chat(**changes: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": '{"a": [1, "é"]}'}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **changes}


def message(**changes: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]
    usage = {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 3}
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content}
    return {**whole, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage, **changes}


def lines(**changes: Any) -> dict[str, Any]:
    calls = [
        {"function": {"name": "f", "arguments": {"a": 1}}},
        {"id": "one", "function": {"name": "g", "arguments": {"b": [1]}}},
    ]
    said = {"role": "assistant", "content": "", "tool_calls": calls}
    whole = {"model": "m", "created_at": "2026-11-22T08:00:00.5Z", "message": said, "done": True}
    return {**whole, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 7, **changes}


def candidates(*parts: dict[str, Any], finish: str = "STOP", **changes: Any) -> dict[str, Any]:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r", **changes}


def response(*output: dict[str, Any], **changes: Any) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12, **details}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "error": None}
    return {**whole, "output": list(output), "usage": usage, **changes}


CALL = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2VhbA=="}
ITEM = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a": 1}',
    "status": "completed",
}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}
PLAIN = [
    ("openai-chat", chat()),
    ("openai-chat", chat(usage=None)),
    ("openai-chat", chat(usage={"prompt_tokens": 5, "completion_tokens": 7, "cost": 0.25})),
    ("openai-chat", chat(usage={"prompt_tokens": 9, "completion_tokens": 7, "prompt_cache_hit_tokens": 4})),
    ("openai-chat", chat(choices=[{"message": {"content": "Hi"}, "finish_reason": "stop"}])),
    ("openai-chat", chat(choices=[{"message": {"content": "Hi"}, "finish_reason": "length"}])),
    ("anthropic-messages", message()),
    ("anthropic-messages", message(content=[{"type": "text", "text": "Hi"}], stop_reason="max_tokens")),
    ("ollama-chat", lines()),
    ("ollama-chat", lines(message={"role": "assistant", "content": "Hi", "thinking": "Hm"}, done_reason="length")),
    ("gemini-generate", candidates(CALL, {"functionCall": {"name": "f", "id": "one", "args": {"b": 1}}})),
    ("gemini-generate", candidates({"text": "Hm", "thought": True}, {"text": "Hi"}, finish="MAX_TOKENS")),
    ("gemini-generate", candidates({"text": "Hi"}, {"functionCall": {"name": "f"}})),
    ("openai-responses", response(SAID, ITEM)),
    ("openai-responses", response(SAID)),
]


@for_each(("protocol", "body"), PLAIN)
def test_a_plain_answer_is_told_of(protocol, body):
    assert check_told(protocol, json.dumps(body).encode())


def spoilt(body: Any) -> Iterator[Any]:
    """Every body with one value of this one left out, null, empty or of another type."""
    if isinstance(body, dict):
        for key, value in body.items():
            yield {name: body[name] for name in body if name != key}
            yield from ({**body, key: other} for other in spoilt(value))
    elif isinstance(body, list):
        yield from ([], [*body, *body])
        for at, item in enumerate(body):
            yield from ([*body[:at], other, *body[at + 1 :]] for other in spoilt(item))
    else:
        yield from (None, "", "{", "[]", "odd", 7, -1, 0.5, True, {}, [])


@for_each(("protocol", "body"), PLAIN)
def test_a_body_that_is_spoilt_is_told_of_as_it_is_read(protocol, body):
    told = [check_told(protocol, json.dumps(other).encode()) for other in spoilt(body)]
    assert not all(told)


@for_each("protocol", PROTOCOLS)
def test_a_call_of_a_plain_answer_can_be_run(protocol):
    for name, body in PLAIN:
        if name == protocol:
            calls = [event for event in read(protocol, json.dumps(body).encode()) if isinstance(event, ToolCallEnd)]
            assert bool(calls) == ('"name"' in json.dumps(body))


@for_each("more", [
    {"tool_calls": [{"id": "a", "function": {"name": "ring", "arguments": "{}"}}]}, {"delta": {"text": "x"}},
    {"content_block": {"type": "tool_use", "name": "ring", "input": {"bell": 1}}}, {"message": {"content": "x"}},
])  # fmt: skip
def test_a_whole_message_with_what_may_be_a_call_is_read(more: dict[str, Any]):
    text, usage = {"type": "text", "text": "hi"}, {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "content": [text], "stop_reason": "end_turn"}
    check = PROTOCOLS["anthropic-messages"].check_whole
    assert check(json.dumps({**head, "usage": usage, "provider": "x", "container": None}).encode()) is not None
    assert check(json.dumps({**head, "usage": usage, **more}).encode()) is None


@for_each("key", ["arguments", "args", "parameters"])
@for_each("value", [None, {"bell": 2}])
def test_a_whole_message_whose_call_has_arguments_twice_is_read(key: str, value: Any):
    block = {"type": "tool_use", "id": "a", "name": "ring", "input": {"bell": 1}, "caller": {"type": "direct"}}
    head = {"id": "m", "type": "message", "role": "assistant", "stop_reason": "tool_use"}
    usage, check = {"input_tokens": 1, "output_tokens": 1}, PROTOCOLS["anthropic-messages"].check_whole
    assert check(json.dumps({**head, "content": [block], "usage": usage}).encode()) is not None
    assert check(json.dumps({**head, "content": [{**block, key: value}], "usage": usage}).encode()) is None
