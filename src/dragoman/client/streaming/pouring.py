"""`pour`: pass an answer on from inside the reading of the provider's socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.client.exchange import Exchange
from dragoman.client.passthrough.exchange import PassthroughExchange
from dragoman.client.passthrough.read_along import ReadAlong
from dragoman.client.streaming.threaded_reading import LONGEST, ThreadedReader
from dragoman.events import GROWTH, SEMANTIC, Event, Failure, TextDelta, ThinkingDelta, ToolCallDelta
from dragoman.http.response import Response, TransportFailed
from dragoman.http.timeouts import Timeouts, Watch
from dragoman.routing.metering import Meter, count_text


async def pour(
    response: Response,
    exchange: Exchange | PassthroughExchange,
    passing: PassthroughExchange | None,
    apart: ThreadedReader,
    watch: Watch,
    *,
    give: Callable[[list[Event]], None],
    send: Callable[[bytes], None],
    timeouts: Timeouts,
    meter: Meter | None,
) -> Failure | None:
    """Pass the events of the rest of a body to `give`. Return the failure that broke it, or None.

    Args:
        passing: the exchange, if its bytes pass: `send` takes them, and they are read along.
        meter: gets the length of the model's text. What grows chunk by chunk is counted with a meter or without one, so
            that a chunk costs no more with it, and reported at the end.
    """

    def fed(data: bytes) -> None:
        watch.last_byte = now()
        read(data)

    def given(events: list[Event]) -> None:
        if note_progress(exchange, watch, events):
            if meter is not None:
                count_text(meter, events)
            give(events)

    now, failure = asyncio.get_running_loop().time, None
    read, grown = _reader(exchange, apart, watch, response, give=give, given=given)
    read_along = ReadAlong(read, progress=timeouts.progress)
    try:
        await response.pour(fed if passing is None else _passer(passing, read_along, apart, watch, send))
    except TransportFailed as problem:
        failure = problem.failure
    finally:
        read_along.catch_up()
        if meter is not None:
            meter.grown += grown()
    await apart.idle()
    return failure


def _reader(
    exchange: Exchange | PassthroughExchange,
    apart: ThreadedReader,
    watch: Watch,
    response: Response,
    *,
    give: Callable[[list[Event]], None],
    given: Callable[[list[Event]], None],
) -> tuple[Callable[[bytes], None], Callable[[], int]]:
    """Return a reader of bytes, and a function for the number of characters in events that came alone.

    Those went only to `give`. All others go to `given`.
    """
    grown = 0

    def read(data: bytes) -> None:
        nonlocal grown
        if (size := len(data)) >= LONGEST or apart.is_due(size):
            apart.take(data, response, given)
            return
        apart.size += size
        if events := exchange.feed(data):
            apart.unread = 0
            event = events[0]
            if len(events) == 1 and (
                type(event) is TextDelta or type(event) is ToolCallDelta or type(event) is ThinkingDelta
            ):  # most reads of an answer that comes slowly; nothing can have ended
                watch.last_event = watch.last_byte
                grown += len(event.text)
                give(events)
            else:
                given(events)
        else:
            apart.unread += size
            note_progress(exchange, watch, events)

    return read, lambda: grown


def _passer(
    passing: PassthroughExchange,
    read_along: ReadAlong,
    apart: ThreadedReader,
    watch: Watch,
    send: Callable[[bytes], None],
) -> Callable[[bytes], None]:
    """Return a function that passes bytes on and reads them afterwards; before, if they may be the answer's end."""
    now, pass_on, may_end, keep = asyncio.get_running_loop().time, passing.pass_on, passing.may_end, read_along.keep

    def passed(data: bytes) -> None:
        watch.last_byte = now()
        whole = pass_on(data)
        if may_end(whole):
            keep(data)
            read_along.catch_up()
            if released := passing.released(whole, is_read=not apart.is_busy):
                send(released)
        else:
            if whole:
                send(whole)
            keep(data, is_plain=whole is data)

    return passed


def note_progress(exchange: Exchange | PassthroughExchange, watch: Watch, events: list[Event]) -> list[Event]:
    """Read the next bytes of a body and record progress for the timeouts. Return the events."""
    if events and type(events[-1]) in GROWTH:  # nothing can have ended
        watch.last_event = watch.last_byte
        return events
    if not SEMANTIC.isdisjoint(map(type, events)):
        watch.last_event = watch.last_byte
    if exchange.ended:
        watch.trail()
    return events
