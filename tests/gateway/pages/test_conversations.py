"""Objects of conversations (Responses) are refused by their name, whatever their form, and no provider is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from conversations import reply
from for_each import for_each
from gateway.running import Running, gateway, stream_of, whole_of

PROVIDERS = ("openai-responses", "openai-chat")
PATH = "/v1/responses"
FORMS: tuple[Any, ...] = ("conv_1", "", {"id": "conv_1"}, {}, ["conv_1"], 1, False)
HEADERS = {"authorization": "Bearer one", "content-type": "application/json"}


@pytest.fixture(params=[True, False], ids=["stored", "not stored"], scope="module")
def gateways(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One that keeps responses, and one that keeps none."""
    more = f"[server]\nstore_responses = {str(request.param).lower()}\n"
    folder: Path = tmp_path_factory.mktemp("gateway")
    with gateway(folder, more) as found:
        yield found


def sent(running: Running, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = b"" if body is None else json.dumps(body).encode()
    status, _, answer = running.request(method, path, data, HEADERS)
    return status, json.loads(answer)


@for_each("provider", PROVIDERS)
@for_each("store", [True, False, None])
@for_each("stream", [True, False])
def test_a_conversation_is_refused_by_its_name(
    gateways: Running, provider: str, store: bool | None, stream: bool
) -> None:
    gateways.answer((stream_of if stream else whole_of)(provider, reply("text")))
    asked = {"model": f"via-{provider}", "input": "Hi", "stream": stream, "store": store}
    for conversation in FORMS:
        for more in ({}, {"previous_response_id": "resp_1"}):
            status, refused = sent(gateways, "POST", PATH, {**asked, **more, "conversation": conversation})
            at = refused["error"]["message"].rpartition(" at ")[2]
            assert status == 400 and at in {"conversation", *more}, refused
    assert gateways.provider.requests == []
    body = json.dumps({**asked, "conversation": None}).encode()  # the usual value
    assert gateways.request("POST", PATH, body, HEADERS)[0] == 200
    assert "conversation" not in (gateways.provider.requests[-1].json or {})


def test_tokens_of_a_conversation_are_not_counted_as_if_there_were_none(gateways: Running) -> None:
    gateways.answer()
    for conversation in FORMS:
        asked = {"model": "via-openai-chat", "input": "Hi", "conversation": conversation}
        status, refused = sent(gateways, "POST", f"{PATH}/input_tokens", asked)
        code, message = refused["error"]["code"], refused["error"]["message"]
        if status == 404:  # where nothing is stored
            assert code == "unknown_url", refused
        else:
            assert status == 400 and message.endswith("at conversation"), refused


@for_each(
    "path",
    ["/v1/conversations", "/v1/conversations/conv_1", "/v1/conversations/conv_1/items",
     "/v1/conversations/conv_1/items/msg_1", "/v1/conversations/../responses"],
)  # fmt: skip
@for_each("method", ["GET", "POST", "DELETE"])
def test_their_own_paths_are_not_there(gateways: Running, method: str, path: str) -> None:
    gateways.answer(whole_of("openai-responses", reply("text")))
    status, refused = sent(gateways, method, path, {"items": []} if method == "POST" else None)
    assert status in (404, 405), refused
    assert refused["error"]["message"] and refused["error"]["type"], refused
    assert gateways.provider.requests == []


def test_the_sdk_is_told(gateways: Running) -> None:
    with openai.OpenAI(base_url=f"{gateways.url}/v1", api_key="one", max_retries=0) as client:
        with pytest.raises(openai.NotFoundError):
            client.conversations.create()
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model="via-openai-responses", input="Hi", conversation={"id": "conv_1"})
    assert refused.value.message.endswith("at conversation"), refused.value.message
