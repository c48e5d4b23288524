"""The official `ollama` SDK reads what we write, we read the same bytes and the requests it sends."""

from __future__ import annotations

from typing import Any

import ollama
import pytest

from cases import counter
from conversations import SHAPES, call, reply
from dragoman.events import Failure, Start, ToolCallFailed, ToolCallStart, fold, unfold
from dragoman.protocols.ollama.protocol import PROTOCOL
from dragoman.types import Media, Text, Thinking, ToolCall, ToolResult
from grammar import check
from scripted import Step, serving, streamed, whole

LINES = "application/x-ndjson"
QUESTION: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]


def encoder():
    return PROTOCOL.encoder(new_id=counter(), model="model-1", created=1_750_000_000)


def read(wire: bytes):
    decoder = PROTOCOL.decoder(new_id=counter())
    return fold(check([*decoder.feed(wire), *decoder.close()]))


def ask(steps: list[Step], **options: Any) -> tuple[list[ollama.ChatResponse], Any]:
    """What the SDK makes of a response, and the request that it sent."""
    with serving(steps) as server:
        client = ollama.Client(host=server.url)
        try:
            answer = client.chat(**({"model": "model-1", "messages": QUESTION} | options))
            chunks = [answer] if isinstance(answer, ollama.ChatResponse) else list(answer)
        finally:
            client._client.close()
    return chunks, server.requests[0]


def content(chunks: list[ollama.ChatResponse]) -> list[Any]:
    calls = [found.function for chunk in chunks for found in chunk.message.tool_calls or ()]
    return [
        "".join(chunk.message.thinking or "" for chunk in chunks),
        "".join(chunk.message.content or "" for chunk in chunks),
        [(function.name, dict(function.arguments)) for function in calls],
    ]


def ours(parts: Any) -> list[Any]:
    return [
        "".join(part.text for part in parts if isinstance(part, Thinking)),
        "".join(part.text for part in parts if isinstance(part, Text)),
        [(part.name, part.values()) for part in parts if isinstance(part, ToolCall)],
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream(shape: str):
    original = reply(shape)
    wire = encoder().encode(unfold(original))
    chunks, _ = ask(streamed(wire, content_type=LINES), stream=True)
    assert content(chunks) == ours(original.parts)
    last = chunks[-1]
    assert (last.done, last.done_reason) == (True, "length" if original.stop_reason == "length" else "stop")
    assert (last.prompt_eval_count, last.eval_count) == (120, 34)
    assert all(chunk.created_at == "2025-06-15T15:06:40Z" and chunk.model == "model-1" for chunk in chunks)
    assert content(chunks) == ours(read(wire).parts)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_response(shape: str):
    original = reply(shape)
    body = PROTOCOL.render_response(original, new_id=counter(), model="model-1", created=1_750_000_000)
    chunks, _ = ask(whole(body))
    assert content(chunks) == ours(original.parts)
    assert chunks[0].done is True


def test_a_failure_in_the_stream():
    machine = encoder()
    wire = machine.encode([*unfold(reply("text"))[:3], Failure("overloaded", "the provider is busy")])
    with pytest.raises(ollama.ResponseError, match="the provider is busy"):
        ask(streamed(wire, content_type=LINES), stream=True)


def test_a_failed_call_is_raised():
    failed = ToolCallFailed(0, "call_1", "save", "cut", "tool call save: the arguments are cut", '{"path":"se')
    events = [Start(), ToolCallStart(0, "call_1", "save"), failed, unfold(reply("text"))[-1]]
    wire = encoder().encode(events)
    with pytest.raises(ollama.ResponseError, match="tool call save: the arguments are cut"):
        ask(streamed(wire, content_type=LINES), stream=True)
    assert b"path" not in wire


def test_an_error_status():
    status, body = PROTOCOL.render_error(Failure("not_found", "model 'x' not found", 404))
    with pytest.raises(ollama.ResponseError, match="model 'x' not found") as caught:
        ask(whole(body, status))
    assert caught.value.status_code == 404
    assert PROTOCOL.parse_error(status, body).kind == "not_found"


def test_the_request_of_a_conversation():
    def get_weather(city: str) -> str:
        """Current weather of a city.

        Args:
            city: its name
        """
        return city

    answer = ollama.Message(
        role="assistant",
        thinking="Paris it is.",
        tool_calls=[
            ollama.Message.ToolCall(function=ollama.Message.ToolCall.Function(name=name, arguments={"city": city}))
            for name, city in (("get_weather", "Paris"), ("get_time", "Rome"), ("get_weather", "Oslo"))
        ],
    )
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look", "images": [b"\x89PNG\r\n\x1a\n0000"]},
        answer,
        {"role": "tool", "content": "sunny", "tool_name": "get_weather"},
        {"role": "tool", "content": "rain", "tool_name": "get_weather"},
        {"role": "tool", "content": "noon", "tool_name": "get_time"},
    ]
    body = PROTOCOL.render_response(reply("text"), new_id=counter(), model="model-1", created=1_750_000_000)
    _, seen = ask(
        whole(body), messages=messages, tools=[get_weather], think="high", keep_alive="5m", format="json",
        options={"num_ctx": 8192, "temperature": 0, "min_p": 0.05, "stop": ["END"]},
    )  # fmt: skip
    request = PROTOCOL.parse_request(seen.body).request
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "tool", "tool"]
    assert request.messages[1].parts == (Text("Look"), Media("image", "image/png", "iVBORw0KGgowMDAw"))
    calls = request.messages[2].tool_calls
    results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == [calls[0].id, calls[2].id, calls[1].id]
    assert len({found.id for found in calls}) == 3
    assert [tool.name for tool in request.tools] == ["get_weather"]
    assert request.tools[0].description == "Current weather of a city."
    params = request.params
    assert (params.num_ctx, params.temperature, params.stop) == (8192, 0.0, ("END",))
    assert params.reasoning is not None
    assert params.reasoning.effort == "high"
    assert params.response_schema is not None
    assert not request.stream
    rendered = PROTOCOL.render_request(request)
    assert rendered.deviations == ()
    again = PROTOCOL.parse_request(rendered.http.body).request
    assert (again.messages, again.tools, again.tool_choice) == (request.messages, request.tools, request.tool_choice)
    assert b'"min_p":0.05' in rendered.http.body
    assert b'"keep_alive":"5m"' in rendered.http.body


def test_call_ids_come_back():
    wire = encoder().encode(unfold(reply("parallel")))
    assert [found.id for found in read(wire).tool_calls] == [call(n, "{}").id for n in range(3)]
