"""Calls that cannot be delivered are told in one way, whole and streamed, from each protocol to each.

A good call beside a bad one leaves whole, with an error; a bad one alone is an error. The failure's words are never the
model's. `length` stands, because it says why.
"""

from __future__ import annotations

import json

import wires
from cases import counter
from dragoman.errors import CALL_FAILED, call_failure, is_unusable
from dragoman.events import Event, Failure, Finish, Reply, Start, ToolCallEnd, ToolCallFailed, ToolCallStart, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from for_each import for_each
from grammar import check, check_sequential
from wires import Frame

NAMES = ("lift_gate", "drop_gate")
TOOLS = tuple(Tool(name) for name in NAMES)
GOOD, BAD = '{"gate": 3}', '{"gate": 3, "speed"'
WORDS = "One moment."


def chat(calls: list[tuple[str, str]], end: str) -> bytes:
    told = [wires.chat_call(*call, at) for at, call in enumerate(calls)]
    frames = wires.chat_stream(*told, reason={"stop": "tool_calls", "length": "length"}[end])
    return wires.body_of("openai-chat", [wires.chat_chunk({"content": WORDS}), *frames])


def messages(calls: list[tuple[str, str]], end: str) -> bytes:
    blocks = wires.block_of({"type": "text", "text": ""}, {"type": "text_delta", "text": WORDS})
    for at, (name, text) in enumerate(calls, 1):
        blocks += wires.block_of(wires.tool_use(name, at=at), wires.json_delta(text), at=at)
    reason = {"stop": "tool_use", "length": "max_tokens"}[end]
    return wires.body_of("anthropic-messages", wires.messages_stream(*blocks, reason=reason))


def responses(calls: list[tuple[str, str]], end: str) -> bytes:
    said = [{"type": "output_text", "text": WORDS}]
    items: list[Frame] = [{"type": "message", "id": "msg_1", "role": "assistant", "content": said}]
    items += [wires.function_call(*call, at) for at, call in enumerate(calls)]
    frames: list[Frame] = []
    for at, item in enumerate(items):
        frames += [wires.item_added(item | {"arguments": ""}, at), wires.item_done(item, at)]
    *frames, last = wires.responses_stream(*frames, output=items)
    if end == "length":
        details = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        last = {"type": "response.incomplete", "response": last["response"] | details}
    return wires.body_of("openai-responses", [*frames, last])


def ollama(calls: list[tuple[str, str]], end: str) -> bytes:
    told = [wires.ollama_call(name, json.loads(text) if text == GOOD else text) for name, text in calls]
    *lines, _ = wires.ollama_stream(*told)
    return wires.body_of("ollama-chat", [wires.ollama_line(content=WORDS), *lines, wires.ollama_line(reason=end)])


def gemini(calls: list[tuple[str, str]], end: str) -> bytes:
    parts: list[Frame] = [{"text": WORDS}]
    parts += [wires.gemini_call(name, json.loads(text) if text == GOOD else text) for name, text in calls]
    reasons = [*[None] * (len(parts) - 1), {"stop": "STOP", "length": "MAX_TOKENS"}[end]]
    chunks = [wires.gemini_chunk(part, reason=reason) for part, reason in zip(parts, reasons, strict=True)]
    return wires.body_of("gemini-generate", chunks)


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


@for_each("client", PROTOCOLS)
@for_each("provider", PROVIDERS)
@for_each("calls", [ONE_BAD, BOTH, BAD_FIRST], ids=["bad", "good-bad", "bad-good"])
@for_each("step", [0, 1])
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


@for_each("client", PROTOCOLS)
@for_each("provider", PROVIDERS)
@for_each("calls", [BOTH, BAD_FIRST], ids=["good-bad", "bad-good"])
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


@for_each("client", PROTOCOLS)
@for_each("provider", PROVIDERS)
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


@for_each("client", PROTOCOLS)
@for_each("provider", PROVIDERS)
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
