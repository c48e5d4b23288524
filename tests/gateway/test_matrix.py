"""Every client protocol in front of every provider protocol: what the provider says is what the client reads."""

from __future__ import annotations

from typing import Any

import msgspec

from cases import counter
from conversations import SHAPES, reply
from dragoman import _json
from dragoman.events import Reply, fold
from dragoman.protocol import HttpRequest
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Request, Text, Thinking, Tool, ToolCall, ToolResult
from for_each import for_each
from gateway.running import Running, stream_of, whole_of
from grammar import check

TOOLS = tuple(
    Tool(name, "", _json.raw({"type": "object", "properties": {}})) for name in ("get_weather", "write_file", "ping")
)
QUESTION = Message("user", (Text("Weather in Paris?"),))


def ask(running: Running, client: str, request: Request) -> tuple[int, bytes]:
    """Send a request in a client's protocol."""
    sent: HttpRequest = PROTOCOLS[client].render_request(request).http
    prefix = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(client, "")
    path = sent.path if sent.path.startswith(("/v1", "/api")) else prefix + sent.path
    status, _, body = running.request("POST", path, sent.body, {"content-type": "application/json", **sent.headers})
    return status, body


def read(protocol: str, body: bytes) -> Reply:
    decoder = PROTOCOLS[protocol].decoder(new_id=counter())
    return fold(check([*decoder.feed(body), *decoder.close()]))


def content(reply: Reply) -> dict[str, Any]:
    """What every protocol can say of a reply."""
    return {
        "text": reply.text,
        "thinking": reply.thinking,
        "calls": [(call.name, call.values()) for call in reply.tool_calls],
        "stop": reply.stop_reason,
        "error": reply.error,
    }


@for_each("provider", PROTOCOLS)
@for_each("client", PROTOCOLS)
@for_each("streamed", [True, False], ids=["streamed", "whole"])
def test_what_the_provider_says_is_what_the_client_reads(
    running: Running, client: str, provider: str, streamed: bool
) -> None:
    for shape in SHAPES:
        original = reply(shape)
        running.answer((stream_of if streamed else whole_of)(provider, original))
        status, body = ask(running, client, Request(f"via-{provider}", (QUESTION,), TOOLS, stream=streamed))
        assert status == 200, (shape, body)
        assert content(read(client, body)) == content(original), shape
        [seen] = running.provider.requests
        path = seen.path if ":" in seen.path else ""
        assert PROTOCOLS[provider].parse_request(seen.body, path=path).request.stream == streamed


@for_each("provider", PROTOCOLS)
@for_each("client", PROTOCOLS)
def test_a_provider_that_answers_in_the_other_way(running: Running, client: str, provider: str) -> None:
    """Whole though a stream was asked for, and the other way round."""
    original = reply("parallel")
    for steps, streamed in ((whole_of(provider, original), True), (stream_of(provider, original), False)):
        running.answer(steps)
        _, body = ask(running, client, Request(f"via-{provider}", (QUESTION,), TOOLS, stream=streamed))
        assert content(read(client, body)) == content(original)


@for_each("provider", PROTOCOLS)
@for_each("client", PROTOCOLS)
def test_results_of_tools_reach_the_provider(running: Running, client: str, provider: str) -> None:
    calls = tuple(ToolCall(f"call_{n:024d}", "get_weather", f'{{"city":"C{n}"}}') for n in range(2))
    results = tuple(ToolResult(call.id, call.name, (Text(f"rain {call.id[-1]}"),)) for call in calls)
    conversation = (QUESTION, Message("assistant", calls), Message("tool", results))
    running.answer(stream_of(provider, reply("text")))
    status, _ = ask(running, client, Request(f"via-{provider}", conversation, TOOLS, stream=True))
    assert status == 200
    [seen] = running.provider.requests
    path = seen.path if provider == "gemini-generate" else ""
    arrived = PROTOCOLS[provider].parse_request(seen.body, path=path).request
    assert arrived.model == "model-1"
    assert {tool.name for tool in arrived.tools} == {tool.name for tool in TOOLS}
    told = [part for message in arrived.messages for part in message.parts]
    asked = [part for part in told if isinstance(part, ToolCall)]
    answered = [part for part in told if isinstance(part, ToolResult)]
    assert [(part.name, part.values()) for part in asked] == [("get_weather", {"city": f"C{n}"}) for n in range(2)]
    assert [(part.call_id, part.text) for part in answered] == [(call.id, f"rain {n}") for n, call in enumerate(asked)]


def test_thinking_is_not_lost() -> None:
    """The shapes that the matrix plays have thinking in them."""
    assert any(isinstance(part, Thinking) for shape in SHAPES for part in reply(shape).parts)
    assert msgspec.structs.replace(reply("text"), parts=()).thinking == ""
