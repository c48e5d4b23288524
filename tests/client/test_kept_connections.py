"""A connection that a server keeps and then drops: the request that it swallowed is sent again, once."""

import asyncio

import pytest

from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport, TransportFailed
from dragoman.providers.endpoint import Outgoing
from scripted import Step, serving, streamed


async def ask(url: str, times: int) -> list[bytes]:
    transport = Transport(timeouts=Timeouts())
    try:
        bodies = []
        for _ in range(times):
            response = await transport.open(Outgoing("POST", url, {}, b"{}"))
            body = b""
            while data := await response.read():
                body += data
            bodies.append(body)
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


def test_it_is_sent_again_once_only() -> None:
    with serving(streamed(b"one"), ["close"], ["close"], streamed(b"never")) as server:
        with pytest.raises(TransportFailed):
            asyncio.run(ask(server.url, 2))
        assert len(server.requests) == 3
