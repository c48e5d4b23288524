"""Requests in the shape of well-known clients, through a running `dragoman serve` to a provider of each protocol.

The provider is as strict as the vendors (`clients/strict.py`). The client finds the call in its own form, its answer
to it reaches the provider, and what a provider does not have is said or refused.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from strict import CHECKS

from conversations import reply
from dragoman import _json
from dragoman.events import Reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import Native, Opaque, Part, ToolCall, ToolResult
from for_each import for_each
from gateway.client_shapes import CALLS, GEMINI, MESSAGES, OLLAMA, RESPONSES, SHAPES, Shape, second
from gateway.process.test_gateway import serve
from gateway.running import stream_of, whole_of, write_providers
from scripted import Scripted, serving

RESULT = "alpha knows 7"
PATHS = {
    "openai-chat": "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages?beta=true",
    OLLAMA: "/api/chat",
}  # fmt: skip


class Program(NamedTuple):
    """A gateway in a process of its own, and the server behind it."""

    port: int
    provider: Scripted

    def answer(self, protocol: str, made: Any, *, stream: bool) -> None:
        self.provider.replies[:] = [(stream_of if stream else whole_of)(protocol, made)]
        self.provider.requests.clear()

    def post(self, protocol: str, body: dict[str, Any], model: str, *, stream: bool, **headers: str) -> Any:
        """Status, headers, and the answer: an object, or the list of those of a stream."""
        path = PATHS.get(protocol, "")
        if protocol == GEMINI:
            path = f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
        else:
            body = {**body, "model": model, "stream": stream}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body).encode(), {"content-type": "application/json", **headers})
            response = connection.getresponse()
            found, data = {name.lower(): value for name, value in response.getheaders()}, response.read().decode()
        finally:
            connection.close()
        if "event-stream" in found["content-type"]:
            return response.status, found, [json.loads(line[6:]) for line in data.split("\n") if line[:7] == "data: {"]
        if "ndjson" in found["content-type"]:
            return response.status, found, [json.loads(line) for line in data.splitlines()]
        return response.status, found, json.loads(data)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("shapes")
    with serving([]) as provider:
        file = write_providers(folder, provider.url)
        with serve(folder, "--config", str(file)) as (process, port):
            assert process.stderr is not None
            threading.Thread(target=process.stderr.read, daemon=True).start()  # its log would fill the pipe
            yield Program(port, provider)


def calling(shape: Shape, provider: str) -> Reply:
    """An answer that calls the shape's tool by the name and in the form in which the provider was offered it."""
    call = ToolCall("call_" + "0" * 24, shape.offered, json.dumps(shape.arguments, ensure_ascii=False))
    part: Part = call
    if provider == shape.protocol == RESPONSES:
        if shape.offered == "apply_patch":
            part = msgspec.structs.replace(call, kind="custom", arguments=shape.calls[1])
        elif shape.offered == "local_shell":
            action = {"type": "exec", "env": {}, **shape.arguments}
            item = {
                "type": "local_shell_call",
                "id": "ls_1",
                "call_id": call.id,
                "status": "completed",
                "action": action,
            }
            part = Opaque(RESPONSES, _json.raw(item))
        elif (space := shape.calls[2]) is not None:
            own = {"namespace": _json.raw(space), "name": _json.raw(shape.calls[0])}
            part = msgspec.structs.replace(call, native=Native(RESPONSES, own))
    return msgspec.structs.replace(reply("single"), parts=(part,))


def check(program: Program, protocol: str) -> None:
    """What the vendor would refuse of what the provider was sent."""
    [seen] = program.provider.requests
    CHECKS[protocol](seen.headers, seen.json)


@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("provider", PROTOCOLS)
@for_each("shape", SHAPES, ids=str)
def test_a_call_and_its_result(program: Program, shape: Shape, provider: str, stream: bool) -> None:
    model = f"via-{provider}"
    program.answer(provider, calling(shape, provider), stream=stream)
    status, headers, answer = program.post(shape.protocol, shape.body, model, stream=stream, **shape.headers)
    assert status == 200, answer
    assert headers.get("x-dragoman-dropped", "") == ("" if provider == shape.protocol else shape.dropped)
    check(program, provider)
    found, said = CALLS[shape.protocol](answer)
    assert found == [shape.calls]
    program.answer(provider, reply("text"), stream=stream)
    status, _, answer = program.post(shape.protocol, second(shape, said, RESULT), model, stream=stream, **shape.headers)
    assert status == 200, answer
    check(program, provider)
    [seen] = program.provider.requests
    told = PROTOCOLS[provider].parse_request(seen.body, path=seen.path if ":" in seen.path else "").request
    parts = [part for message in told.messages for part in message.parts]
    ids = [part.id for part in parts if isinstance(part, ToolCall) and part.name == shape.offered]
    results = [part.text for part in parts if isinstance(part, ToolResult) and part.call_id in ids]
    assert results == ([RESULT] if ids else [])
    assert RESULT in seen.body.decode()
    assert ids or provider == shape.protocol == RESPONSES  # an item of its own


# ---------------------------------------------------------------- a request for a tool that the provider lacks

_USER = [{"role": "user", "content": "Search the web."}]
#: Protocol → a request for a search of the web, with the tool forced where that can be said.
FOR_A_SEARCH: dict[str, list[dict[str, Any]]] = {
    MESSAGES: [
        {"max_tokens": 9, "messages": _USER, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"max_tokens": 9, "messages": _USER, "tool_choice": {"type": "tool", "name": "web_search"}, "tools": [
            {"type": "web_search_20250305", "name": "web_search"}, {"name": "f", "input_schema": {"type": "object"}}]},
    ],
    RESPONSES: [
        {"input": "Search.", "tools": [{"type": "web_search"}]},
        {"input": "Search.", "tool_choice": {"type": "web_search"},
         "tools": [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {"type": "object"}}]},
    ],
    GEMINI: [{"contents": [{"role": "user", "parts": [{"text": "Search."}]}], "tools": [{"googleSearch": {}}]}],
}  # fmt: skip
#: What each client's SDK reads of an error.
TOLD = {
    MESSAGES: lambda answer: answer["error"]["message"] if answer["error"]["type"] == "invalid_request_error" else "",
    RESPONSES: lambda answer: answer["error"]["message"] if answer["error"]["type"] == "invalid_request_error" else "",
    GEMINI: lambda answer: answer["error"]["message"] if answer["error"]["status"] == "INVALID_ARGUMENT" else "",
}  # fmt: skip


@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("provider", PROTOCOLS)
@for_each("client", FOR_A_SEARCH)
def test_a_request_for_what_a_provider_lacks_is_refused_in_the_clients_form(
    program: Program, client: str, provider: str, stream: bool
) -> None:
    for body in FOR_A_SEARCH[client]:
        program.answer(provider, reply("text"), stream=stream)
        status, _, answer = program.post(client, body, f"via-{provider}", stream=stream)
        if provider == client:
            assert status == 200
            continue
        assert status == 400
        assert re.search(r"search.*tool_policy\.web_search", TOLD[client](answer), re.IGNORECASE)
        assert program.provider.requests == []
