"""Searches of files and images that a provider makes, for a client of another protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import _json, decode
from dragoman.errors import UsageError
from dragoman.events import Deviation, unfold
from dragoman.offering import offer
from dragoman.protocols import PROTOCOLS
from dragoman.types import Media, ProtocolName
from field_fates import send
from for_each import for_each
from test_remote_servers import CHAT, GEMINI, HOSTED, MESSAGES, RESPONSES, seen, sent

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
PIXEL = "iVBORw0KGgo="
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]


def asked(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "tools": list(tools), **more}


def given(body: dict[str, Any], target: ProtocolName) -> Any:
    """What the vendor's own host is sent of a request of Responses."""
    sent = send(json.dumps(body), RESPONSES, target)
    assert not isinstance(sent, str)
    return sent.body


def test_a_search_of_files_goes_both_ways() -> None:
    tool = {"type": "file_search", "vector_store_ids": ["fileSearchStores/a-1"], "max_num_results": 3}
    [entry] = seen(RESPONSES, asked(tool), GEMINI)["tools"]
    assert entry == {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a-1"], "topK": 3}}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"fileSearch": {"fileSearchStoreNames": ["vs_1"], "topK": 3}}]}  # fmt: skip
    [back] = seen(GEMINI, body, RESPONSES)["tools"]
    assert back == {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3}


@for_each(
    "tool",
    [{"vector_store_ids": ["vs_1"]}, {"vector_store_ids": []},
     {"vector_store_ids": ["fileSearchStores/a"], "filters": {"type": "ne", "key": "tenant", "value": "me"}}],
)  # fmt: skip
def test_a_search_never_reads_other_files_than_it_named(tool: dict[str, Any]) -> None:
    """A store of one vendor is not there at the other, and a filter may be who may read what."""
    body = asked({"type": "file_search", **tool})
    with pytest.raises(UsageError, match=r"tools\.file_search"):
        sent(RESPONSES, body, GEMINI)
    rendered = sent(RESPONSES, asked({"type": "file_search", **tool}, FUNCTION), GEMINI)
    assert b"fileSearch" not in rendered.http.body
    assert any((each.code, each.where) == ("dropped", "tools.file_search") for each in rendered.deviations)
    filtered = {"fileSearchStoreNames": ["vs_1"], "metadataFilter": "tenant != 'me'"}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    with pytest.raises(UsageError, match=r"tools\.fileSearch"):
        sent(GEMINI, {"contents": contents, "tools": [{"fileSearch": filtered}]}, RESPONSES)


def test_the_place_of_a_web_search_is_a_place_for_messages_too() -> None:
    """Messages requires its type, Responses does not."""
    [entry] = given(asked({"type": "web_search", "user_location": {"country": "DE"}}), MESSAGES)["tools"]
    assert entry["user_location"] == {"type": "approximate", "country": "DE"}


@for_each("target", [MESSAGES, CHAT])
def test_a_search_of_tools_says_each_tool_that_it_found(target: ProtocolName) -> None:
    found = [{"type": "web_search"}, {**FUNCTION, "name": "q"}]
    for tools, words in (
        (found, "These tools can be called now: q. Found too: web_search."),
        (found[:1], "Found too: web_search."),
        ([], "No tool was found."),
    ):
        output = {"type": "tool_search_output", "call_id": "c", "tools": tools}
        body = {"model": "m", "input": [{"role": "user", "content": "hi"}, output], "tools": [FUNCTION]}
        assert words in json.dumps(given(body, target)["messages"])


def test_a_filter_goes_both_ways_where_it_can_be_said_exactly() -> None:
    said = {"type": "and", "filters": [{"type": "eq", "key": "tenant", "value": "me"},
                                       {"type": "gte", "key": "year", "value": 2020}]}  # fmt: skip
    tool = {"type": "file_search", "vector_store_ids": ["fileSearchStores/a"], "filters": said}
    [entry] = seen(RESPONSES, asked(tool), GEMINI)["tools"]
    text = '(tenant = "me" AND year >= 2020)'
    assert entry == {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"], "metadataFilter": text}}
    body = {"contents": CONTENTS, "tools": [{"fileSearch": {"fileSearchStoreNames": ["vs_1"], "metadataFilter": text}}]}
    [back] = seen(GEMINI, body, RESPONSES)["tools"]
    assert back == {"type": "file_search", "vector_store_ids": ["vs_1"], "filters": said}


@for_each(("size", "ratio"), [("1024x1024", "1:1"), ("1536x1024", "3:2"), ("1024x1536", "2:3"), ("auto", None)])
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


# ---------------------------------------------------------------- images that a client of Gemini asks for


def drawing(*kinds: str, **config: Any) -> dict[str, Any]:
    return {"contents": CONTENTS, "generationConfig": {"responseModalities": list(kinds), **config}}


@for_each("kinds", [("TEXT", "IMAGE"), ("IMAGE", "TEXT"), ("IMAGE",)])
def test_images_as_a_kind_of_answer_are_a_tool_of_responses(kinds: tuple[str, ...]) -> None:
    body = seen(GEMINI, drawing(*kinds, imageConfig={"aspectRatio": "3:2"}, maxOutputTokens=9), RESPONSES)
    assert body["tools"] == [{"type": "image_generation", "size": "1536x1024"}]
    assert body.get("tool_choice") == (None if "TEXT" in kinds else {"type": "image_generation"})
    assert body["max_output_tokens"] == 9


def test_what_is_said_of_the_image_besides_is_named() -> None:
    config = {"aspectRatio": "16:9", "imageSize": "4K"}
    rendered = sent(GEMINI, drawing("IMAGE", imageConfig=config), RESPONSES)
    assert json.loads(rendered.http.body)["tools"] == [{"type": "image_generation"}]
    named = {each.where for each in rendered.deviations}
    assert {f"generationConfig.imageConfig.{key}" for key in config} <= named


@for_each("target", [CHAT, MESSAGES, "ollama-chat"])
@for_each("kinds", [("TEXT", "IMAGE"), ("IMAGE",)])
def test_a_request_for_images_alone_is_refused_where_nobody_makes_them(
    target: ProtocolName, kinds: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match=r"generationConfig\.responseModalities.*tool_policy\.image_generation"):
        sent(GEMINI, drawing(*kinds), target)


def test_images_beside_functions_are_left_out_and_said() -> None:
    functions = [{"functionDeclarations": [{"name": "f", "parameters": {"type": "object"}}]}]
    rendered = sent(GEMINI, {**drawing("TEXT", "IMAGE"), "tools": functions}, MESSAGES)
    where = [each.where for each in rendered.deviations if each.code == "dropped"]
    assert where == ["generationConfig.responseModalities"]


def test_a_policy_takes_images_out_of_a_request_of_gemini_itself() -> None:
    body = _json.encode(drawing("TEXT", "IMAGE", maxOutputTokens=9))
    request = PROTOCOLS[GEMINI].parse_request(body, path="/v1beta/models/m:generateContent").request
    for policy, found in (("translate", ["TEXT", "IMAGE"]), ("drop", None)):
        made = offer(
            request, PROTOCOLS[GEMINI], name="lab/m", dialect=HOSTED, policies={"image_generation": policy},
            protocols=PROTOCOLS.__getitem__, client=GEMINI,
        )  # fmt: skip
        config = json.loads(PROTOCOLS[GEMINI].render_request(made.request, dialect=HOSTED).http.body)[
            "generationConfig"
        ]
        assert config.get("responseModalities") == found
        assert config["maxOutputTokens"] == 9


def test_texts_and_sounds_are_no_tool() -> None:
    assert "tools" not in seen(GEMINI, drawing("TEXT"), RESPONSES)
    assert seen(GEMINI, drawing("AUDIO"), CHAT)["modalities"] == ["text", "audio"]


@for_each("form", ["png", "jpeg", "svg"])
@for_each("is_stream", [False, True])
@for_each("client", [GEMINI, CHAT])
def test_an_image_of_responses_comes_back_in_the_clients_form(client: ProtocolName, is_stream: bool, form: str) -> None:
    item = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PIXEL,
            "output_format": form, "revised_prompt": "a cat"}  # fmt: skip
    answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item], "usage": None}
    reply = decode(_json.encode(answer), RESPONSES)
    lost: list[Deviation] = []
    mime = "image/svg+xml" if form == "svg" else f"image/{form}"
    if is_stream:
        encoder = PROTOCOLS[client].encoder(new_id=lambda: "1", model="m", created=1)
        wire = encoder.encode(unfold(reply))
        lost += encoder.lost
        back = decode(wire, client)
    else:
        wire = PROTOCOLS[client].render_response(reply, new_id=lambda: "1", model="m", created=1, lost=lost)
        back = decode(wire, client)
    [image] = [part for part in back.parts if isinstance(part, Media)]
    assert PIXEL in (image.data or image.url or "")
    assert mime in (image.mime or image.url or "")
    assert [each.where for each in lost] == ["parts[0].<image_generation_call>.revised_prompt"]


@for_each("client", [MESSAGES, "ollama-chat"])
def test_an_image_of_responses_is_named_where_clients_take_none(client: ProtocolName) -> None:
    """Messages have no place for one, and Ollama's own client refuses an answer that has one."""
    item = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PIXEL}
    answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item], "usage": None}
    lost: list[Deviation] = []
    reply = decode(_json.encode(answer), RESPONSES)
    wire = PROTOCOLS[client].render_response(reply, new_id=lambda: "1", model="m", created=1, lost=lost)
    assert PIXEL.encode() not in wire and decode(wire, client).text == ""
    assert [(each.where, each.seen) for each in lost] == [("parts[0]", "image_generation_call")]


@for_each("mime", ["image/png", "image/jpeg", "image/svg+xml"])
def test_an_image_goes_to_responses_and_back_with_its_form(mime: str) -> None:
    parts = [{"inlineData": {"mimeType": mime, "data": PIXEL}}]
    answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    reply = decode(_json.encode(answer), GEMINI)
    body = PROTOCOLS[RESPONSES].render_response(reply, new_id=lambda: "1", model="m", created=1)
    back = PROTOCOLS[GEMINI].render_response(decode(body, RESPONSES), new_id=lambda: "1", model="m", created=1)
    assert json.loads(back)["candidates"][0]["content"]["parts"] == parts


def test_an_earlier_image_of_gemini_goes_along_to_responses() -> None:
    """As the user's: an item of the tool must have an id of that provider's store."""
    turn = {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}
    rendered = sent(GEMINI, {"contents": [*CONTENTS, turn, *CONTENTS]}, RESPONSES)
    [_, image, _] = json.loads(rendered.http.body)["input"]
    assert image["content"] == [{"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}]
    assert [(each.code, each.where) for each in rendered.deviations] == [("moved", "messages[1].parts[0]")]
