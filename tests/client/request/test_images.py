"""Images by address: fetched for servers that take data only, from allowed hosts, never from this network."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dragoman.client.request.images import LARGEST, Images
from dragoman.errors import WireError
from dragoman.http.dns_lookups import DnsLookups
from dragoman.http.public_addresses import is_public
from dragoman.types import Media, Message, Request, Text, ToolResult
from for_each import for_each
from scripted import Scripted, serving, whole

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels" * 10
PRIVATE = [
    "127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200",
    "168.63.129.16", "224.0.0.1", "255.255.255.255", "192.0.0.192", "198.18.0.1", "240.0.0.1", "::1", "::", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe",
    "::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1",
    "fec0::1", "2001:db8::1",
]  # fmt: skip
SPELLINGS = [
    "http://127.0.0.1/x", "http://2130706433/x", "http://0177.0.0.1/x", "http://0x7f.0.0.1/x", "http://0x7f000001/x",
    "http://127.1/x", "http://0/x", "http://[::1]/x", "http://[::ffff:127.0.0.1]/x", "http://[64:ff9b::7f00:1]/x",
    "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/x", "http://localhost/x", "http://LOCALHOST./x",
    "http://printer.local/x", "http://metadata.google.internal/x", "http://a.localhost/x", "http://router.lan/x",
    "https://127.0.0.1/x", "http://127.0.0.1:80/x", "http://127.0.0.1.:80/x", "http://１２７.0.0.1/x",
]  # fmt: skip
MALFORMED = [
    "http://user@images.example/x", "http://user:word@images.example/x", "http://images.example:22/x",
    "http://images.example:6379/x", "http://images.example:0/x", "http://images.example:99999/x", "http:///x",
    "http://[bad/x", "https://images.example:8443/x", "http://images.example\\@127.0.0.1/x",
]  # fmt: skip


def asking(*urls: str) -> Request:
    return Request("m", (Message("user", (Text("See."), *(Media("image", url=url) for url in urls))),))


def filled(images: Images, request: Request) -> Request:
    return asyncio.run(images.filled(request))


@pytest.fixture
def dials(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every connection that somebody tries to make."""
    found: list[Any] = []

    async def dial(self: Any, factory: Any, host: Any = None, *rest: Any, **more: Any) -> Any:
        found.append(host)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", dial)
    return found


@contextmanager
def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> Iterator[list[str]]:
    """A resolver that gives these addresses, one list for each time it is asked; the last again."""
    asked: list[str] = []
    left = list(answers)

    async def resolve(self: DnsLookups, host: str) -> list[str]:
        asked.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(DnsLookups, "addresses", resolve)
    yield asked


# ---------------------------------------------------------------- what is never asked


@for_each("address", PRIVATE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@for_each("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_spelling_of_this_network_is_dialled(dials: list[Any], url: str) -> None:
    for hosts in (["*"], ["127.0.0.1", "localhost", "*.local"]):
        with pytest.raises(WireError, match="cannot be fetched"):
            filled(Images(hosts), asking(url))
    assert dials == []


@pytest.mark.parametrize("url", MALFORMED)
def test_no_other_port_user_or_form(dials: list[Any], monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with resolving(monkeypatch, ["8.8.8.8"]), pytest.raises(WireError, match="cannot be fetched"):
        filled(Images(["images.example"]), asking(url))
    assert dials == []


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_into_this_network(dials: list[Any], monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """All addresses of a name must be public, and it is asked for them once: it may give another answer next time."""
    with resolving(monkeypatch, ["8.8.8.8", address]) as asked:
        with pytest.raises(WireError, match="not a public one"):
            filled(Images(["*"]), asking("http://images.example/x"))
        assert asked == ["images.example"]
    with resolving(monkeypatch, ["8.8.8.8"], [address]) as asked:
        with pytest.raises(WireError, match="ConnectionRefusedError"):
            filled(Images(["*"]), asking("http://images.example/x"))
        assert asked == ["images.example"]
    assert dials == ["8.8.8.8"]


def test_closed_unless_a_host_is_allowed(dials: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with resolving(monkeypatch, ["8.8.8.8"]):
        with pytest.raises(WireError, match="expected images as data") as problem:
            filled(Images([]), asking("https://images.example/x?token=secret"))
        assert "secret" not in str(problem.value)
        for host in ("images.example.evil", "evil-images.example", "example", "sub.images.example"):
            with pytest.raises(WireError, match="does not allow it"):
                filled(Images(["images.example"]), asking(f"https://{host}/x?token=secret"))
        assert dials == []
        for host in ("images.example", "IMAGES.example.", "a.b.example.org"):
            with pytest.raises(WireError, match="ConnectionRefusedError") as problem:
                filled(Images(["images.example", "*.example.org"]), asking(f"https://{host}/x?token=secret"))
            assert "secret" not in str(problem.value)
    assert dials == ["8.8.8.8"] * 3


def test_what_is_no_image_by_address_is_let_be() -> None:
    parts = (
        Media("image", url="file-1"),
        Media("image", "image/png", "AAAA"),
        Media("document", url="https://a.example/x"),
    )
    request = Request("m", (Message("user", parts),))
    assert filled(Images([]), request) is request


# ---------------------------------------------------------------- what is fetched


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(whole(PNG, 200, "text/plain")) as found:
        yield found


def here(server: Scripted, *hosts: str) -> tuple[Images, str]:
    """A guard that lets this one server be reached, as if it were a public one."""
    port = int(server.url.rpartition(":")[2])
    images = Images(hosts or ["127.0.0.1"], is_reachable=lambda address: address == "127.0.0.1", ports=(port,))
    return images, server.url


def test_an_image_becomes_data(server: Scripted) -> None:
    images, url = here(server)
    request = asking(f"{url}/a.png?size=1", f"{url}/a.png?size=1")
    result = Message("tool", (ToolResult("call_1", "look", (Media("image", url=f"{url}/a.png?size=1"),)),))
    found = filled(images, Request("m", (*request.messages, result)))
    media = [part for part in found.messages[0].parts if isinstance(part, Media)]
    media += [part for part in found.messages[1].parts[0].parts if isinstance(part, Media)]
    assert media == [Media("image", "image/png", base64.b64encode(PNG).decode())] * 3
    [seen] = server.requests
    assert (seen.method, seen.path) == ("GET", "/a.png?size=1")
    assert not {"authorization", "cookie", "x-api-key"} & set(seen.headers)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (whole(b"<html>", 200, "image/png"), "no PNG, JPEG, GIF or WebP"),
        (whole(PNG, 404), "answered 404"),
        (whole(PNG + b"x" * LARGEST), "larger than"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + PNG, "close"], "TransportFailed"),
        (["reset"], ""),
    ],
    ids=["no-image", "missing", "large", "cut", "reset"],
)
def test_what_is_not_a_whole_image(server: Scripted, steps: list[Any], reason: str) -> None:
    server.replies[:] = [steps]
    images, url = here(server)
    with pytest.raises(WireError, match=f"cannot be fetched: .*{reason}"):
        filled(images, asking(f"{url}/x"))


def test_redirects_are_checked_like_the_first_address(server: Scripted) -> None:
    images, url = here(server)
    moved = lambda place: whole(b"", 302, "text/plain", f"location: {place}")  # noqa: E731
    server.replies[:] = [moved("/b.png"), whole(PNG)]
    found = filled(images, asking(f"{url}/a.png"))
    assert isinstance(found.messages[0].parts[1], Media) and found.messages[0].parts[1].data
    assert [seen.path for seen in server.requests] == ["/a.png", "/b.png"]
    for place in (
        "http://10.0.0.1/x",
        "http://localhost/x",
        "file:///etc/passwd",
        "http://127.0.0.1:22/",
        "gopher://a/",
    ):
        server.replies[:] = [moved(place)]
        server.requests.clear()
        with pytest.raises(WireError, match="cannot be fetched"):
            filled(images, asking(f"{url}/a.png"))
        assert len(server.requests) == 1
    server.replies[:] = [moved("/again")]
    server.requests.clear()
    with pytest.raises(WireError, match="redirected more than 3 times"):
        filled(images, asking(f"{url}/a.png"))
    assert len(server.requests) == 4
