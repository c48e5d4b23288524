"""Documents of text are read by models whose server takes no files, or PDF alone."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from dragoman.protocols import PROTOCOLS
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


@for_each("mime,data", [("application/pdf", b"%PDF-1.4"), ("text/plain", b"\xff\xfe")])
def test_another_document_is_not(mime: str, data: bytes) -> None:
    assert sent(mime, data, "ollama-chat") == ("Sum it up.", [("dropped", "messages[0].parts[0]")])
