"""The official `anthropic` SDK reads what we write, and we read what it read; over a loopback server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import msgspec
import pytest
from anthropic.types import Message

from cases import counter
from conversations import SHAPES, call, reply
from dragoman.events import Failure, Finish, Reply, Start, ToolCallDelta, ToolCallFailed, ToolCallStart, fold, unfold
from dragoman.protocols.anthropic.protocol import PROTOCOL
from dragoman.types import Params, Reasoning, Text, Thinking, Tool, ToolCall, Usage
from for_each import for_each
from grammar import check
from scripted import Scripted, Step, serving, streamed, whole

QUESTION: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]


def encoder():
    return PROTOCOL.encoder(new_id=counter(), model="model-1", created=1_750_000_000)


def read(wire: bytes) -> Reply:
    decoder = PROTOCOL.decoder(new_id=counter())
    return fold(check([*decoder.feed(wire), *decoder.close()]))


@contextmanager
def sdk(*steps: Step) -> Iterator[tuple[anthropic.Anthropic, Scripted]]:
    with serving(list(steps)) as server, anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client, server


def content(message: Message) -> list[tuple[Any, ...]]:
    """What an SDK message holds, in the form of `ours`."""
    rows: list[tuple[Any, ...]] = []
    for block in message.content:
        if block.type == "text":
            rows.append(("text", block.text))
        elif block.type == "thinking":
            rows.append(("thinking", block.thinking, block.signature))
        elif block.type == "redacted_thinking":
            rows.append(("redacted", block.data))
        elif block.type == "tool_use":
            rows.append(("call", block.id, block.name, block.input))
    return rows


def ours(answer: Reply) -> list[tuple[Any, ...]]:
    """What our reply holds."""
    rows: list[tuple[Any, ...]] = []
    for part in answer.parts:
        match part:
            case Text(text):
                rows.append(("text", text))
            case Thinking(text, signature, redacted):
                rows.append(("redacted", redacted) if redacted else ("thinking", text, signature or ""))
            case ToolCall():
                rows.append(("call", part.id, part.name, part.values()))
    return rows


SEALED = msgspec.structs.replace(
    reply("text"),
    parts=(Thinking("Is it?", "c2VhbA=="), Thinking("", redacted="b3BhcXVl"), Text("It is."), call(1, '{"a":1.50}')),
    stop_reason="tool_use",
    usage=Usage(input=100, output=20, cache_read=60, cache_write=10),
)
REPLIES = {**{shape: reply(shape) for shape in SHAPES}, "sealed": SEALED}
WORDS = {"stop": "end_turn", "tool_use": "tool_use", "length": "max_tokens"}


@for_each("name", REPLIES)
def test_the_stream_helper_reads_our_stream(name: str):
    original = REPLIES[name]
    with (
        sdk(*streamed(encoder().encode(unfold(original)))) as (client, _),
        client.messages.stream(model="model-1", max_tokens=100, messages=QUESTION) as stream,
    ):
        text = "".join(event.text for event in stream if event.type == "text")
        message = stream.get_final_message()
    assert text == original.text
    assert content(message) == ours(original)
    assert message.stop_reason == WORDS[original.stop_reason]
    usage = message.usage
    counts = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens)
    assert counts == ((30, 60, 10, 20) if name == "sealed" else (120, None, None, 34))


@for_each("name", REPLIES)
def test_raw_events_of_our_stream(name: str):
    original = REPLIES[name]
    with sdk(*streamed(encoder().encode(unfold(original)))) as (client, _):
        events = list(client.messages.create(model="model-1", max_tokens=100, messages=QUESTION, stream=True))
    assert [events[0].type, events[-2].type, events[-1].type] == ["message_start", "message_delta", "message_stop"]
    arguments = "".join(
        event.delta.partial_json
        for event in events
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
    )
    assert arguments == "".join(one.arguments for one in original.tool_calls)


@for_each("name", REPLIES)
def test_our_whole_message(name: str):
    original = REPLIES[name]
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=0)
    with sdk(*whole(body)) as (client, _):
        message = client.messages.create(model="model-1", max_tokens=100, messages=QUESTION)
    assert content(message) == ours(original)
    assert message.stop_reason == WORDS[original.stop_reason]
    assert message.model == "model-1"


@for_each("name", REPLIES)
def test_we_read_what_the_sdk_writes(name: str):
    """The SDK's own models, serialized, are a server that we read."""
    original = REPLIES[name]
    with sdk(*streamed(encoder().encode(unfold(original)))) as (client, _):
        events = list(client.messages.create(model="model-1", max_tokens=100, messages=QUESTION, stream=True))
        wire = b"".join(
            f"event: {event.type}\ndata: {event.model_dump_json(by_alias=True)}\n\n".encode() for event in events
        )
    assert ours(read(wire)) == ours(original)
    assert read(wire).usage == original.usage
    message = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=0)
    assert ours(read(Message.model_validate_json(message).model_dump_json().encode())) == ours(original)


def test_we_read_the_sdks_requests():
    body = PROTOCOL.render_response(reply("text"), new_id=counter(), model="model-1", created=0)
    with sdk(*whole(body)) as (client, server):
        first = PROTOCOL.render_response(SEALED, new_id=counter(), model="model-1", created=0)
        history = Message.model_validate_json(first)
        client.messages.create(
            model="model-1",
            max_tokens=5000,
            system="Be brief.",
            thinking={"type": "enabled", "budget_tokens": 2048},
            tools=[{"name": "write_file", "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}}}],
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            messages=[
                *QUESTION,
                {"role": "assistant", "content": history.content},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": call(1, "{}").id, "content": "written"},
                        {"type": "text", "text": "Go on."},
                    ],
                },
            ],
        )
        seen = server.requests[0]
    assert (seen.method, seen.path) == ("POST", "/v1/messages")
    found = PROTOCOL.parse_request(seen.body)
    request = found.request
    assert found.deviations == ()
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "user"]
    assert request.messages[2].parts[:2] == SEALED.parts[:2]
    assert request.params == Params(max_tokens=5000, reasoning=Reasoning(budget=2048), parallel_tools=False)
    assert [tool.name for tool in request.tools] == ["write_file"]
    assert isinstance(request.tools[0], Tool)


def test_a_failed_call_never_reaches_the_caller():
    """Closing the block would make the SDK hand out a call with what had come."""
    machine = encoder()
    wire = machine.encode(
        [
            Start(),
            ToolCallStart(0, "c1", "write_file"),
            ToolCallDelta(0, '{"path":"a'),
            ToolCallFailed(0, "c1", "write_file", "cut", "tool call write_file: cut"),
            Finish("other"),
        ]
    )
    assert machine.aborted
    with (
        sdk(*streamed(wire)) as (client, _),
        client.messages.stream(model="model-1", max_tokens=100, messages=QUESTION) as stream,
        pytest.raises(anthropic.APIStatusError, match="cut"),
    ):
        assert [event for event in stream if event.type == "content_block_stop"] == []


@for_each(
    ("failure", "error"),
    [
        (Failure("bad_request", "no such field"), anthropic.BadRequestError),
        (Failure("auth", "no key"), anthropic.AuthenticationError),
        (Failure("permission", "not yours"), anthropic.PermissionDeniedError),
        (Failure("not_found", "no such model"), anthropic.NotFoundError),
        (Failure("too_large", "too much"), anthropic.RequestTooLargeError),
        (Failure("rate", "slower"), anthropic.RateLimitError),
        (Failure("overloaded", "busy"), anthropic.OverloadedError),
        (Failure("wire", "not JSON"), anthropic.InternalServerError),
    ],
)
def test_errors(failure: Failure, error: type[anthropic.APIStatusError]):
    status, body = PROTOCOL.render_error(failure)
    with sdk(*whole(body, status)) as (client, _), pytest.raises(error) as raised:
        client.messages.create(model="model-1", max_tokens=100, messages=QUESTION)
    assert failure.message in str(raised.value)
