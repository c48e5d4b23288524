"""An answer given on from inside the reading of the provider's socket: `pour`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.client.apart import Apart
from dragoman.client.clocks import Clocks, Watch
from dragoman.client.exchange import Exchange
from dragoman.client.passing import PassingExchange
from dragoman.client.response import Response, TransportFailed
from dragoman.client.tap import Tap
from dragoman.events import GROWTH, SEMANTIC, Event, Failure


async def pour(
    response: Response,
    exchange: Exchange | PassingExchange,
    passing: PassingExchange | None,
    apart: Apart,
    watch: Watch,
    *,
    give: Callable[[list[Event]], None],
    send: Callable[[bytes], None],
    clocks: Clocks,
) -> Failure | None:
    """Give the events of all that still comes of a body to `give`; returns what broke it.

    Args:
        passing: the exchange, when its bytes pass: `send` takes them, and they are read along.
    """

    def read(data: bytes) -> None:
        if apart.is_due(len(data)):
            apart.keep(data, response, given)
        elif events := exchange.feed(data):
            apart.unread = 0
            give(note_progress(exchange, watch, events))
        else:
            apart.unread += len(data)
            note_progress(exchange, watch, events)

    def fed(data: bytes) -> None:
        watch.last_byte = now()
        if passing is not None:
            if whole := passing.pass_on(data):
                send(whole)
            tap.keep(data)
        else:
            read(data)

    def given(events: list[Event]) -> None:
        if note_progress(exchange, watch, events):
            give(events)

    now, failure = asyncio.get_running_loop().time, None
    tap = Tap(read, progress=clocks.progress)
    try:
        await response.pour(fed)
    except TransportFailed as problem:
        failure = problem.failure
    finally:
        tap.catch_up()
    await apart.idle()
    return failure


def note_progress(exchange: Exchange | PassingExchange, watch: Watch, events: list[Event]) -> list[Event]:
    """Tell the clocks what came of the next bytes of a body; gives the events."""
    if events and type(events[-1]) in GROWTH:  # nothing can have ended
        watch.last_event = watch.last_byte
        return events
    if not SEMANTIC.isdisjoint(map(type, events)):
        watch.last_event = watch.last_byte
    if exchange.ended:
        watch.trail()
    return events
