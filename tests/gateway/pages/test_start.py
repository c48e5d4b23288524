"""The page that a browser shows at `/`; programs are greeted as Ollama greets them."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dragoman.gateway.messages import Head
from dragoman.gateway.model_names import Listed
from dragoman.gateway.pages.start import render_start
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Model
from gateway.running import Running, gateway

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
ODD = "<script>alert(1)</script>\" onclick='x'&amp;"


def page(models: tuple[Listed, ...] = (), host: str = "127.0.0.1:4141", **headers: str) -> tuple[str, dict[str, str]]:
    head = Head("GET", "/", {"host": host, **BROWSER, **headers})
    answer = render_start(head, PROTOCOLS, models)
    return answer.body.decode(), answer.headers


def test_a_browser_gets_the_page_and_a_program_the_greeting(running: Running) -> None:
    status, headers, body = running.request("GET", "/", b"", BROWSER)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f"ANTHROPIC_BASE_URL={running.url}".encode() in body
    for accept in ({}, {"accept": "*/*"}, {"accept": "application/json"}):
        assert running.request("GET", "/", b"", accept)[2] == b"Ollama is running"


def test_the_page_is_there_whatever_protocols_are_served(tmp_path: Path) -> None:
    with gateway(tmp_path, protocols=("anthropic-messages",)) as running:
        status, _, body = running.request("GET", "/", b"", BROWSER)
        assert status == 200
        assert b"ANTHROPIC_BASE_URL" in body and b"OLLAMA_HOST" not in body


def test_the_page_needs_a_key_where_clients_do(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"a key").hexdigest()
    with gateway(tmp_path, f'[server]\nkeys = ["sha256:{digest}"]\n') as running:
        assert running.request("GET", "/", b"", BROWSER)[0] == 401
        status, _, body = running.request("GET", "/?key=a%20key", b"", BROWSER)
        assert status == 200
        assert b"fetch(`/tail${location.search}`)" in body  # the key that opened the page shows its requests
        assert running.request("POST", "/tail", b"", BROWSER)[0] == 401
        assert running.request("POST", "/tail?key=a%20key", b"", BROWSER)[0] == 405  # let in, and GET is what it takes


def test_the_policy_allows_the_page_and_nothing_else() -> None:
    text, headers = page()
    policy = headers["content-security-policy"]
    for tag in ("style", "script"):
        [inside] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert re.findall(r"[a-z-]+-src (?!'sha256-)(\S+)", policy) == ["'none';", "data:;", "'self';"]
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|@import|url\(|style=|\son\w+=""", text)


@pytest.mark.parametrize("place", ["model", "host"])
def test_what_comes_from_outside_is_text(place: str) -> None:
    model = Model("lab", ODD)
    text, _ = page((Listed(ODD, model),)) if place == "model" else page(host=ODD)

    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.scripts = 0
            self.attributes: list[str] = []
            self.text = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.scripts += tag == "script"
            self.attributes += [name for name, _ in attrs]

        def handle_data(self, data: str) -> None:
            self.text += data

    tags = Tags()
    tags.feed(text)
    assert tags.scripts == 1
    assert not [name for name in tags.attributes if name.startswith("on")]
    assert ODD in tags.text


def test_many_models_are_counted() -> None:
    many = tuple(Listed(f"m{number}", Model("lab", f"m{number}")) for number in range(250))
    text, _ = page(many)
    assert "and 50 more" in text
    assert "None yet." in page()[0]


def test_a_proxy_may_say_that_it_ends_tls() -> None:
    text, _ = page(host="llm.example.org", **{"x-forwarded-proto": "https"})
    assert "OLLAMA_HOST=https://llm.example.org" in text
    assert "OPENAI_BASE_URL=https://llm.example.org/v1" in text
