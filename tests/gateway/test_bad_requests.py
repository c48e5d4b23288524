# ruff: noqa: E501 - tables of requests, which a line end would tear
"""Bad requests through the running gateway: an error in the form of the caller's vendor, which says what was expected
and where, or an answer beside which it is counted that something was odd. None is the gateway's own fault, and none
shows a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import anthropic
import httpx
import openai
import pytest
from google.genai import errors as google_errors

from asked.writing import (
    ASK,
    CITY,
    EVERYWHERE,
    answered,
    called,
    chat,
    function,
    gemini,
    messages,
    ollama,
    responses,
    result,
    says,
    tells,
    tool,
    used,
)
from conversations import reply
from dragoman.types import ProtocolName
from gateway.running import Running, whole_of
from gateway.test_fields import told

_PATHS: Final = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini-generate": "/v1beta/models/{model}:generateContent",
    "ollama-chat": "/api/chat",
}
MODEL: Final = "via-openai-chat"
_MAKE: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "openai-chat": chat, "openai-responses": responses, "anthropic-messages": messages, "gemini-generate": gemini,
    "ollama-chat": ollama,
}  # fmt: skip
_FIELD: Final = {"openai-responses": "input", "gemini-generate": "contents"}


def turns(client: ProtocolName, value: Any) -> dict[str, Any]:
    """A request with this in place of its turns."""
    return _MAKE[client]() | {_FIELD.get(client, "messages"): value}


def in_turn(client: ProtocolName, **fields: Any) -> dict[str, Any]:
    """A request whose only turn has these fields."""
    usual: dict[str, Any] = {"role": "user", "parts": [{"text": "x"}]} if client == "gemini-generate" else ASK
    return turns(client, [{**usual, **fields}])


def offering(client: ProtocolName, entry: Any) -> dict[str, Any]:
    if client == "gemini-generate":
        return gemini(tools=[{"functionDeclarations": [entry]}])
    return _MAKE[client](tools=[entry])


def named(client: ProtocolName, **fields: Any) -> dict[str, Any]:
    """A request with a tool of these fields."""
    if client in ("openai-chat", "ollama-chat"):
        return offering(client, {"type": "function", "function": fields})
    return offering(client, {"type": "function", **fields} if client == "openai-responses" else fields)


#: By kind of fault: the request of a client. All are 400.
BAD: Final[dict[str, Callable[[ProtocolName], dict[str, Any] | bytes]]] = {
    "no JSON": lambda client: b"{",
    "nothing": lambda client: b"",
    "a text": lambda client: b'"x"',
    "a list": lambda client: b"[]",
    "another encoding": lambda client: '{"model": "é"}'.encode("utf-16"),
    "deep nesting": lambda client: turns(client, json.loads("[" * 300 + "]" * 300)),
    "no turns": lambda client: {key: value for key, value in _MAKE[client]().items() if key != _FIELD.get(client, "messages")},
    "turns that are a number": lambda client: turns(client, 7),
    "turns that are null": lambda client: turns(client, None),
    "a turn that is a number": lambda client: turns(client, [7]),
    "turns that are empty": lambda client: turns(client, []),
    "a turn that is a list": lambda client: turns(client, [[]]),
    "an unknown role": lambda client: in_turn(client, role="narrator"),
    "a role that is a list": lambda client: in_turn(client, role=["user"]),
    "a content that is a number": lambda client: in_turn(client, **{"parts" if client == "gemini-generate" else "content": 7}),
    "tools that are a text": lambda client: _MAKE[client](tools="look"),
    "tools that are a number": lambda client: _MAKE[client](tools=7),
    "a tool that is a number": lambda client: _MAKE[client](tools=[7]),
    "a tool without a name": lambda client: named(client, description="x"),
    "a tool whose name is a number": lambda client: named(client, name=7),
    "a tool whose name is empty": lambda client: named(client, name=""),
}  # fmt: skip
#: Ollama loads a model for a request that says nothing.
ALLOWED: Final = {
    ("ollama-chat", "no turns"),
    ("ollama-chat", "turns that are empty"),
    ("ollama-chat", "turns that are null"),
}
#: Faults of one protocol only: (client, body).
OWN: Final[dict[str, tuple[ProtocolName, dict[str, Any]]]] = {
    "a stream that is a text": ("openai-chat", chat(stream="yes")),
    "options of the stream that are a text": ("openai-chat", chat(stream_options="usage")),
    "a description that is a list": ("openai-chat", chat(tools=[function(description=["x"])])),
    "a text part with a number": ("openai-chat", chat({"role": "user", "content": [{"type": "text", "text": 7}]})),
    "a part that is a number": ("openai-chat", chat({"role": "user", "content": [7]})),
    "a call without a name": ("openai-chat", chat(ASK, {**called(), "tool_calls": [{"id": "c", "type": "function", "function": {}}]})),
    "reasoning that is a text": ("openai-responses", responses(reasoning="high")),
    "a text that is a text": ("openai-responses", responses(text="json")),
    "a choice that is a text": ("anthropic-messages", messages(tool_choice="any", tools=[tool()])),
    "stops that are an object": ("anthropic-messages", messages(stop_sequences={"x": 1})),
    "a block that is a number": ("anthropic-messages", messages(tells(7))),
    "a call of nothing": ("anthropic-messages", messages(ASK, says({**used(), "name": ""}))),
    "a text block with a list": ("anthropic-messages", messages(tells({"type": "text", "text": ["x"]}))),
    "a web search alone": ("anthropic-messages", messages(tools=[{"type": "web_search_20250305", "name": "web_search"}])),
    "a config that is a list": ("gemini-generate", gemini(generationConfig=[])),
    "a tool config that is a text": ("gemini-generate", gemini(toolConfig="ANY")),
    "parameters that are a text": ("gemini-generate", gemini(tools=[{"functionDeclarations": [{"name": "a", "parameters": "x"}]}])),
    "options that are a list": ("ollama-chat", ollama(options=[])),
    "a stream that is a number": ("ollama-chat", ollama(stream=1)),
}  # fmt: skip
#: Odd conversations that are mended and told, never refused.
MENDED: Final[dict[str, tuple[ProtocolName, dict[str, Any]]]] = {
    "a result of no call": ("openai-chat", chat(ASK, answered("call_9"), ASK)),
    "two results of one call": ("openai-chat", chat(ASK, called(), answered(), answered())),
    "a call without an id": ("openai-chat", chat(ASK, called(""), answered(""))),
    "a result of no call of Messages": ("anthropic-messages", messages(tells(result(), {"type": "text", "text": "x"}))),
    "an unknown field": ("ollama-chat", ollama(neverHeardOf=1)),
}  # fmt: skip


def ask(running: Running, client: ProtocolName, body: dict[str, Any] | bytes, model: str = MODEL) -> tuple[int, bytes]:
    running.answer(whole_of("openai-chat", reply("text")))
    if isinstance(body, dict):
        body = {"model": model, "stream": False, "store": False} | {key: body[key] for key in body if key != "model"}
        if client == "gemini-generate":
            body = {key: body[key] for key in body if key not in ("model", "stream", "store")}
        elif client != "openai-responses":
            del body["store"]
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = _PATHS[client].format(model=model)
    status, _, answer = running.request("POST", path, data, {"content-type": "application/json"})
    return status, answer


def message_of(client: ProtocolName, status: int, answer: bytes) -> str:
    """The words of an error, as the vendor's SDK finds them."""
    body = json.loads(answer)
    response = httpx.Response(status, json=body, request=httpx.Request("POST", "http://x"))
    if client in ("openai-chat", "openai-responses"):
        error = openai.OpenAI(api_key="k")._make_status_error("x", body=body["error"], response=response)
        assert isinstance(error, openai.BadRequestError | openai.NotFoundError), error
        assert {"message", "type", "param", "code"} <= body["error"].keys()
        return str(body["error"]["message"])
    if client == "anthropic-messages":
        made = anthropic.Anthropic(api_key="k")._make_status_error("x", body=body, response=response)
        assert isinstance(made, anthropic.BadRequestError | anthropic.NotFoundError), made
        assert body["type"] == "error" and made.type in ("invalid_request_error", "not_found_error")
        return str(body["error"]["message"])
    if client == "gemini-generate":
        told = google_errors.ClientError(status, body)
        assert told.status in ("INVALID_ARGUMENT", "NOT_FOUND") and told.code == status
        return str(told.message)
    return str(body["error"])


def check(running: Running, client: ProtocolName, body: dict[str, Any] | bytes, kind: str) -> None:
    before = told(running)
    status, answer = ask(running, client, body)
    if status == 200:  # what can be read all the same is told
        assert told(running) > before, (kind, answer)
        return
    assert status == 400, (kind, status, answer)
    said = message_of(client, status, answer)
    assert "expected" in said or "request is for this tool" in said or "not" in said, (kind, said)
    assert "Traceback" not in said and "dragoman/" not in said
    assert running.provider.requests == [], kind


@pytest.mark.parametrize("client", EVERYWHERE)
def test_a_bad_request_is_an_error_in_the_caller_s_form(running: Running, client: ProtocolName) -> None:
    for kind, make in BAD.items():
        if (client, kind) not in ALLOWED:
            check(running, client, make(client), kind)


@pytest.mark.parametrize("kind", OWN)
def test_a_fault_of_one_protocol_is_told_in_its_form(running: Running, kind: str) -> None:
    check(running, *OWN[kind], kind)


@pytest.mark.parametrize("kind", MENDED)
def test_an_odd_conversation_is_mended(running: Running, kind: str) -> None:
    status, answer = ask(running, *MENDED[kind])
    assert status == 200, answer


@pytest.mark.parametrize("client", EVERYWHERE)
def test_an_unknown_model_is_not_found(running: Running, client: ProtocolName) -> None:
    status, answer = ask(running, client, _MAKE[client](), "nobody/here-9")
    assert status == 404
    assert "nobody/here-9" in message_of(client, status, answer)


#: What comes in place of JSON, by the words that name it.
OTHER_BODIES: Final = {
    "an empty body": b" ",
    "UTF-16 or UTF-32": '{"model": "é"}'.encode("utf-16"),
    "UTF-16 or UTF-32; JSON is sent as UTF-8": '{"model": "é"}'.encode("utf-16-be"),
    "a byte order mark before it": '{"model": "é"}'.encode("utf-8-sig"),
    "a multipart form": b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n',
    "a form": b"model=m&messages%5B0%5D=hi",
    "XML or HTML": b"<request/>",
}


@pytest.mark.parametrize("client", EVERYWHERE)
def test_json_is_read_whatever_its_type_and_another_body_is_named(running: Running, client: ProtocolName) -> None:
    path, body = _PATHS[client].format(model=MODEL), _MAKE[client]()
    own = {} if client == "gemini-generate" else {"model": MODEL, "stream": False}
    data = json.dumps({key: value for key, value in body.items() if key not in ("model", "stream")} | own).encode()
    for kind in ("text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded", ""):
        running.answer(whole_of("openai-chat", reply("text")))
        status, _, answer = running.request("POST", path, data, {"content-type": kind} if kind else {})
        assert (status, running.provider.requests[-1].headers["content-type"]) == (200, "application/json"), answer
    for words, other in OTHER_BODIES.items():
        status, answer = ask(running, client, other)
        assert status == 400 and f"expected a JSON object, got {words}" in message_of(client, status, answer), answer


def test_the_tokens_of_instructions_alone_are_counted(running: Running) -> None:
    path, asked = f"/v1beta/models/{MODEL}:countTokens", {"systemInstruction": {"parts": [{"text": "Be brief. " * 20}]}}
    for body in (asked, asked | {"contents": []}, {"generateContentRequest": asked}):
        status, _, answer = running.request("POST", path, json.dumps(body).encode())
        assert status == 200 and json.loads(answer)["totalTokens"] > 20, answer
    assert running.request("POST", path, b"{}")[0] == 400


def test_there_are_forty_kinds() -> None:
    assert len(BAD) + len(OWN) + len(MENDED) > 40
    assert CITY["type"] == "object"
