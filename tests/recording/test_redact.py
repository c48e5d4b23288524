"""What is written of an exchange holds no key: not by name, by shape, from a header, or in pieces."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import _json
from dragoman.protocols import PROTOCOLS
from dragoman.recording.case import Exchange
from dragoman.recording.proxy import clean_exchange
from dragoman.recording.redact import REQUEST_HEADERS, Redactor, Withheld
from dragoman.testing import call
from dragoman.testing.turns import script_of
from dragoman.testing.wire import play_turn
from dragoman.types import Usage

LETTERS = st.text(string.ascii_letters + string.digits, min_size=24, max_size=40)
SHAPES = ("sk-{}", "sk-ant-api03-{}", "gsk_{}", "xai-{}", "hf_{}", "ghp_{}", "github_pat_{}", "AIza{}", "xoxb-{}",
          "Bearer {}", "https://user:{}@host/x", "https://host/x?key={}",
          "eyJhbGciOiJI.eyJzdWIiOiIx.{}", "nvapi-{}")  # fmt: skip
NAMES = (
    "api_key",
    "apiKey",
    "x-api-key",
    "Authorization",
    "authorization_token",
    "password",
    "client_secret",
    "access_token",
)


@pytest.mark.parametrize("shape", SHAPES)
@given(secret=LETTERS)
def test_a_key_by_its_shape_is_taken_out_of_every_place(shape: str, secret: str) -> None:
    key = shape.format(secret)
    redactor = Redactor()
    asked = {
        "messages": [{"role": "user", "content": f"use {key} please"}],
        "tools": [{"inner": json.dumps({"x": key})}],
    }
    assert secret.encode() not in redactor.request(_json.encode(asked))
    assert secret.encode() not in redactor.response(b"data: " + _json.encode(asked) + b"\n\n")
    assert secret.encode() not in redactor.response(f"<html>{key}</html>".encode())


@pytest.mark.parametrize("name", NAMES)
@given(secret=st.text(min_size=1, max_size=30).filter(lambda text: text.strip("*")))
def test_a_member_whose_name_says_that_it_is_a_key(name: str, secret: str) -> None:
    redactor = Redactor()
    body = {"tools": [{"type": "mcp", name: secret}], "arguments": _json.to_text({name: secret, "other": 1})}
    clean = _json.decode(redactor.request(_json.encode(body)))
    assert isinstance(clean, dict)
    assert clean["tools"] == [{"type": "mcp", name: "***"}]  # type: ignore[comparison-overlap]
    assert json.loads(str(clean["arguments"])) == {name: "***", "other": 1}
    line = redactor.response(_json.encode(body))
    again = json.loads(line)
    assert again["tools"][0][name] == "***" and json.loads(again["arguments"]) == {name: "***", "other": 1}


@given(secret=st.text(string.printable, min_size=8, max_size=40).filter(lambda text: len(text.strip()) >= 8))
def test_a_key_of_a_header_is_known_in_bodies(secret: str) -> None:
    secret = secret.strip()
    redactor = Redactor()
    kept = redactor.headers({"X-Api-Key": secret, "User-Agent": "mine", "X-Other": "o"}, REQUEST_HEADERS)
    assert set(kept) == {"user-agent"}
    body = redactor.request(_json.encode({"messages": [secret]}))
    assert secret not in str(_json.decode(body))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_that_an_answer_tells_in_pieces_is_withheld(protocol: str) -> None:
    form = PROTOCOLS[protocol]
    path = form.routes[-1 if "stream" in form.routes[-1][1] else 0][1].replace("{model}", "m")
    body: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}],
                            "max_tokens": 9, "input": "hi",
                            "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}  # fmt: skip
    parsed = form.parse_request(_json.encode(body), path=path)
    for said in (
        ["The key is sk-ant-" + "Q1w2E3r4" * 4 + ", keep it."],
        [call("save", text="sk-ant-" + "Q1w2E3r4" * 4)],
    ):
        played = play_turn(form, parsed, script_of(said, "here"), Usage(1, 1))
        try:
            clean = Redactor().response(played.body)
        except Withheld:
            continue
        assert b"Q1w2" not in clean  # it stood in one piece


@pytest.mark.parametrize(
    "text",
    ["key_value_store and token_count", '{"max_tokens": 5, "password": {"type": "string"}}', "sk-learn is a library",
     "eyJ", "functions.get_key:0",
     "call_abcdefghijklmnopqrstuvwx", "a bearer of news", "http://host:8080/v1?alt=sse", "AIza"],
)  # fmt: skip
def test_what_is_no_key_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_an_exchange_keeps_listed_headers_and_query_values_alone() -> None:
    exchange = Exchange(
        "POST", "/v1beta/models/m:generateContent?alt=sse&key=SECRETSECRET",
        {"Authorization": "Bearer TOKENTOKEN", "Cookie": "id=COOKIECOOKIE", "Accept": "a TOKENTOKEN"},
        b'{"a": "TOKENTOKEN COOKIECOOKIE SECRETSECRET"}', 200,
        {"content-type": "text/plain", "set-cookie": "s=SETCOOKIE1"}, b"TOKENTOKEN SETCOOKIE1",
    )  # fmt: skip
    clean = clean_exchange(Redactor(), exchange)
    assert clean.path == "/v1beta/models/m:generateContent?alt=sse&key=***"
    assert clean.headers == {"accept": "a ***"} and clean.response_headers == {"content-type": "text/plain"}
    assert clean.request == b'{"a":"*** *** ***"}' and clean.body == b"*** ***"


def test_a_compressed_answer_with_a_key_is_withheld() -> None:
    import gzip

    with pytest.raises(Withheld):
        Redactor().response(gzip.compress(b'{"text": "sk-ant-aaaaaaaaaaaaaaaaaaaaaa"}'))
    plain = gzip.compress(b'{"text": "hello"}')
    assert Redactor().response(plain) == plain
