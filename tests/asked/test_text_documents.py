"""Documents of text are read by models whose server takes no files, or PDF alone."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any

from dragoman.protocols import PROTOCOLS
from dragoman.types import Media
from for_each import for_each

PATH = "/v1beta/models/m:generateContent"
WORDS = "a;b\n1;ä"


def sent(mime: str, data: bytes, target: str) -> tuple[Any, list[tuple[str, str]]]:
    parts = [{"inlineData": {"mimeType": mime, "data": b64encode(data).decode()}}, {"text": "Sum it up."}]
    body = json.dumps({"contents": [{"role": "user", "parts": parts}]}).encode()
    request = PROTOCOLS["gemini-generate"].parse_request(body, path=PATH).request
    rendered = PROTOCOLS[target].render_request(request)
    found = json.loads(rendered.http.body)["messages"][0]["content"]
    return found, [(said.code, said.where) for said in rendered.deviations]


@for_each("mime", ["text/plain", "text/markdown", "text/csv; charset=utf-8", "application/json"])
def test_a_document_of_text_is_said_as_text(mime: str) -> None:
    found, named = sent(mime, WORDS.encode(), "ollama-chat")
    assert (found, named) == (f"{WORDS}\nSum it up.", [("changed", "messages[0].parts[0]")])
    found, named = sent(mime, WORDS.encode(), "anthropic-messages")
    assert found[0]["source"] == {"type": "text", "media_type": "text/plain", "data": WORDS}
    assert named == []


@for_each(
    "mime,data", [("application/pdf", b"%PDF-1.4"), ("text/plain", b"\xff\xfe"), ("text/csv; charset=latin-1", b"\xe4")]
)
def test_another_document_is_not(mime: str, data: bytes) -> None:
    assert sent(mime, data, "ollama-chat") == ("Sum it up.", [("dropped", "messages[0].parts[0]")])
    found, named = sent(mime, data, "anthropic-messages")
    source = found[0].get("source", {}).get("media_type") if isinstance(found, list) else None
    is_taken = mime == "application/pdf"  # the only kind of bytes that Claude takes
    assert (source, named) == ((mime, []) if is_taken else (None, [("dropped", "messages[0].parts[0]")]))


def test_a_text_may_be_written_in_the_other_alphabet_of_base64() -> None:
    """Gemini's API takes both, with and without the padding; other providers take the usual one alone."""
    for data in (b"\xfb\xef\xbe\xff", b"ab", "ÿÿþ>>??z".encode(), b"abc"):
        usual, other = b64encode(data).decode(), urlsafe_b64encode(data).decode().rstrip("=")
        for mime in ("image/png", "text/csv"):
            for given in (usual, other, f"{usual[:4]}\n{usual[4:]}"):
                parts = [{"inlineData": {"mimeType": mime, "data": given}}]
                body = json.dumps({"contents": [{"role": "user", "parts": parts}]}).encode()
                part = PROTOCOLS["gemini-generate"].parse_request(body, path=PATH).request.messages[0].parts[0]
                assert isinstance(part, Media) and (part.data or "").replace("\n", "") == usual
