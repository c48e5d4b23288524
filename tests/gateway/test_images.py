"""Images by address through the gateway: passed on unread; refused where a server would have to be sent the data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conversations import reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import Media, Message, Request, Text
from gateway.running import Running, gateway, whole_of
from gateway.test_matrix import ask

URL = "https://images.example/cat.png?token=secret"
REQUEST = Request("m", (Message("user", (Text("What is it?"), Media("image", "image/png", url=URL))),), stream=False)
#: Those that have a word for an image by its address.
CLIENTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate")


@pytest.mark.parametrize("provider", [name for name in PROTOCOLS if name != "ollama-chat"])
@pytest.mark.parametrize("client", CLIENTS)
def test_an_address_is_passed_on(running: Running, client: str, provider: str) -> None:
    running.answer(whole_of(provider, reply("text")))
    status, body = ask(running, client, Request(f"via-{provider}", REQUEST.messages, stream=False))
    assert status == 200, body
    assert URL in json.dumps(running.provider.requests[-1].json)


@pytest.mark.parametrize("client", CLIENTS)
def test_no_model_answers_without_the_image(running: Running, client: str) -> None:
    running.answer(whole_of("ollama-chat", reply("text")))
    status, body = ask(running, client, Request("via-ollama-chat", REQUEST.messages, stream=False))
    assert status == 400
    message = PROTOCOLS[client].parse_error(status, body).message
    assert "expected images as data" in message
    assert "secret" not in message
    assert running.provider.requests == []


def test_the_next_target_of_a_route_may_take_it(tmp_path: Path) -> None:
    with gateway(tmp_path, '[routes.both]\ntargets = ["ollama-chat/model-1", "openai-chat/model-1"]\n') as running:
        running.answer(whole_of("openai-chat", reply("text")))
        status, body = ask(running, "openai-chat", Request("both", REQUEST.messages, stream=False))
        assert status == 200, body
        [seen] = running.provider.requests
        assert (seen.path, URL in json.dumps(seen.json)) == ("/v1/chat/completions", True)
