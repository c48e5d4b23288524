"""A response while it comes: `AsyncStream`, and `Stream` for code without an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from dragoman.client.clocks import Clocks, Watch
from dragoman.client.exchange import Exchange
from dragoman.client.transport import Response, Transport, TransportFailed
from dragoman.events import SEMANTIC, Deviation, Event, Failure, Fold, Reply, ToolCallDelta, ToolCallStart
from dragoman.partial import PartialArguments

T = TypeVar("T")
#: Runs a coroutine in the client's own event loop and waits for it.
Run = Callable[[Coroutine[Any, Any, T]], T]


class AsyncStream:
    """One response. Use it with `async with`, iterate it once; leaving early closes the connection at once.

    Iterating never raises for what the provider or the network does: that is a `Failure` event.
    """

    __slots__ = (
        "_batch", "_clocks", "_done", "_exchange", "_first_event", "_fold", "_has_begun", "_keeps_reply",
        "_partials", "_pending", "_position", "_prepare", "_response", "_transport", "_watch",
    )  # fmt: skip

    def __init__(
        self,
        prepare: Callable[[], Coroutine[Any, Any, Exchange]],
        *,
        transport: Transport,
        clocks: Clocks,
        first_event: float,
        keeps_reply: bool = True,
    ) -> None:
        """`prepare` gives the exchange (it may have to start a server); `first_event` its limit in seconds.
        `keeps_reply` False: batches are not kept, so `reply` and `partial` know nothing of them."""
        self._prepare = prepare
        self._transport = transport
        self._clocks = clocks
        self._first_event = first_event
        self._keeps_reply = keeps_reply
        self._exchange: Exchange | None = None
        self._response: Response | None = None
        self._watch: Watch | None = None
        self._batch: list[Event] = []
        self._position = 0
        self._done = False
        self._has_begun = False  # something of the answer was given out
        self._fold = Fold()
        self._pending: list[Event] = []  # events that were given out and `_fold` has not taken yet
        self._partials: dict[int, PartialArguments] = {}

    # ------------------------------------------------------------ reading

    async def __aenter__(self) -> AsyncStream:
        """Send the request.

        Raises:
            UsageError, ConfigError: the request cannot be sent at all.
        """
        self._exchange = await self._prepare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, if the response is not over."""
        await self.close()

    async def close(self) -> None:
        """Stop reading. The connection is closed at once unless the body was read to its end."""
        self._finish()

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events, as they come."""
        return self

    async def __anext__(self) -> Event:
        """The next event."""
        while self._position == len(self._batch):
            batch = await self._next()
            if not batch:
                raise StopAsyncIteration
            self._batch, self._position = batch, 0
        event = self._batch[self._position]
        self._position += 1
        self._pending.append(event)
        return event

    async def next_batch(self) -> list[Event]:
        """The events of the next bytes that come, at least one; [] at the end. Do not mix with single events."""
        batch = await self._next()
        if self._keeps_reply:
            self._pending += batch
        return batch

    async def pour(self, take: Callable[[list[Event]], None]) -> None:
        """Give every further batch to `take` until the end. Once the answer has begun, `take` is called from inside
        the reading of the socket, without a task's turn in between."""
        while batch := await self.next_batch():
            take(batch)

    async def _next(self) -> list[Event]:
        while not self._done:
            batch = await self._read()
            if not self._has_begun:
                batch = self._asked_again(batch)
            if batch:
                return batch
        return []

    def _asked_again(self, batch: list[Event]) -> list[Event]:
        """The first events; when they say that the server refuses tools, another exchange may come in their place."""
        assert self._exchange is not None
        second = self._exchange.again(batch)
        if second is None:
            self._has_begun = any(type(event) is not Deviation for event in batch)
            return batch
        self._finish()
        self._done = False
        self._exchange, self._response, self._watch = second, None, None
        return [event for event in batch if type(event) is Deviation]

    async def _read(self) -> list[Event]:
        exchange = self._exchange
        if exchange is None:
            raise RuntimeError("expected `async with` around the stream")
        if self._response is None:
            return await self._open(exchange)
        watch = self._watch
        assert watch is not None
        try:
            data = await self._response.read()
        except TransportFailed as problem:
            return self._end(exchange.fail(watch.failure or problem.failure))
        if not data:
            return self._end(exchange.fail(watch.failure) if watch.failure is not None else exchange.close())
        watch.last_byte = watch.now()
        events = exchange.feed(data)
        if any(type(event) in SEMANTIC for event in events):
            watch.note_event()
        if exchange.ended:
            watch.trail()
        return events

    async def _open(self, exchange: Exchange) -> list[Event]:
        self._watch = Watch(self._clocks, first_event=self._first_event, expired=self._expire)
        try:
            async with self._watch.guard():
                self._response = await self._transport.open(exchange.outgoing)
        except TransportFailed as problem:
            return self._end(exchange.fail(self._watch.failure or problem.failure))
        except TimeoutError:
            return self._end(exchange.fail(self._watch.failure or Failure("timeout", "no answer in time")))
        exchange.head(self._response.status, self._response.headers)
        return []

    def _expire(self) -> None:
        if self._response is not None:
            self._response.abort()

    def _end(self, events: list[Event]) -> list[Event]:
        self._finish()
        return events

    def _finish(self) -> None:
        self._done = True
        if self._watch is not None:
            self._watch.stop()
        if self._response is not None:
            self._response.close()

    # ------------------------------------------------------------ looking

    @property
    def reply(self) -> Reply:
        """The response so far, or the whole of it after the last event."""
        return self._folded().reply()

    def partial(self, index: int) -> Mapping[str, Any]:
        """The arguments so far of the call with this part index: a live, read-only view, its last string unfinished
        perhaps. Costs what came since the last look."""
        self._folded()
        view = self._partials.get(index)
        return view.values() if view is not None else {}

    def _folded(self) -> Fold:
        for event in self._pending:
            self._fold.add(event)
            kind = type(event)
            if kind is ToolCallDelta:
                self._partials[event.index].feed(event.text)  # type: ignore[union-attr]
            elif kind is ToolCallStart:
                self._partials[event.index] = PartialArguments()  # type: ignore[union-attr]
        self._pending.clear()
        return self._fold


class Stream:
    """`AsyncStream` without `await`: use it with `with`, iterate it once."""

    __slots__ = ("_run", "_stream")

    def __init__(self, stream: AsyncStream, run: Run[Any]) -> None:
        self._stream = stream
        self._run = run

    def __enter__(self) -> Stream:
        """Send the request.

        Raises:
            UsageError, ConfigError: the request cannot be sent at all.
        """
        self._run(self._stream.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, if the response is not over."""
        self.close()

    def close(self) -> None:
        """Stop reading."""
        self._run(self._stream.close())

    def __iter__(self) -> Iterator[Event]:
        """The events, as they come."""
        stream = self._stream
        while batch := self._run(stream._next()):
            for event in batch:
                stream._pending.append(event)
                yield event

    @property
    def reply(self) -> Reply:
        """The response so far, or the whole of it after the last event."""
        return self._stream.reply

    def partial(self, index: int) -> Mapping[str, Any]:
        """The arguments so far of the call with this part index: a live, read-only view."""
        return self._stream.partial(index)
