"""Our HTTP/1.1 client on sockets, in both event loops: framing, limits, pooling, TLS, requests that are given up."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dragoman.events import Failure
from dragoman.gateway.process.gateway import new_event_loop
from dragoman.http.connection import HttpConnection, HttpResponse
from dragoman.http.response import BUFFER
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Response, Transport, TransportFailed
from dragoman.providers.endpoint import Outgoing
from scripted import END, Step, chunk, head, serving, streamed, whole

T = TypeVar("T")
DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine in each event loop."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else new_event_loop

    def start(coroutine: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(coroutine)

    return start


async def asking(
    url: str, use: Callable[[Transport], Awaitable[T]], *, ca_file: str | None = None, connect: float = 5.0
) -> T:
    transport = Transport(timeouts=Timeouts(connect=connect), ca_file=ca_file)
    try:
        return await use(transport)
    finally:
        await transport.close()


async def body_of(response: Response) -> bytes:
    found = b""
    while data := await response.read():
        found += data
    return found


def post(url: str, body: bytes = b"{}", **headers: str) -> Outgoing:
    return Outgoing("POST", url, {name.replace("_", "-"): value for name, value in headers.items()}, body)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.002)


def open_connections(transport: Transport) -> int:
    assert transport._pool is not None
    return len(transport._pool._open)  # type: ignore[attr-defined]


def fetch(run: Any, url: str, **options: Any) -> tuple[int, dict[str, str], bytes]:
    async def use(transport: Transport) -> tuple[int, dict[str, str], bytes]:
        response = await transport.open(post(url))
        return response.status, dict(response.headers), await body_of(response)

    result: tuple[int, dict[str, str], bytes] = run(asking(url, use, **options))
    return result


def failure_of(run: Any, url: str, **options: Any) -> Failure:
    with pytest.raises(TransportFailed) as caught:
        fetch(run, url, **options)
    return caught.value.failure


# ---------------------------------------------------------------- framing


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("steps", "body"),
    [
        (streamed(b"one", b"two"), b"onetwo"),
        (whole(b"all"), b"all"),
        ([OK + b"content-length: 0\r\n\r\n"], b""),
        ([OK + b"\r\nto the ", b"end", "close"], b"to the end"),
        ([b"HTTP/1.0 200 OK\r\n\r\nold", "close"], b"old"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", *whole(b"all")], b"all"),
        ([head(), b"3;name=value\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n"], b"abc"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b""),
        ([OK + b"content-length: 3\r\nconnection: close\r\n\r\nabc", "close"], b"abc"),
    ],
    ids=["chunks", "length", "empty", "end", "http-1.0", "informational", "trailer", "204", "close"],
)
def test_every_kind_of_body_is_read(run: Any, steps: list[Step], body: bytes) -> None:
    with serving(steps) as server:
        assert fetch(run, server.url)[2] == body
    bytewise = [bytes([one]) for step in steps if isinstance(step, bytes) for one in step]
    with serving([*bytewise, *(step for step in steps if not isinstance(step, bytes))]) as server:
        assert fetch(run, server.url)[2] == body


def test_fields_that_come_twice_are_joined(run: Any) -> None:
    with serving([OK + b"X-One: a\r\nx-one: b\r\ncontent-length: 0\r\n\r\n"]) as server:
        status, headers, _ = fetch(run, server.url)
    assert (status, headers["x-one"]) == (200, "a, b")


@pytest.mark.parametrize(
    ("steps", "kind", "said"),
    [
        (["close"], "connection", "closed the connection without an answer"),
        (["reset"], "connection", ""),
        ([OK, "close"], "connection", "without an answer"),
        ([b"HTTP/1.1 junk\r\n\r\n"], "wire", "does not answer in HTTP"),
        ([b"\x16\x03\x01 TLS?\r\n\r\n"], "wire", "does not answer in HTTP"),
        ([b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], "wire", "protocol"),
        ([OK + b"x: " + b"y" * 70_000 + b"\r\n\r\n"], "wire", "larger than 64 KiB"),
        ([OK + b"x: yyyyyyyyyyyyyyyy\r\n" * 4_000 + b"\r\n"], "wire", "larger than 64 KiB"),
        ([OK, *[b"x: " + b"y" * 5_000 + b"\r\n"] * 20], "wire", "larger than 64 KiB"),
        ([OK + b"content-length: 5\r\n\r\nabc", "close"], "connection", "broke off"),
        ([OK + b"content-length: 5\r\n\r\nabc", "reset"], "connection", "broke off"),
        ([head(), chunk(b"abc"), "close"], "connection", "broke off"),
        ([head(), chunk(b"abc"), b"zz\r\n"], "connection", "broke off"),
        ([head(), chunk(b"abc"), b"0\r\n", *[b"x: y\r\n" * 900] * 3, b"\r\n"], "connection", "broke off"),
        ([OK + b"a:\r\n" * 2_000 + b"content-length: 0\r\n\r\n"], "wire", "larger than 64 KiB"),
    ],
)
def test_what_is_broken_is_said(run: Any, steps: list[Step], kind: str, said: str) -> None:
    with serving(steps) as server:
        found = failure_of(run, server.url)
    assert (found.kind, said in found.message) == (kind, True), found.message


def test_others_have_their_turn_after_each_full_read_whatever_it_holds(run: Any) -> None:
    """Trailers and extensions of chunks are no body, and the loop went on reading them."""
    turns: list[bool] = []
    let_others = HttpConnection._let_others

    def noted(connection: HttpConnection) -> None:
        turns.append(True)
        let_others(connection)

    extension = b"3;" + b"a" * 1_000_000 + b"\r\nabc\r\n0\r\n\r\n"
    with serving([head(), extension]) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpConnection, "_let_others", noted)
        assert fetch(run, server.url)[2] == b"abc"
    assert turns


def test_what_came_before_a_break_is_given_first(run: Any) -> None:
    async def use(transport: Transport) -> bytes:
        response = await transport.open(post(server.url))
        await asyncio.sleep(0.1)
        found = await response.read()
        with pytest.raises(TransportFailed):
            await response.read()
        return found

    with serving([head(), chunk(b"abc"), "close"]) as server:
        assert run(asking(server.url, use)) == b"abc"


# ---------------------------------------------------------------- requests


def test_a_request_as_it_is_sent(run: Any) -> None:
    async def use(transport: Transport) -> None:
        for outgoing in (
            post(server.url + "/v1/ü x?key=a b&q=%41", b"{}", x_one="1"),
            Outgoing("GET", server.url.replace("http://", "http://me:pass@"), {}, b""),
        ):
            await body_of(await transport.open(outgoing))

    with serving(whole(b"all")) as server:
        run(asking(server.url, use))
        first, second = server.requests
    assert first.path == "/v1/%C3%BC%20x?key=a%20b&q=%41"
    assert (first.headers["x-one"], first.headers["content-length"]) == ("1", "2")
    assert first.headers["host"] == server.url.removeprefix("http://")
    assert first.headers["accept-encoding"] == "identity"
    assert (second.method, second.path, "content-length" in second.headers) == ("GET", "/", False)
    assert second.headers["authorization"] == "Basic bWU6cGFzcw=="


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "http://", "http://127.0.0.1:port/", "http://a b/", "nothing"])
def test_what_is_no_address_is_said(run: Any, url: str) -> None:
    assert failure_of(run, url).kind == "bad_request"


def test_a_header_cannot_end_the_head(run: Any) -> None:
    async def use(transport: Transport) -> Response:
        return await transport.open(post("http://127.0.0.1:9", x_key="one\r\nx-two: 2"))

    with pytest.raises(TransportFailed) as caught:
        run(asking("", use))
    assert caught.value.failure.kind == "bad_request"
    assert "x-two" not in caught.value.failure.message


def test_a_large_body_is_sent_whole_and_may_be_refused_early(run: Any) -> None:
    large = b"x" * 4_000_000

    async def use(transport: Transport) -> bytes:
        return await body_of(await transport.open(post(server.url, large)))

    with serving(whole(b"all")) as server:
        assert run(asking(server.url, use)) == b"all"
        assert server.requests[0].body == large


# ---------------------------------------------------------------- no connection


def test_nobody_listens(run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1?key=secret"
    found = failure_of(run, url)
    assert (found.kind, found.code) == ("connection", "refused")
    assert "secret" not in found.message and "Connection refused" in found.message


def test_a_host_that_is_not_known(run: Any) -> None:
    found = failure_of(run, "http://no-such-host.invalid/v1")
    assert (found.kind, found.code) == ("connection", "unknown_host")


def test_the_connect_clock(run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = []
        for _ in range(8):  # until its queue is full
            one = socket.socket()
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(address)
            waiting.append(one)
        found = failure_of(run, f"http://127.0.0.1:{address[1]}", connect=0.2)
        for one in waiting:
            one.close()
    assert (found.kind, "in time" in found.message) == ("timeout", True)


def test_the_next_address_of_a_host_is_tried(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.http.dns_lookups import DnsLookups

    async def addresses(self: DnsLookups, host: str) -> list[str]:
        return ["127.0.0.2", "127.0.0.3", "127.0.0.1"]

    monkeypatch.setattr(DnsLookups, "addresses", addresses)
    with serving(whole(b"all")) as server:
        assert fetch(run, server.url.replace("127.0.0.1", "some-host"))[2] == b"all"
        assert server.connections == 1


# ---------------------------------------------------------------- the pool


def test_connections_are_kept_and_dropped_ones_are_not_used(run: Any) -> None:
    async def use(transport: Transport) -> None:
        for _ in range(3):
            assert await body_of(await transport.open(post(server.url))) == b"one"
        for _ in range(2):
            assert await body_of(await transport.open(post(server.url))) in (b"one", b"two")
            await asyncio.sleep(0.05)

    one, closing = whole(b"one"), [*whole(b"one"), "close"]
    with serving(one, one, closing, [OK + b"content-length: 3\r\nconnection: close\r\n\r\ntwo"], one) as server:
        run(asking(server.url, use))
        assert server.connections == 3


def test_a_connection_with_more_on_it_than_was_asked_for_is_closed(run: Any) -> None:
    taken = threading.Semaphore(0)  # what nobody asked for leaves when the answer was taken
    stale = OK + b"content-length: 5\r\n\r\nstale"

    async def use(transport: Transport) -> None:
        for _ in range(2):
            assert await body_of(await transport.open(post(server.url))) == b"one"
            taken.release()
            await until(lambda: not open_connections(transport))

    for steps in ([*whole(b"one"), taken, stale], [b"".join([*whole(b"one"), stale])]):
        with serving(steps) as server:
            run(asking(server.url, use))
            assert server.connections == 2


def test_requests_at_once_have_connections_of_their_own(run: Any) -> None:
    async def use(transport: Transport) -> list[bytes]:
        async def one() -> bytes:
            return await body_of(await transport.open(post(server.url)))

        return await asyncio.gather(*(one() for _ in range(20)))

    with serving(streamed(b"a", b"b")) as server:
        assert run(asking(server.url, use)) == [b"ab"] * 20
        assert server.connections <= 20


def test_requests_that_are_given_up_leave_nothing(run: Any) -> None:
    """In whatever phase: connecting, before the head, in the body. Who asked closes the response; one that nobody
    closes is read to its end, and its connection is kept beside the others."""
    dice = random.Random(7)

    async def use(transport: Transport) -> None:
        async def one() -> bytes:
            with contextlib.closing(await transport.open(post(server.url))) as response:
                return await body_of(response)

        for _ in range(150):
            task = asyncio.create_task(one())
            await asyncio.sleep(dice.choice([0, 0, 0.0005, 0.002, 0.004]))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await until(lambda: open_connections(transport) <= 1)  # one that ended in time is kept
        assert await one() == b"abc"

    with serving([0.001, head(), chunk(b"a"), 0.001, chunk(b"b"), 0.001, chunk(b"c"), END]) as server:
        run(asking(server.url, use))


def test_closing_tells_those_who_wait(run: Any) -> None:
    async def use(transport: Transport) -> list[str]:
        async def one() -> str:
            try:
                await body_of(await transport.open(post(server.url)))
            except TransportFailed as problem:
                return problem.failure.kind
            return ""

        tasks = [asyncio.create_task(one()) for _ in range(2)]
        await until(lambda: len(server.requests) == 2)
        await transport.close()
        return await asyncio.gather(*tasks)

    with serving(["hold"], [head(), chunk(b"a"), "hold"]) as server:
        assert run(asking(server.url, use)) == ["connection", "connection"]


# ---------------------------------------------------------------- reading


def test_reading_stops_while_nobody_takes(run: Any) -> None:
    piece = b"x" * 65_536

    async def use(transport: Transport) -> tuple[int, int]:
        response = await transport.open(post(server.url))
        assert isinstance(response, HttpResponse)
        await until(lambda: response._size > BUFFER)
        await asyncio.sleep(0.1)  # more would come now
        return response._size, len(await body_of(response))

    with serving([head(), *[chunk(piece)] * 120, END]) as server:
        waiting, size = run(asking(server.url, use))
    assert size == 120 * 65_536
    assert waiting < 1024 * 1024


def test_pouring_pauses_and_goes_on(run: Any) -> None:
    piece = b"x" * 65_536

    async def use(transport: Transport) -> tuple[int, int]:
        response = await transport.open(post(server.url))
        seen = [0]
        at_pause = [0]

        def sink(data: bytes) -> None:
            seen[0] += len(data)
            if not at_pause[0]:
                response.pause()
                at_pause[0] = seen[0]
                asyncio.get_running_loop().call_later(0.2, go_on)

        def go_on() -> None:
            assert seen[0] <= at_pause[0] + 300_000
            response.resume()

        await response.pour(sink)
        return at_pause[0], seen[0]

    with serving([head(), *[chunk(piece)] * 100, END]) as server:
        at_pause, size = run(asking(server.url, use))
    assert at_pause < size == 100 * 65_536


def test_an_error_in_the_sink_is_raised_where_it_is_poured(run: Any) -> None:
    def sink(data: bytes) -> None:
        raise KeyError("mine")

    async def use(transport: Transport) -> None:
        response = await transport.open(post(server.url))
        await response.pour(sink)

    with serving([head(), 0.05, chunk(b"a"), "hold"]) as server:
        with pytest.raises(KeyError):
            run(asking(server.url, use))
        assert server.client_gone.wait(20)


def test_aborting_ends_a_wait(run: Any) -> None:
    async def use(transport: Transport) -> None:
        response = await transport.open(post(server.url))
        asyncio.get_running_loop().call_later(0.05, response.abort)
        with pytest.raises(TransportFailed):
            await response.read()

    with serving([head(), "hold"]) as server:
        run(asking(server.url, use))
        assert server.client_gone.wait(20)


# ---------------------------------------------------------------- TLS, IPv6


async def tls_server(folder: Path) -> asyncio.Server:
    """A server whose key and authority are good for nothing else."""
    words = "PRIVATE KEY-----"
    key = base64.encodebytes((DATA / "tls" / "key.der").read_bytes()).decode()
    (folder / "key.pem").write_text(f"-----BEGIN {words}\n{key}-----END {words}\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "tls" / "cert.pem", folder / "key.pem")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"{}")
                writer.write(b"".join(step for step in streamed(b"sec", b"ret") if isinstance(step, bytes)))
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_tls_with_an_own_authority(run: Any, host: str, tmp_path: Path) -> None:
    async def use(transport: Transport) -> list[bytes]:
        server = await tls_server(tmp_path)
        url = f"https://{host}:{server.sockets[0].getsockname()[1]}/"
        found = [await body_of(await transport.open(post(url))) for _ in range(3)]
        server.close()
        return found

    assert run(asking("", use, ca_file=str(DATA / "tls" / "cert.pem"))) == [b"secret"] * 3


def test_tls_without_that_authority_is_refused(run: Any, tmp_path: Path) -> None:
    async def use(transport: Transport) -> None:
        server = await tls_server(tmp_path)
        try:
            await transport.open(post(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
        finally:
            server.close()

    with pytest.raises(TransportFailed) as caught:
        run(asking("", use))
    assert (caught.value.failure.kind, caught.value.failure.code) == ("connection", "tls")


def test_ipv6(run: Any) -> None:
    async def use(transport: Transport) -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            request = await reader.readuntil(b"{}")
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + request.split(b"\r\n")[1])
            writer.close()

        server = await asyncio.start_server(answer, "::1", 0)
        port = server.sockets[0].getsockname()[1]
        found = await body_of(await transport.open(post(f"http://[::1]:{port}/")))
        server.close()
        return found.replace(str(port).encode(), b"PORT")

    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    assert run(asking("", use)) == b"host: [::1]:PORT"
