"""Vectors keep their digits; one that is no list of numbers is refused, whatever the provider and the client speak."""

from __future__ import annotations

import json

import pytest

from dragoman.codec.embeddings import EmbedRequest
from dragoman.errors import WireError
from dragoman.protocols import EMBEDDING, embedder
from for_each import for_each

REQUEST = EmbedRequest("m", ("a",), is_packed=True)
NUMBERS = ["[]", "[0.1,-2e-3,1]", "[ 1E+5\n,\t-0 , 12345678901234567890 ]", "[1e-999, 1e005]", "[1e38]"]
OTHERS = ["null", "{}", "0.5", "true", "[0.1, null]", '["0.5"]', "[true]", "[[0.1]]", '[{"a": 1}]', "[1e999]"]
OTHERS += ["[1E+999]", f"[{'1' * 400}]"]


def answer_of(protocol: str, vector: str) -> bytes:
    told = {
        "openai-chat": '{"data": [{"embedding": VECTOR}]}',
        "ollama-chat": '{"embeddings": [VECTOR]}',
        "gemini-generate": '{"embeddings": [{"values": VECTOR}]}',
    }
    return told[protocol].replace("VECTOR", vector).encode()


@for_each("protocol", EMBEDDING)
def test_a_vector_is_a_list_of_numbers(protocol: str) -> None:
    read = embedder(protocol).parse_response
    for vector in NUMBERS:
        found = read(answer_of(protocol, vector))
        assert [bytes(each).decode() for each in found.vectors] == [vector]
        for client in EMBEDDING:
            json.loads(embedder(client).render_response(REQUEST, found, 1))
    for vector in OTHERS:
        with pytest.raises(WireError, match="lists of numbers"):
            read(answer_of(protocol, vector))


def test_a_number_that_no_packed_float_holds_is_refused() -> None:
    chat = embedder("openai-chat")
    with pytest.raises(WireError, match="lists of numbers"):
        chat.render_response(REQUEST, chat.parse_response(answer_of("openai-chat", "[1e39]")), 1)
