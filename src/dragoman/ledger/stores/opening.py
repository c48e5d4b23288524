"""Open the store of a ledger: the SQLite files of its folder, or the PostgreSQL that the configuration names."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Protocol, final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Store, StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, month_file, months_in, read_file
from dragoman.ledger.stores.schema import CHARGES
from dragoman.ledger.stores.sqlite import SqliteStore

#: Seconds that a look at all rows may take.
_PATIENCE: Final = 3_600.0
_ANY: Final = "SELECT 1 FROM {} LIMIT 1"
_UNNAMED: Final = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM dropped_usage WHERE month = '') "
    "OR EXISTS (SELECT 1 FROM dropped_spend WHERE month = '')"
)
#: Tables that statements name by `:attempt` and so on: those of one month.
_OF_MONTH: Final = ("attempt", "adjustment", "usage_hour", "spend")


class StoreReading(Protocol):
    """A store opened for reading.

    Statements use the SQL that all stores share; `?` stands for a value, and `:attempt`, `:adjustment`, `:usage_hour`,
    `:spend` for the tables of the selected month.
    """

    def months(self) -> list[str]:
        """Return the months that have attempts, in order."""
        ...

    def select(self, month: str | None, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield rows of a month, or of the data that belongs to no month (None). Empty if nothing was written yet.

        Raises:
            StoreAway: it cannot be read.
        """
        ...

    def sums(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield rows of all sums (`:usage_hour`, `:spend`), those of dropped months too. A group may come more than
        once.
        """
        ...

    def dropped(self) -> list[str]:
        """Return the months of which only sums are left, in order; "" for months that an earlier dragoman merged."""
        ...

    def dropped_sums(self, month: str, statement: str) -> Iterator[tuple[Any, ...]]:
        """Yield rows of the sums (`:usage_hour` or `:spend`) of a dropped month."""
        ...

    def charges(self, month: str) -> Iterator[tuple[Any, ...]]:
        """Yield what `:spend` must contain by a month's rows and corrections: account, holder, nano-dollars, tokens."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each month."""
        ...


def open_store(folder: LedgerFolder, *, ships: bool = False) -> Store:
    """Return the store for writing. Nothing is opened before the first call.

    `ships`: it is for the shipper of the folder, so what this machine delivers is counted.
    """
    if folder.store is None:
        return SqliteStore(folder.root)
    from dragoman.ledger.stores.postgresql import PostgresqlStore

    if not ships:
        return PostgresqlStore(folder.store)
    from dragoman.ledger.counters.roster import machine_of
    from dragoman.ledger.stores.brought import Brought

    return PostgresqlStore(folder.store, brought=Brought(folder.root, partial(machine_of, folder)))


@contextmanager
def open_reading(folder: LedgerFolder, *, patience: float = _PATIENCE) -> Iterator[StoreReading]:
    """Open the store for reading, each month as one snapshot. `patience`: seconds that a server may take to answer.

    Raises:
        StoreAway: it cannot be read.
    """
    if folder.store is not None:
        from dragoman.ledger.stores.postgresql_reading import open_postgresql

        with open_postgresql(folder.store, patience=patience) as reading:
            yield reading
        return
    files = _Files(folder)
    try:
        yield files
    except sqlite3.Error as problem:
        raise StoreAway(str(problem)) from None
    finally:
        files.close()


def _of_dropped(statement: str) -> str:
    return statement.replace(":usage_hour", "dropped_usage").replace(":spend", "dropped_spend")


@final
class _Files:
    """`StoreReading` over SQLite files. One month's file is open at a time."""

    __slots__ = ("_folder", "_main", "_month", "_name")

    def __init__(self, folder: LedgerFolder) -> None:
        self._folder = folder
        self._main: sqlite3.Connection | None = read_file(folder.root / MAIN_FILE)
        self._month: sqlite3.Connection | None = None
        self._name = ""

    def months(self) -> list[str]:
        return months_in(self._folder.root)

    def select(self, month: str | None, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        connection = self._main if month is None else self._opened(month)
        for name in _OF_MONTH:
            statement = statement.replace(f":{name}", name)
        return iter(()) if connection is None else connection.execute(statement, values)

    def sums(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        yield from self.select(None, statement, *values)
        yield from self.select(None, _of_dropped(statement), *values) if self._keeps_months() else ()
        dropped = set(self.dropped())
        for month in self.months():
            if month not in dropped:
                yield from self.select(month, statement, *values)

    def dropped(self) -> list[str]:
        months = [month for (month,) in self.select(None, "SELECT month FROM dropped ORDER BY month")]
        has_older = any(True for table in ("usage_hour", "spend") for _ in self.select(None, _ANY.format(table)))
        if has_older or (self._keeps_months() and any(True for _ in self.select(None, _UNNAMED))):
            return ["", *(month for month in months if month)]
        return months

    def dropped_sums(self, month: str, statement: str) -> Iterator[tuple[Any, ...]]:
        if not month:
            yield from self.select(None, statement)
        if self._keeps_months():
            yield from self.select(None, f"{_of_dropped(statement)} WHERE month = ?", month)

    def _keeps_months(self) -> bool:
        """Return whether the sums of dropped months are kept by month. An earlier dragoman merged them."""
        found = self.select(None, "SELECT 1 FROM sqlite_master WHERE name = 'dropped_usage'")
        return next(found, None) is not None

    def charges(self, month: str) -> Iterator[tuple[Any, ...]]:
        return self.select(month, CHARGES)

    def sizes(self) -> dict[str, int]:
        return {month: month_file(self._folder.root, month).stat().st_size for month in self.months()}

    def close(self) -> None:
        """Close the files."""
        for connection in (self._main, self._month):
            if connection is not None:
                connection.close()
        self._main = self._month = None

    def _opened(self, month: str) -> sqlite3.Connection | None:
        if self._name != month:
            if self._month is not None:
                self._month.close()
            self._month, self._name = read_file(month_file(self._folder.root, month)), month
            if self._month is not None:
                self._month.execute("BEGIN")  # one state of the file
        return self._month
