"""What a store has beside attempts, for those who manage it: keys and quotas. Every change stands in the audit.

Statements are of the SQL that all stores know; `?` stands for a value. The number of a change's audit entry says which
of two changes is the later one.
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
        """Rows."""
        ...

    def execute(self, statement: str, *values: object) -> int:
        """Do; gives to how many rows it was done."""
        ...

    def note(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        """Write into the audit what is changed."""
        ...

    def note_all(self, entries: Iterable[Noted]) -> None:
        """Write into the audit what was changed elsewhere, as it stands there."""
        ...

    def keep_sums(self, month: str, at: int, usage: Iterable[Found], spend: Iterable[Found]) -> None:
        """A month's attempts are not here, and these are their sums. `usage`: of `GROUPS` and `SUMS`; `spend`: account,
        holder, nano-dollars, tokens."""
        ...


class Managed(Protocol):
    """Keys and quotas of one store. For one thread."""

    def changing(self) -> AbstractContextManager[Change]:
        """See `Change`.

        Raises:
            StoreAway, Refused: as `Store.deliver`; nothing was changed.
        """
        ...

    def select(self, statement: str, *values: object) -> list[Found]:
        """Rows; none where nothing was written yet.

        Raises:
            StoreAway: the store cannot be read.
        """
        ...

    def close(self) -> None:
        """Nothing more is changed."""
        ...


def open_managed(folder: LedgerFolder, *, now: Callable[[], float] = time.time) -> Managed:
    """Those of the folder's store. Nothing happens before the first call.

    Raises:
        MissingExtra: the store's driver is not installed.
    """
    if folder.store is None:
        return _ManagedFile(folder.root, now)
    from dragoman.ledger.stores.postgresql import PostgresqlStore

    return PostgresqlStore(folder.store, now=now)


@final
class _ManagedFile:
    """See `Managed`."""

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
    """See `Change`."""

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
