"""What clients ask before they chat, read as strictly as they do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from conversations import reply
from dragoman.providers.catalog import Model
from gateway.running import Running, gateway, stream_of, whole_of

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


def test_a_model_without_tools_has_them_where_there_is_another_way(tmp_path: Path) -> None:
    target = 'targets = ["ollama-chat/small"]'
    more = f'[routes.plain]\n{target}\n[routes.led]\n{target}\ntools = "prompted"\n'
    with gateway(tmp_path, f'[server]\nollama_version = "1.2.3"\n{more}') as running:
        running.gateway._names.tell("ollama-chat", (Model("ollama-chat", "small", tools=False),))
        assert "tools" not in show(running, "plain")["capabilities"]
        assert "tools" in show(running, "led")["capabilities"]
        assert get(running, "/api/version") == {"version": "1.2.3"}


def test_models_of_embeddings_claim_nothing_else(tmp_path: Path) -> None:
    with gateway(tmp_path, '[routes.vectors]\ntargets = ["ollama-chat/nomic-embed-text"]\n') as running:
        assert show(running, "vectors")["capabilities"] == ["embedding"]


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


def test_codex_gets_a_catalogue_that_leaves_it_its_own(open_door: Running) -> None:
    found = get(open_door, "/v1/models?client_version=0.169.0")
    assert found["models"] == []
    assert {model["id"] for model in found["data"]} >= {"coder", "lab/qwen3"}
    assert "models" not in get(open_door, "/v1/models?my_client_version=0.169.0")


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


def test_the_anthropic_sdk_is_told_the_requests_id(running: Running) -> None:
    running.answer(whole_of("openai-chat", reply("text")))
    with anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0) as client:
        said = {"role": "user", "content": "Hi"}
        answer = client.messages.with_raw_response.create(model="via-openai-chat", max_tokens=9, messages=[said])
    assert answer.headers["request-id"] == answer.headers["x-request-id"] == answer.parse()._request_id


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


def test_an_alias_is_a_name_of_its_route(tmp_path: Path) -> None:
    alias = '[routes.coder]\ntargets = ["openai-chat/model-7"]\naliases = ["gpt-4o", "openai/gpt-4o"]\n'
    with gateway(tmp_path, alias) as running:
        _, _, body = running.request("GET", "/v1/models")
        assert {"coder", "gpt-4o", "openai/gpt-4o"} <= {row["id"] for row in json.loads(body)["data"]}
        running.answer(stream_of("openai-chat", reply("text")))
        for name in ("gpt-4o", "openai/gpt-4o", "coder", "gpt-4o:latest"):
            asked = {"model": name, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
            status, _, answer = running.request("POST", "/v1/chat/completions", json.dumps(asked).encode())
            assert (status, json.loads(answer.split(b"\n")[0][6:])["model"]) == (200, name)
        assert {seen.json["model"] for seen in running.provider.requests} == {"model-7"}
        assert json.loads(running.request("POST", "/api/show", b'{"model":"gpt-4o"}')[2])["capabilities"]


# ---------------------------------------------------------------- pages of a list, and errors beside it


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_client_that_pages_gets_each_model_once(open_door: Running, size: int) -> None:
    for path, headers, keys, models in (
        ("/v1/models", ANTHROPIC, ("limit", "after_id", "last_id"), "data"),
        ("/v1beta/models", GEMINI, ("pageSize", "pageToken", "nextPageToken"), "models"),
    ):
        wanted = get(open_door, path, headers)[models]
        found: list[Any] = []
        query = f"?{keys[0]}={size}"
        for _ in range(len(wanted) + 1):
            page = get(open_door, path + query, headers)
            assert len(page[models]) <= size
            found += page[models]
            if not page.get("has_more", keys[2] in page):
                break
            query = f"?{keys[0]}={size}&{keys[1]}={page[keys[2]]}"
        assert found == wanted
    listed = get(open_door, "/v1/models", ANTHROPIC)["data"]
    back = get(open_door, f"/v1/models?limit={size}&before_id={listed[-1]['id']}", ANTHROPIC)
    assert back["data"] == listed[:-1][-size:] and back["has_more"] == (len(listed) - 1 > size)
    ends = f"&after_id={listed[0]['id']}&before_id={listed[-1]['id']}"
    between = get(open_door, f"/v1/models?limit={size}{ends}", ANTHROPIC)
    assert between["data"] == listed[1:-1][-size:] and between["has_more"] == (len(listed) - 2 > size)


def test_a_page_of_no_size_has_all(open_door: Running) -> None:
    """0 is how Google's interfaces say that nothing is asked for (https://google.aip.dev/158)."""
    for empty in ("pageSize=0", "pageSize=", "pageSize=0&pageToken=", "page_size=0"):
        assert get(open_door, f"/v1beta/models?{empty}", GEMINI) == get(open_door, "/v1beta/models", GEMINI)


def test_sdks_page_through_all_models(open_door: Running) -> None:
    base = f"http://127.0.0.1:{open_door.gateway.port}"
    wanted = [each["id"] for each in get(open_door, "/v1/models", ANTHROPIC)["data"]]
    claude = anthropic.Anthropic(base_url=base, api_key="k")
    assert [each.id for each in claude.models.list(limit=1)] == wanted
    google = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=base))
    assert [str(each.name).removeprefix("models/") for each in google.models.list(config={"page_size": 1})] == wanted


def test_an_odd_page_is_refused_with_its_place(open_door: Running) -> None:
    for path, headers, place in (
        ("/v1/models?limit=0", ANTHROPIC, "limit"), ("/v1/models?limit=-1", ANTHROPIC, "limit"),
        ("/v1/models?after_id=nobody", ANTHROPIC, "after_id"), ("/v1/models?before_id=nobody", ANTHROPIC, "before_id"),
        ("/v1beta/models?pageSize=x", GEMINI, "pageSize"), ("/v1beta/models?pageToken=99999", GEMINI, "pageToken"),
        ("/v1beta/models?pageToken=%C2%B2", GEMINI, "pageToken"),
    ):  # fmt: skip
        status, _, body = open_door.request("GET", path, b"", headers)
        assert status == 400 and place.encode() in body, (path, body)


def test_an_error_at_a_model_has_the_form_of_its_page(open_door: Running) -> None:
    both = {**GEMINI, **ANTHROPIC}
    for headers in ({"authorization": "Bearer k"}, ANTHROPIC, GEMINI, both):
        forms = set()
        for method, path in (("POST", "nobody"), ("DELETE", "coder"), ("PUT", "coder")):
            status, _, body = open_door.request(method, f"/v1/models/{path}", b"{}", headers)
            error = json.loads(body)
            assert status in (404, 405), (method, path)
            forms.add(("type" in error, isinstance(error["error"].get("code"), int)))
        assert len(forms) == 1, (headers, forms)
