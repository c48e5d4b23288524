# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Fetching: only public addresses, the one that was checked is dialled, and nothing is followed or sent along."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from dragoman.agent.tool_plan import Outcome, ToolFailed
from dragoman.agent.tools.fetch import check_url, fetch_tool, text_of_page
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.http.public_addresses import is_public
from dragoman.types import ToolCall
from for_each import for_each

HOSTS = [
    "127.0.0.1", "127.1", "127.0.0.1.", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0",
    "localhost", "LOCALHOST", "localhost.", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "10.0.0.1", "10.255.255.255",
    "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1.254", "100.64.0.1", "169.254.169.254", "[fe80::1]", "[fe80::1%25eth0]",
    "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "224.0.0.1", "[ff02::1]", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.51.100.7",
    "203.0.113.9", "198.18.0.1", "[2001:db8::1]", "metadata.google.internal", "printer.local", "router", "intranet.corp", "ip6-localhost",
]  # fmt: skip
URLS = [
    *(f"{scheme}://{host}/latest/meta-data/" for host in HOSTS for scheme in ("http", "https")),
    "http://user@example.org/", "http://user:pass@example.org/", "http://example.org@127.0.0.1/", "http://127.0.0.1#@example.org/",
    "http://example.org:8080/", "https://example.org:80/", "http://example.org:22/", "http://example.org:99999/", "http://example.org:x/",
    "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "dict://example.org/", "unix:/run/docker.sock", "javascript:alert(1)",
    "data:text/html,x", "//example.org/", "example.org", "", "http://", "http:///x", "https://exa mple.org/", "http://example.org\\@127.0.0.1/",
    "http://example.org/\r\nHost: 127.0.0.1", "http://exam\u202eple.org/", "http://example.org/\x00", "http://[::1", "http://１２７.0.0.1/",
]  # fmt: skip
#: What a resolver of this machine would say of the names among them.
NAMES = {
    "localhost": "127.0.0.1", "localhost.": "127.0.0.1", "metadata.google.internal": "169.254.169.254", "printer.local": "192.168.1.9",
    "router": "192.168.1.1", "intranet.corp": "10.1.2.3", "ip6-localhost": "::1",
}  # fmt: skip


class Network:
    """Stands in for it: resolves as told, and remembers who was dialled."""

    def __init__(self, answers: list[list[str]] | None = None, page: bytes = b"") -> None:
        self.answers = answers
        self.page = page
        self.resolved: list[str] = []
        self.dialled: list[str] = []
        self.sent = b""

    def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        if self.answers is not None:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if host in NAMES:
            return [NAMES[host]]
        # Numbers in every form that getaddrinfo takes; it asks no server for these.
        return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)]

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        self.dialled.append(address)
        ours, theirs = socket.socketpair()

        def serve() -> None:
            with theirs:
                self.sent = theirs.recv(65536)
                theirs.sendall(self.page)

        threading.Thread(target=serve, daemon=True).start()
        return ours


def fetch(url: str, network: Network) -> Outcome:
    tools = Toolbox([fetch_tool(resolve=network.resolve, connect=network.connect)])
    plan = tools.plan(
        ToolCall("c", "fetch", f'{{"url": "{url}"}}' if url.isprintable() and "\\" not in url else _json(url))
    )
    return asyncio.run(plan.do())  # type: ignore[arg-type]


def _json(url: str) -> str:
    import json

    return json.dumps({"url": url})


def page(body: str, kind: str = "text/html; charset=utf-8", *, status: str = "200 OK", more: str = "") -> bytes:
    data = body.encode()
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n{more}\r\n".encode() + data


def test_there_are_enough_addresses() -> None:
    assert len(URLS) >= 120


@for_each("url", URLS)
def test_no_address_that_is_not_public_is_dialled(url: str) -> None:
    network = Network()
    with pytest.raises(ToolFailed):
        fetch(url, network)
    assert network.dialled == []


def test_one_private_answer_among_public_ones_is_enough_to_refuse() -> None:
    network = Network([["93.184.216.34", "10.0.0.1"]])
    with pytest.raises(ToolFailed, match="not an address of the public Internet"):
        fetch("http://rebind.example/", network)
    assert network.dialled == []


def test_the_address_that_was_checked_is_the_one_that_is_dialled() -> None:
    """A resolver that changes its mind is asked once."""
    network = Network([["93.184.216.34"], ["127.0.0.1"]], page("<p>hello</p>"))
    assert fetch("http://rebind.example/", network).text.startswith("hello")
    assert (network.resolved, network.dialled) == (["rebind.example"], ["93.184.216.34"])


def test_what_is_sent_is_a_bare_get_with_the_names_host() -> None:
    network = Network([["93.184.216.34"]], page("ok", "text/plain"))
    fetch("http://Example.org/a?b=c#d", network)
    lines = network.sent.decode().split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    assert "Host: example.org" in lines
    assert not any(line.lower().startswith(("cookie", "authorization", "referer")) for line in lines)


@for_each("status", ["301 Moved", "302 Found", "303 See", "307 T", "308 P"])
def test_a_redirect_is_told_and_not_followed(status: str) -> None:
    network = Network([["93.184.216.34"]], page("", status=status, more="location: http://127.0.0.1/\r\n"))
    outcome = fetch("http://example.org/", network)
    assert outcome.is_error and "says to ask http://127.0.0.1/" in outcome.text
    assert network.dialled == ["93.184.216.34"]


def test_a_page_comes_as_its_words_and_is_known_to_be_foreign() -> None:
    body = (
        "<html><script>evil()</script><h1>Title</h1><!-- x --><p>One &amp; two</p><style>p{}</style>\x1b]0;x\x07</html>"
    )
    outcome = fetch("http://example.org/", Network([["93.184.216.34"]], page(body)))
    assert outcome.is_foreign
    assert outcome.text.startswith("Title\nOne & two\n")
    assert "evil" not in outcome.text and "\x1b" not in outcome.text


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(ToolFailed, match="image/png, not text"):
        fetch("http://example.org/", Network([["93.184.216.34"]], page("x", "image/png")))


def test_a_host_that_breaks_off_is_an_answer_to_the_model() -> None:
    with pytest.raises(ToolFailed, match="did not answer"):
        fetch("http://example.org/", Network([["93.184.216.34"]], b"not http"))


@for_each("address", ["93.184.216.34", "2606:2800:220:1::1", "8.8.8.8"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@for_each(
    "path", ["docs/../secret", "docs/..", "..", "docs/./x", "docs/%2e%2e/x", "docs/.%2E?a", "docs/%252e%252e/x", "docs/..;a=b/x",
             "docs/..%3b/x", "docs/..%2fx", "docs/..%5cx", "docs/x%2f..", "docs//../x", "docs/..%3fx", "docs/..%23x",
             "docs/..%00/x", "docs/..%20/x", "docs/..%c0%af/x"],
)  # fmt: skip
def test_a_path_that_goes_up_is_refused(path: str) -> None:
    """A rule for the folder would cover any other of its host."""
    with pytest.raises(ToolFailed, match=r"without \. and \.\."):
        check_url(f"https://a.example/{path}")


def test_names_of_other_scripts_are_asked_as_the_network_knows_them() -> None:
    assert check_url("https://bücher.example/ä?ö") == "https://xn--bcher-kva.example/%C3%A4?%C3%B6"
    for plain in ("https://a.example/a...b/.well-known/x..y", "https://a.example/?../..", "https://a.example/50%25/;x"):
        assert check_url(plain) == plain
    assert text_of_page("<p>a<p>b") == "a\nb"
