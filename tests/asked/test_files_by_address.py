"""Files that a request names by an address: what of them each provider is sent, or is said to be left out."""

from __future__ import annotations

import base64
import json
from typing import Any, Final
from urllib.parse import unquote, unquote_to_bytes

from asked.asking import VENDORS, asked
from dragoman.codec.counterparts import with_data
from dragoman.types import Media, ProtocolName
from for_each import for_each

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
GEMINI, OLLAMA = "gemini-generate", "ollama-chat"
PIXEL: Final = "iVBORw0KGgo="
PAGE: Final = "https://www.youtube.com/watch?v=a1"
FILM: Final = "https://example.test/a.mp4"


def sent_with(client: ProtocolName, part: dict[str, Any], target: str) -> tuple[str, list[str]]:
    """What a provider is sent of a message with a part, and the places that are said to be lost."""
    text = {"type": "input_text" if client == RESPONSES else "text", "text": "Go on."}
    bodies: dict[str, dict[str, Any]] = {
        CHAT: {"model": "m", "messages": [{"role": "user", "content": [part, text]}]},
        RESPONSES: {"model": "m", "input": [{"role": "user", "content": [part, text]}]},
        MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [part, text]}]},
        GEMINI: {"contents": [{"role": "user", "parts": [part, {"text": "Go on."}]}]},
        OLLAMA: {"model": "m", "messages": [{"role": "user", "content": "Go on.", **part}]},
    }
    sent = asked(client, bodies[client], VENDORS.get(target, target))  # type: ignore[call-overload]
    assert not sent.refused
    return json.dumps(sent.body), [said.where for said in sent.deviations if said.code == "dropped"]


def written(client: ProtocolName, url: str) -> dict[str, Any]:
    """A document, or Ollama's image, at an address."""
    return {
        CHAT: {"type": "file", "file": {"file_data": url}},
        RESPONSES: {"type": "input_file", "file_data": url, "filename": "document"},
        MESSAGES: {"type": "document", "source": {"type": "url", "url": url}},
        GEMINI: {"fileData": {"fileUri": url, "mimeType": "text/csv"}},
    }[client]


@for_each("target", [CHAT, RESPONSES, MESSAGES, GEMINI, OLLAMA])
@for_each("client", [CHAT, RESPONSES, MESSAGES, GEMINI])
def test_the_data_of_an_address_are_data_whatever_their_form(client: ProtocolName, target: ProtocolName) -> None:
    words = "a,b c"
    data = base64.b64encode(words.encode()).decode()
    for url in (
        "data:text/csv,a%2Cb%20c",
        "DATA:text/csv;charset=utf-8,a,b%20c",
        f"data:text/csv;base64,{data}",
        f"data:text/csv;charset=utf-8; BASE64 ,{data.replace('=', '%3D')}",
    ):
        body, lost = sent_with(client, written(client, url), target)
        assert words in body or data in body, url
        assert "%20" not in body
        assert lost == []


@for_each("client", [CHAT, RESPONSES])
def test_data_without_a_type_are_plain_text(client: ProtocolName) -> None:
    body, _ = sent_with(client, written(client, "data:,hello%21"), MESSAGES)
    assert '"media_type": "text/plain", "data": "hello!"' in body


def test_the_escapes_of_a_long_address_are_read_by_parts():
    """`unquote_to_bytes` keeps an object for each: 3 million of them took 700 MB, and held all others for a second."""
    for text in ("%41b%" * 20_000, "é%C3%A9%4" * 9_000, "a" * 65_535 + "%41", "a" * 65_534 + "%41", "%"):
        media = with_data(Media("image", url=f"data:image/png,{text}"))
        assert media.data == base64.b64encode(unquote_to_bytes(text)).decode()
        assert with_data(Media("image", url=f"data:;base64,{text}%2B")).data == unquote(f"{text}+")


@for_each("target", [CHAT, RESPONSES, MESSAGES, GEMINI, OLLAMA])
def test_an_address_among_ollamas_images_is_no_data(target: ProtocolName) -> None:
    """It is sent as an address, and named where only data can be: it went out as the base64 of an image."""
    address = "https://example.test/a.png"
    body, lost = sent_with(OLLAMA, {"images": [PIXEL, address]}, target)
    assert f"base64,{address}" not in body
    assert (address in body) == (lost == []) == (target != OLLAMA)
    assert PIXEL in sent_with(OLLAMA, {"images": [f"data:;base64,{PIXEL}"]}, target)[0]


@for_each(
    ("target", "takes"),
    [(CHAT, ()), ("vllm/m", (FILM,)), ("openrouter/m", (FILM, PAGE)), (RESPONSES, ()), (MESSAGES, ()), (OLLAMA, ()),
     (GEMINI, (FILM, PAGE))],
)  # fmt: skip
def test_a_video_goes_to_who_takes_it(target: str, takes: tuple[str, ...]) -> None:
    for url in (FILM, PAGE):
        parts = [(CHAT, {"type": "video_url", "video_url": {"url": url}}), (GEMINI, {"fileData": {"fileUri": url}})]
        for client, part in parts if url == PAGE else parts[:1]:
            body, lost = sent_with(client, part, target)  # type: ignore[arg-type]
            assert (url in body) == (lost == []) == (url in takes), (client, url)


def test_an_image_that_was_made_loses_its_id_in_words() -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PIXEL}
    body = {"model": "m", "input": [{"role": "user", "content": "x"}, item, {"role": "user", "content": "y"}]}
    sent = asked(RESPONSES, body, VENDORS[GEMINI])
    assert PIXEL in json.dumps(sent.body)
    assert [said.where for said in sent.deviations if said.where.endswith(".id")] != []
