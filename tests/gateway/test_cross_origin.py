"""Web pages in a browser: those that the configuration names may ask and read; no other gets a header that lets it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from dragoman.config import load_config
from dragoman.errors import ConfigError
from for_each import for_each
from gateway.running import Running, gateway

PAGE: Final = "https://chat.example.org"
PAGES: Final = (PAGE, "app://obsidian.md", "http://localhost:3000", "chrome-extension://abcdefgh")
OTHERS: Final = (
    "https://evil.example", "https://chat.example.org.evil.example", "https://chat.example.org:8443", "null", "",
    "http://chat.example.org", "http://localhost:3001", f"{PAGE}, {PAGE}", "*",
)  # fmt: skip
KEY: Final = {"authorization": "Bearer a key of this gateway"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "key").write_text("a key of this gateway", encoding="utf-8")
    origins = ", ".join(f'"{page}"' for page in PAGES)
    with gateway(folder, f'[server]\nkeys = ["file:key"]\nallowed_origins = [{origins}]\n') as found:
        yield found


def asked(running: Running, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    with closing(http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)) as connection:
        connection.request(method, path, b"{}" if method == "POST" else None, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def preflight(running: Running, origin: str, path: str = "/v1/chat/completions") -> tuple[int, dict[str, str]]:
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    return asked(running, "OPTIONS", path, {"origin": origin, "access-control-request-private-network": "true", **asks})


@for_each("page", PAGES)
def test_a_page_that_is_named_may_ask_and_read(running: Running, page: str) -> None:
    for path in ("/v1/chat/completions", "/v1/models", "/api/chat", "/v1beta/models/m:generateContent", "/v1/messages"):
        status, headers = preflight(running, page, path)
        assert (status, headers["access-control-allow-origin"], headers["vary"]) == (200, page, "origin"), path
        assert headers["access-control-allow-methods"] == "POST"
        assert headers["access-control-allow-headers"] == "authorization,content-type"
        assert headers["access-control-allow-private-network"] == "true"
        assert "access-control-allow-credentials" not in headers
    for method, path, key, wanted in (("GET", "/v1/models", KEY, 200), ("GET", "/v1/models", {}, 401),
                                      ("POST", "/v1/chat/completions", KEY, 400), ("GET", "/nowhere", KEY, 404),
                                      ("GET", "/livez", {}, 200)):  # fmt: skip
        status, headers = asked(running, method, path, {"origin": page, **key})
        assert (status, headers.get("access-control-allow-origin")) == (wanted, page), (method, path)
        assert headers["access-control-expose-headers"] == "*"


@for_each("page", OTHERS)
def test_no_other_page_gets_a_header(running: Running, page: str) -> None:
    answers = [preflight(running, page), *(asked(running, method, "/v1/models", {"origin": page, **KEY})
                                           for method in ("GET", "POST", "OPTIONS"))]  # fmt: skip
    for status, headers in answers:
        assert not [name for name in headers if name.startswith("access-control-")], (page, status, headers)
    assert answers[0][0] in (401, 403, 405)
    if "localhost" not in page:
        assert {status for status, _ in answers} == {403}, answers


def test_a_preflight_needs_a_host_and_tells_nothing(running: Running) -> None:
    """A page whose name was pointed at this machine sends its own name as the host."""
    asks = {"origin": PAGE, "access-control-request-method": "POST", "host": "evil.example"}
    assert asked(running, "OPTIONS", "/v1/chat/completions", asks)[0] == 403
    assert asked(running, "OPTIONS", "/v1/chat/completions", {"origin": PAGE})[0] == 401  # no preflight: it needs a key
    assert preflight(running, PAGE, "/nowhere")[0] == preflight(running, PAGE)[0]


#: Origins that no browser sends, and what it sends in their place: nothing for those that are none.
MISWRITTEN: Final = (
    ("*", ""), ("null", ""), ("x.example", ""), ("https://*.example", ""), ("", ""), ("https://", ""),
    ("https://127.1", ""), ("https://a b.example", ""),
    ("https://x.example/", "https://x.example"), ("https://x.example/path?q#f", "https://x.example"),
    ("https://x.example:443", "https://x.example"), ("http://x.example:80", "http://x.example"),
    ("https://x.example:0080", "https://x.example:80"), ("https://x.example:", "https://x.example"),
    ("https://me:word@x.example", "https://x.example"), ("HTTPS://X.example", "https://x.example"),
    ("https://b\u00fccher.example", "https://xn--bcher-kva.example"), ("http://[::0:1]:3000", "http://[::1]:3000"),
    ("https://fa\u00df.example", ""), ("https://%41.example", ""), ("App://obsidian.md/", "app://obsidian.md"),
)  # fmt: skip


@for_each(("origin", "sent"), MISWRITTEN)
def test_an_origin_that_no_browser_sends_is_refused_with_the_right_one(tmp_path: Path, origin: str, sent: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nallowed_origins = ["https://y.example", "{origin}"]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"server.allowed_origins\[1\]: ") as raised:
        load_config(file, environ={}, home=tmp_path)
    assert str(raised.value).partition("; write ")[2] == sent
    if sent:
        file.write_text(f'[server]\nallowed_origins = ["{sent}"]\n', encoding="utf-8")
        assert load_config(file, environ={}, home=tmp_path).server.allowed_origins == (sent,)
