"""The ledger's PostgreSQL for requests: one connection of a worker, in its own thread.

No request waits longer than `PATIENCE`. Once the database gave no answer, one request a second tries again, and all
others fail at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from dragoman.gateway.storage.postgresql_tables import prepare_shared
from dragoman.gateway.storage.sqlite import StoreFailed, StoreUnreachable
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.secret import Secret

T = TypeVar("T")
#: Seconds that a request waits for an answer of the database.
PATIENCE: Final = 3.0
#: Seconds until the next request asks a database that gave none.
_PAUSE: Final = 1.0


class SharedDatabase:
    """The connection. For one event loop. Nothing is opened before the first call."""

    __slots__ = ("_connection", "_executor", "_has_failed", "_is_asked", "_is_ready", "_next")

    def __init__(self, address: Secret) -> None:
        self._connection = Connection(address, patience=PATIENCE)
        self._executor: ThreadPoolExecutor | None = None
        self._is_ready = False
        self._has_failed = False
        self._is_asked = False  # after a failure: somebody asks again
        self._next = 0.0

    @property
    def is_away(self) -> bool:
        """Whether a call now would fail at once."""
        return self._has_failed and (self._is_asked or time.monotonic() < self._next)

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the database's thread and return its result. One statement is one transaction.

        Raises:
            StoreUnreachable: no answer in time; the work may be done nevertheless.
            StoreFailed: the database refuses it.
        """
        if self.is_away:
            raise StoreUnreachable("the database gave no answer")
        asks_again = self._is_asked = self._has_failed
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="dragoman-shared")
        try:
            # What was not begun when time is up is not begun any more.
            done = asyncio.wrap_future(self._executor.submit(self._work, work))
            async with asyncio.timeout(PATIENCE):
                found = await done
        except (StoreAway, TimeoutError) as problem:
            self._has_failed, self._next = True, time.monotonic() + _PAUSE
            raise StoreUnreachable(str(problem) or "no answer in time") from None
        except Refused as problem:
            raise StoreFailed(str(problem)) from None
        finally:
            if asks_again:
                self._is_asked = False
        self._has_failed = False
        return found

    def close(self) -> None:
        """Wait for current work, and close the connection."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.submit(self._connection.close)
            executor.shutdown()

    def _work(self, work: Callable[[Connection], T]) -> T:
        connection = self._connection
        if not (self._is_ready and connection.is_open):
            self._is_ready = False
            prepare_shared(connection)
            self._is_ready = True
        return work(connection)
