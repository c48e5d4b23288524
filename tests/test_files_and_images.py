"""Searches of files and images that a provider makes, for a client of another protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import _json, decode
from dragoman.errors import UsageError
from dragoman.protocols import PROTOCOLS
from test_remote_servers import GEMINI, MESSAGES, RESPONSES, seen, sent

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
PIXEL = "iVBORw0KGgo="


def asked(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "tools": list(tools), **more}


def test_a_search_of_files_goes_both_ways() -> None:
    tool = {"type": "file_search", "vector_store_ids": ["fileSearchStores/a-1"], "max_num_results": 3}
    [entry] = seen(RESPONSES, asked(tool), GEMINI)["tools"]
    assert entry == {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a-1"], "topK": 3}}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"fileSearch": {"fileSearchStoreNames": ["vs_1"], "topK": 3}}]}  # fmt: skip
    [back] = seen(GEMINI, body, RESPONSES)["tools"]
    assert back == {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3}


@pytest.mark.parametrize(
    "tool",
    [{"vector_store_ids": ["vs_1"]}, {"vector_store_ids": []},
     {"vector_store_ids": ["fileSearchStores/a"], "filters": {"type": "eq", "key": "tenant", "value": "me"}}],
)  # fmt: skip
def test_a_search_never_reads_other_files_than_it_named(tool: dict[str, Any]) -> None:
    """A store of one vendor is not there at the other, and a filter may be who may read what."""
    body = asked({"type": "file_search", **tool})
    with pytest.raises(UsageError, match=r"tools\.file_search"):
        sent(RESPONSES, body, GEMINI)
    rendered = sent(RESPONSES, asked({"type": "file_search", **tool}, FUNCTION), GEMINI)
    assert b"fileSearch" not in rendered.http.body
    assert any((each.code, each.where) == ("dropped", "tools.file_search") for each in rendered.deviations)
    filtered = {"fileSearchStoreNames": ["vs_1"], "metadataFilter": "tenant = 'me'"}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    with pytest.raises(UsageError, match=r"tools\.fileSearch"):
        sent(GEMINI, {"contents": contents, "tools": [{"fileSearch": filtered}]}, RESPONSES)


@pytest.mark.parametrize(
    ("size", "ratio"), [("1024x1024", "1:1"), ("1536x1024", "3:2"), ("1024x1536", "2:3"), ("auto", None)]
)
def test_images_are_asked_for_as_a_kind_of_answer(size: str, ratio: str | None) -> None:
    body = seen(RESPONSES, asked({"type": "image_generation", "size": size}, FUNCTION, max_output_tokens=9), GEMINI)
    config = body["generationConfig"]
    assert config["responseModalities"] == ["TEXT", "IMAGE"]
    assert config.get("imageConfig") == (None if ratio is None else {"aspectRatio": ratio})
    assert config["maxOutputTokens"] == 9
    assert [list(entry) for entry in body["tools"]] == [["functionDeclarations"]]


def test_what_is_said_of_an_image_besides_is_named() -> None:
    tool = {"type": "image_generation", "quality": "high", "background": "transparent", "size": "13x7"}
    rendered = sent(RESPONSES, asked(tool), GEMINI)
    named = {each.where for each in rendered.deviations}
    assert {f"tools.image_generation.{key}" for key in ("quality", "background", "size")} <= named


def test_an_image_with_a_mask_is_not_made_without_it() -> None:
    tool = {"type": "image_generation", "input_image_mask": {"file_id": "file_1"}}
    with pytest.raises(UsageError, match="a mask"):
        sent(RESPONSES, asked(tool), GEMINI)


def test_earlier_images_go_along() -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PIXEL}
    turns = [{"role": "user", "content": "a cat"}, image, {"role": "user", "content": "and a dog"}]
    _, turn, _ = seen(RESPONSES, {"model": "m", "input": turns}, GEMINI)["contents"]
    assert turn == {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}
    rendered = sent(RESPONSES, {"model": "m", "input": turns}, MESSAGES)  # whose answers hold no images
    assert PIXEL.encode() not in rendered.http.body
    assert any(each.where.startswith("messages[1]") for each in rendered.deviations)


def test_an_image_of_an_answer_is_an_item() -> None:
    parts = [{"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
              "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}  # fmt: skip
    reply = decode(_json.encode(answer), GEMINI)
    body = PROTOCOLS[RESPONSES].render_response(reply, new_id=lambda: "1", model="m", created=1)
    [item] = [item for item in json.loads(body)["output"] if item["type"] == "image_generation_call"]
    assert (item["result"], item["status"]) == (PIXEL, "completed")
