"""A provider that quotes the key it was sent: its client, who has a key of his own, never reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from for_each import for_each
from gateway.running import Running, gateway, provider_config
from gateway.test_relay import spoken
from scripted import END, Step, chunk, head, whole

KEY = "sk-proj-1d0f2c7a90b34e58"
HEADER = "team-secret-77aa01c2"
SAID = f"Incorrect API key provided: {KEY} (X-Team: {HEADER})"


@pytest.fixture(scope="module", params=[False, True], ids=["read", "passed"])
def keyed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "key").write_text(KEY, encoding="utf-8")
    with gateway(folder) as plain:
        more = (
            f'[providers.keyed]\nprotocol = "openai-chat"\nbase_url = "{plain.provider.url}/v1"\n'
            f'api_key = "file:key"\nheaders = {{ "x-team" = "{HEADER}", "x-version" = "1" }}\n'
            f"clean = {str(request.param).lower()}\n"
            '[routes.via-keyed]\ntargets = ["keyed/model-1"]\n'
        )
        with gateway(folder, config=provider_config(folder, plain.provider.url, more)) as found:
            yield found._replace(provider=plain.provider)


@for_each("client", ["openai-chat", "anthropic-messages"])
@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each(
    "steps",
    [
        whole(json.dumps({"error": {"message": SAID, "code": KEY}}).encode(), 401),
        whole(SAID.encode(), 500, "text/plain"),
        whole(("x" * 150 + SAID * 20).encode(), 500, "text/plain"),
        [head(), chunk(f"data: {json.dumps({'error': {'message': SAID}})}\n\n".encode()), END],
        [
            head(),
            chunk(b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'),
            chunk(f"data: {json.dumps({'error': {'message': SAID}})}\n\n".encode()),
            END,
        ],
    ],
    ids=["json", "text", "cut-in-the-key", "first-event", "later-event"],
)
def test_a_quoted_key_is_masked(keyed: Running, client: str, stream: bool, steps: list[Step]) -> None:
    keyed.answer(steps)
    path, body = spoken(client, "keyed", stream=stream)
    _, headers, answer = keyed.request("POST", path, body)
    assert keyed.provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert b"***" in answer
    for secret in (KEY[:12], HEADER[:12]):
        assert secret.encode() not in answer
        assert secret not in str(headers)
