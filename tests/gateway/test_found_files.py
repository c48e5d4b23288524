"""Searches of files and images that a provider makes, through a running gateway: asked, answered, streamed and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import _json
from gateway.running import Running, gateway
from gateway.test_tools_of_agents import post
from scripted import Step, serving, streamed, whole

GEMINI, RESPONSES = "gemini-generate", "openai-responses"
PIXEL = "iVBORw0KGgo="
WANTED = {"type": "and", "filters": [{"type": "eq", "key": "lang", "value": "en"},
                                     {"type": "gt", "key": "year", "value": 1899}]}  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving([]) as provider:
        base = {GEMINI: "/v1beta", RESPONSES: "/v1"}
        tables = "".join(
            f'[providers.{name}]\nprotocol = "{protocol}"\nbase_url = "{provider.url}{base[protocol]}"\n'
            'dialect = { hosted_tools = ["file_search", "image_generation"] }\n'
            f'[routes.{name}]\ntargets = ["{name}/m"]\n'
            for name, protocol in (("google", GEMINI), ("openai", RESPONSES))
        )
        with gateway(tmp_path_factory.mktemp("gateway"), tables) as found:
            yield found._replace(provider=provider)


def of_google(parts: list[Any], **more: Any) -> list[Step]:
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", **more}
    frame = _json.encode({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1}})
    return streamed(b"data: %b\r\n\r\n" % frame)


def test_a_search_of_files_is_asked_of_gemini_and_told_to_a_client_of_responses(running: Running) -> None:
    chunk = {"retrievedContext": {"title": "a.txt", "text": "An interpreter."}}
    metadata = {"groundingChunks": [chunk], "retrievalQueries": ["dragoman"]}
    running.answer(of_google([{"text": "One."}], groundingMetadata=metadata))
    tool = {"type": "file_search", "vector_store_ids": ["fileSearchStores/a"], "filters": WANTED}
    body = {"model": "google", "input": "what is a dragoman", "tools": [tool], "stream": True}
    status, _, frames = post(running, "/v1/responses", body)
    assert status == 200
    [sent] = running.provider.requests
    search = {"fileSearchStoreNames": ["fileSearchStores/a"], "metadataFilter": '(lang = "en" AND year > 1899)'}
    assert json.loads(sent.body)["tools"] == [{"fileSearch": search}]
    message, call = frames[-1]["response"]["output"]
    assert call["results"] == [{"file_id": "a.txt", "filename": "a.txt", "text": "An interpreter."}]
    assert message["content"][0]["annotations"][0]["type"] == "file_citation"
    done = [frame["item"]["type"] for frame in frames if frame["type"] == "response.output_item.done"]
    assert done == ["message", "file_search_call"]
    kinds = [frame["type"] for frame in frames]
    assert kinds.count("response.output_text.annotation.added") == 1


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_of_gemini_gets_the_image_that_responses_made(running: Running, is_stream: bool) -> None:
    item = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PIXEL,
            "output_format": "png"}  # fmt: skip
    answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item], "usage": None}
    done = [{"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": answer}]  # fmt: skip
    wire = b"".join(b"event: %b\ndata: %b\n\n" % (str(each["type"]).encode(), _json.encode(each)) for each in done)
    running.answer(streamed(wire) if is_stream else whole(_json.encode(answer)))
    body = {"contents": [{"role": "user", "parts": [{"text": "a cat"}]}],
            "generationConfig": {"responseModalities": ["IMAGE"], "imageConfig": {"aspectRatio": "2:3"}}}  # fmt: skip
    method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
    status, _, found = post(running, f"/v1beta/models/openai:{method}", body)
    assert status == 200
    [sent] = running.provider.requests
    assert json.loads(sent.body)["tools"] == [{"type": "image_generation", "size": "1024x1536"}]
    assert json.loads(sent.body)["tool_choice"] == {"type": "image_generation"}
    frames = found if is_stream else [found]
    parts = [part for frame in frames for part in frame["candidates"][0]["content"]["parts"] if "inlineData" in part]
    assert parts == [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]


def test_files_that_responses_found_reach_a_client_of_gemini(running: Running) -> None:
    call = {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["q"],
            "results": [{"file_id": "file-1", "filename": "a.txt", "text": "T"}]}  # fmt: skip
    cited = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 4}
    message = {"type": "message", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "One.", "annotations": [cited]}]}  # fmt: skip
    answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [call, message]}
    running.answer(whole(_json.encode(answer)))
    search = {"fileSearchStoreNames": ["vs_1"], "metadataFilter": 'lang = "en" AND year > 1899'}
    body = {"contents": [{"role": "user", "parts": [{"text": "?"}]}], "tools": [{"fileSearch": search}]}
    status, _, found = post(running, "/v1beta/models/openai:generateContent", body)
    assert status == 200
    [sent] = running.provider.requests
    assert json.loads(sent.body)["tools"] == [{"type": "file_search", "vector_store_ids": ["vs_1"], "filters": WANTED}]
    context = {"title": "a.txt", "uri": "file-1", "text": "T"}
    expected = {"groundingChunks": [{"retrievedContext": context}], "retrievalQueries": ["q"]}
    assert found["candidates"][0]["groundingMetadata"] == expected


def test_a_filter_that_cannot_be_said_is_refused_in_the_clients_form(running: Running) -> None:
    running.answer()
    tool = {"type": "file_search", "vector_store_ids": ["fileSearchStores/a"],
            "filters": {"type": "ne", "key": "a", "value": "b"}}  # fmt: skip
    status, _, found = post(running, "/v1/responses", {"model": "google", "input": "?", "tools": [tool]})
    assert status == 400
    assert "its filter has no exact words in other protocols" in found["error"]["message"]
    assert running.provider.requests == []
