"""Waiting for a database from a thread that has an event loop of its own, for no longer than is bearable there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from dragoman.ledger.interfaces import CountersAway, Refused, StoreAway
from dragoman.ledger.stores.postgresql import prepare
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.ledger.stores.postgresql_schema import LOCK
from dragoman.secret import Secret

_T = TypeVar("_T")
#: Seconds until the server ends a statement of the counters.
_STATEMENT: Final = 2.0


class Database:
    """One connection to a PostgreSQL and one thread that uses it. Who calls waits for `patience` seconds; what takes
    longer goes on there, and until it is done everybody else is told at once that the counters are away.

    Safe for several threads.
    """

    __slots__ = ("_address", "_connection", "_executor", "_is_ready", "_lock", "_patience", "_pending", "_tables")

    def __init__(self, address: Secret, tables: str, *, version: str, patience: float) -> None:
        """`tables`: statements that make what is needed beside the store's tables; `version`: of them, a number."""
        self._address = address
        self._tables = (tables, version)
        self._patience = patience
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._pending: Future[Any] | None = None
        self._connection: Connection | None = None
        self._is_ready = False

    def do(self, work: Callable[[Connection], _T]) -> _T:
        """What `work` gives.

        Raises:
            CountersAway: it cannot be had now; perhaps it is done.
        """
        with self._lock:
            if self._pending is not None and not self._pending.done():
                raise CountersAway("the database has not answered yet")
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="dragoman-counters")
            try:
                future: Future[_T] = self._executor.submit(self._work, work)
            except RuntimeError:  # there is no room for a thread, or the process ends
                self._executor = None  # the next call begins one; this one would keep what it was given
                raise CountersAway("no thread to ask the database") from None
            self._pending = future
        try:
            return future.result(self._patience)
        except TimeoutError:
            raise CountersAway("no answer in time") from None
        except (StoreAway, Refused) as problem:  # numbers beyond 64 bits are refused: nothing more is admitted
            raise CountersAway(str(problem)) from None

    def close(self) -> None:
        """The next call opens it anew."""
        with self._lock:
            executor, self._executor = self._executor, None
            if executor is not None:
                executor.submit(self._end)
                executor.shutdown(wait=False)
            self._pending = None

    # ------------------------------------------------------------ inside

    def _work(self, work: Callable[[Connection], _T]) -> _T:
        connection = self._connection
        if connection is None:
            connection = self._connection = Connection(self._address, patience=_STATEMENT)
        if not (self._is_ready and connection.is_open):
            self._is_ready = False
            self._prepare(connection)
            connection.execute("SET synchronous_commit = off")  # what a crash loses is of a life that has ended
            self._is_ready = True
        return work(connection)

    def _prepare(self, connection: Connection) -> None:
        tables, version = self._tables
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            prepare(connection)
            if connection.fetch("SELECT 1 FROM meta WHERE name = 'counters' AND value::int >= $1::int", int(version)):
                return
            connection.execute(tables)
            connection.execute(
                "INSERT INTO meta VALUES('counters', $1) ON CONFLICT(name) DO UPDATE SET value = $1", version
            )

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        self._is_ready = False
        if connection is not None:
            connection.close()
