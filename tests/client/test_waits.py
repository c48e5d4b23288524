"""Waits that are ended from outside, and header lines that are kept for the next request."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.http.pool import _rendered, _split
from dragoman.http.timeouts import Guard
from dragoman.http.transport import TransportFailed
from dragoman.providers.endpoint import Outgoing

URL = "http://127.0.0.1:9/v1"


async def _guarded(guard: Guard) -> str:
    with guard:
        await asyncio.sleep(30)
    return "ended"


def test_a_wait_that_is_ended_is_a_timeout() -> None:
    async def run() -> None:
        guard = Guard()
        waiting = asyncio.create_task(_guarded(guard))
        await asyncio.sleep(0)
        guard.expire()
        guard.expire()
        with pytest.raises(TimeoutError):
            await waiting
        assert not waiting.cancelled() and not waiting.cancelling()

    asyncio.run(run())


def test_whoever_cancels_a_wait_too_is_owed_that() -> None:
    async def run() -> None:
        guard = Guard()
        waiting = asyncio.create_task(_guarded(guard))
        await asyncio.sleep(0)
        guard.expire()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())


def test_the_end_of_a_wait_that_is_over_changes_nothing() -> None:
    async def run() -> None:
        guard = Guard()
        guard.expire()
        with guard:
            await asyncio.sleep(0)
        guard.expire()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_lines_that_are_kept_are_those_of_the_same_fields() -> None:
    place = _split(URL)
    asked = [{"a": "1"}, {"a": "1"}, {"a": "2"}, {"a": "1", "content-length": "9"}, {}, {"b": "1"}]
    for fields in asked:
        for body in (b"", b"{}"):
            head = _rendered(Outgoing("POST", URL, fields, body), place)
            assert head == _rendered(Outgoing("POST", URL, fields, body), _split(URL))
            assert head.count(b"content-length") == 1 and b"content-length: %d\r\n" % len(body) in head
            for name, value in fields.items():
                assert name == "content-length" or f"\r\n{name}: {value}\r\n".encode() in head
    with pytest.raises(TransportFailed):
        _rendered(Outgoing("POST", URL, {"a": "1\r\nb: 2"}, b""), place)


def test_a_clients_own_login_is_not_kept() -> None:
    place = _split(URL)
    _rendered(Outgoing("POST", URL, {"authorization": "Bearer theirs"}, b"", has_login=True), place)
    assert b"theirs" not in place._head and not place._fields
