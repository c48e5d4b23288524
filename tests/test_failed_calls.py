"""Calls that cannot be delivered are told in one way, whole and streamed, from each protocol to each.

A good call beside a bad one leaves whole, with an error; a bad one alone is an error. The failure's words are never the
model's. `length` stands, because it says why.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from cases import counter
from dragoman.errors import CALL_FAILED, call_failure, is_unusable
from dragoman.events import Event, Failure, Finish, Reply, Start, ToolCallEnd, ToolCallFailed, ToolCallStart, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from grammar import check, check_sequential

NAMES = ("lift_gate", "drop_gate")
TOOLS = tuple(Tool(name) for name in NAMES)
GOOD, BAD = '{"gate": 3}', '{"gate": 3, "speed"'
WORDS = "One moment."


def events_of(data: list[dict[str, Any]], *, named: bool = True) -> bytes:
    """An event stream; `named`: each event has its type on a line of its own."""
    return b"".join(
        (b"event: %b\n" % event["type"].encode() if named else b"") + b"data: %b\n\n" % json.dumps(event).encode()
        for event in data
    )


def chat(calls: list[tuple[str, str]], end: str) -> bytes:
    deltas: list[dict[str, Any]] = [{"content": WORDS}]
    for index, (name, text) in enumerate(calls):
        function = {"name": name, "arguments": text}
        deltas.append({"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]})
    word = {"stop": "tool_calls", "length": "length"}[end]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": word}]}
    return events_of([*chunks, last], named=False) + b"data: [DONE]\n\n"


def messages(calls: list[tuple[str, str]], end: str) -> bytes:
    begun = {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": WORDS})
    ]
    for index, (name, text) in enumerate(calls):
        block = {"type": "tool_use", "id": f"c{index}", "name": name, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": text}))
    for index, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    word = {"stop": "tool_use", "length": "max_tokens"}[end]
    events.append({"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 9}})
    return events_of([*events, {"type": "message_stop"}])


def responses(calls: list[tuple[str, str]], end: str) -> bytes:
    items: list[dict[str, Any]] = [
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": WORDS}]}
    ]
    for index, (name, text) in enumerate(calls):
        items.append({"type": "function_call", "id": f"fc_{index}", "call_id": f"c{index}", "name": name})
        items[-1]["arguments"] = text
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_1", "model": "m"}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item | {"arguments": ""}})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    word = {"stop": "completed", "length": "incomplete"}[end]
    details = {"reason": "max_output_tokens"} if end == "length" else None
    last = {"id": "resp_1", "status": word, "output": items, "incomplete_details": details}
    return events_of([*events, {"type": f"response.{word}", "response": last}])


def ollama(calls: list[tuple[str, str]], end: str) -> bytes:
    lines: list[dict[str, Any]] = [{"message": {"role": "assistant", "content": WORDS}, "done": False}]
    for name, text in calls:
        function = {"name": name, "arguments": json.loads(text) if text == GOOD else text}
        lines.append({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}})
        lines[-1]["done"] = False
    lines.append({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": end})
    return b"".join(json.dumps({"model": "m", **line}).encode() + b"\n" for line in lines)


def gemini(calls: list[tuple[str, str]], end: str) -> bytes:
    parts: list[dict[str, Any]] = [{"text": WORDS}]
    for name, text in calls:
        parts.append({"functionCall": {"name": name, "args": json.loads(text) if text == GOOD else text}})
    candidates = [{"content": {"role": "model", "parts": [part]}, "index": 0} for part in parts]
    candidates[-1]["finishReason"] = {"stop": "STOP", "length": "MAX_TOKENS"}[end]
    return events_of([{"candidates": [candidate]} for candidate in candidates], named=False)


PROVIDERS = {
    "openai-chat": chat, "anthropic-messages": messages, "openai-responses": responses, "ollama-chat": ollama,
    "gemini-generate": gemini,
}  # fmt: skip
ONE_BAD, BOTH = [(NAMES[1], BAD)], [(NAMES[0], GOOD), (NAMES[1], BAD)]
BAD_FIRST = [(NAMES[1], BAD), (NAMES[0], GOOD)]


def read(provider: str, wire: bytes, *, step: int = 0, sequential: bool = True) -> list[Event]:
    protocol = PROTOCOLS[provider]
    stages = stages_for(TOOLS, Policy(sequential=sequential), new_id=counter())
    reader = Reader(protocol.decoder(new_id=counter(), offered_names=frozenset(NAMES)), stages)
    pieces = [wire[at : at + step] for at in range(0, len(wire), step)] if step else [wire]
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.close()
    return (check_sequential if sequential else check)(events)


def is_told(reply: Reply) -> bool:
    """Whether an answer that was read back says that it failed."""
    return reply.stop_reason == "error" and isinstance(reply.error, Failure) and bool(reply.error.message)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("calls", [ONE_BAD, BOTH, BAD_FIRST], ids=["bad", "good-bad", "bad-good"])
@pytest.mark.parametrize("step", [0, 1])
def test_streamed(provider: str, client: str, calls: list[tuple[str, str]], step: int):
    events = read(provider, PROVIDERS[provider](calls, "stop"), step=step)
    failed = [event for event in events if type(event) is ToolCallFailed]
    assert [event.name for event in failed] == [NAMES[1]]
    encoder = PROTOCOLS[client].encoder(new_id=counter(), model="m", created=1)
    wire = encoder.encode(events)
    for word in (b'"finish_reason":"', b'"stop_reason":"', b'"done":true', b"response.completed", b"[DONE]"):
        assert word not in wire
    reply = fold(read(client, wire, sequential=False))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [call for call in calls if call[1] == GOOD]
    assert reply.text == WORDS
    assert is_told(reply)
    assert failed[0].message not in reply.text


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("calls", [BOTH, BAD_FIRST], ids=["good-bad", "bad-good"])
def test_whole_with_a_good_call(provider: str, client: str, calls: list[tuple[str, str]]):
    answer = fold(read(provider, PROVIDERS[provider](calls, "stop")))
    assert not is_unusable(answer)
    body = PROTOCOLS[client].render_response(answer, new_id=counter(), model="m", created=1)
    value = json.loads(body)
    message = answer.failed_calls[0].message
    match client:
        case "openai-chat":
            assert value["choices"][0]["finish_reason"] == "tool_calls"
            assert (value["error"]["code"], value["error"]["message"]) == (CALL_FAILED, message)
        case "anthropic-messages":
            assert value["stop_reason"] == "tool_use"
            assert (value["error"]["code"], value["error"]["message"]) == (CALL_FAILED, message)
        case "ollama-chat":
            assert (value["done"], value["done_reason"], value["error"]) == (True, "stop", message)
        case "openai-responses":
            assert (value["status"], value["error"]) == ("failed", {"code": CALL_FAILED, "message": message})
        case "gemini-generate":
            (candidate,) = value["candidates"]
            assert (candidate["finishReason"], candidate["finishMessage"]) == ("MALFORMED_FUNCTION_CALL", message)
    reply = fold(read(client, body, sequential=False))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [(NAMES[0], GOOD)]
    assert reply.text == WORDS
    assert is_told(reply)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_whole_without_a_good_call(provider: str, client: str):
    answer = fold(read(provider, PROVIDERS[provider](ONE_BAD, "stop")))
    assert is_unusable(answer) and answer.stop_reason == "error"
    protocol = PROTOCOLS[client]
    if protocol.tells_failed_calls:
        body = protocol.render_response(answer, new_id=counter(), model="m", created=1)
        reply = fold(read(client, body, sequential=False))
        assert (reply.text, reply.tool_calls) == (WORDS, [])
        assert is_told(reply)
    else:
        status, body = protocol.render_error(call_failure(answer.failed_calls))
        assert status == 502
        assert CALL_FAILED.encode() in body
        assert answer.failed_calls[0].message in str(json.loads(body))


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_length_stands(provider: str, client: str):
    """A call that the token limit cut, of which nothing has left: the limit says why it is missing."""
    answer = fold(read(provider, PROVIDERS[provider](ONE_BAD, "length")))
    assert answer.stop_reason == "length" and not is_unusable(answer)
    encoder = PROTOCOLS[client].encoder(new_id=counter(), model="m", created=1)
    failed = answer.failed_calls[0]
    start = ToolCallStart(0, failed.id, failed.name)
    wire = encoder.encode([Start(), start, ToolCallFailed(0, failed.id, failed.name, "cut", "cut"), Finish("length")])
    assert fold(read(client, wire, sequential=False)).stop_reason == "length"
    assert not encoder.aborted


def test_what_is_delivered_is_what_came():
    """Read back, good calls of a failed answer are there, and the failure is one of the whole answer."""
    events = read("openai-chat", chat(BOTH, "stop"))
    assert [event.call.arguments for event in events if type(event) is ToolCallEnd] == [GOOD]
