"""The timeouts of a response's phases, and the timer that watches them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final

import msgspec

from dragoman.config import HttpConfig
from dragoman.events import Failure


@final
class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Limits in seconds.

    Attributes:
        first_event: until the first event of the answer. `first_event_local` applies to servers that load a model, and
            to answers that come whole; `first_event_reasoning` to answers with reasoning.
        silence: no byte at all.
        progress: no event of the answer; pings do not count.
        total: the whole response.
    """

    connect: float = 10.0
    first_event: float = 120.0
    first_event_reasoning: float = 300.0
    first_event_local: float = 600.0
    silence: float = 120.0
    progress: float = 300.0
    total: float = 3600.0
    #: after the protocol's own end, how long the body's end is waited for
    trailing: float = 1.0

    def first_event_of(self, *, local: bool, reasoning: bool, whole: bool = False) -> float:
        """Return the limit for the first event of this kind of request. `whole`: it comes when it is complete."""
        if local or whole:
            return self.first_event_local
        return self.first_event_reasoning if reasoning else self.first_event


def read_clocks(http: HttpConfig) -> Timeouts:
    """Return the limits of the configuration."""
    return Timeouts(
        connect=http.connect_seconds,
        first_event=http.first_event_seconds,
        first_event_reasoning=http.reasoning_first_event_seconds,
        first_event_local=http.local_first_event_seconds,
        silence=http.silence_seconds,
        progress=http.no_progress_seconds,
        total=http.total_seconds,
    )


def _nothing() -> None:
    pass


class Guard:
    """An `asyncio.timeout` without its own clock: `expire` ends awaiting inside with `TimeoutError`. Use it once."""

    __slots__ = ("_asked", "_is_expired", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None  # while somebody is inside
        self._asked = 0
        self._is_expired = False

    def __enter__(self) -> None:
        self._task = task = asyncio.current_task()
        assert task is not None
        self._asked = task.cancelling()

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: object) -> None:
        task, self._task = self._task, None
        if not self._is_expired or task is None:
            return
        # Somebody else may have cancelled the task in the meantime: the cancellation must reach it.
        if task.uncancel() <= self._asked and kind is asyncio.CancelledError:
            raise TimeoutError from None

    def expire(self) -> None:
        """Expire now. Does nothing outside the block."""
        if self._task is not None and not self._is_expired:
            self._is_expired = True
            self._task.cancel()


class Watch:
    """One timer for all limits of a response. Recording a byte or an event costs one assignment.

    Attributes:
        size: bytes of the body that were read one read after the other.
    """

    __slots__ = ("_clocks", "_deadline", "_expired", "_first", "_guard", "_handle", "_loop", "_start", "_trailing",
                 "failure", "last_byte", "last_event", "size")  # fmt: skip

    def __init__(self, timeouts: Timeouts, *, first_event: float, deadline: float, expired: Callable[[], None]) -> None:
        """Create it.

        Args:
            deadline: of the whole request, of which this may not be the first try; by the loop's clock.
            expired: called once, when a limit has passed; `failure` then says which.
        """
        self._loop = asyncio.get_running_loop()
        self._clocks = timeouts
        self._first = first_event
        self._deadline = deadline
        self._expired = expired
        self._start = self.last_byte = now = self._loop.time()
        self.last_event: float | None = None
        self.size = 0
        self.failure: Failure | None = None
        self._guard: Guard | None = None
        self._trailing = False
        first = min(deadline, now + min(first_event, timeouts.silence, timeouts.progress))  # as `_next`
        self._handle = self._loop.call_at(first, self._look)

    def now(self) -> float:
        """Return the loop's time."""
        return self._loop.time()

    def trail(self) -> None:
        """Record that the protocol's own end was seen, so that the body's end is not waited for much longer."""
        if not self._trailing:
            self._trailing = True
            self._handle.cancel()
            self._handle = self._loop.call_later(self._clocks.trailing, self._expired)

    def guard(self) -> Guard:
        """Return a guard that ends with `TimeoutError` when a limit passes. Use it once."""
        self._guard = Guard()
        return self._guard

    def stop(self) -> None:
        """Stop: the response is over."""
        self._handle.cancel()
        self._expired = _nothing  # the response holds this watch: in a ring both would stay until a look for garbage

    def _next(self, now: float) -> float:
        """Return when to look next: at latest when a limit that starts now would end, so that no timer is moved."""
        return min(self._limit()[0], now + self._clocks.silence, now + self._clocks.progress)

    def _limit(self) -> tuple[float, str, float]:
        """Return the limit that ends first: its time, its description, its length."""
        timeouts = self._clocks
        total = (self._deadline, "the response took more than", timeouts.total)
        if self.last_event is None:
            return min(total, (self._start + self._first, "nothing of the answer came within", self._first))
        silence = (self.last_byte + timeouts.silence, "no byte came for", timeouts.silence)
        return min(
            total, silence, (self.last_event + timeouts.progress, "nothing of the answer came for", timeouts.progress)
        )

    def _look(self) -> None:
        limit, words, seconds = self._limit()
        now = self._loop.time()
        if now < limit:
            self._handle = self._loop.call_at(self._next(now), self._look)
            return
        self.expire(Failure("timeout", f"{words} {seconds:g} s"))

    def expire(self, failure: Failure) -> None:
        """End the wait with this failure, as a limit does."""
        self._handle.cancel()
        self.failure = failure
        if self._guard is not None:
            self._guard.expire()
        self._expired()
