"""The official `openai` SDK reads what we write, and we read what it read; over a loopback server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import openai
import pytest
from openai.types.responses import Response

from cases import counter
from conversations import SHAPES, call, reply
from dragoman.events import Failure, Finish, Start, ToolCallDelta, ToolCallFailed, ToolCallStart, fold, unfold
from dragoman.protocols.openai_responses.protocol import PROTOCOL
from dragoman.types import Text, Thinking, Tool, ToolCall, Usage
from for_each import for_each
from grammar import check
from scripted import Scripted, Step, serving, streamed, whole

QUESTION: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]


def encoder():
    return PROTOCOL.encoder(new_id=counter(), model="model-1", created=1_750_000_000)


def read(wire: bytes):
    decoder = PROTOCOL.decoder(new_id=counter())
    return fold(check([*decoder.feed(wire), *decoder.close()]))


@contextmanager
def sdk(*steps: Step) -> Iterator[tuple[openai.OpenAI, Scripted]]:
    with (
        serving(list(steps)) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client,
    ):
        yield client, server


def content(response: Response) -> list[tuple[str, ...]]:
    """What an SDK response holds, in the form of `ours`."""
    rows: list[tuple[str, ...]] = []
    for item in response.output:
        if item.type == "message":
            rows += [("text", part.text if part.type == "output_text" else part.refusal) for part in item.content]
        elif item.type == "reasoning":
            rows += [("thinking", part.text) for part in item.summary]
        elif item.type == "function_call":
            rows.append(("call", item.call_id, item.name, item.arguments))
        elif item.type == "custom_tool_call":
            rows.append(("custom", item.call_id, item.name, item.input))
    return rows


def ours(parts: Any) -> list[tuple[str, ...]]:
    """What our parts hold."""
    rows: list[tuple[str, ...]] = []
    for part in parts:
        match part:
            case Text(text):
                rows.append(("text", text))
            case Thinking(text):
                rows.append(("thinking", text))
            case ToolCall(id, name, arguments, kind):
                rows.append(("call" if kind == "function" else "custom", id, name, arguments))
    return rows


@for_each("shape", SHAPES)
def test_create_with_stream(shape: str):
    original = reply(shape)
    wire = encoder().encode(unfold(original))
    with sdk(*streamed(wire)) as (client, _):
        events = list(client.responses.create(model="model-1", input=QUESTION, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    last = events[-1]
    assert last.type == ("response.incomplete" if original.stop_reason == "length" else "response.completed")
    assert content(last.response) == ours(original.parts)
    assert last.response.usage is not None
    assert (last.response.usage.input_tokens, last.response.usage.output_tokens) == (120, 34)
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == original.text
    arguments = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    assert arguments == "".join(one.arguments for one in original.tool_calls)


@for_each("shape", SHAPES)
def test_stream_helper(shape: str):
    original = reply(shape)
    wire = encoder().encode(unfold(original))
    with (
        sdk(*streamed(*(wire[start : start + 700] for start in range(0, len(wire), 700)))) as (client, _),
        client.responses.stream(model="model-1", input=QUESTION) as stream,
    ):
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        if original.stop_reason == "length":  # the helper keeps no final response of an incomplete one
            assert snapshots[-1] == original.text
            return
        response = stream.get_final_response()
    assert content(response) == ours(original.parts)
    assert response.output_text == original.text


@for_each("shape", SHAPES)
def test_whole_response(shape: str):
    original = reply(shape)
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=1_750_000_000)
    with sdk(*whole(body)) as (client, _):
        response = client.responses.create(model="model-1", input=QUESTION)
    assert content(response) == ours(original.parts)
    assert response.status == ("incomplete" if original.stop_reason == "length" else "completed")
    again = read(response.model_dump_json(exclude_none=True).encode())
    assert ours(again.parts) == ours(original.parts)
    assert (again.stop_reason, again.error) == (original.stop_reason, None)
    assert again.usage == Usage(120, 34, 0, 0, 0)  # what is required is 0 where it is unknown


@for_each("usage", [Usage(1, 2), Usage(1), Usage(None, 2), Usage(9, 9, 3, 2, 1), Usage()])
def test_usage_has_all_that_is_required(usage: Usage):
    body = PROTOCOL.render_response(
        msgspec.structs.replace(reply("text"), usage=usage), new_id=counter(), model="m", created=1
    )
    found = Response.model_validate_json(body).usage
    if usage.input is None and usage.output is None:
        assert found is None
    else:
        assert found is not None
        assert found.output_tokens_details.reasoning_tokens == (usage.reasoning or 0)
        assert found.input_tokens_details.cached_tokens == (usage.cache_read or 0)


def test_custom_call():
    parts = (ToolCall("call_1", "write_sql", "SELECT 1;\n-- é", "custom"),)
    wire = encoder().encode([*unfold(reply("text"))[:1], *unfold(fold_of(parts))[1:]])
    with sdk(*streamed(wire)) as (client, _), client.responses.stream(model="m", input=QUESTION) as stream:
        response = stream.get_final_response()
    assert content(response) == [("custom", "call_1", "write_sql", "SELECT 1;\n-- é")]


def fold_of(parts: Any):
    return msgspec.structs.replace(reply("text"), parts=parts, stop_reason="tool_use")


def test_a_failure_within_the_stream_is_seen():
    wire = encoder().encode([Start(), Failure("rate", "slow down, please")])
    with sdk(*streamed(wire)) as (client, _):
        events = list(client.responses.create(model="m", input=QUESTION, stream=True))
    assert [event.type for event in events] == ["response.created", "response.in_progress", "response.failed"]
    assert events[-1].response.error.code == "rate_limit_exceeded"
    assert events[-1].response.error.message == "slow down, please"
    assert content(events[-1].response) == []


def test_a_cut_call_is_never_finished():
    writer = encoder()
    failed = ToolCallFailed(0, "call_1", "write_file", "cut", "the arguments end early", '{"a":')
    wire = writer.encode(
        [Start(), ToolCallStart(0, "call_1", "write_file"), ToolCallDelta(0, '{"a":'), failed, Finish("other")]
    )
    assert writer.aborted
    with sdk(*streamed(wire)) as (client, _):
        events = list(client.responses.create(model="m", input=QUESTION, stream=True))
    assert "response.output_item.done" not in [event.type for event in events]
    assert "response.function_call_arguments.done" not in [event.type for event in events]
    assert events[-1].type == "response.failed"
    assert read(wire).tool_calls == []


@for_each(
    ("kind", "error"),
    [
        ("auth", openai.AuthenticationError),
        ("rate", openai.RateLimitError),
        ("not_found", openai.NotFoundError),
        ("bad_request", openai.BadRequestError),
        ("overloaded", openai.InternalServerError),
    ],
)
def test_errors_before_the_first_byte(kind: Any, error: type[openai.APIStatusError]):
    status, body = PROTOCOL.render_error(Failure(kind, "it does not work"))
    with sdk(*whole(body, status)) as (client, _), pytest.raises(error, match="it does not work"):
        client.responses.create(model="m", input=QUESTION)
    assert PROTOCOL.parse_error(status, body).kind == kind


def test_a_conversation_of_the_sdk_is_read_and_written_again():
    """The SDK sends back the items that it got; we read them and render the same items."""
    original = reply("thinking-call")
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=1)
    with sdk(*whole(body)) as (client, server):
        tools: Any = [{"type": "function", "name": "write_file", "parameters": {"type": "object"}, "strict": True}]
        first = client.responses.create(model="model-1", input=QUESTION, tools=tools)
        turn = [*QUESTION, *first.output, {"type": "function_call_output", "call_id": "call_1", "output": "done"}]
        client.responses.create(model="model-1", input=turn, tools=tools, instructions="Be brief.")
    asked = server.requests[1]
    assert asked.path == "/v1/responses"
    request = PROTOCOL.parse_request(asked.body).request
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert ours(request.messages[2].parts) == ours(original.parts)
    assert request.messages[3].parts[0].call_id == "call_1"
    assert isinstance(request.tools[0], Tool)
    assert request.tools[0].schema_object() == {"type": "object"}
    again = PROTOCOL.parse_request(PROTOCOL.render_request(request).http.body).request
    assert again == request


def test_calls_in_parallel_stay_apart():
    parts = tuple(call(number, f'{{"n":{number}}}') for number in range(8))
    wire = encoder().encode(unfold(fold_of(parts)))
    with sdk(*streamed(wire)) as (client, _), client.responses.stream(model="m", input=QUESTION) as stream:
        response = stream.get_final_response()
    assert content(response) == ours(parts)
