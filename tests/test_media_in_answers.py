"""Images, sounds and files of an answer, for clients of each protocol: the vendor's own SDK takes what is written, and
what cannot be written is named."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import anthropic.types.beta as of_messages
import google.genai.types as of_gemini
import msgspec
import ollama
import openai.types.chat as of_chat
import openai.types.responses as of_responses
from pydantic import TypeAdapter

import dragoman
from cases import counter
from dragoman.bounds import USUAL_BOUNDS
from dragoman.events import Deviation, Reply, fold, unfold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.types import Media, ProtocolName, Text, media_kind
from for_each import for_each
from vendor_answers import LEAST

DATA: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n mark").decode()
URL: Final = "https://example.test/mark"
MIMES: Final = ("image/png", "image/svg+xml", "audio/wav", "video/mp4", "application/pdf")
MEDIA: Final = [
    media
    for mime in MIMES
    for kind in [media_kind(mime)]
    for media in (Media(kind, mime, DATA), Media(kind, None, DATA), Media(kind, mime, url=URL))
]
WHOLE: Final[dict[ProtocolName, Any]] = {
    "openai-chat": of_chat.ChatCompletion,
    "openai-responses": of_responses.Response,
    "anthropic-messages": of_messages.BetaMessage,
    "gemini-generate": of_gemini.GenerateContentResponse,
    "ollama-chat": ollama.ChatResponse,
}
EVENT: Final[dict[ProtocolName, Any]] = {
    **WHOLE,
    "openai-chat": of_chat.ChatCompletionChunk,
    "openai-responses": of_responses.ResponseStreamEvent,
    "anthropic-messages": of_messages.BetaRawMessageStreamEvent,
}
#: What a client's own vendor has beside its types: fields of the request that a Response repeats.
REPEATED: Final = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


PLAIN: Final = dragoman.decode(json.dumps(LEAST["ollama-chat"]).encode(), "ollama-chat")


def values_of(wire: bytes) -> Iterator[Any]:
    """The JSON values of a stream: lines, or events with `data:`."""
    for line in wire.decode().splitlines():
        text = line.removeprefix("data:").strip()
        if text.startswith("{"):
            yield json.loads(text)


@cache
def type_of(client: ProtocolName, is_stream: bool) -> TypeAdapter[Any]:
    """Made once: that takes longer than all else here."""
    return TypeAdapter((EVENT if is_stream else WHOLE)[client])


def check_types(client: ProtocolName, wire: bytes, *, is_stream: bool) -> None:
    kind = type_of(client, is_stream)
    for value in values_of(wire) if is_stream else [json.loads(wire)]:
        for answer in (value, value.get("response")):
            if isinstance(answer, dict) and answer.get("object") == "response":
                answer.update({key: answer.get(key, word) for key, word in REPEATED.items()})
        kind.validate_python(value)


def written(reply: Reply, client: ProtocolName, *, is_stream: bool) -> tuple[bytes, list[Deviation]]:
    protocol, lost = PROTOCOLS[client], list[Deviation]()
    if not is_stream:
        wire = protocol.render_response(reply, new_id=lambda: "0" * 24, model="m", created=1, lost=lost)
        return wire, lost
    encoder = protocol.encoder(new_id=counter(), model="m", created=1)
    return encoder.encode(unfold(reply)), [*encoder.lost]


@for_each("is_stream", [False, True], ids=["whole", "stream"])
@for_each("client", list(WHOLE))
@for_each("media", MEDIA, ids=lambda media: f"{media.kind}-{media.mime}-{'data' if media.data else 'url'}")
def test_a_client_is_given_what_its_sdk_takes(media: Media, client: ProtocolName, is_stream: bool) -> None:
    reply = msgspec.structs.replace(PLAIN, parts=(Text("here"), media, Text("there")))
    wire, lost = written(reply, client, is_stream=is_stream)
    check_types(client, wire, is_stream=is_stream)
    is_written = DATA.encode() in wire or URL.encode() in wire
    assert [each.where for each in lost] == ([] if is_written else ["parts[1]"])
    assert all(media.kind in each.seen for each in lost)
    told = fold(read(wire, client)) if is_stream else dragoman.decode(wire, client)
    assert told.text.replace(URL, "") == "herethere"  # nothing stands in a file's place


def read(wire: bytes, client: ProtocolName) -> list[Any]:
    reader = Reader(PROTOCOLS[client].decoder(new_id=counter(), bounds=USUAL_BOUNDS), [])
    return [*reader.feed(wire), *reader.close()]


def test_an_image_of_ollama_comes_back_to_its_own_client() -> None:
    body = {"model": "m", "message": {"role": "assistant", "content": "here", "images": [DATA]}, "done": True}
    reply = dragoman.decode(json.dumps(body).encode(), "ollama-chat")
    for is_stream in (False, True):
        wire, lost = written(reply, "ollama-chat", is_stream=is_stream)
        assert f'"images":["{DATA}"]'.encode() in wire and lost == []
        wire, lost = written(reply, "gemini-generate", is_stream=is_stream)
        assert DATA.encode() in wire and lost == []
