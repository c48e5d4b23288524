"""The official `google-genai` SDK reads what we write, we read the same bytes and the requests it sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from cases import counter
from conversations import SHAPES, reply
from dragoman.events import Failure, ToolCallFailed, ToolCallStart, fold, unfold
from dragoman.protocols.gemini.protocol import PROTOCOL
from dragoman.types import Named, Text, Thinking, ToolCall, ToolResult
from grammar import check
from scripted import Scripted, Step, serving, streamed, whole

CREATED = 1_750_000_000


def encoder():
    return PROTOCOL.encoder(new_id=counter(), model="model-1", created=CREATED)


def read(wire: bytes):
    decoder = PROTOCOL.decoder(new_id=counter())
    return fold(check([*decoder.feed(wire), *decoder.close()]))


@contextmanager
def sdk(*replies: list[Step]) -> Iterator[tuple[genai.Client, Scripted]]:
    with serving(*replies) as server:
        options = types.HttpOptions(base_url=server.url, retry_options=types.HttpRetryOptions(attempts=1))
        client = genai.Client(api_key="k", http_options=options)
        try:
            yield client, server
        finally:
            client.close()


def content(chunks: list[types.GenerateContentResponse]) -> list[Any]:
    """The parts that the SDK read, texts of one kind joined."""
    rows: list[Any] = []
    for chunk in chunks:
        found = (chunk.candidates or [])[0].content
        for part in (found.parts if found is not None else None) or ():
            if part.function_call is not None:
                rows.append(("call", part.function_call.id, part.function_call.name, part.function_call.args))
                continue
            kind = "thinking" if part.thought else "text"
            if rows and rows[-1][0] == kind:
                rows[-1] = (kind, rows[-1][1] + (part.text or ""))
            elif part.text:
                rows.append((kind, part.text))
    return rows


def ours(parts: Any) -> list[Any]:
    rows: list[Any] = []
    for part in parts:
        match part:
            case Text(text):
                rows.append(("text", text))
            case Thinking(text):
                rows.append(("thinking", text))
            case ToolCall(id, name):
                rows.append(("call", id, name, part.values()))
    return rows


def stream(client: genai.Client) -> list[types.GenerateContentResponse]:
    return list(client.models.generate_content_stream(model="model-1", contents="Weather?"))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream(shape: str):
    original = reply(shape)
    machine = encoder()
    wire = machine.keepalive() + machine.encode(unfold(original)) + machine.keepalive()
    with sdk(streamed(wire)) as (client, _):
        chunks = stream(client)
    assert content(chunks) == ours(original.parts) == ours(read(wire).parts)
    reason = chunks[-1].candidates[0].finish_reason
    assert reason == ("MAX_TOKENS" if original.stop_reason == "length" else "STOP")
    assert (chunks[-1].usage_metadata.prompt_token_count, chunks[-1].usage_metadata.total_token_count) == (120, 154)
    assert {chunk.response_id for chunk in chunks} == {"resp_0001"}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_response(shape: str):
    original = reply(shape)
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=CREATED)
    with sdk(whole(body)) as (client, _):
        answer = client.models.generate_content(model="model-1", contents="Weather?")
    assert content([answer]) == ours(original.parts)
    assert answer.model_version == "model-1"


def test_a_failure_in_the_stream():
    wire = encoder().encode([*unfold(reply("text"))[:3], Failure("overloaded", "the provider is busy")])
    with sdk(streamed(wire)) as (client, _), pytest.raises(errors.APIError, match="the provider is busy"):
        stream(client)
    failed = read(wire)
    assert (failed.stop_reason, failed.text) == ("error", "Hello, wörld. ")


def test_a_failed_call_is_the_stop_reason():
    failed = ToolCallFailed(0, "call_1", "save", "cut", "tool call save: the arguments are cut", '{"path":"se')
    start, *_, finish = unfold(reply("text"))
    wire = encoder().encode([start, ToolCallStart(0, "call_1", "save"), failed, finish])
    with sdk(streamed(wire)) as (client, _):
        answer = stream(client)
    assert content(answer) == []
    assert answer[-1].candidates[0].finish_reason == "MALFORMED_FUNCTION_CALL"
    assert b'"finishMessage":"tool call save: the arguments are cut"' in wire  # the SDK drops it
    assert b"path" not in wire


@pytest.mark.parametrize(("kind", "status", "word"), [
    ("rate", 429, "RESOURCE_EXHAUSTED"), ("bad_request", 400, "INVALID_ARGUMENT"), ("auth", 401, "UNAUTHENTICATED"),
    ("overloaded", 503, "UNAVAILABLE"),
])  # fmt: skip
def test_an_error_status(kind: Any, status: int, word: str):
    seen, body = PROTOCOL.render_error(Failure(kind, "no", retry_after=17.0))
    with sdk(whole(body, seen)) as (client, _), pytest.raises(errors.APIError) as caught:
        stream(client)
    assert (seen, caught.value.code, caught.value.status) == (status, status, word)
    failure = PROTOCOL.parse_error(seen, body)
    assert (failure.kind, failure.retry_after) == (kind, 17.0)


def test_signatures_come_back_in_their_parts():
    signed = [Text("Thinking of it", "c2lnMQ=="), ToolCall("call_1", "go", "{}", signature="c2lnMg==")]
    original = fold(unfold(reply("text")))
    wire = encoder().encode(unfold(type(original)(**{
        name: signed if name == "parts" else getattr(original, name) for name in original.__struct_fields__
    })))  # fmt: skip
    assert list(read(wire).parts) == signed
    with sdk(streamed(wire)) as (client, server):
        chat = client.chats.create(model="model-1")
        list(chat.send_message_stream("Go"))
        list(chat.send_message_stream(types.Part.from_function_response(name="go", response={"result": "done"})))
    request = PROTOCOL.parse_request(server.requests[1].body, path=server.requests[1].path).request
    assert list(request.messages[1].parts) == signed
    assert request.messages[2].parts == (ToolResult("call_1", "go", (Text("done"),)),)
    assert b'"thoughtSignature":"c2lnMg=="' in PROTOCOL.render_request(request).http.body


def test_the_request_of_a_conversation():
    declared = types.FunctionDeclaration(
        name="get_weather",
        description="Current weather of a city.",
        parameters=types.Schema(
            type=types.Type.OBJECT,
            properties={"city": types.Schema(type=types.Type.STRING, nullable=True)},
            required=["city"],
        ),
    )
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[types.Tool(function_declarations=[declared]), types.Tool(google_search=types.GoogleSearch())],
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(
                mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["get_weather"]
            )
        ),
        temperature=0.5, top_k=3, max_output_tokens=64, stop_sequences=["END"], candidate_count=1,
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=512),
        safety_settings=[types.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="BLOCK_NONE")],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )  # fmt: skip
    contents = [
        types.UserContent(
            parts=[types.Part(text="Weather?"), types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")]
        ),
        types.ModelContent(parts=[types.Part.from_function_call(name="get_weather", args={"city": c}) for c in "ab"]),
        types.UserContent(
            parts=[
                *(
                    types.Part.from_function_response(name="get_weather", response=r)
                    for r in ({"output": "x"}, {"error": "y"})
                ),
                types.Part(text="Well?"),
            ]
        ),
    ]
    body = PROTOCOL.render_response(reply("text"), new_id=counter(), model="model-1", created=CREATED)
    with sdk(whole(body)) as (client, server):
        client.models.generate_content(model="tuned/model:1", contents=contents, config=config)
    seen = server.requests[0]
    request = PROTOCOL.parse_request(seen.body, path=seen.path).request
    assert request.model == "tuned/model:1"
    assert not request.stream
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "user"]
    calls = request.messages[2].tool_calls
    assert [part.call_id for part in request.messages[3].parts] == [found.id for found in calls]
    assert [part.is_error for part in request.messages[3].parts] == [False, True]
    assert [part.text for part in request.messages[3].parts] == ["x", "y"]
    assert request.tools[0].schema_object()["properties"] == {"city": {"type": ["string", "null"]}}
    assert request.tool_choice == Named("get_weather")
    params = request.params
    assert (params.temperature, params.top_k, params.max_tokens, params.stop) == (0.5, 3, 64, ("END",))
    assert params.reasoning is not None
    assert params.reasoning.budget == 512
    rendered = PROTOCOL.render_request(request)
    assert rendered.deviations == ()
    again = PROTOCOL.parse_request(rendered.http.body, path=rendered.http.path).request
    assert (again.messages, again.tool_choice, again.params) == (request.messages, request.tool_choice, request.params)
    for kept in (b'"googleSearch"', b'"safetySettings"', b'"candidateCount":1', b'"output": "x"'):
        assert kept in rendered.http.body
