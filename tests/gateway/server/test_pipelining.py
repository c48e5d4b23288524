"""Several requests on one connection, a broken one behind good ones: what came whole is answered, once, in order."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from conversations import reply
from for_each import for_each
from gateway.running import Running, gateway, stream_of
from gateway.server.test_connection import BODY, LIMITS, payload, post, talk

#: What no reader takes for a request.
BROKEN = (
    b"\x00\r\n\r\n", b"POST / HTTP/1.1\r\nhost: localhost\r\n: v\r\n\r\n",
    b"GET /livez HTTP/2.0\r\nhost: localhost\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"GET /livez HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999999\r\n\r\n",
)  # fmt: skip
GOOD = post(BODY, f"content-length: {len(BODY)}")
VERSION = b"GET /api/version HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway with small limits."""
    with gateway(tmp_path_factory.mktemp("gateway"), limits=LIMITS) as found:
        yield found


@for_each("broken", BROKEN)
@for_each("good", [1, 2, 4])
def test_what_came_before_a_broken_request_is_answered(small: Running, broken: bytes, good: int) -> None:
    small.answer(stream_of("openai-chat", reply("text")))
    answer = talk(small, GOOD + VERSION * (good - 1) + broken + VERSION)
    assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b"HTTP/1.1 ") == good
    assert answer.count(b'{"version":"') == good - 1


def test_a_broken_request_does_not_end_the_answer_before_it(small: Running) -> None:
    """The clock of its head ran on, and closed the connection while the first was answered."""
    begin, *pieces = stream_of("openai-chat", reply("text"))
    small.answer([begin, 1.0, *pieces])
    with closing(socket.create_connection(("127.0.0.1", small.gateway.port), timeout=10)) as connection:
        connection.sendall(GOOD + b"GET /livez HTT")
        time.sleep(0.1)  # its clock runs
        connection.sendall(b"P/9.9\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert int(re.findall(rb"content-length: (\d+)", answer)[0]) == len(payload(answer)) > 0


@for_each("behind", [*BROKEN, VERSION * 40, b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\nx"])
def test_who_sends_on_behind_a_broken_request_is_not_reset(small: Running, behind: bytes) -> None:
    """The reset could take the answers before it from the client."""
    small.answer(stream_of("openai-chat", reply("text")))
    with closing(socket.create_connection(("127.0.0.1", small.gateway.port), timeout=10)) as connection:
        connection.sendall(GOOD + behind)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        for _ in range(3):
            connection.sendall(b"x" * 1000)
            time.sleep(0.02)
    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_more_than_may_wait_are_not_taken(small: Running) -> None:
    small.answer(stream_of("openai-chat", reply("text")))
    answer = talk(small, GOOD + VERSION * 40)
    assert 5 <= answer.count(b"HTTP/1.1 200 OK") == answer.count(b"HTTP/1.1 ") <= 6


@for_each("cut", [1, 6, 20, len(VERSION) - 1, len(VERSION)])
def test_the_end_of_a_body_is_not_counted_as_the_next_head(small: Running, cut: int) -> None:
    """They came at once, and the beginning of a head was refused as one of so many bytes."""
    small.answer(stream_of("openai-chat", reply("text")))
    body = BODY.replace(b"Hi", b"Hi" * 60_000)
    first = post(body, f"content-length: {len(body)}")
    with closing(socket.create_connection(("127.0.0.1", small.gateway.port), timeout=10)) as connection:
        connection.sendall(first[:1000])
        time.sleep(0.05)
        connection.sendall(first[1000:] + VERSION[:cut])
        time.sleep(0.05)
        connection.sendall(VERSION[cut:])
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b"HTTP/1.1 ") == 2
    assert answer.count(b'{"version":"') == 1


@for_each("broken", [b"/\x01", b"\x80", b"*\x80", b""])
def test_a_head_request_that_broke_at_its_target_gets_no_body(small: Running, broken: bytes) -> None:
    head, _, body = talk(small, b"HEAD " + broken + b" HTTP/1.1\r\nhost: localhost\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert body == b""


@for_each("broken", ["x\xe9: 1", ": v", "a: b\r\n c", "content-length: -1", "x: a\x00b"])
def test_a_refused_head_request_gets_no_body(small: Running, broken: str) -> None:
    """It would be read as the beginning of the next answer."""
    head, _, body = talk(
        small, f"HEAD /v1/models HTTP/1.1\r\nhost: localhost\r\n{broken}\r\n\r\n".encode("latin-1")
    ).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert body == b""
