"""The official `openai` SDK reads what we write as OpenAI Chat, and we read what it sends; over a loopback server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import openai
import pytest
from openai.types.chat import ChatCompletionMessage

from cases import counter
from conversations import SHAPES, call, reply
from dragoman.events import Failure, Finish, Reply, Start, ToolCallDelta, ToolCallFailed, ToolCallStart, fold, unfold
from dragoman.protocol import ReplyStyle
from dragoman.protocols.openai_chat.protocol import PROTOCOL
from dragoman.types import Part, ToolCall
from for_each import for_each
from grammar import check
from scripted import Scripted, Step, serving, streamed, whole

QUESTION: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}]


USUAL = ReplyStyle()


def encoder(style: ReplyStyle = USUAL):
    return PROTOCOL.encoder(new_id=counter(), model="model-1", created=1_750_000_000, style=style)


def read(wire: bytes) -> Reply:
    decoder = PROTOCOL.decoder(new_id=counter())
    return fold(check([*decoder.feed(wire), *decoder.close()]))


def with_parts(*parts: Part) -> Reply:
    return msgspec.structs.replace(reply("text"), parts=parts, stop_reason="tool_use")


@contextmanager
def sdk(*steps: Step) -> Iterator[tuple[openai.OpenAI, Scripted]]:
    with (
        serving(list(steps)) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client,
    ):
        yield client, server


def calls_in(message: ChatCompletionMessage) -> list[tuple[str, str, str]]:
    found = []
    for entry in message.tool_calls or ():
        assert entry.type == "function"
        found.append((entry.id, entry.function.name, entry.function.arguments))
    return found


def our_calls(answer: Reply) -> list[tuple[str, str, str]]:
    return [(one.id, one.name, one.arguments) for one in answer.tool_calls]


@for_each("shape", SHAPES)
def test_raw_stream(shape: str) -> None:
    original = reply(shape)
    with sdk(*streamed(encoder().encode(unfold(original)))) as (client, _):
        chunks = list(client.chat.completions.create(model="model-1", messages=QUESTION, tools=TOOLS, stream=True))
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.model for chunk in chunks} == {"model-1"}
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == original.text
    assert [delta.role for delta in deltas[1:]] == [None] * (len(deltas) - 1)
    gathered: dict[int, list[str]] = {}
    for entry in (entry for delta in deltas for entry in delta.tool_calls or ()):
        assert entry.function is not None
        if entry.index not in gathered:
            assert entry.index == len(gathered)
            assert entry.type == "function"
            gathered[entry.index] = [entry.id or "", entry.function.name or "", entry.function.arguments or ""]
        else:
            assert entry.id is None
            assert entry.function.name is None
            gathered[entry.index][2] += entry.function.arguments or ""
    assert [tuple(found) for found in gathered.values()] == our_calls(original)
    last, usage = chunks[-2], chunks[-1]
    expected = {"stop": "stop", "tool_use": "tool_calls", "length": "length"}[original.stop_reason]
    assert last.choices[0].finish_reason == expected
    assert usage.choices == []
    assert usage.usage is not None
    assert (usage.usage.prompt_tokens, usage.usage.completion_tokens, usage.usage.total_tokens) == (120, 34, 154)


@for_each("shape", [shape for shape in SHAPES if shape != "length"])
def test_stream_helper(shape: str) -> None:
    original = reply(shape)
    wire = encoder().encode(unfold(original))
    pieces = [wire[start : start + 333] for start in range(0, len(wire), 333)]
    with (
        sdk(*streamed(*pieces)) as (client, _),
        client.chat.completions.stream(model="model-1", messages=QUESTION, tools=TOOLS) as stream,
    ):
        message = stream.get_final_completion().choices[0].message
    assert (message.content or "") == original.text
    assert calls_in(message) == our_calls(original)


@for_each("shape", SHAPES)
def test_whole_response(shape: str) -> None:
    original = reply(shape)
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=1_750_000_000)
    with sdk(*whole(body)) as (client, _):
        response = client.chat.completions.create(model="model-1", messages=QUESTION, tools=TOOLS)
    message = response.choices[0].message
    assert (message.content or "") == original.text
    assert calls_in(message) == our_calls(original)
    assert response.usage is not None
    assert response.usage.total_tokens == 154
    again = read(response.model_dump_json(exclude_none=True).encode())
    assert our_calls(again) == our_calls(original)
    assert (again.text, again.stop_reason, again.usage) == (original.text, original.stop_reason, original.usage)


def test_usage_only_when_it_was_asked_for() -> None:
    wire = encoder(ReplyStyle(include_usage=False)).encode(unfold(reply("text")))
    with sdk(*streamed(wire)) as (client, _):
        chunks = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert all(chunk.usage is None for chunk in chunks)
    assert wire.endswith(b"data: [DONE]\n\n")
    assert wire.count(b"[DONE]") == 1


def test_custom_call() -> None:
    original = with_parts(ToolCall("call_1", "write_sql", "SELECT 1;\n-- é", "custom"))
    body = PROTOCOL.render_response(original, new_id=counter(), model="m", created=1)
    with sdk(*whole(body)) as (client, _):
        message = client.chat.completions.create(model="m", messages=QUESTION).choices[0].message
    assert message.tool_calls is not None
    entry = message.tool_calls[0]
    assert entry.type == "custom"
    assert (entry.id, entry.custom.name, entry.custom.input) == ("call_1", "write_sql", "SELECT 1;\n-- é")
    assert read(encoder().encode(unfold(original))).tool_calls == original.tool_calls


def test_a_failure_within_the_stream_is_raised() -> None:
    wire = encoder().encode([Start(), Failure("rate", "slow down, please")])
    with sdk(*streamed(wire)) as (client, _), pytest.raises(openai.APIError, match="slow down, please") as raised:
        list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert raised.value.code == "rate_limit_exceeded"


def test_a_cut_call_raises_and_is_never_finished() -> None:
    writer = encoder()
    failed = ToolCallFailed(0, "call_1", "write_file", "cut", "the arguments end early", '{"a":')
    wire = writer.encode(
        [Start(), ToolCallStart(0, "call_1", "write_file"), ToolCallDelta(0, '{"a":'), failed, Finish("other")]
    )
    assert writer.aborted
    assert b'finish_reason":"' not in wire
    with sdk(*streamed(wire)) as (client, _), pytest.raises(openai.APIError, match="the arguments end early"):
        list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert read(wire).tool_calls == []


@for_each(
    ("kind", "error"),
    [
        ("auth", openai.AuthenticationError),
        ("permission", openai.PermissionDeniedError),
        ("rate", openai.RateLimitError),
        ("not_found", openai.NotFoundError),
        ("bad_request", openai.BadRequestError),
        ("context", openai.BadRequestError),
        ("overloaded", openai.InternalServerError),
    ],
)
def test_errors_before_the_first_byte(kind: Any, error: type[openai.APIStatusError]) -> None:
    status, body = PROTOCOL.render_error(Failure(kind, "it does not work"))
    with sdk(*whole(body, status)) as (client, _), pytest.raises(error, match="it does not work"):
        client.chat.completions.create(model="m", messages=QUESTION)
    assert PROTOCOL.parse_error(status, body).kind == kind


def test_a_conversation_of_the_sdk_is_read_and_written_again() -> None:
    """The SDK sends back the message that it got; we read it and render the same."""
    original = reply("text-call")
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=1)
    with sdk(*whole(body)) as (client, server):
        first = client.chat.completions.create(model="model-1", messages=QUESTION, tools=TOOLS)
        answer: Any = first.choices[0].message
        result = {"role": "tool", "tool_call_id": original.tool_calls[0].id, "content": "done"}
        turn: list[Any] = [{"role": "developer", "content": "Be brief."}, *QUESTION, answer, result]
        client.chat.completions.create(model="model-1", messages=turn, tools=TOOLS, tool_choice="required")
    asked = server.requests[1]
    assert asked.path == "/v1/chat/completions"
    parsed = PROTOCOL.parse_request(asked.body)
    request = parsed.request
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.messages[2].parts == original.parts
    assert request.messages[3].parts[0].call_id == original.tool_calls[0].id
    assert (request.stream, request.tool_choice) == (False, "any")
    assert request.tools[0].schema_object() == {"type": "object"}
    assert PROTOCOL.parse_request(PROTOCOL.render_request(request).http.body).request == request


def test_calls_in_parallel_stay_apart() -> None:
    original = with_parts(*(call(number, f'{{"n":{number}}}') for number in range(8)))
    wire = encoder().encode(unfold(original))
    with sdk(*streamed(wire)) as (client, _), client.chat.completions.stream(model="m", messages=QUESTION) as stream:
        message = stream.get_final_completion().choices[0].message
    assert calls_in(message) == our_calls(original)
