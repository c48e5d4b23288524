"""Paths of Azure, Vertex and Bedrock, where the model stands in the address."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from conversations import reply
from gateway.running import Running, gateway, stream_of, whole_of

VERTEX = "/v1/projects/lab/locations/europe-west1/publishers"
CHAT, MESSAGES = "openai-chat", "anthropic-messages"
USER = [{"role": "user", "content": "Hi"}]
CLAUDE = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": USER}
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    routes = "".join(
        f'[routes."lab.model-{protocol}"]\ntargets = ["{protocol}/model-1"]\n' for protocol in (CHAT, MESSAGES)
    )
    with gateway(tmp_path_factory.mktemp("gateway"), routes) as found:
        yield found


@pytest.mark.parametrize("target", [CHAT, MESSAGES])
@pytest.mark.parametrize(
    ("path", "body", "protocol", "stream"),
    [
        ("/openai/deployments/MODEL/chat/completions?api-version=2025-04-01-preview", {"messages": USER}, CHAT, False),
        ("/openai/deployments/MODEL/chat/completions", {"model": "x", "messages": USER, "stream": True}, CHAT, True),
        ("/openai/v1/chat/completions", {"model": "MODEL", "messages": USER}, CHAT, False),
        ("/openai/v1/responses", {"model": "MODEL", "input": "Hi"}, "openai-responses", False),
        ("/openai/responses?api-version=1", {"model": "MODEL", "input": "Hi", "stream": True},
         "openai-responses", True),
        (f"{VERTEX}/anthropic/models/MODEL:rawPredict", CLAUDE, MESSAGES, False),
        (f"{VERTEX}/anthropic/models/MODEL:streamRawPredict", CLAUDE, MESSAGES, True),
        (f"{VERTEX}/google/models/MODEL:generateContent", GOOGLE, "gemini-generate", False),
        (f"{VERTEX.replace('v1', 'v1beta1')}/google/models/MODEL:streamGenerateContent?alt=sse", GOOGLE,
         "gemini-generate", True),
        ("/model/MODEL/invoke", {**CLAUDE, "anthropic_version": "bedrock-2023-05-31",
                                 "anthropic_beta": ["one-2025-01-01", "two-2025-01-01"]}, MESSAGES, False),
    ],
)  # fmt: skip
def test_a_clouds_path_is_served(
    clouds: Running, path: str, body: dict[str, Any], protocol: str, stream: bool, target: str
) -> None:
    name = f"lab.model-{target}"
    clouds.answer((stream_of if stream else whole_of)(target, reply("text")))
    data = json.dumps(body).replace("MODEL", name).encode()
    status, _, answer = clouds.request("POST", path.replace("MODEL", name), data, {"api-key": "any"})
    assert status == 200, answer
    assert dragoman.decode(answer, protocol).text == reply("text").text
    [sent] = clouds.provider.requests[-1:]
    assert json.loads(sent.body)["model"] == "model-1"
    assert b"anthropic_" not in sent.body
    assert "api-key" not in sent.headers
    if "anthropic_beta" in body and target == MESSAGES:
        assert sent.headers["anthropic-beta"] == "one-2025-01-01,two-2025-01-01"


def test_a_key_of_azure_opens_the_door(tmp_path_factory: pytest.TempPathFactory) -> None:
    digest = hashlib.sha256(b"the-key-of-a-client").hexdigest()
    more = f'[server]\nkeys = ["sha256:{digest}"]\n[routes.lab]\ntargets = ["openai-chat/model-1"]\n'
    path, body = "/openai/deployments/lab/chat/completions", json.dumps({"messages": USER}).encode()
    with gateway(tmp_path_factory.mktemp("keys"), more) as running:
        running.answer(whole_of(CHAT, reply("text")))
        assert running.request("POST", path, body, {"api-key": "wrong"})[0] == 401
        assert running.request("POST", path, body, {"api-key": "the-key-of-a-client"})[0] == 200


@pytest.mark.parametrize("path", ["/openai/deployments/m", "/model/m/converse", f"{VERTEX}/meta/models/m:rawPredict"])
def test_other_paths_of_clouds_are_not(clouds: Running, path: str) -> None:
    status, _, answer = clouds.request("POST", path, b"{}", {})
    assert status == 404 and b"is not served" in answer
    assert json.loads(answer)["error"]["code"] == "unknown_url"


def test_a_body_that_is_no_object_is_refused_as_usual(clouds: Running) -> None:
    path = "/openai/deployments/lab.model-openai-chat/chat/completions"
    assert clouds.request("POST", path, b"[1]", {})[0] == 400


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/v1/chat/completions"])
def test_a_path_with_its_version_left_out_or_said_twice_is_told_which_is_meant(clouds: Running, path: str) -> None:
    status, _, answer = clouds.request("POST", path, b"{}", {})
    assert status == 404 and b"did you mean /v1/chat/completions?" in answer
