"""An answer given on from inside the reading of the provider's socket: `pour`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import compress
from operator import attrgetter
from typing import Final

from dragoman.client.exchange import Exchange
from dragoman.client.passthrough.exchange import PassthroughExchange
from dragoman.client.passthrough.read_along import ReadAlong
from dragoman.client.streaming.apart import LONGEST, Apart
from dragoman.events import GROWTH, SEMANTIC, Event, Failure, ThinkingDelta, UsageUpdate
from dragoman.http.response import Response, TransportFailed
from dragoman.http.timeouts import Timeouts, Watch
from dragoman.routing.metering import Meter

#: Events whose text the model wrote.
_TEXT: Final = GROWTH | {ThinkingDelta}
#: Events that are quicker counted one by one.
_FEW: Final = 4
_text_of: Final[Callable[[Event], str]] = attrgetter("text")


async def pour(
    response: Response,
    exchange: Exchange | PassthroughExchange,
    passing: PassthroughExchange | None,
    apart: Apart,
    watch: Watch,
    *,
    give: Callable[[list[Event]], None],
    send: Callable[[bytes], None],
    timeouts: Timeouts,
) -> Failure | None:
    """Give the events of all that still comes of a body to `give`; returns what broke it.

    Args:
        passing: the exchange, when its bytes pass: `send` takes them, and they are read along.
    """

    def read(data: bytes) -> None:
        if (size := len(data)) >= LONGEST or apart.is_due(size):
            apart.take(data, response, given)
            return
        apart.size += size
        if events := exchange.feed(data):
            apart.unread = 0
            give(note_progress(exchange, watch, events))
        else:
            apart.unread += size
            note_progress(exchange, watch, events)

    def fed(data: bytes) -> None:
        watch.last_byte = now()
        if passing is not None:
            _pass_on(data, passing, read_along, apart, send)
        else:
            read(data)

    def given(events: list[Event]) -> None:
        if note_progress(exchange, watch, events):
            give(events)

    now, failure = asyncio.get_running_loop().time, None
    read_along = ReadAlong(read, progress=timeouts.progress)
    try:
        await response.pour(fed)
    except TransportFailed as problem:
        failure = problem.failure
    finally:
        read_along.catch_up()
    await apart.idle()
    return failure


def _pass_on(
    data: bytes, passing: PassthroughExchange, read_along: ReadAlong, apart: Apart, send: Callable[[bytes], None]
) -> None:
    """Give bytes on and read them after; before, where the answer's end may be in them."""
    whole = passing.pass_on(data)
    if passing.may_end(whole):
        read_along.keep(data)
        read_along.catch_up()
        if released := passing.released(whole, is_read=not apart.is_busy):
            send(released)
    else:
        if whole:
            send(whole)
        read_along.keep(data, is_plain=whole is data)


def note_progress(exchange: Exchange | PassthroughExchange, watch: Watch, events: list[Event]) -> list[Event]:
    """Read the next bytes of a body and tell the clocks what they held; gives the events."""
    if events and type(events[-1]) in GROWTH:  # nothing can have ended
        watch.last_event = watch.last_byte
        return events
    if not SEMANTIC.isdisjoint(map(type, events)):
        watch.last_event = watch.last_byte
    if exchange.ended:
        watch.trail()
    return events


def count_text(meter: Meter, events: list[Event]) -> None:
    """Tell a meter how much the model wrote in these events, and what it is said to have used."""
    if len(events) > _FEW:
        _count_many(meter, events)
        return
    for event in events:
        if type(event) in _TEXT:
            meter.grown += len(event.text)  # type: ignore[union-attr]
        elif type(event) is UsageUpdate:
            meter.usage = event.usage


def _count_many(meter: Meter, events: list[Event]) -> None:
    """The same, without a step of the interpreter for each event."""
    kinds = set(map(type, events))
    if not kinds.isdisjoint(_TEXT):
        texts = events if kinds <= _TEXT else compress(events, map(_TEXT.__contains__, map(type, events)))
        meter.grown += sum(map(len, map(_text_of, texts)))
    if UsageUpdate in kinds:
        meter.usage = next(event.usage for event in reversed(events) if type(event) is UsageUpdate)
