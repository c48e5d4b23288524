"""The bodies of all requests under way share one budget of memory."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from conversations import reply
from dragoman.gateway.messages import Limits
from dragoman.gateway.server.body_memory import BodyMemory
from dragoman.gateway.server.client_addresses import ClientAddresses
from dragoman.gateway.server.connection import Connection, Shared
from dragoman.protocols import PROTOCOLS
from gateway.running import Running, gateway, stream_of
from gateway.server.test_connection import BODY, PATHS, payload, post, status

MEBIBYTE = 1024 * 1024


def test_what_is_taken_is_given_back() -> None:
    memory = BodyMemory(100)
    assert memory.take(500) and not memory.take(1)  # one alone is let in
    memory.give(500)
    assert memory.take(60) and memory.take(40) and not memory.take(1)
    assert memory.used == 100


def connect(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.gateway.port), timeout=10)


def until_used(running: Running, used: int) -> None:
    end = time.monotonic() + 10
    while running.gateway._memory.used != used:
        assert time.monotonic() < end, running.gateway._memory.used
        time.sleep(0.005)


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_request_without_room_is_503_in_the_clients_form(tmp_path: Path, client: str) -> None:
    with gateway(tmp_path, "[server]\nmemory_mib = 4\n") as running:
        with closing(connect(running)) as large:
            missing = post(b"x" * (2 * MEBIBYTE - 1), f"content-length: {2 * MEBIBYTE}")  # its last byte does not come
            large.sendall(missing)
            until_used(running, 4 * MEBIBYTE - 2)
            for fields, body in (
                (["content-length: 5"], b"12345"),
                (["transfer-encoding: chunked"], b"5\r\n12345\r\n0\r\n\r\n"),
                ([f"content-length: {MEBIBYTE}"], b""),  # refused before it comes
            ):
                with closing(connect(running)) as small:
                    small.sendall(post(body, *fields, path=PATHS[client]))
                    answer = small.recv(65536)
                assert status(answer) == 503 and b"\r\nretry-after: 2\r\n" in answer
                assert PROTOCOLS[client].parse_error(503, payload(answer)).kind == "overloaded"
            assert running.request("GET", "/livez")[0] == 200  # takes none
        until_used(running, 0)
        running.answer(stream_of("openai-chat", reply("text")))
        assert running.request("POST", "/v1/chat/completions", BODY)[0] == 200


def test_a_body_takes_memory_as_it_comes(tmp_path: Path) -> None:
    """One that is announced and never comes takes none of it from others; one alone is let in, whole or in chunks."""
    with gateway(tmp_path, "[server]\nmemory_mib = 1\n") as running:
        with closing(connect(running)) as slow:
            slow.sendall(post(b"x", f"content-length: {30 * MEBIBYTE}"))
            until_used(running, 2)
            running.answer(stream_of("openai-chat", reply("text")))
            assert running.request("POST", "/v1/chat/completions", BODY)[0] == 200
        until_used(running, 0)
        large = BODY[:-1] + b" " * MEBIBYTE + b"}"
        chunks = b"".join(b"10000\r\n%b\r\n" % large[at : at + 65536] for at in range(0, len(large) - 65536, 65536))
        rest = large[len(large) // 65536 * 65536 :]
        chunked = b"%b%x\r\n%b\r\n0\r\n\r\n" % (chunks, len(rest), rest)
        for fields, body in ((f"content-length: {len(large)}", large), ("transfer-encoding: chunked", chunked)):
            running.answer(stream_of("openai-chat", reply("text")))
            with closing(connect(running)) as connection:
                connection.sendall(post(body, fields))
                assert status(connection.recv(65536)) == 200
        until_used(running, 0)


def test_memory_is_given_back_whatever_becomes_of_a_request(tmp_path: Path) -> None:
    chance = random.Random(5)
    streamed = BODY[:-1] + b',"stream":true}'
    with gateway(tmp_path) as running:
        for _ in range(150):
            running.answer(stream_of("openai-chat", reply("text")))
            body = chance.choice((BODY, streamed, b"{", b"{}", b"x" * chance.randint(1, 700_000)))
            fields = [f"content-length: {len(body)}"]
            if chance.random() < 0.3:
                body, fields = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body), ["transfer-encoding: chunked"]
            if chance.random() < 0.2:
                fields.append("host: twice")
            data = post(body, *fields) * chance.choice((1, 1, 2, 7))
            cut = chance.choice((len(data), len(data), chance.randint(0, len(data))))
            with suppress(ConnectionError, TimeoutError), closing(connect(running)) as connection:
                connection.sendall(data[:cut])
                if chance.random() < 0.7:
                    connection.settimeout(0.2)
                    connection.recv(chance.choice((1, 65536)))
        until_used(running, 0)
        assert json.loads(BODY)["model"] == "via-openai-chat"


@pytest.mark.parametrize("behind", [0, 1, 2, 5])
def test_what_comes_behind_a_refused_request_takes_no_memory(
    tmp_path: Path, behind: int, caplog: pytest.LogCaptureFixture
) -> None:
    """In the same read: other requests, whole and not, of which the first answer is the only one."""
    refused = b"GET /v1/models HTTP/1.1\r\nhost: evil.example\r\n\r\n"
    large = post(b"x" * 20_000, "content-length: 20000")
    with gateway(tmp_path) as running:
        for others in ([large] * behind, [refused] * behind, [large, refused] * behind):
            with closing(connect(running)) as connection, suppress(ConnectionError):
                connection.sendall(refused + b"".join(others) + large[:200])
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
                assert answer.count(b"HTTP/1.1 ") == 1
        until_used(running, 0)
    assert not [record for record in caplog.records if record.exc_info]


class _Transport(asyncio.Transport):
    """Takes everything and sends nothing."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: object) -> None: ...


class _Application:
    """Lets every request in."""

    is_draining = False

    def __init__(self) -> None:
        self.asked: list[int] = []

    def admit(self, head: object) -> None:
        return None

    async def respond(self, head: object, body: bytes, response_writer: object) -> None:
        self.asked.append(len(body))
        await asyncio.sleep(60)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_client_that_leaves_gives_its_memory_back_though_its_task_never_ran(turns: int, count: int) -> None:
    """With no turn of the event loop between the request and the end of the connection no line of the task runs."""
    application = _Application()

    async def leave() -> None:
        memory = BodyMemory(MEBIBYTE)
        shared = Shared(Limits(), set(), ClientAddresses(most=100), memory)
        connection = Connection(application, shared)  # type: ignore[arg-type]
        connection.connection_made(_Transport())
        connection.data_received(post(b"x" * 10_000, "content-length: 10000") * count)
        assert memory.used == 20_000 * count
        for _ in range(turns):
            await asyncio.sleep(0)
        connection.connection_lost(None)
        for _ in range(5):
            await asyncio.sleep(0)
        assert memory.used == 0 and not shared.peers

    asyncio.run(leave())
    assert application.asked == [10_000] * (turns > 0)
