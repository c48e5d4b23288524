"""The PostgreSQL that counts, asked from a thread that has an event loop of its own."""

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
    """One connection to a PostgreSQL and the thread that uses it; see `Aside`."""

    __slots__ = ("_address", "_aside", "_connection", "_is_ready", "_tables")

    def __init__(self, address: Secret, tables: str, *, version: str, patience: float) -> None:
        """`tables`: statements that make what is needed beside the store's tables; `version`: of them, a number."""
        self._address = address
        self._tables = (tables, version)
        self._aside = Aside(patience)
        self._connection: Connection | None = None
        self._is_ready = False

    def set_patience(self, seconds: float) -> None:
        """Who calls waits for so long from now on."""
        self._aside.patience = seconds

    def do(self, work: Callable[[Connection], _T]) -> _T:
        """What `work` gives.

        Raises:
            CountersAway: it cannot be had now; perhaps it is done.
        """
        try:
            return self._aside.do(partial(self._work, work))
        except (StoreAway, Refused) as problem:  # numbers beyond 64 bits are refused: nothing more is admitted
            raise CountersAway(str(problem)) from None

    def close(self) -> None:
        """The next call opens it anew."""
        self._aside.close(self._end)

    def fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows that a statement gives. Raises as `do`."""

        return self._on_the_spot(Connection.fetch, Connection.fetch_at_once, statement, values)

    def ask(self, statement: str, *values: object) -> str:
        """The one text that a statement gives which is asked often. Raises as `do`."""
        return self._on_the_spot(Connection.ask, Connection.ask_at_once, statement, values)

    # ------------------------------------------------------------ inside

    def _on_the_spot(
        self, ask: Callable[..., _T], ask_at_once: Callable[..., AtOnce[_T]], statement: str, values: tuple[object, ...]
    ) -> _T:
        def work(connection: Connection) -> _T:
            return ask(connection, statement, *values)

        def at_once(seconds: float) -> AtOnce[_T]:
            connection = self._connection
            if connection is None or not (self._is_ready and connection.is_open):
                return partial(self._work, work)
            return ask_at_once(connection, seconds, statement, *values)

        try:
            return self._aside.do(partial(self._work, work), at_once=at_once)
        except (StoreAway, Refused) as problem:
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
