"""The managed data of a store: keys and quotas. Every change stands in the audit.

Statements use the SQL that all stores share; `?` stands for a value. The number of its audit entry orders a change
among others.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias, final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, read_file
from dragoman.ledger.stores.sqlite import SqliteStore, keep_sums, write_audit, write_entries
from dragoman.ledger.stores.values import Noted

#: A row of an answer.
Found: TypeAlias = tuple[Any, ...]


class Change(Protocol):
    """One transaction: all of it is done, or nothing."""

    def select(self, statement: str, *values: object) -> list[Found]:
        """Return rows."""
        ...

    def execute(self, statement: str, *values: object) -> int:
        """Run a statement. Return the number of rows that it changed."""
        ...

    def note(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        """Append a change to the audit."""
        ...

    def note_all(self, entries: Iterable[Noted]) -> None:
        """Append audit entries of another store as they are."""
        ...

    def keep_sums(self, month: str, at: int, usage: Iterable[Found], spend: Iterable[Found]) -> None:
        """Keep the sums of a month whose attempts are not in this store.

        Args:
            usage: rows of `GROUPS` and `SUMS`.
            spend: account, holder, nano-dollars, tokens.
        """
        ...


class Managed(Protocol):
    """The keys and quotas of one store. For one thread."""

    def changing(self) -> AbstractContextManager[Change]:
        """Open a `Change`. Raises `StoreAway`, `Refused`: as `Store.deliver`; nothing was changed."""
        ...

    def select(self, statement: str, *values: object) -> list[Found]:
        """Return rows. Empty if nothing was written yet. Raises `StoreAway`: the store cannot be read."""
        ...

    def close(self) -> None:
        """Close the store. No further change is made."""
        ...


def open_managed(folder: LedgerFolder, *, now: Callable[[], float] = time.time) -> Managed:
    """Return the keys and quotas of the folder's store. Nothing is opened before the first call.

    Raises:
        MissingExtra: the store's driver is not installed.
    """
    if folder.store is None:
        return _ManagedFile(folder.root, now)
    from dragoman.ledger.stores.postgresql import PostgresqlStore

    return PostgresqlStore(folder.store, now=now)


@final
class _ManagedFile:
    """`Managed` over the SQLite store."""

    __slots__ = ("_file", "_now", "_store")

    def __init__(self, root: Path, now: Callable[[], float]) -> None:
        self._file = root / MAIN_FILE
        self._store = SqliteStore(root, now=now)
        self._now = now

    @contextmanager
    def changing(self) -> Iterator[Change]:
        with self._store.changing() as main:
            yield _FileChange(main, self._now)

    def select(self, statement: str, *values: object) -> list[Found]:
        main = read_file(self._file)
        if main is None:
            return []
        with closing(main):
            try:
                return main.execute(statement, values).fetchall()
            except sqlite3.Error as problem:
                if "no such table" in str(problem):
                    return []  # of an earlier dragoman
                raise StoreAway(f"{MAIN_FILE}: {problem}") from None

    def close(self) -> None:
        self._store.close()


@final
class _FileChange:
    """`Change` over the SQLite store."""

    __slots__ = ("_main", "_now")

    def __init__(self, main: sqlite3.Connection, now: Callable[[], float]) -> None:
        self._main = main
        self._now = now

    def select(self, statement: str, *values: object) -> list[Found]:
        return self._main.execute(statement, values).fetchall()

    def execute(self, statement: str, *values: object) -> int:
        return self._main.execute(statement, values).rowcount

    def note(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        write_audit(self._main, int(self._now() * 1_000_000), actor, action, subject, change)

    def note_all(self, entries: Iterable[Noted]) -> None:
        write_entries(self._main, entries)

    def keep_sums(self, month: str, at: int, usage: Iterable[Found], spend: Iterable[Found]) -> None:
        keep_sums(self._main, month, at, usage, spend)
