"""Which protocol a body is in: told from its bytes for every case that we have, and never from what a model wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dragoman
from dragoman.errors import UsageError
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.recognize import recognize

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
BODIES = [(name, path) for name in PROTOCOLS for path in sorted((CORPUS / name).glob("*/wire"))]


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_the_bodies_of_the_corpus_are_told(name: str) -> None:
    bodies = [path.read_bytes() for protocol, path in BODIES if protocol == name]
    told = [recognize(body) for body in bodies]
    assert bodies
    # An error in OpenAI's form is of both its protocols; they read it alike.
    shared = {"openai-chat"} if name == "openai-responses" else set()
    assert {one for body, one in zip(bodies, told, strict=True) if one and b'"error"' not in body} == {name}
    assert set(told) - {None, name} <= shared
    assert told.count(None) <= len(told) // 8  # empty ones, web pages, bodies cut before their first frame


@pytest.mark.parametrize("text", ['{"candidates": []}', '{"type": "message_start"}', 'data: {"done": true}\n\n'])
def test_what_a_model_wrote_tells_nothing(text: str) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
    assert recognize(b"data: " + json.dumps(chunk).encode() + b"\n\n") == "openai-chat"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"error": "model not found"}', "ollama-chat"),
        (b'{"error": {"message": "no", "type": "invalid_request_error"}}', "openai-chat"),
        (b'{"type": "error", "error": {"type": "overloaded_error", "message": "no"}}', "anthropic-messages"),
        (b'{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}}', "gemini-generate"),
        (b": ping\n\n", None),
        (b"", None),
        (b"<html>It works!</html>", None),
        (b"{}", None),
    ],
)
def test_errors_and_what_is_none(body: bytes, name: str | None) -> None:
    assert recognize(body) == name


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_decode_is_told_the_protocol_by_the_body(name: str) -> None:
    bodies = [path.read_bytes() for protocol, path in BODIES if protocol == name]
    told = [body for body in bodies if recognize(body) == name]
    assert told
    for body in told:
        assert dragoman.decode(body).text == dragoman.decode(body, PROTOCOLS[name].name).text


def test_a_body_that_tells_no_protocol_is_refused() -> None:
    with pytest.raises(UsageError, match="the body does not tell it; expected one of ollama-chat"):
        dragoman.decode(b"<html>It works!</html>")
