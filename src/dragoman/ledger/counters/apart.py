"""A PostgreSQL connection for the counters, used from a thread with its own event loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from dragoman.ledger.counters.aside import Aside, AtOnce
from dragoman.ledger.interfaces import CountersAway, Refused, StoreAway
from dragoman.ledger.stores.postgresql import prepare
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.ledger.stores.postgresql_schema import LOCK
from dragoman.secret import Secret

_T = TypeVar("_T")
#: Seconds until the server ends a statement of the counters.
_STATEMENT: Final = 2.0


class Database:
    """One connection to PostgreSQL and the thread that uses it; see `Aside`."""

    __slots__ = ("_address", "_aside", "_connection", "_is_ready", "_tables")

    def __init__(self, address: Secret, tables: str, *, version: str, patience: float) -> None:
        """Create it; the first call connects.

        Args:
            tables: statements that create what the counters need beside the store's tables.
            version: the version number of these tables.
        """
        self._address = address
        self._tables = (tables, version)
        self._aside = Aside(patience)
        self._connection: Connection | None = None
        self._is_ready = False

    def set_patience(self, seconds: float) -> None:
        """Set how many seconds each later call waits."""
        self._aside.patience = seconds

    def do(self, work: Callable[[Connection], _T]) -> _T:
        """Return the result of `work`.

        Raises:
            CountersAway: no answer came in time. The work may have been done nevertheless.
        """
        return self._done(partial(self._work, work))

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._aside.close(self._end)

    def fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a statement. Raises as `do`."""
        return self.do(lambda connection: connection.fetch(statement, *values))

    def ask(self, statement: str, *values: object) -> str:
        """Return the single text of a statement that is run often: in the caller's thread. Raises as `do`."""

        def at_once(seconds: float) -> AtOnce[str]:
            connection = self._connection
            if connection is None or not (self._is_ready and connection.is_open):
                return work
            return connection.ask_at_once(seconds, statement, *values)

        work = partial(self._work, lambda connection: connection.ask(statement, *values))
        return self._done(work, at_once)

    # ------------------------------------------------------------ inside

    def _done(self, work: Callable[[], _T], at_once: Callable[[float], AtOnce[_T]] | None = None) -> _T:
        try:
            return self._aside.do(work, at_once=at_once)
        except (StoreAway, Refused) as problem:  # numbers beyond 64 bits are refused: nothing more is admitted
            raise CountersAway(str(problem)) from None

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
