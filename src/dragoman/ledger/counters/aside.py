"""Wait for a server for a bounded time, from a thread whose event loop stands still meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeAlias, TypeVar

from dragoman.ledger.interfaces import CountersAway

_T = TypeVar("_T")
#: An answer, alone in a tuple, or what gives it.
AtOnce: TypeAlias = tuple[_T] | Callable[[], _T]


class Aside:
    """One thread for work that may be slow.

    A caller waits at most `patience` seconds, the wait for earlier callers included. Slow work goes on in the thread;
    until it is done, every other caller gets CountersAway at once. Quick work runs in the caller's thread, because
    handing it over takes longer than most answers.

    Safe for several threads.
    """

    __slots__ = ("_executor", "_last", "_lock", "_pending", "patience")

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._last: Future[Any] | None = None  # that was given to the thread
        self._pending: Future[Any] | None = None  # for which nobody waits any more

    def do(self, work: Callable[[], _T], *, at_once: Callable[[float], AtOnce[_T]] | None = None) -> _T:
        """Return the result of `work`, or raise what it raises.

        Args:
            at_once: called in place of `work` in the caller's thread while the other thread is idle, with the seconds
                that it may take. It returns an answer, or the work that the thread continues with.

        Raises:
            CountersAway: no answer came in time.
        """
        until = time.monotonic() + self.patience
        with self._lock:
            if self._pending is not None and not self._pending.done():
                raise CountersAway("no answer yet")
            if at_once is not None and (self._last is None or self._last.done()):
                self._last = None
                found = at_once(self.patience)
                if isinstance(found, tuple):
                    (answer,) = found
                    return answer
                work = found
            future = self._given(work)
            self._last = future
        done, _ = wait((future,), max(until - time.monotonic(), 0.0))
        if not done:
            self._pending = future
            raise CountersAway("no answer in time")
        return future.result()

    def _given(self, work: Callable[[], _T]) -> Future[_T]:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="dragoman-counters")
        try:
            return self._executor.submit(work)
        except RuntimeError:  # there is no room for a thread, or the process ends
            self._executor = None  # the next call begins one; this one would keep what it was given
            raise CountersAway("there is no room for a thread") from None

    def close(self, last: Callable[[], object]) -> None:
        """End the thread, if there is one, with `last`; the next call starts another."""
        with self._lock:
            executor, self._executor = self._executor, None
            if executor is not None:
                executor.submit(last)
                executor.shutdown(wait=False)
            self._last = self._pending = None
