"""A streamed answer on its way to the client: events in, bytes out, keep-alives where no events come."""

from __future__ import annotations

import asyncio
import time

from dragoman.client import AsyncStream
from dragoman.contract import Encoder
from dragoman.events import SEMANTIC, Event, Failure
from dragoman.gateway.http import Outlet
from dragoman.gateway.observe import Record
from dragoman.gateway.rates import limit_headers, provider_request_id


class Flow:
    """Writes a stream. The head leaves with the first event that says something of the answer, or with a keep-alive.

    Attributes:
        refused: the failure that came in place of an answer, while its status could still be told; nothing was written.
    """

    __slots__ = (
        "_content_type", "_encoder", "_handle", "_interval", "_last_write", "_loop", "_outlet", "_record", "_stream",
        "_is_begun", "_last", "refused",
    )  # fmt: skip

    def __init__(
        self,
        stream: AsyncStream,
        encoder: Encoder,
        outlet: Outlet,
        *,
        content_type: str,
        keepalive_seconds: float,
        record: Record,
    ) -> None:
        self._stream = stream
        self._encoder = encoder
        self._outlet = outlet
        self._content_type = content_type
        self._interval = keepalive_seconds
        self._loop = asyncio.get_running_loop()
        self._last_write = self._loop.time()
        self._handle = self._loop.call_later(keepalive_seconds, self._tick)
        self._record = record
        self._is_begun = False
        self._last: Event | None = None
        self.refused: Failure | None = None

    async def run(self) -> None:
        """Write the stream from its first event to its last."""
        try:
            await self._stream.pour(self._take)
        finally:
            self._handle.cancel()
        if self.refused is not None:
            return
        if self._last is not None:
            self._record.end(self._last)
        if self._encoder.aborted:
            self._outlet.cut()
            self._record.outcome = "cut"
        else:
            self._outlet.end()

    def _take(self, events: list[Event]) -> None:
        """Called from inside the reading of the provider's socket: one read, one write, and no wait."""
        last = events[-1]
        if not self._is_begun:
            if type(last) is Failure and SEMANTIC.isdisjoint(map(type, events)):
                self.refused = last
                return
            self._begin()
        if self._last is None:
            self._record.begin()
        self._last = last
        data = self._encoder.encode(events)
        if not data:
            return
        self._last_write = self._loop.time()
        outlet = self._outlet
        outlet.write(data)
        if outlet.is_full:
            self._stream.pause()
            outlet.when_drained(self._stream.resume)

    def _begin(self) -> None:
        self._is_begun = True
        pass_on(self._stream, self._outlet, self._record)
        self._outlet.start(200, self._content_type)

    def _tick(self) -> None:
        due = self._last_write + self._interval
        now = self._loop.time()
        if now >= due:
            if not self._is_begun:
                self._begin()
            if not self._outlet.is_full:
                self._outlet.write(self._encoder.keepalive())
            self._last_write, due = now, now + self._interval
        self._handle = self._loop.call_at(due, self._tick)


def pass_on(stream: AsyncStream, outlet: Outlet, record: Record) -> None:
    """What of the provider's head is the client's business, before its own head leaves."""
    headers = stream.headers
    record.provider_request_id = provider_request_id(headers)
    outlet.headers.update(limit_headers(headers, now=time.time()))
