"""The stores that the tests are for, side by side: SQLite's, and PostgreSQL's where this platform has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reliability.engines import MISSING, PostgreSQL

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Store
from dragoman.ledger.stores.opening import open_reading
from dragoman.ledger.stores.schema import COLUMNS, GROUPS, SUMS
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.secret import Secret
from ledger.histories import START

KINDS: Final = ("sqlite",) if MISSING else ("sqlite", "postgresql")
_TABLES: Final = (
    "attempt, adjustment, usage_hour, spend, price, set_aside, dropped, audit, quota, virtual_key, key_digest"
)


class Engines:
    """Gives empty stores. One PostgreSQL serves all tests of a process; it begins when the first asks for it."""

    def __init__(self) -> None:
        self._server: PostgreSQL | None = None
        self._store: Any = None

    @property
    def server(self) -> PostgreSQL:
        """The PostgreSQL."""
        if self._server is None:
            self._server = PostgreSQL().__enter__()
        return self._server

    @contextmanager
    def open(self, kind: str, root: Path) -> Iterator[tuple[LedgerFolder, Store]]:
        """An empty store of a kind, whose clock stands still, and its folder."""
        if kind == "sqlite":
            store = SqliteStore(root, now=now)
            try:
                yield LedgerFolder(root), store
            finally:
                store.close()
            return
        folder = LedgerFolder(root, Secret(self.server.address))
        yield folder, self._emptied(folder)

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """The address of an empty database of its own."""
        from dragoman.ledger.stores.postgresql_connection import Connection

        connection = Connection(Secret(self.server.address))
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield self.server.address_of(name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            connection.close()

    def close(self) -> None:
        """No more tests."""
        if self._store is not None:
            self._store.close()
        if self._server is not None:
            self._server.__exit__()

    def _emptied(self, folder: LedgerFolder) -> Store:
        from dragoman.ledger.stores.postgresql import PostgresqlStore

        assert folder.store is not None
        if self._store is None:
            self._store = PostgresqlStore(folder.store, now=now)
        with self._store._writing() as connection:
            connection.execute(emptied(_TABLES))
        return self._store  # type: ignore[no-any-return]


def emptied(tables: str) -> str:
    """Statements that take all rows out of tables, those that must stay too. TRUNCATE makes new files for each table,
    which takes 60 times as long where there are few rows."""
    deletions = "".join(f"DELETE FROM {table}; " for table in tables.split(", "))
    return f"SET LOCAL session_replication_role = replica; {deletions}SET LOCAL session_replication_role = origin"


def now() -> float:
    """The one moment of all stores."""
    return START / 1_000_000


def dump(folder: LedgerFolder) -> dict[str, list[tuple[Any, ...]]]:
    """All that stands in a store, in one order and one form for all kinds of them."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with open_reading(folder) as reading:
        for month in reading.months():
            for table, names, order in (
                ("attempt", COLUMNS, "id"),
                ("adjustment", ("id", "attempt", "nano", "prices", "reason", "actor", "at"), "attempt, id"),
                ("usage_hour", (*GROUPS, *SUMS), ", ".join(GROUPS)),
            ):
                rows = list(reading.select(month, f"SELECT {', '.join(names)} FROM :{table} ORDER BY {order}"))
                if rows:
                    found[f"{table} {month}"] = sorted(rows) if table == "usage_hour" else rows
        spend: dict[tuple[int, str], tuple[int, int]] = {}
        for account, holder, nano, tokens in reading.sums("SELECT account, holder, nano, tokens FROM :spend"):
            before = spend.get((account, holder), (0, 0))
            spend[account, holder] = (before[0] + nano, before[1] + tokens)
        found["spend"] = [(*who, *what) for who, what in sorted(spend.items())]
        sums: dict[tuple[Any, ...], list[int]] = {}
        for row in reading.sums(f"SELECT {', '.join((*GROUPS, *SUMS))} FROM :usage_hour"):
            total = sums.setdefault(row[: len(GROUPS)], [0] * len(SUMS))
            total[:] = [mine + given for mine, given in zip(total, row[len(GROUPS) :], strict=True)]
        found["sums"] = [(*group, *total) for group, total in sorted(sums.items())]
        for table, names in (
            ("price", "id, target, source, body"),
            ("set_aside", "name, reason, data, at"),
            ("dropped", "month, at"),
            ("audit", "id, at, actor, action, subject, change, previous, digest"),
        ):
            found[table] = list(reading.select(None, f"SELECT {names} FROM {table} ORDER BY 1"))
    return found


def alike(action: Callable[[], object]) -> object:
    """What an action gives, or the name of what it raises: the words of each store are its own."""
    try:
        return action()
    except Exception as problem:
        return type(problem).__name__
