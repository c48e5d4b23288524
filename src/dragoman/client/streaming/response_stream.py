"""`ResponseStream`: targets are asked until one answers, then its events are passed on as they come."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from dragoman.bounds import exceeded
from dragoman.client.exchange import Exchange
from dragoman.client.passthrough.exchange import PassthroughExchange
from dragoman.client.passthrough.whole import WholePassthrough
from dragoman.client.streaming.pouring import note_progress, pour
from dragoman.client.streaming.reply_so_far import ReplySoFar
from dragoman.client.streaming.threaded_reading import MOST_EVENTS, ThreadedReader, portions
from dragoman.errors import DragomanError
from dragoman.events import SEMANTIC, Deviation, Event, Failure, Finish, Reply
from dragoman.http.response import NotAsked
from dragoman.http.timeouts import Timeouts, Watch
from dragoman.http.transport import Response, Transport, TransportFailed
from dragoman.routing.attempts import Attempts
from dragoman.routing.metering import count_text
from dragoman.routing.target import Target
from dragoman.types import Attempt

#: Events that are held for the first of an answer; a server that sends more before it says nothing worth waiting for.
_MOST_HELD: Final = 4_096
#: Bytes of an answer, for each of its events that is held until its end; one of the shortest takes as many.
_PER_EVENT: Final = 128


class ResponseStream:
    """One response, read batch by batch. Use it with `async with`; leaving early closes the connection at once.

    Reading never raises for what the provider or the network does: that is a `Failure` event. No event is passed on
    before the answer begins, so that a failure before it may go to another target, or to the same one again.
    """

    __slots__ = (
        "_apart", "_clocks", "_course", "_deadline", "_done", "_exchange", "_first_event", "_has_begun",
        "_held", "_is_closed", "_is_whole", "_prepare", "_random", "_response", "_transcript",
        "_transport", "_watch", "_woken",
    )  # fmt: skip

    def __init__(
        self,
        prepare: Callable[[Target], Coroutine[Any, Any, tuple[Exchange | PassthroughExchange, float]]],
        course: Attempts,
        *,
        transport: Transport | WholePassthrough,
        timeouts: Timeouts,
        random: Callable[[], float],
        keeps_reply: bool = True,
        is_whole: bool = False,
    ) -> None:
        """Create it.

        Args:
            prepare: returns the exchange with a target (it may have to start a server), and the limit in seconds for
                the first event of its answer.
            random: returns numbers from 0 to 1.
            keeps_reply: False: no event is kept, so there is neither `reply` nor `partial`.
            is_whole: the caller reads nothing before the end, so nothing is passed on before it, and a failure in the
                middle of an answer may go to another target too.
        """
        self._prepare = prepare
        self._course = course
        self._transport = transport
        self._clocks = timeouts
        self._random = random
        self._is_whole = is_whole
        self._exchange: Exchange | PassthroughExchange | None = None
        self._response: Response | None = None
        self._watch: Watch | None = None
        self._first_event = 0.0
        self._woken: asyncio.Event | None = None  # while the request waits for its next try
        self._deadline = 0.0  # of the whole request, by the loop's clock
        self._held: list[Event] = []  # events of the answer that were not given out yet
        self._done = self._is_closed = False
        self._has_begun = False  # the commit point: something of the answer was given out
        self._transcript = ReplySoFar() if keeps_reply else None

    # ------------------------------------------------------------ reading

    async def __aenter__(self) -> ResponseStream:
        """Prepare the request. Raises `UsageError`, `ConfigError`: the request cannot be sent at all."""
        self._deadline = (now := asyncio.get_running_loop().time()) + self._clocks.total
        self._course.begin(now)
        problem = await self._make_ready()
        if problem is not None:
            raise problem
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Close the connection, if the response is not over."""
        await self.close()

    async def close(self) -> None:
        """Stop reading. The connection is closed at once unless the body was read to its end."""
        self._wake()
        self._finish()
        self._course.abandoned(asyncio.get_running_loop().time())

    def interrupt(self, failure: Failure) -> None:
        """End the response with this failure now, as a timeout does. No other target is asked."""
        self._wake()
        if self._watch is not None:
            self._watch.expire(failure)

    async def next_batch(self) -> list[Event]:
        """Return the events of the next bytes, at least one, and take them as given out; [] at the end."""
        batch = await self.fetch()
        self.give(batch)
        return batch

    @property
    def is_over(self) -> bool:
        """Whether everything was read: what is given from now on is the last."""
        return self._done

    @property
    def passes(self) -> bool:
        """Whether the answer's bytes are the provider's, for `pour` to pass on."""
        return self._passing() is not None

    def _passing(self) -> PassthroughExchange | None:
        return one if type(one := self._exchange) is PassthroughExchange and one.passes else None

    def body(self) -> bytes:
        """Return the provider's whole body, of an answer that passes and was not poured."""
        return self._exchange.body() if isinstance(self._exchange, PassthroughExchange) else b""

    async def pour(
        self, take: Callable[[list[Event]], None], send: Callable[[bytes], None],
        ahead: Callable[[list[Event]], None] | None = None,
    ) -> None:  # fmt: skip
        """Pass every further batch to `take` until the end, once the answer has begun from inside the reading of the
        socket.

        Args:
            send: takes the bytes of an answer that passes, before `take` has its events.
            ahead: called in a thread with a batch that took long to read, before `take` has it.
        """
        while not self._has_begun:
            if not (batch := await self.next_batch()):
                return
            await self._apart.go_ahead(batch, ahead)
            if (passing := self._passing()) and (begun := passing.begin()):
                send(begun)
            await self._take_all(batch, take)
        batch = []  # a slow pour would hold the first events back
        exchange, passing, watch = self._exchange, self._passing(), self._watch
        apart, response = self._apart, self._response
        if self._done or response is None or exchange is None or watch is None:
            return
        apart.ahead = ahead  # until the answer is over: it knows its writer, which knows the answer

        def noted(batch: list[Event]) -> None:
            self._keep(batch)
            take(batch)

        give = take if self._transcript is None else noted
        clocks, meter = self._clocks, self._course.meter
        try:
            failure = await pour(
                response, exchange, passing, apart, watch, give=give, send=send, timeouts=clocks, meter=meter
            )
        except asyncio.CancelledError:
            if not apart.is_busy and exchange.ended and (batch := self._end(exchange.close())):
                self._note_end(batch)
                give(batch)  # a reader that leaves at the end mark has had all
            raise
        failure = watch.failure or failure
        if batch := self._end(await apart.end(exchange.close if failure is None else partial(exchange.fail, failure))):
            if (kept := exchange.keep()) is not None:
                await kept
            if passing is not None and (rest := passing.rest(batch)):
                send(rest)
            self._note_end(batch)
            await self._take_all(batch, give)

    @staticmethod
    async def _take_all(batch: list[Event], take: Callable[[list[Event]], None]) -> None:
        """Pass events on, very many in portions."""
        if len(batch) <= MOST_EVENTS:
            take(batch)
            return
        for portion in portions(batch):
            take(portion)
            await asyncio.sleep(0)

    def pause(self) -> None:
        """Stop reading: the receiver has a backlog."""
        if self._response is not None:
            self._response.pause()
            self._apart.is_wanted = False

    def resume(self) -> None:
        """Continue after `pause`. The time without bytes was not the provider's."""
        if self._response is not None and (watch := self._watch) is not None:
            watch.last_byte = watch.now()
            self._apart.is_wanted = True
            if not self._apart.is_busy:
                self._response.resume()

    async def fetch(self) -> list[Event]:
        """Return the events of the next bytes, at least one, for `give` as they are given out; [] at the end."""
        while not self._done:
            batch = await self._read()
            if not batch and not self._done:
                continue
            if not self._has_begun:
                # Before the commit point nothing is given out; after it a failure stands.
                batch = await self._before_commit(batch)
            if batch:
                if self._exchange is not None and (kept := self._exchange.keep()) is not None:
                    await kept
                self._note_end(batch)
                return batch
        return []

    def give(self, given: list[Event]) -> None:
        """Keep events that are given out, for `reply` and `partial`, and count them for a meter."""
        if not self._done and (meter := self._course.meter) is not None:
            count_text(meter, given)
        self._keep(given)

    def _keep(self, given: list[Event]) -> None:
        if self._transcript is not None:
            self._transcript.unread += given

    def _note_end(self, batch: list[Event]) -> None:
        if self._done:
            if (meter := self._course.meter) is not None:
                meter.uncounted = batch
            self._course.ended(batch[-1], asyncio.get_running_loop().time())

    async def _before_commit(self, batch: list[Event]) -> list[Event]:
        """Hold events until the answer begins, or a failure stands. Return all that were held, or none."""
        held = self._held
        held += batch
        last = batch[-1] if batch else None
        is_begun = not SEMANTIC.isdisjoint(map(type, batch))
        if isinstance(last, Failure) and (self._is_whole or not is_begun):
            if await self._goes_on(last):
                return []
        elif not isinstance(last, Finish) and (self._is_whole or not (is_begun or len(held) > _MOST_HELD)):
            return []
        self._held, self._has_begun = [], True
        if self._exchange is not None:
            self._exchange.release()
        del self._prepare  # it holds the request, and no other target is asked any more
        return held

    async def _goes_on(self, failure: Failure) -> bool:
        """Return whether the request is sent once more after a failure, to this target or another; then prepare it."""
        loop = asyncio.get_running_loop()
        exchange = self._exchange
        assert exchange is not None
        if self._is_closed:  # interrupted
            return False
        second = exchange.again(self._held)
        if second is not None:  # the server refuses tools: it is asked for them in another way
            self._course.refused_form(failure)
            self._held = [event for event in self._held if type(event) is Deviation]
            self._renew(second, self._first_event)
            return True
        delay = self._course.failed(
            failure,
            now=loop.time(),
            random=self._random(),
            most_wait=self._deadline - loop.time(),
            should_retry=exchange.should_retry,
        )
        if delay is None:
            return False
        self._finish()
        if delay:
            await self._pause(delay)
        if self._is_closed or await self._make_ready() is not None:
            return False
        self._held = []
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait, or until the answer is not wanted any more."""
        self._woken = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    def _wake(self) -> None:
        self._is_closed = True
        if self._woken is not None:
            self._woken.set()

    async def _make_ready(self) -> DragomanError | None:
        """Prepare the request for the next target that can be asked. Return why there is none, or None."""
        while True:
            try:
                exchange, first_event = await self._prepare(self._course.target)
            except DragomanError as problem:
                now = asyncio.get_running_loop().time()
                delay = self._course.unusable(
                    str(problem), now=now, random=self._random(), most_wait=self._deadline - now
                )
                if delay:
                    await self._pause(delay)
                if delay is None or self._is_closed:
                    return problem
                continue
            self._renew(exchange, first_event)
            return None

    def _renew(self, exchange: Exchange | PassthroughExchange, first_event: float) -> None:
        """Replace the exchange."""
        if self._exchange is not None:
            self._finish()
        self._done = self._is_closed
        self._exchange, self._first_event, self._response, self._watch = exchange, first_event, None, None
        self._apart = ThreadedReader(exchange.feed, self._course.target.bounds.apart)

    async def _read(self) -> list[Event]:
        exchange = self._exchange
        if exchange is None:
            raise RuntimeError("expected `async with` around the stream")
        if self._response is None and ((events := await self._open(exchange)) or self._done):
            return events
        response, watch = self._response, self._watch
        assert response is not None and watch is not None
        while True:
            try:
                data = await response.read()
            except TransportFailed as problem:
                return self._end(exchange.fail(watch.failure or problem.failure))
            if not data:
                failure = watch.failure
                work = exchange.close if failure is None else partial(exchange.fail, failure)
                return self._end(await self._apart.end(work))
            watch.last_byte = watch.now()
            watch.size += len(data)
            if self._is_whole:
                most, held = self._course.target.bounds.whole, max(watch.size, len(self._held) * _PER_EVENT)
                if held > most:
                    wanted = f"an answer of at most {most} bytes to give in one piece"
                    why = exceeded(wanted, "whole_mib", f"{held} or more")
                    return self._end(exchange.fail(Failure("answer_too_large", why)))
            events = note_progress(exchange, watch, await self._apart.run(data))
            if exchange.has_error:
                return self._end(exchange.close())
            if events or self._done:
                return events

    async def _open(self, exchange: Exchange | PassthroughExchange) -> list[Event]:
        self._watch = Watch(self._clocks, first_event=self._first_event, deadline=self._deadline, expired=self._expire)
        self._course.sent(self._watch.now())
        meter = self._course.meter
        try:
            with self._watch.guard():
                self._response = await self._transport.open(
                    exchange.outgoing, self._course.before_send(exchange.outgoing)
                )
        except NotAsked as refused:
            *before, failed = exchange.fail(refused.failure)
            return self._end([*before, msgspec.structs.replace(failed, message=refused.failure.message)])
        except TransportFailed as problem:
            return self._end(exchange.fail(self._watch.failure or problem.failure))
        except TimeoutError:
            return self._end(exchange.fail(self._watch.failure or Failure("timeout", "no answer in time")))
        headers = self._response.headers
        if meter is not None:
            meter.headers = headers
        if "retry-after" in headers and "date" not in headers:  # it may be a date, which counts from this one
            from email.utils import formatdate

            headers = {**headers, "date": formatdate(usegmt=True)}
        exchange.head(self._response.status, headers)
        if self._is_closed:
            self._finish()
        return []

    def _expire(self) -> None:
        if self._response is not None:
            self._response.abort()

    def _end(self, events: list[Event]) -> list[Event]:
        self._finish()
        return events

    def _finish(self) -> None:
        self._done = True
        if self._exchange is not None:
            self._apart.stop()
        if self._watch is not None:
            self._watch.stop()
        if self._response is not None:
            self._response.close()

    # ------------------------------------------------------------ looking

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The targets that were asked or skipped so far, in order, each with its outcome."""
        return tuple(self._course.attempts)

    @property
    def size(self) -> int:
        """Bytes of the answer's body that were read, without those that were poured."""
        return self._watch.size if self._watch is not None else 0

    @property
    def retries_itself(self) -> bool:
        """Whether this side has retried after a failure, so that its caller need not."""
        return self._course.retries

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the provider's response, names in lower case; none before they came."""
        return self._exchange.headers if self._exchange is not None else {}

    @property
    def reply(self) -> Reply:
        """The response so far, or the whole of it after the last event."""
        return self._told().reply()

    def partial(self, index: int) -> Mapping[str, Any]:
        """Return the arguments so far of the call with this part index: a live, read-only view.

        Its last string may be unfinished. It costs what came since the last look.
        """
        return self._told().arguments(index)

    def _told(self) -> ReplySoFar:
        if self._transcript is None:
            raise RuntimeError("expected a stream that keeps its reply")
        return self._transcript
