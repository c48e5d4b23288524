"""Write a streamed answer to the client: events in, bytes out, keep-alives while no events come."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from dragoman.client.passthrough.exchange import is_cut
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.events import SEMANTIC, Event, Failure, Finish, Start, TextDelta
from dragoman.gateway.messages import ResponseWriter
from dragoman.gateway.telemetry.rate_limits import limit_headers, provider_request_id
from dragoman.gateway.telemetry.record import Record
from dragoman.offering import DROPPED
from dragoman.protocol import Encoder

#: In place of an event that is not the last one: those that came together may hold tens of kilobytes of text.
_MORE: Final = TextDelta(0, "")
#: A thread that writes ahead and a keep-alive may both be the first to write.
_MAKING: Final = threading.Lock()


class StreamWriter:
    """Writes a stream. The head leaves with the first event of the answer, or with a keep-alive.

    Attributes:
        refused: the failure that came in place of an answer, before the head left; nothing was written.
    """

    __slots__ = (
        "_content_type", "_encoder", "_handle", "_interval", "_is_begun", "_is_cut", "_last", "_last_write", "_loop",
        "_make_encoder", "_outlet", "_passes", "_record", "_rest", "_start", "_stream", "_written", "refused",
    )  # fmt: skip

    def __init__(
        self,
        stream: ResponseStream,
        make_encoder: Callable[[], Encoder],
        response_writer: ResponseWriter,
        *,
        content_type: str,
        keepalive_seconds: float,
        record: Record,
    ) -> None:
        self._stream = stream
        self._make_encoder = make_encoder
        self._encoder: Encoder | None = None
        self._start: Start | None = None
        self._is_cut = False
        self._outlet = response_writer
        self._content_type = content_type
        self._interval = keepalive_seconds
        self._loop = asyncio.get_running_loop()
        self._last_write = self._loop.time()
        self._handle = self._loop.call_later(keepalive_seconds, self._tick)
        self._record = record
        self._is_begun = False
        self._passes = False  # the bytes are the provider's; known from the first event on
        self._last: Event | None = None
        self._written: deque[bytes] = deque()  # of events that `_take` gets next
        self._rest = b""  # leaves with the body's end
        self.refused: Failure | None = None

    async def run(self) -> None:
        """Write the stream from its first event to its last."""
        try:
            await self._stream.pour(self._take, self._send, self._write_ahead)
        except asyncio.CancelledError:
            if type(self._last) is Finish:  # the client went when it had all
                self._outlet.write(self._rest)
                self._record.end(self._last)
            raise
        finally:
            self._handle.cancel()
            self._record.passed = self._passes
            if self._encoder is not None and not self._passes:
                self._record.note(self._encoder.lost)
        if self.refused is not None:
            return
        if self._last is not None:
            self._record.end(self._last)
        if self._is_cut or (self._encoder is not None and self._encoder.aborted):
            self._outlet.write(self._rest)
            self._outlet.cut()
            self._record.outcome = "cut"
        else:
            self._outlet.end(self._rest)

    def _write_ahead(self, events: list[Event]) -> None:
        """Write events before `_take` has them, called in the thread that read them: there may be many values."""
        if not self._stream.passes and (self._is_begun or type(events[-1]) is not Failure):
            self._written.append(self._write().encode(events))

    def _take(self, events: list[Event]) -> None:
        """Take events, called from inside the reading of the provider's socket: one read, one write, and no wait."""
        last = events[-1]
        if not self._is_begun and type(last) is Failure and SEMANTIC.isdisjoint(map(type, events)):
            self.refused = last
            return
        if self._last is None:
            self._record.begin()
            self._passes = self._stream.passes
        self._last = last if type(last) is Finish or type(last) is Failure else _MORE
        if self._passes:
            data = self._told(events)
        else:
            data = self._written.popleft() if self._written else (self._encoder or self._write()).encode(events)
        if self._is_begun and type(last) is Finish and self._stream.is_over:
            self._rest = data
        elif data or not self._is_begun:
            self._send(data)

    def _told(self, events: list[Event]) -> bytes:
        """Return what must be added to an answer whose bytes pass: only that it failed."""
        if self._start is None and type(events[0]) is Start:
            self._start = events[0]
        last = events[-1]
        if type(last) is not Failure:
            return b""
        self._is_cut = is_cut(events)
        encoder = self._write()
        if self._start is not None:
            encoder.encode([self._start])  # the client has it already
        return encoder.encode([last])

    def _write(self) -> Encoder:
        if self._encoder is None:
            with _MAKING:
                self._encoder = self._encoder or self._make_encoder()
        return self._encoder

    def _send(self, data: bytes) -> None:
        self._last_write = self._loop.time()
        response_writer = self._outlet
        if self._is_begun:
            response_writer.write(data)
        else:
            self._begin(data)
        if response_writer.is_full:
            self._stream.pause()
            response_writer.when_drained(self._stream.resume)

    def _begin(self, data: bytes) -> None:
        self._is_begun = True
        pass_on(self._stream.headers, self._outlet, self._record)
        self._outlet.start(200, self._content_type, data)

    def _tick(self) -> None:
        due = self._last_write + self._interval
        now = self._loop.time()
        if now >= due:
            if not self._is_begun:
                self._begin(self._write().keepalive())
            elif not self._outlet.is_full:
                self._outlet.write(self._write().keepalive())
            self._last_write, due = now, now + self._interval
        self._handle = self._loop.call_at(due, self._tick)


def pass_on(headers: Mapping[str, str], response_writer: ResponseWriter, record: Record) -> None:
    """Copy the provider's headers that concern the client, before its own head leaves."""
    record.provider_request_id = provider_request_id(headers)
    response_writer.headers.update(limit_headers(headers, now=time.time()))
    if DROPPED in headers:
        response_writer.headers[DROPPED] = headers[DROPPED]
