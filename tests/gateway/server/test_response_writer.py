"""What a response writer gives to its socket at once: each write of a short answer costs as much as its events."""

import asyncio

from dragoman.gateway.messages import Limits
from dragoman.gateway.server.backpressure import Backpressure
from dragoman.gateway.server.response_writer import HttpResponseWriter


class _Transport(asyncio.Transport):
    """Keeps what is written, and that it was closed."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes) and data
        self.writes.append(data)

    def close(self) -> None:
        self.writes.append(b"closed")


def _writer(*, has_body: bool = True, is_chunked: bool = True) -> tuple[HttpResponseWriter, list[bytes]]:
    transport = _Transport()
    return HttpResponseWriter(transport, Backpressure(1), has_body, is_chunked, keeps=True), transport.writes


def test_an_answer_that_comes_at_once_is_one_write() -> None:
    asyncio.run(_at_once())


async def _at_once() -> None:
    chunked = b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    for has_body, is_chunked, body in ((True, True, chunked), (True, False, b"onetwo"), (False, True, b"")):
        writer, writes = _writer(has_body=has_body, is_chunked=is_chunked)
        writer.start(200, "text/event-stream", b"one")
        writer.end(b"two")
        # In the same turn: the next answer of a pipelined connection, or its closing, may come before the next one.
        assert len(writes) == 1 and writes[0].partition(b"\r\n\r\n")[2] == body
        await asyncio.sleep(0)
        assert len(writes) == 1


def test_what_begins_a_slow_answer_leaves_in_the_same_turn() -> None:
    asyncio.run(_slowly())


async def _slowly() -> None:
    writer, writes = _writer()
    writer.start(200, "text/event-stream", b"one")
    await asyncio.sleep(0)
    assert len(writes) == 1 and writes[0].endswith(b"\r\n\r\n3\r\none\r\n")
    writer.write(b"two")
    writer.end()
    assert writes[1:] == [b"3\r\ntwo\r\n", b"0\r\n\r\n"]


def test_what_is_held_leaves_before_the_connection_is_cut_or_waited_for() -> None:
    asyncio.run(_cut_or_waited_for())


async def _cut_or_waited_for() -> None:
    for is_cut in (True, False):
        writer, writes = _writer()
        writer.start(200, "text/event-stream", b"one")
        if is_cut:
            writer.cut()
        else:
            await writer.drained()
        assert writes[0].endswith(b"3\r\none\r\n") and writes[1:] == [b"closed"][: int(is_cut)]


def test_a_beginning_that_may_fill_the_client_is_not_held() -> None:
    """Whoever writes looks at `is_full` next: the provider was read once more for each client that reads nothing."""
    asyncio.run(_large())


async def _large() -> None:
    for size, is_held in ((1_000, True), (Limits().unsent + 1, False)):
        writer, writes = _writer()
        writer.start(200, "text/event-stream", b"x" * size)
        assert len(writes) == (not is_held)
        await asyncio.sleep(0)
        assert len(writes) == 1
