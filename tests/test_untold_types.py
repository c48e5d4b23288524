"""Files of which a client does not say the type: their address or first bytes say it, and no other type is made up."""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import Any, Final

from dragoman.protocol.media_types import type_of_base64, type_of_bytes
from dragoman.types import ProtocolName
from field_fates import send
from for_each import for_each

CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
MESSAGES: Final = "anthropic-messages"
GEMINI: Final = "gemini-generate"
OLLAMA: Final = "ollama-chat"
FILES: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1",
    "image/gif": b"GIF89a\1\0\1\0\0\0\0", "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "audio/wav": b"RIFF\x24\0\0\0WAVEfmt ", "audio/mpeg": b"ID3\4\0\0\0\0\0\0\0\0\0",
    "video/mp4": b"\0\0\0\x18ftypmp42\0\0\0\0", "application/pdf": b"%PDF-1.4\n1 0 obj",
}  # fmt: skip
IMAGES: Final = [mime for mime in FILES if mime.startswith("image/")]


def told(mime: str) -> str:
    return base64.b64encode(FILES[mime]).decode()


def sent(source: ProtocolName, part: dict[str, Any], target: ProtocolName) -> str:
    """What a provider is sent of a request with one part of a file, and what is said of it."""
    words = {"type": "text", "text": "hi"}
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": [words, part]}]}
    if source == GEMINI:
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}, part]}]}
    elif source == RESPONSES:
        body = {"model": "m", "input": [{"role": "user", "content": [words | {"type": "input_text"}, part]}]}
    elif source == OLLAMA:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi", **part}]}
    elif source == MESSAGES:
        body["max_tokens"] = 9
    found = send(json.dumps(body), source, target)
    assert not isinstance(found, str), found
    return json.dumps([found.body, [said.where for said in found.deviations]])


@for_each("mime", FILES)
def test_the_first_bytes_tell_a_type(mime: str) -> None:
    assert type_of_base64(told(mime)) == mime
    assert type_of_base64(told(mime)[:4] + "\n" + told(mime)[4:]) == mime
    assert type_of_base64("AAAAAAAAAAAAAAAAAAAAAAAA") is type_of_base64("!") is type_of_base64("") is None


@for_each(
    "mime,start",
    [
        ("image/heic", b"\0\0\0\x18ftypheix"), ("image/avif", b"\0\0\0\x18ftypavis"),
        ("audio/mp4", b"\0\0\0\x18ftypM4B "), ("video/mp4", b"\0\0\0\x18ftypisom"),
        ("video/3gpp", b"\0\0\0\x18ftyp3gp5"), (None, b"\0\0\0\x18ftypcrx "),
        ("video/webm", b"\x1a\x45\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x84webm"),
        ("video/x-matroska", b"\x1a\x45\xdf\xa3\xa3B\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x88matroska"),
        ("audio/mpeg", b"\xff\xf3\x44\xc4"), (None, b"GIF8 is how"), (None, b"%PDF is"), (None, b"ID3 decision"),
        (None, b"OggS are"), (None, b"The ftyp box"),
    ],
)  # fmt: skip
def test_a_start_that_several_forms_share_makes_no_type_up(mime: str | None, start: bytes) -> None:
    assert type_of_bytes(start) == mime
    assert type_of_base64(base64.b64encode(start + b"\0" * 60).decode()) == mime


@for_each("mime,target", product(FILES, [CHAT, RESPONSES, MESSAGES, GEMINI, OLLAMA]))
def test_a_part_of_gemini_is_of_the_kind_that_its_address_or_bytes_say(mime: str, target: ProtocolName) -> None:
    data = told(mime)
    wanted = sent(GEMINI, {"inlineData": {"mimeType": mime, "data": data}}, target)
    assert sent(GEMINI, {"inlineData": {"data": data}}, target) == wanted
    assert sent(GEMINI, {"fileData": {"fileUri": f"data:{mime};base64,{data}"}}, target) == wanted
    assert sent(GEMINI, {"fileData": {"fileUri": f"data:;base64,{data}"}}, target) == wanted


@for_each("mime,target", product(IMAGES, [CHAT, RESPONSES, MESSAGES, GEMINI]))
def test_an_image_goes_out_as_what_its_bytes_say(mime: str, target: ProtocolName) -> None:
    data = told(mime)
    parts: list[tuple[ProtocolName, dict[str, Any]]] = [
        (CHAT, {"type": "image_url", "image_url": {"url": f"data:;base64,{data}"}}),
        (RESPONSES, {"type": "input_image", "image_url": f"data:;base64,{data}"}),
        (MESSAGES, {"type": "image", "source": {"type": "base64", "data": data}}),
        (OLLAMA, {"images": [data]}),
    ]
    for source, part in parts:
        assert mime in sent(source, part, target), (source, part)


@for_each("target", [CHAT, RESPONSES, GEMINI])
def test_no_other_type_is_made_up_for_a_document(target: ProtocolName) -> None:
    unknown = base64.b64encode(b"\1\2\3\4\5\6\7\x08\t\n\x0b\x0c\r").decode()
    for data, wanted in ((told("application/pdf"), "application/pdf"), (unknown, "application/octet-stream")):
        parts: list[tuple[ProtocolName, dict[str, Any]]] = [
            (CHAT, {"type": "file", "file": {"file_data": data}}),
            (RESPONSES, {"type": "input_file", "file_data": data}),
            (MESSAGES, {"type": "document", "source": {"type": "base64", "data": data}}),
            (GEMINI, {"inlineData": {"data": data}}),
        ]
        for source, part in parts:
            found = sent(source, part, target)
            assert wanted in found and data in found, (source, data, found)


@for_each("address", ["https://a.test/b.png", "https://a.test/b.PNG?c=d.pdf#e"])
def test_the_suffix_of_an_address_says_its_kind(address: str) -> None:
    part = {"fileData": {"fileUri": address}}
    assert '"image_url"' in sent(GEMINI, part, CHAT) and '"input_image"' in sent(GEMINI, part, RESPONSES)
    assert '"mimeType"' not in sent(GEMINI, part, GEMINI), "what is not told is not told to its own vendor"
