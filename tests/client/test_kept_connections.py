"""A connection that a server keeps and then drops: the request that it swallowed is sent again, once."""

import asyncio

import pytest

from dragoman.http.connection import HttpConnection
from dragoman.http.response import Response
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport, TransportFailed
from dragoman.providers.endpoint import Outgoing
from scripted import Step, serving, streamed


async def read_whole(response: Response) -> bytes:
    body = b""
    while data := await response.read():
        body += data
    return body


async def ask(url: str, times: int) -> list[bytes]:
    transport = Transport(timeouts=Timeouts())
    try:
        bodies = []
        for _ in range(times):
            bodies.append(await read_whole(await transport.open(Outgoing("POST", url, {}, b"{}"))))
        return bodies
    finally:
        await transport.close()


def test_a_swallowed_request_on_a_kept_connection_is_sent_again() -> None:
    with serving(streamed(b"one"), ["close"], streamed(b"two")) as server:
        assert asyncio.run(ask(server.url, 2)) == [b"one", b"two"]
        assert (len(server.requests), server.connections) == (3, 2)


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_request_on_a_new_connection_is_sent_once(end: Step) -> None:
    with serving([end]) as server:
        with pytest.raises(TransportFailed):
            asyncio.run(ask(server.url, 1))
        assert len(server.requests) == 1


def test_an_error_on_a_kept_connection_names_its_own_address() -> None:
    """A connection belongs to a host: what was asked on it before is another matter."""

    async def ask_in_turn(*urls: str) -> None:
        transport = Transport(timeouts=Timeouts())
        try:
            for url in urls:
                await read_whole(await transport.open(Outgoing("POST", url, {}, b"{}")))
        finally:
            await transport.close()

    with serving(streamed(b"one"), [b"HTTP/1.1 200 OK\r\nno field: 1\r\n\r\n"]) as server:
        with pytest.raises(TransportFailed, match="/second does not answer"):
            asyncio.run(ask_in_turn(server.url + "/first", server.url + "/second"))
        assert server.connections == 1


def test_it_is_sent_again_once_only() -> None:
    with serving(streamed(b"one"), ["close"], ["close"], streamed(b"never")) as server:
        with pytest.raises(TransportFailed):
            asyncio.run(ask(server.url, 2))
        assert len(server.requests) == 3


async def ask_late(url: str, turns: list[asyncio.Event | None]) -> list[bytes]:
    """A request for each turn; before it is written a connection is lost, where the turn has an event that says so."""
    transport = Transport(timeouts=Timeouts())
    told = 0

    async def wait(lost: asyncio.Event) -> None:
        nonlocal told
        told += 1
        if told == 1:
            async with asyncio.timeout(10):
                while transport.connections:
                    await asyncio.sleep(0.005)
            lost.set()

    bodies = []
    try:
        for lost in turns:
            told = 0
            before = None if lost is None else lambda _, lost=lost: wait(lost)
            response = await transport.open(Outgoing("POST", url, {}, b"{}"), before)
            bodies.append(await read_whole(response))
        return bodies
    finally:
        await transport.close()


def test_a_kept_connection_that_is_lost_before_the_request_is_another() -> None:
    """An intent is written to the disk, which takes a while (`durability = "power"`): the request failed with 500."""
    with serving([*streamed(b"one"), "close"], streamed(b"two")) as server:
        assert asyncio.run(ask_late(server.url, [None, asyncio.Event()])) == [b"one", b"two"]
        assert (len(server.requests), server.connections) == (2, 2)


def test_a_new_connection_that_is_lost_before_the_request_is_a_failure() -> None:
    """The server hangs up, or answers before it is asked: what comes then answers nothing."""

    async def asked(answer: bytes) -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(TransportFailed, match="without an answer"):
                await ask_late(f"http://127.0.0.1:{port}/", [asyncio.Event()])

    asyncio.run(asked(b""))
    asyncio.run(asked(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))


class _Transport(asyncio.Transport):
    """Remembers when reading was stopped and went on."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")


def test_a_reader_that_has_enough_stops_no_connection_whose_answer_is_complete() -> None:
    """Stopping and going on cost two system calls, and what is complete cannot grow."""
    asyncio.run(_pour_twice())


async def _pour_twice() -> None:
    buffer, transport, free = memoryview(bytearray(1024)), _Transport(), list[HttpConnection]()
    connection = HttpConnection("there", free=free.append, gone=lambda _: None, buffer=buffer)
    connection.connection_made(transport)

    def feed(data: bytes) -> None:
        buffer[: len(data)] = data
        connection.buffer_updated(len(data))

    for turn in (1, 2):  # the second answer can be stopped again
        asking = asyncio.create_task(connection.send(b"GET / HTTP/1.1\r\n\r\n", b""))
        await asyncio.sleep(0)
        feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        response = await asking
        seen: list[bytes] = []

        def sink(data: bytes, response: Response = response, seen: list[bytes] = seen) -> None:
            seen.append(data)
            response.pause()

        pouring = asyncio.create_task(response.pour(sink))
        await asyncio.sleep(0)
        feed(b"3\r\none\r\n")
        response.resume()
        feed(b"3\r\ntwo\r\n0\r\n\r\n")
        await pouring
        assert (seen, transport.told) == ([b"one", b"two"], ["pause", "resume"] * turn)
        assert free == [connection] * turn
