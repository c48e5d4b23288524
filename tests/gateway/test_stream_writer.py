"""What a stream writer gives to its outlet, and when: the last events leave with the body's end, and are never lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast

from cases import counter
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.events import (
    Event,
    Failure,
    Finish,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallFailed,
    ToolCallStart,
)
from dragoman.gateway.messages import Answer, Head
from dragoman.gateway.stream_writer import StreamWriter
from dragoman.gateway.telemetry.record import Record, begin_record
from dragoman.protocol import Encoder
from dragoman.protocols import PROTOCOLS
from for_each import for_each

_Take: TypeAlias = Callable[[list[Event]], None]
_Play: TypeAlias = Callable[[Any, _Take], Awaitable[None]]
TEXT: list[Event] = [Start(), TextStart(0), TextDelta(0, "Hi")]
LAST: list[Event] = [TextDelta(0, "!"), TextEnd(0), Finish("stop")]


class _Outlet:
    """Keeps what it is told, as (what, bytes)."""

    is_full = False

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.told: list[tuple[str, bytes]] = []

    def send(self, answer: Answer) -> None:
        raise AssertionError("expected a stream")

    def start(self, status: int, content_type: str, first: bytes = b"") -> None:
        self.told.append(("start", first))

    def write(self, data: bytes) -> None:
        self.told.append(("write", data))

    def end(self, last: bytes = b"") -> None:
        self.told.append(("end", last))

    def cut(self) -> None:
        self.told.append(("cut", b""))

    async def drained(self) -> None:
        raise AssertionError("it never waits")

    def when_drained(self, go_on: Callable[[], None]) -> None:
        raise AssertionError("it is never full")


class _Stream:
    """Pours what a test pours, and remembers it."""

    is_over = passes = False

    def __init__(self, play: _Play) -> None:
        self.headers: dict[str, str] = {}
        self.poured: list[Event] = []
        self._play = play

    async def pour(self, take: _Take, _send: object, _ahead: object) -> None:
        def noted(events: list[Event]) -> None:
            self.poured += events
            take(events)

        await self._play(self, noted)


def _encoder(protocol: str) -> Encoder:
    return PROTOCOLS[protocol].encoder(new_id=counter(), model="model-1", created=1)


async def _told(protocol: str, play: _Play) -> tuple[list[str], list[bytes], Record]:
    """What the outlet was told, and with which bytes."""
    outlet, record, stream = _Outlet(), begin_record(Head("POST", "/", {})), _Stream(play)
    writer = StreamWriter(
        cast(ResponseStream, stream),
        lambda: _encoder(protocol),
        outlet,
        content_type="text/event-stream",
        keepalive_seconds=60,
        record=record,
    )
    with suppress(asyncio.CancelledError):
        await writer.run()
    words, pieces = [word for word, _ in outlet.told], [data for _, data in outlet.told]
    assert b"".join(pieces) == _encoder(protocol).encode(stream.poured), "each byte once, in order"
    return words, pieces, record


async def _to_its_end(stream: _Stream, take: _Take) -> None:
    take(TEXT)
    await asyncio.sleep(0)
    stream.is_over = True
    take(LAST)
    await asyncio.sleep(0)


async def _at_once(stream: _Stream, take: _Take) -> None:
    stream.is_over = True
    take(TEXT + LAST)


async def _end_told_early(stream: _Stream, take: _Take) -> None:
    take(TEXT)
    take(LAST)  # more may come, and nobody knows when


async def _client_goes_at_the_end(stream: _Stream, take: _Take) -> None:
    await _to_its_end(stream, take)
    raise asyncio.CancelledError


async def _client_goes_before(stream: _Stream, take: _Take) -> None:
    take(TEXT)
    raise asyncio.CancelledError


async def _fails(stream: _Stream, take: _Take) -> None:
    take(TEXT)
    stream.is_over = True
    take([Failure("timeout", "it was silent")])


async def _call_fails_last(stream: _Stream, take: _Take) -> None:
    take([*TEXT, TextEnd(0), ToolCallStart(1, "call_1", "f"), ToolCallDelta(1, '{"a":')])
    stream.is_over = True
    take([ToolCallFailed(1, "call_1", "f", "cut", "it ended", '{"a":'), Finish("stop")])


async def _fails_in_a_call(stream: _Stream, take: _Take) -> None:
    take([*TEXT, TextEnd(0), ToolCallStart(1, "call_1", "f"), ToolCallDelta(1, '{"a":')])
    stream.is_over = True
    take([Failure("timeout", "it was silent")])


#: How an answer goes → what its writer tells the outlet, and what it records.
_COURSES: tuple[tuple[_Play, list[str], str | None], ...] = (
    (_to_its_end, ["start", "end"], "done"),
    (_at_once, ["start", "end"], "done"),
    (_end_told_early, ["start", "write", "end"], "done"),
    (_client_goes_at_the_end, ["start", "write"], "done"),
    (_client_goes_before, ["start"], None),
    (_fails, ["start", "write", "end"], "failed"),
)


@for_each("play, words, outcome", _COURSES)
def test_the_last_events_leave_with_the_end_and_none_is_lost(
    play: _Play, words: list[str], outcome: str | None
) -> None:
    for protocol in PROTOCOLS:
        told, _, record = asyncio.run(_told(protocol, play))
        assert (told, record.outcome) == (words, outcome), protocol


#: The same, where a call whose head has left cannot be taken back: its protocol has no word for that.
_CUTS: tuple[tuple[_Play, list[str]], ...] = (
    (_call_fails_last, ["start", "write", "cut"]),
    (_fails_in_a_call, ["start", "write", "write", "cut"]),  # the second is empty
)


@for_each("play, words", _CUTS)
def test_what_stands_before_a_cut_leaves_before_it(play: _Play, words: list[str]) -> None:
    cut = 0
    for protocol in PROTOCOLS:
        told, _, record = asyncio.run(_told(protocol, play))
        assert (told == words) == (told[-1] != "end") == (record.outcome == "cut"), protocol
        cut += told == words
    assert cut >= 2


def test_a_thread_and_a_keepalive_that_are_first_write_with_one_encoder() -> None:
    both, made = threading.Barrier(2, timeout=0.2), []

    def make() -> Encoder:
        made.append(_encoder("openai-chat"))
        with suppress(threading.BrokenBarrierError):
            both.wait()  # until the other one makes one too
        return made[-1]

    async def run() -> None:
        stream = cast(ResponseStream, _Stream(_to_its_end))
        writer = StreamWriter(stream, make, _Outlet(), content_type="", keepalive_seconds=0.001,
                              record=begin_record(Head("POST", "/", {})))  # fmt: skip
        await asyncio.to_thread(writer._write_ahead, TEXT)
        writer._handle.cancel()

    asyncio.run(run())
    assert len(made) == 1
