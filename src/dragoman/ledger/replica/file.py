"""The copy: a SQLite file in the ledger's folder. A damaged file is replaced from the store."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.keys import KEY_FIELDS
from dragoman.ledger.replica.age import Moment, now, seconds_between
from dragoman.ledger.stores.files import BESIDE, REPLICA_FILE, open_file, serial_of
from dragoman.ledger.stores.schema import MANAGED
from dragoman.ledger.stores.watching import WatchedFile

#: `number`, `digest`: the last entry of the store's audit that the copy knows; `holders`: who could lease then, in one
#: text. It was heard `age` seconds before the moment (`boot`, `ticks`, `wall`).
_SCHEMA: Final = f"""
{MANAGED}
CREATE TABLE IF NOT EXISTS heard(
  one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, digest BLOB NOT NULL, holders TEXT NOT NULL,
  age REAL NOT NULL, boot TEXT NOT NULL, ticks REAL NOT NULL, wall REAL NOT NULL);
"""
_HEARD: Final = "SELECT number, digest, holders, age, boot, ticks, wall FROM heard"
_MARKS: Final = ",".join("?" * 9)


@final
class Heard(msgspec.Struct, frozen=True):
    """The copy's knowledge of the store, and when it was obtained. See `_SCHEMA`."""

    number: int
    digest: bytes
    holders: tuple[str, ...]
    age: float
    at: Moment

    def seconds(self, moment: Moment) -> float:
        """Return the seconds since the store was last reached."""
        return self.age + seconds_between(self.at, moment)


class ReplicaWatch:
    """A worker's view of the copy. For one thread.

    Attributes:
        heard: as it was read last; None: this machine never reached the store.
    """

    __slots__ = ("_file", "_moment", "heard")

    def __init__(self, folder: LedgerFolder, *, moment: Callable[[], Moment] = now) -> None:
        self._file = WatchedFile(folder.root / REPLICA_FILE)
        self.heard: Heard | None = None
        self._moment = moment

    @property
    def connection(self) -> sqlite3.Connection | None:
        """See `WatchedFile`."""
        return self._file.connection

    def has_changed(self) -> bool:
        """Look again. Return whether keys or quotas may have changed.

        Raises:
            StoreAway: the copy cannot be read; the previous state stays.
        """
        if not self._file.has_changed():
            return False
        before = self.heard
        try:
            self.heard = None if self.connection is None else _read_heard(self.connection)
        except sqlite3.Error as problem:
            self.close()
            raise StoreAway(f"{REPLICA_FILE}: {problem}") from None
        if before is None or self.heard is None:
            return True
        return (before.number, before.digest) != (self.heard.number, self.heard.digest)

    def seconds(self) -> float:
        """Return the seconds since the store was last reached; infinite if it never was or it cannot be told."""
        return float("inf") if self.heard is None else self.heard.seconds(self._moment())

    def holders(self) -> tuple[str, ...]:
        """Return the holders that could lease when the store was last reached."""
        with contextlib.suppress(StoreAway):  # then as they were known
            self.has_changed()
        return () if self.heard is None else self.heard.holders

    def close(self) -> None:
        """Close the copy; the next look opens it again."""
        self._file.close()


def read_age(folder: LedgerFolder) -> float:
    """Return the seconds since this machine last reached the store; infinite if it never did or it cannot be told."""
    watch = ReplicaWatch(folder)
    try:
        with contextlib.suppress(StoreAway):
            watch.has_changed()
        return watch.seconds()
    finally:
        watch.close()


class Replica:
    """The copy as its keeper writes it. For one thread at a time."""

    __slots__ = ("_connection", "_file", "_moment", "_serial")

    def __init__(self, folder: LedgerFolder, *, moment: Callable[[], Moment] = now) -> None:
        self._file = folder.root / REPLICA_FILE
        self._moment = moment
        self._connection: sqlite3.Connection | None = None
        self._serial = (0, 0)  # of the file that is open

    def heard(self) -> Heard | None:
        """Return what the copy knows of the store, or None. Raises `StoreAway`: the copy cannot be written."""
        with self._using() as connection:
            return _read_heard(connection)

    def write(
        self,
        heard: Heard,
        *,
        since: Heard | None,
        keys: Iterable[Sequence[Any]] = (),
        digests: Iterable[Sequence[Any]] = (),
        quotas: Iterable[Sequence[Any]] | None = None,
        is_whole: bool = False,
    ) -> None:
        """Write what changed, atomically. Does nothing if another process has written since.

        Args:
            since: the copy's state that the change is based on.
            keys: rows of `KEY_FIELDS`.
            digests: all digests of these keys.
            quotas: all quotas, or None to leave them.
            is_whole: keys that are not given are removed.

        Raises:
            StoreAway: nothing was written.
        """
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if _read_heard(connection) != since:
                return
            if is_whole:
                connection.execute("DELETE FROM key_digest")
                connection.execute("DELETE FROM virtual_key")
            connection.executemany(f"INSERT OR REPLACE INTO virtual_key({KEY_FIELDS}) VALUES({_MARKS})", keys)
            connection.executemany("INSERT OR REPLACE INTO key_digest VALUES(?,?,?)", digests)
            if quotas is not None:
                connection.execute("DELETE FROM quota")
                connection.executemany("INSERT INTO quota VALUES(?,?)", quotas)
            _write_heard(connection, heard)
            connection.execute("COMMIT")

    def grow_old(self) -> None:
        """Write the copy's age down, so that it is known after the machine was off. Raises StoreAway."""
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            heard, moment = _read_heard(connection), self._moment()
            if heard is not None:
                _write_heard(connection, msgspec.structs.replace(heard, age=heard.seconds(moment), at=moment))
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the copy; the next call opens it again."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None or serial_of(self._file) != self._serial:
                self.close()  # somebody removed it
                self._connection, self._serial = _opened(self._file), serial_of(self._file)
            yield self._connection
        except sqlite3.Error as problem:
            self.close()
            raise StoreAway(f"{REPLICA_FILE}: {problem}") from None
        finally:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.rollback()


def _opened(file: Path) -> sqlite3.Connection:
    """Open the copy. Raises StoreAway, sqlite3.Error."""
    try:
        connection = _sound(file)
    except (sqlite3.DatabaseError, StoreAway):  # it is damaged, or a later dragoman's: the store has all of it
        for suffix in ("", *BESIDE):
            with contextlib.suppress(OSError):
                os.unlink(f"{file}{suffix}")
        connection = _sound(file)
    connection.execute("PRAGMA foreign_keys = OFF")  # the store has looked
    connection.execute("PRAGMA synchronous = NORMAL")  # what a power cut loses of it is copied anew
    return connection


def _sound(file: Path) -> sqlite3.Connection:
    connection = open_file(file, _SCHEMA)
    try:
        connection.execute(_HEARD).fetchone()
        if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("it is damaged")
    except BaseException:
        connection.close()
        raise
    return connection


def _read_heard(connection: sqlite3.Connection) -> Heard | None:
    found = connection.execute(_HEARD).fetchone()
    if found is None:
        return None
    number, digest, holders, age, boot, ticks, wall = found
    return Heard(number, digest, tuple(holders.split()), age, Moment(boot, ticks, wall))


def _write_heard(connection: sqlite3.Connection, heard: Heard) -> None:
    at = heard.at
    values = (heard.number, heard.digest, " ".join(heard.holders), heard.age, at.boot, at.ticks, at.wall)
    connection.execute("INSERT OR REPLACE INTO heard VALUES(1,?,?,?,?,?,?,?)", values)
