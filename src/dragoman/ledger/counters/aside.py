"""Waiting for a server from a thread that has an event loop of its own, for no longer than is bearable there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from dragoman.ledger.interfaces import CountersAway

_T = TypeVar("_T")


class Aside:
    """One thread for what may take its time. Who calls waits for `patience` seconds, also for others who called before;
    what takes longer goes on there, and until it is done everybody else is told at once that the counters are away.

    Safe for several threads.
    """

    __slots__ = ("_executor", "_lock", "_pending", "patience")

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._pending: Future[Any] | None = None

    def do(self, work: Callable[[], _T]) -> _T:
        """What `work` gives; whatever it raises.

        Raises:
            CountersAway: it is not known in time.
        """
        with self._lock:
            if self._pending is not None and not self._pending.done():
                raise CountersAway("no answer yet")
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="dragoman-counters")
            try:
                future: Future[_T] = self._executor.submit(work)
            except RuntimeError:  # there is no room for a thread, or the process ends
                self._executor = None  # the next call begins one; this one would keep what it was given
                raise CountersAway("there is no room for a thread") from None
        done, _ = wait((future,), self.patience)
        if not done:
            self._pending = future
            raise CountersAway("no answer in time")
        return future.result()

    def close(self, last: Callable[[], object]) -> None:
        """The thread ends with this, if there is one; the next call begins another."""
        with self._lock:
            executor, self._executor = self._executor, None
            if executor is not None:
                executor.submit(last)
                executor.shutdown(wait=False)
            self._pending = None
