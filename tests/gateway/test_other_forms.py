"""The older forms of two protocols, loading and pulling, and embeddings in three protocols."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import ollama
import openai
import pytest
from google import genai
from google.genai import types

from conversations import reply
from dragoman.bounds import USUAL_BOUNDS
from dragoman.protocols import EMBEDDING, PROTOCOLS
from gateway.running import Running, gateway, stream_of, whole_of
from scripted import whole

VECTORS = [[0.5, -0.25, 0.125], [1.0, 2.0, 3.0]]


def post(running: Running, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return running.request("POST", path, json.dumps(body).encode(), {"content-type": "application/json"})


def asked(running: Running, protocol: str) -> list[tuple[str, str]]:
    seen = running.provider.requests[-1]
    request = PROTOCOLS[protocol].parse_request(seen.body, path=seen.path if ":" in seen.path else "").request
    return [(message.role, message.text) for message in request.messages]


# ---------------------------------------------------------------- /v1/completions


@pytest.mark.parametrize("provider", PROTOCOLS)
def test_a_completion_is_a_chat_in_the_older_form(running: Running, provider: str) -> None:
    expected = reply("text").text
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="k", max_retries=0) as client:
        running.answer(whole_of(provider, reply("text")))
        answer = client.completions.create(model=f"via-{provider}", prompt="Say it.", max_tokens=50)
        assert (answer.object, answer.choices[0].text, answer.choices[0].finish_reason) == (
            "text_completion", expected, "stop",
        )  # fmt: skip
        assert answer.model == f"via-{provider}"
        assert asked(running, provider) == [("user", "Say it.")]
        running.answer(stream_of(provider, reply("text")))
        options = {"include_usage": True}
        chunks = list(
            client.completions.create(model=f"via-{provider}", prompt=["Say it."], stream=True, stream_options=options)
        )
        assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == expected
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert len({chunk.id for chunk in chunks}) == 1


def test_what_a_completion_alone_can_say_goes_to_a_server_of_its_kind(running: Running) -> None:
    answer = b'{"id":"cmpl-1","object":"text_completion","choices":[{"text":"return x","index":0}]}'
    running.answer(whole(answer))
    for more in (
        {"suffix": "}"},
        {"echo": True},
        {"n": 2},
        {"logprobs": 0},
        {"prompt": ["a", "b"]},
        {"prompt": [1, 2]},
    ):
        body = {"model": "via-openai-chat", "prompt": "def f(x):"} | more
        assert post(running, "/v1/completions", body)[0::2] == (200, answer)
        seen = running.provider.requests[-1]
        assert (seen.path, seen.json) == ("/v1/completions", body | {"model": "model-1"})
        running.provider.requests.clear()
        status, _, refused = post(running, "/v1/completions", body | {"model": "via-anthropic-messages"})
        assert (status, json.loads(refused)["error"]["type"]) == (400, "invalid_request_error")
        assert next(iter(more)) in json.loads(refused)["error"]["message"]
        assert running.provider.requests == []
    running.answer(whole(b'{"error":{"message":"no such thing","type":"invalid_request_error"}}', 422))
    status, _, refused = post(running, "/v1/completions", {"model": "via-openai-chat", "prompt": "a", "suffix": "b"})
    message = json.loads(refused)["error"]["message"]
    assert status == 422 and message.startswith("no such thing (openai-chat: POST http://127.0.0.1:")


def test_a_completion_that_breaks_says_so_in_the_stream(running: Running) -> None:
    steps = stream_of("openai-chat", reply("text"))
    running.answer([*steps[:2], "reset"])
    body = {"model": "via-openai-chat", "prompt": "a", "stream": True}
    status, _, answer = post(running, "/v1/completions", body)
    assert b"[DONE]" not in answer
    assert status >= 400 or b'"error"' in answer


# ---------------------------------------------------------------- /api/generate


@pytest.mark.parametrize("provider", PROTOCOLS)
def test_generate_is_a_chat_of_one_message(running: Running, provider: str) -> None:
    expected = reply("text")
    client = ollama.Client(host=running.url)
    try:
        running.answer(stream_of(provider, expected))
        lines = list(client.generate(f"via-{provider}", "Why?", system="Be brief.", stream=True))
        assert "".join(line.response for line in lines) == expected.text
        assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
        assert lines[-1].done_reason == "stop"
        assert [text for _, text in asked(running, provider)] == ["Be brief.", "Why?"]
        running.answer(whole_of(provider, expected))
        answer = client.generate(f"via-{provider}", "Why?")
        assert (answer.response, answer.done, answer.thinking or "") == (expected.text, True, expected.thinking)
    finally:
        client._client.close()


def test_what_only_an_ollama_server_can_do_goes_to_one(running: Running) -> None:
    answer = b'{"model":"model-1","created_at":"2026-01-01T00:00:00Z","response":"x","done":true}\n'
    for more in ({"suffix": "}"}, {"raw": True}, {"template": "{{ .Prompt }}"}, {"context": [1, 2]}):
        running.answer(whole(answer, 200, "application/x-ndjson"))
        body = {"model": "via-ollama-chat", "prompt": "def f(x):", "options": {"stop": ["\n"]}} | more
        status, headers, got = post(running, "/api/generate", body)
        assert (status, headers["content-type"], got) == (200, "application/x-ndjson", answer)
        seen = running.provider.requests[-1]
        assert (seen.path, seen.json) == ("/api/generate", body | {"model": "model-1"})
        running.provider.requests.clear()
        status, _, refused = post(running, "/api/generate", body | {"model": "via-gemini-generate"})
        assert status == 400
        assert next(iter(more)) in json.loads(refused)["error"]
        assert running.provider.requests == []


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_nothing_asked_means_load(running: Running, path: str) -> None:
    """https://docs.ollama.com/api: a chat without messages, a generation without a prompt."""
    running.provider.requests.clear()
    for more, reason in (({}, "load"), ({"messages": [], "prompt": ""}, "load"), ({"keep_alive": 0}, "unload")):
        status, _, body = post(running, path, {"model": "via-anthropic-messages"} | more)
        answer = json.loads(body)
        assert (status, answer["done"], answer["done_reason"]) == (200, True, reason)
        assert answer["message"] == {"role": "assistant", "content": ""} if "chat" in path else answer["response"] == ""
    assert running.provider.requests == []
    assert post(running, path, {"model": "nobody"})[0] == 404
    # An Ollama server can really do it.
    running.answer(whole(b'{"model":"model-1","done":true,"done_reason":"load"}'))
    assert post(running, path, {"model": "via-ollama-chat", "keep_alive": "5m"})[0] == 200
    seen = running.provider.requests[-1]
    assert (seen.path, seen.json) == (path, {"model": "model-1", "keep_alive": "5m"})


def test_models_that_answer_count_as_pulled(running: Running) -> None:
    client = ollama.Client(host=running.url)
    try:
        assert [step.status for step in client.pull("via-openai-chat", stream=True)] == ["pulling manifest", "success"]
        assert client.pull("via-openai-chat").status == "success"
        with pytest.raises(ollama.ResponseError, match="not found"):
            client.pull("nobody")
        for refused in (lambda: client.delete("via-openai-chat"), lambda: client.copy("a", "b")):
            with pytest.raises(ollama.ResponseError, match="models belong to their provider") as problem:
                refused()
            assert problem.value.status_code == 400
    finally:
        client._client.close()


# ---------------------------------------------------------------- embeddings


def vectors_of(protocol: str, vectors: list[list[float]]) -> bytes:
    """A provider's answer."""
    if protocol == "ollama-chat":
        return json.dumps({"model": "model-1", "embeddings": vectors, "prompt_eval_count": 7}).encode()
    if protocol == "gemini-generate":
        return json.dumps({"embeddings": [{"values": vector} for vector in vectors]}).encode()
    rows = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    return json.dumps({"object": "list", "data": rows[::-1], "model": "model-1", "usage": usage}).encode()


def texts_of(seen: Any) -> list[str]:
    """The texts that a provider was asked for."""
    body = seen.json
    if "requests" in body:
        return [row["content"]["parts"][0]["text"] for row in body["requests"]]
    return [body["input"]] if isinstance(body["input"], str) else body["input"]


@pytest.mark.parametrize("provider", EMBEDDING)
def test_embeddings_over_three_sdks(running: Running, provider: str) -> None:
    running.answer(whole(vectors_of(provider, VECTORS)))
    name, texts = f"via-{provider}", ["one", "two"]
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="k", max_retries=0) as client:
        answer = client.embeddings.create(model=name, input=texts, dimensions=3)
        assert [row.embedding for row in answer.data] == VECTORS
        assert answer.model == name
        assert texts_of(running.provider.requests[-1]) == texts
        packed = client.embeddings.create(model=name, input=texts, encoding_format="base64").data[1].embedding
        assert list(struct.unpack("<3f", base64.b64decode(str(packed)))) == VECTORS[1]
    own = ollama.Client(host=running.url)
    try:
        embedded = own.embed(name, texts)
        assert [list(vector) for vector in embedded.embeddings] == VECTORS
        if provider != "gemini-generate":
            assert embedded.prompt_eval_count == 7
        running.answer(whole(vectors_of(provider, VECTORS[:1])))
        assert list(own.embeddings(name, "one").embedding) == VECTORS[0]
    finally:
        own._client.close()
    # For models with "gemini" in their names this SDK makes one content of all texts.
    wanted, sent = (VECTORS[:1], ["onetwo"]) if "gemini" in name else (VECTORS, texts)
    running.answer(whole(vectors_of(provider, wanted)))
    google = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=running.url))
    try:
        found = google.models.embed_content(
            model=name, contents=texts, config=types.EmbedContentConfig(output_dimensionality=3)
        )
        assert [embedding.values for embedding in found.embeddings or ()] == wanted
        assert texts_of(running.provider.requests[-1]) == sent
    finally:
        google.close()


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize("kind", ["models", "tunedModels"])
def test_gemini_embeds_one_content(running: Running, version: str, kind: str) -> None:
    running.answer(whole(vectors_of("openai-chat", VECTORS[:1])))
    body = {"content": {"parts": [{"text": "on"}, {"text": "e"}]}, "output_dimensionality": 3}
    status, _, answer = post(running, f"/{version}/{kind}/via-openai-chat:embedContent", body)
    assert (status, json.loads(answer)) == (200, {"embedding": {"values": VECTORS[0]}})
    assert running.provider.requests[-1].json == {
        "model": "model-1", "input": "one", "dimensions": 3, "encoding_format": "float",
    }  # fmt: skip


def test_an_answer_with_vectors_may_be_as_large_as_the_texts_are_many(tmp_path: Path) -> None:
    assert USUAL_BOUNDS.of_embeddings(2_000) > 2_000 * 3_072 * 30  # each number on a line of its own
    for size, texts, expected in (
        (1 << 20, 2, 200), ((1 << 20) + 1, 2, 502), (1_500 * 1024, 1_500, 200), (1_500 * 1024 + 1, 1_500, 502),
    ):  # fmt: skip
        body = vectors_of("openai-chat", VECTORS[:1] * texts)
        with gateway(tmp_path, "[server.limits]\nembeddings_mib = 1\nembedding_kib = 1\n") as running:
            running.answer(whole(body + b" " * (size - len(body))))
            asked = {"model": "via-openai-chat", "input": ["a"] * texts}
            status, headers, answer = post(running, "/v1/embeddings", asked)
        assert (status, b"(setting server.limits.embeddings_mib), got" in answer) == (expected, expected == 502)
        assert headers.get("x-should-retry") == ("false" if expected == 502 else None)


@pytest.mark.parametrize("spaces", ["", " ", "\n  "])
def test_a_vector_is_given_as_it_came(running: Running, spaces: str) -> None:
    """Its digits and its spaces; in its place, whatever the order; and packed it is unpacked."""
    vector = f"[{spaces}0.10,1e-3,{spaces}-7{spaces}]"
    rows = f'{{"index":1,"embedding":{vector}}},{{"embedding":{spaces}"AACAPwAAAEA=","index":0,"more":[1]}}'
    running.answer(whole(f'{{"more":{{}},"data":{spaces}[{rows}],"usage":{{"prompt_tokens":3}}}}'.encode()))
    status, _, answer = post(running, "/api/embed", {"model": "via-openai-chat", "input": ["a", "b"]})
    assert status == 200 and f'"embeddings":[[1.0,2.0],{vector}]'.replace("\n", " ").encode() in answer
    assert json.loads(answer)["prompt_eval_count"] == 3


def test_embeddings_are_counted(running: Running) -> None:
    def tokens() -> float:
        text = running.request("GET", "/metrics")[2].decode()
        name = 'dragoman_tokens_total{provider="openai-chat",kind="input"} '
        return sum(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))

    before = tokens()
    running.answer(whole(vectors_of("openai-chat", VECTORS[:1])))
    post(running, "/v1/embeddings", {"model": "via-openai-chat", "input": "a"})
    assert tokens() == before + 7


def test_a_field_of_the_providers_own_protocol_stays(running: Running) -> None:
    running.answer(whole(vectors_of("ollama-chat", VECTORS[:1])))
    post(running, "/api/embed", {"model": "via-ollama-chat", "input": "a", "truncate": False, "keep_alive": "5m"})
    assert running.provider.requests[-1].json == {
        "model": "model-1", "input": ["a"], "truncate": False, "keep_alive": "5m",
    }  # fmt: skip


def test_embeddings_are_refused_where_there_are_none(running: Running) -> None:
    running.provider.requests.clear()
    for path, body, read in (
        ("/v1/embeddings", {"input": "a"}, lambda answer: answer["error"]["message"]),
        ("/api/embed", {"input": "a"}, lambda answer: answer["error"]),
        (
            "/v1beta/models/via-anthropic-messages:embedContent",
            {"content": {"parts": [{"text": "a"}]}},
            lambda answer: answer["error"]["message"],
        ),
    ):
        status, _, answer = post(running, path, {"model": "via-anthropic-messages"} | body)
        assert (status, "has no embeddings" in read(json.loads(answer))) == (400, True)
    status, _, answer = post(running, "/v1/embeddings", {"model": "via-gemini-generate", "input": [[1, 2]]})
    assert (status, "takes no tokens" in json.loads(answer)["error"]["message"]) == (400, True)
    assert running.provider.requests == []


TWO = """
[routes.two]
targets = ["openai-chat/model-1", "ollama-chat/model-2"]
[routes.three]
targets = ["openai-chat/model-1", "anthropic-messages/model-1", "openai-chat/model-3"]
"""


@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_the_next_target_embeds_when_the_first_fails(tmp_path: Path, status: int) -> None:
    with gateway(tmp_path, TWO) as running:
        broken = whole(b'{"error":{"message":"later"}}', status) if status else ["reset"]
        running.answer(broken, whole(vectors_of("ollama-chat", VECTORS)))
        found, _, answer = post(running, "/v1/embeddings", {"model": "two", "input": ["a", "b"]})
        assert (found, [row["embedding"] for row in json.loads(answer)["data"]]) == (200, VECTORS)
        assert [seen.path for seen in running.provider.requests] == ["/v1/embeddings", "/api/embed"]
        assert running.provider.requests[1].json["model"] == "model-2"
        running.answer(whole(b'{"error":{"message":"no such input"}}', 400))
        found, _, answer = post(running, "/v1/embeddings", {"model": "two", "input": ["a", "b"]})
        assert (found, b"no such input" in answer, len(running.provider.requests)) == (400, True, 1)


def test_the_next_target_embeds_when_the_first_answers_with_other_than_vectors(tmp_path: Path) -> None:
    with gateway(tmp_path, TWO) as running:
        for unfit in (vectors_of("openai-chat", VECTORS[:1]), b"<html>", vectors_of("openai-chat", [{}, [1]])):
            running.answer(whole(unfit), whole(vectors_of("ollama-chat", VECTORS)))
            found, _, answer = post(running, "/v1/embeddings", {"model": "two", "input": ["a", "b"]})
            assert (found, [row["embedding"] for row in json.loads(answer)["data"]]) == (200, VECTORS), unfit


def test_the_next_target_of_its_kind_completes_when_the_first_fails(tmp_path: Path) -> None:
    answer = b'{"id":"cmpl-1","object":"text_completion","choices":[{"text":"return x","index":0}]}'
    with gateway(tmp_path, TWO) as running:
        running.answer(whole(b"{}", 503), whole(answer))
        body = {"model": "three", "prompt": "def f(x):", "suffix": "}"}
        assert post(running, "/v1/completions", body)[0::2] == (200, answer)
        assert [seen.json["model"] for seen in running.provider.requests] == ["model-1", "model-3"]


def test_a_provider_that_embeds_too_little_is_not_believed(running: Running) -> None:
    running.answer(whole(vectors_of("openai-chat", VECTORS[:1])))
    status, _, answer = post(running, "/v1/embeddings", {"model": "via-openai-chat", "input": ["a", "b"]})
    assert (status, json.loads(answer)["error"]["message"]) == (502, "expected 2 embeddings, got 1")
    running.answer(whole(b'{"error":{"message":"slow down"}}', 429, "application/json", "retry-after: 7"))
    status, headers, _ = post(running, "/v1/embeddings", {"model": "via-openai-chat", "input": "a"})
    assert (status, headers["retry-after"]) == (429, "7")
    running.answer(whole(b"<html>"))
    assert post(running, "/v1/embeddings", {"model": "via-openai-chat", "input": "a"})[0] == 502


# ---------------------------------------------------------------- Gemini's paths


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize("kind", ["models", "tunedModels"])
def test_gemini_streams_an_array_or_events(running: Running, version: str, kind: str) -> None:
    path = f"/{version}/{kind}/via-openai-chat"
    body = {"contents": [{"parts": [{"text": "Hi"}]}]}
    running.answer(stream_of("openai-chat", reply("text")))
    _, headers, answer = post(running, f"{path}:streamGenerateContent", body)
    chunks = json.loads(answer)
    assert headers["content-type"] == "application/json"
    said = [part["text"] for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"] if "text" in part]
    assert "".join(said) == reply("text").text
    running.answer(stream_of("openai-chat", reply("text")))
    _, headers, answer = post(running, f"{path}:streamGenerateContent?alt=sse", body)
    assert headers["content-type"] == "text/event-stream"
    assert [json.loads(line[6:]).keys() for line in answer.splitlines() if line.startswith(b"data: ")]
    running.answer(whole_of("openai-chat", reply("text")))
    _, _, answer = post(running, f"{path}:generateContent", body)
    assert json.loads(answer)["candidates"][0]["finishReason"] == "STOP"
    _, _, answer = post(running, f"{path}:countTokens", body)
    assert json.loads(answer)["totalTokens"] > 0
