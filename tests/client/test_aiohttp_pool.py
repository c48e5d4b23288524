"""The other way over HTTP, for proxies and where httptools is missing: it says the same as our own client."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from dragoman.http import transport as transports
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport, TransportFailed
from dragoman.providers.endpoint import Outgoing
from scripted import Step, chunk, head, serving, streamed, whole


@pytest.fixture(params=[True, False], ids=["own", "aiohttp"])
def has_httptools(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(transports, "_HAS_HTTPTOOLS", request.param)
    return bool(request.param)


def fetch(url: str, *, times: int = 1, proxy: str | None = None) -> list[bytes]:
    """The bodies of so many answers, poured."""

    async def main() -> list[bytes]:
        transport = Transport(timeouts=Timeouts(connect=2), proxy=proxy)
        bodies = []
        try:
            for _ in range(times):
                response = await transport.open(Outgoing("POST", url, {"x-one": "1"}, b"{}"))
                assert response.status == 200
                found: list[bytes] = []

                def sink(data: bytes, response: Any = response, found: list[bytes] = found) -> None:
                    found.append(data)
                    response.pause()
                    asyncio.get_running_loop().call_later(0.01, response.resume)

                try:
                    await response.pour(sink)
                finally:
                    response.close()
                bodies.append(b"".join(found))
            return bodies
        finally:
            await transport.close()

    return asyncio.run(main())


@pytest.mark.parametrize("steps", [streamed(b"one", b"two"), whole(b"onetwo")], ids=["chunks", "length"])
def test_bodies_are_poured_and_connections_kept(has_httptools: bool, steps: list[Step]) -> None:
    with serving(steps) as server:
        assert fetch(server.url, times=3) == [b"onetwo"] * 3
        assert server.connections == 1


def test_a_swallowed_request_on_a_kept_connection_is_sent_again(has_httptools: bool) -> None:
    with serving(streamed(b"one"), ["close"], streamed(b"two")) as server:
        assert fetch(server.url, times=2) == [b"one", b"two"]
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("steps", "kind", "code"),
    [
        (["close"], "connection", None),
        ([b"HTTP/1.1 junk\r\n\r\n", "close"], "wire", None),
        ([head(), chunk(b"a"), "close"], "connection", None),
        ([head(), chunk(b"a"), "reset"], "connection", None),
    ],
)
def test_what_breaks_is_said_alike(has_httptools: bool, steps: list[Step], kind: str, code: str | None) -> None:
    with serving(steps) as server, pytest.raises(TransportFailed) as caught:
        fetch(server.url)
    assert (caught.value.failure.kind, caught.value.failure.code) == (kind, code)


def test_no_connection_is_said_alike(has_httptools: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1?key=secret"
    codes = []
    for place in (url, "http://no-such-host.invalid/"):
        with pytest.raises(TransportFailed) as caught:
            fetch(place)
        codes.append((caught.value.failure.kind, caught.value.failure.code))
        assert "secret" not in caught.value.failure.message
    assert codes == [("connection", "refused"), ("connection", "unknown_host")]


def test_a_proxy_is_asked_in_place_of_the_server() -> None:
    with serving(whole(b"by proxy")) as proxy:
        assert fetch("http://model.invalid/v1/chat", proxy=proxy.url) == [b"by proxy"]
        assert proxy.requests[0].path == "http://model.invalid/v1/chat"


def test_a_proxy_that_is_not_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        proxy = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(TransportFailed) as caught:
        fetch("http://127.0.0.1:9/", proxy=proxy)
    assert (caught.value.failure.kind, caught.value.failure.code) == ("connection", "proxy")
