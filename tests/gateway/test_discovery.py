"""What clients ask before they chat, read as strictly as they do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import anthropic
import msgspec
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from conversations import reply
from dragoman.types import ToolCall
from gateway.running import Running, gateway, stream_of

MODELS = """
[routes.coder]
targets = ["anthropic-messages/model-1"]
[routes."*"]
targets = ["anthropic/claude-opus-4-5"]
[models."lab/qwen3"]
[providers.lab]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
"""
GEMINI = {"x-goog-api-key": "k"}
ANTHROPIC = {"anthropic-version": "2026-10-21"}


@pytest.fixture(scope="module")
def open_door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with gateway(tmp_path_factory.mktemp("gateway"), MODELS) as found:
        yield found


def get(running: Running, path: str, headers: dict[str, str] | None = None) -> Any:
    status, _, body = running.request("GET", path, b"", headers)
    assert status == 200, body
    return json.loads(body)


def show(running: Running, name: str, key: str = "model") -> Any:
    status, _, body = running.request("POST", "/api/show", json.dumps({key: name}).encode())
    assert status == 200, body
    return json.loads(body)


# ---------------------------------------------------------------- strict stand-ins (emulated: facts, not the programs)


class ZedDetails(msgspec.Struct):
    format: str
    family: str
    families: list[str] | None
    parameter_size: str
    quantization_level: str


class ZedModel(msgspec.Struct):
    name: str
    modified_at: str
    size: int
    digest: str
    details: ZedDetails


class ZedModels(msgspec.Struct):
    models: list[ZedModel]


class ZedShow(msgspec.Struct):
    capabilities: list[str]
    model_info: dict[str, Any]


class ZedFunction(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any]
    index: int | None = None


class ZedCall(msgspec.Struct, forbid_unknown_fields=True):
    function: ZedFunction
    id: str | None = None


class ZedMessage(msgspec.Struct):
    role: str
    content: str
    thinking: str | None = None
    tool_calls: list[ZedCall] | None = None


class ZedLine(msgspec.Struct):
    model: str
    created_at: str
    message: ZedMessage
    done: bool
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None


def test_zed_lists_shows_and_chats_with_tools(running: Running) -> None:
    listed = msgspec.json.decode(running.request("GET", "/api/tags")[2], type=ZedModels).models
    names = [model.name for model in listed]
    assert "via-openai-chat" in names
    for name in names:
        status, _, body = running.request("POST", "/api/show", json.dumps({"model": name}).encode())
        assert status == 200
        shown = msgspec.json.decode(body, type=ZedShow)
        assert "tools" in shown.capabilities
        assert shown.model_info[f"{shown.model_info['general.architecture']}.context_length"] > 0
    running.answer(stream_of("openai-chat", reply("parallel")))
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    body = {
        "model": "via-openai-chat", "stream": True, "keep_alive": -1, "tools": [tool],
        "messages": [{"role": "user", "content": "Weather?"}], "options": {"num_ctx": 16384, "temperature": 1.0},
    }  # fmt: skip
    _, headers, answer = running.request(
        "POST", "/api/chat", json.dumps(body).encode(), {"user-agent": "Zed/0.230.1 (linux; x86_64)"}
    )
    assert headers["content-type"] == "application/x-ndjson"
    assert answer.endswith(b"\n") and b"\n\n" not in answer
    lines = [msgspec.json.decode(line, type=ZedLine) for line in answer.splitlines()]
    assert all(line.message.role == "assistant" for line in lines)
    # Zed reads the first call of a line only.
    first = [line.message.tool_calls[0] for line in lines if line.message.tool_calls]
    expected = [part for part in reply("parallel").parts if isinstance(part, ToolCall)]
    assert [(call.id, call.function.name, call.function.arguments) for call in first] == [
        (call.id, call.name, call.values()) for call in expected
    ]
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].done_reason == "stop"


def test_vs_code_finds_version_tags_and_capabilities(open_door: Running) -> None:
    version = get(open_door, "/api/version")["version"]
    assert tuple(map(int, version.split("."))) >= (0, 13, 4)
    for tag in get(open_door, "/api/tags")["models"]:
        shown = show(open_door, tag["model"])
        assert {"completion", "tools"} <= set(shown["capabilities"])
        info = shown["model_info"]
        assert isinstance(info[f"{info['general.architecture']}.context_length"], int)
        assert info["general.basename"]


# ---------------------------------------------------------------- Ollama


def test_the_root_says_that_it_runs(running: Running) -> None:
    status, headers, body = running.request("GET", "/")
    assert (status, headers["content-type"].partition(";")[0], body) == (200, "text/plain", b"Ollama is running")


def test_what_is_listed_can_be_asked_for(open_door: Running) -> None:
    tags = get(open_door, "/api/tags")["models"]
    names = [tag["name"] for tag in tags]
    assert {"coder", "claude-opus-4-5", "lab/qwen3"} <= set(names)
    assert "*" not in names
    digests = {tag["digest"] for tag in tags}
    assert len(digests) == len(tags) and all(len(digest) == 64 for digest in digests)
    assert all(datetime.fromisoformat(tag["modified_at"]) for tag in tags)
    assert get(open_door, "/api/ps") == {"models": []}


def test_what_the_catalogue_knows_is_shown(open_door: Running) -> None:
    known = show(open_door, "claude-opus-4-5", key="name")
    architecture = known["model_info"]["general.architecture"]
    assert known["model_info"][f"{architecture}.context_length"] == 200_000
    assert set(known["capabilities"]) == {"completion", "tools", "vision", "thinking"}
    unknown = show(open_door, "lab/qwen3:latest")
    assert set(unknown["capabilities"]) == {"completion", "tools"}


def test_an_unknown_model_is_404(running: Running) -> None:
    status, _, body = running.request("POST", "/api/show", b'{"model":"via-opanai-chat"}')
    assert status == 404
    assert json.loads(body) == {"error": "model 'via-opanai-chat' not found; nearest: via-openai-chat"} or (
        "nearest: via-openai-chat" in json.loads(body)["error"]
    )
    assert running.request("POST", "/api/show", b"{}")[0] == 400
    assert running.request("POST", "/api/show", b"[")[0] == 400


def test_the_ollama_sdk_reads_it(running: Running) -> None:
    client = ollama.Client(host=running.url)
    try:
        names = [model.model for model in client.list().models]
        assert "via-gemini-generate" in names
        assert "tools" in (client.show("via-gemini-generate").capabilities or [])
        assert client.ps().models == []
        with pytest.raises(ollama.ResponseError, match="models belong to their provider"):
            client.delete("via-gemini-generate")
    finally:
        client._client.close()


# ---------------------------------------------------------------- one path, three protocols


@pytest.mark.parametrize("path", ["/v1/models", "/v1beta/models"])
def test_gemini_clients_get_geminis_list(open_door: Running, path: str) -> None:
    found = {model["name"]: model for model in get(open_door, path, GEMINI)["models"]}
    assert found["models/claude-opus-4-5"]["inputTokenLimit"] == 200_000
    assert "inputTokenLimit" not in found["models/coder"]
    assert get(open_door, f"{path}/coder", GEMINI)["name"] == "models/coder"


def test_a_key_in_the_query_means_gemini(open_door: Running) -> None:
    assert "models" in get(open_door, "/v1/models?key=abc")
    assert "models" not in get(open_door, "/v1/models?monkey=abc")


def test_the_sdks_list_models(open_door: Running) -> None:
    wanted = {"coder", "claude-opus-4-5", "lab/qwen3"}
    with openai.OpenAI(base_url=f"{open_door.url}/v1", api_key="k") as chat:
        assert wanted <= {model.id for model in chat.models.list()}
        assert chat.models.retrieve("coder").id == "coder"
        assert chat.models.retrieve("lab/qwen3").owned_by == "lab"
    with anthropic.Anthropic(base_url=open_door.url, api_key="k") as messages:
        assert wanted <= {model.id for model in messages.models.list()}
        assert messages.models.retrieve("coder").display_name == "coder"
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=open_door.url))
    try:
        assert {f"models/{name}" for name in wanted} <= {model.name for model in client.models.list()}
    finally:
        client.close()


def test_the_sdks_count_tokens(running: Running) -> None:
    words = "word " * 400
    with anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0) as messages:
        counted = messages.messages.count_tokens(
            model="via-openai-chat", messages=[{"role": "user", "content": words}]
        ).input_tokens
    assert 400 <= counted <= 700
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=running.url))
    try:
        assert client.models.count_tokens(model="via-openai-chat", contents=words).total_tokens == counted
    finally:
        client.close()
    wrapped = {"generateContentRequest": {"model": "models/x", "contents": [{"parts": [{"text": words}]}]}}
    status, _, body = running.request(
        "POST", "/v1beta/models/via-openai-chat:countTokens", json.dumps(wrapped).encode()
    )
    assert (status, json.loads(body)) == (200, {"totalTokens": counted})
    assert running.request("POST", "/v1beta/models/nobody:countTokens", json.dumps(wrapped).encode())[0] == 404
