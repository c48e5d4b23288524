"""The vendors' SDKs, unmodified, through the gateway to a provider of each protocol: tools, results, cuts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
from google.genai import errors

from conversations import SHAPES, reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import Text, ToolCall, ToolResult
from for_each import for_each
from gateway.running import Running, stream_of, wire
from gateway.sdks import SDKS, Sdk
from profiles import IS_SOAK, one
from scripted import Step, chunk, head, streamed
from test_failed_calls import PROVIDERS, WORDS

#: What an SDK raises when a response is broken.
BROKEN = (
    openai.APIError, anthropic.APIError, ollama.ResponseError, errors.APIError, httpx.HTTPError, EOFError,
    RuntimeError,  # the Responses helper of `openai`: "Didn't receive a `response.completed` event."
)  # fmt: skip
CUTS = 200 if IS_SOAK else 12


@pytest.fixture(scope="module")
def clients(running: Running) -> Iterator[dict[str, Sdk]]:
    """An SDK of each protocol; making one takes longer than all that it is asked here."""
    made = {name: make(running.url) for name, make in SDKS.items()}
    yield made
    for client in made.values():
        client.close()


def runnable(shape: str) -> list[tuple[str, dict[str, Any]]]:
    return [(part.name, part.values()) for part in reply(shape).parts if isinstance(part, ToolCall)]


def text(shape: str) -> str:
    return "".join(part.text for part in reply(shape).parts if isinstance(part, Text))


@for_each("provider", PROTOCOLS)
@for_each("client", SDKS)
@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_a_round_of_tools(running: Running, clients: dict[str, Sdk], client: str, provider: str, stream: bool) -> None:
    asking = clients[client]
    shapes = one(("single", "parallel", "unicode", "text-call"), f"{client} {provider}")
    for shape in shapes if stream else ("parallel",):
        running.answer(stream_of(provider, reply(shape)), stream_of(provider, reply("text")))
        asking.begin(f"via-{provider}")
        calls, said = asking.ask(stream=stream)
        assert (calls, said) == (runnable(shape), text(shape))
        asking.results([f"result {number}" for number in range(len(calls))])
        assert asking.ask(stream=stream) == ([], text("text"))
        seen = running.provider.requests[-1]
        parsed = PROTOCOLS[provider].parse_request(seen.body, path=seen.path if ":" in seen.path else "").request
        told = [part for message in parsed.messages for part in message.parts]
        ids = [part.id for part in told if isinstance(part, ToolCall)]
        assert [part.call_id for part in told if isinstance(part, ToolResult)] == ids
        assert [part.text for part in told if isinstance(part, ToolResult)] == [
            f"result {number}" for number in range(len(calls))
        ]


@for_each("provider", PROTOCOLS)
@for_each("client", SDKS)
def test_a_cut_stream_never_gives_a_call_that_was_not_whole(
    running: Running, clients: dict[str, Sdk], client: str, provider: str
) -> None:
    """Cut anywhere: the SDK raises, or what it holds is all that the provider had said."""
    shapes = ("text-call", "parallel", "long")
    chance = random.Random(f"{client} {provider}")
    asking = clients[client]
    raised = 0
    for number in range(CUTS):
        shape = shapes[number % len(shapes)]
        whole = wire(provider, reply(shape))
        place = chance.randrange(1, len(whole))
        end = "reset" if number % 2 else "close"
        running.answer(_cut(provider, whole[:place], end))
        asking.begin(f"via-{provider}")
        try:
            calls, _ = asking.ask(stream=True)
        except BROKEN:
            raised += 1
        else:
            assert calls == runnable(shape), (shape, place, end)
    assert raised > CUTS * 0.7
    running.answer(stream_of(provider, reply("single")))
    asking.begin(f"via-{provider}")
    assert asking.ask(stream=True)[0] == runnable("single"), "the gateway serves on"


def _cut(provider: str, data: bytes, end: str) -> list[Step]:
    return [head(200, PROTOCOLS[provider].stream_type), chunk(data), end]


def test_the_shapes_have_calls() -> None:
    assert all(runnable(shape) for shape in ("single", "parallel", "unicode", "text-call", "long"))
    assert set(SDKS) == set(PROTOCOLS)
    assert set(SHAPES) >= {"single", "parallel", "unicode", "text-call", "long", "text"}


@for_each(
    ("client", "kind", "status"),
    [
        ("ollama-chat", ollama.ResponseError, 404),
        ("openai-chat", openai.NotFoundError, 404),
        ("openai-responses", openai.NotFoundError, 404),
        ("anthropic-messages", anthropic.NotFoundError, 404),
        ("gemini-generate", errors.ClientError, 404),
    ],
)
@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_an_unknown_model_is_said_in_the_clients_form(
    clients: dict[str, Sdk], client: str, kind: type[Exception], status: int, stream: bool
) -> None:
    asking = clients[client]
    asking.begin("nobody")
    with pytest.raises(kind, match="model 'nobody' not found") as caught:
        asking.ask(stream=stream)
    assert status in (getattr(caught.value, "status_code", None), getattr(caught.value, "code", None))


GOOD_CALL, BAD_CALL = ("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Par')


@for_each("provider", PROVIDERS)
@for_each("client", SDKS)
@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_a_failed_call_is_an_error_and_never_the_models_words(
    running: Running, clients: dict[str, Sdk], client: str, provider: str, stream: bool
) -> None:
    asking = clients[client]
    for calls in ([GOOD_CALL, BAD_CALL], [BAD_CALL]):
        data = PROVIDERS[provider](calls, "stop")
        running.answer(streamed(data, content_type=PROTOCOLS[provider].stream_type))
        asking.begin(f"via-{provider}")
        try:
            made, said = asking.ask(stream=stream)
        except BROKEN:
            assert stream or calls == [BAD_CALL]
        else:
            assert made == [("get_weather", {"city": "Oslo"})][: len(calls) - 1]
            assert said == WORDS
