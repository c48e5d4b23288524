"""Quotas that stand in the ledger's store, beside those of the configuration's file, which stand over the same ones."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman.config.quotas import Quota
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, read_file, serial_of
from dragoman.ledger.stores.sqlite import SqliteStore, write_audit

_ALL: Final = "SELECT body FROM quota ORDER BY name"


class QuotaBook:
    """The store's quotas, for whoever manages them. Every change stands in the audit."""

    __slots__ = ("_actor", "_folder", "_now", "_store")

    def __init__(self, folder: LedgerFolder, *, actor: str, now: Callable[[], float] = time.time) -> None:
        """`actor`: who changes, for the audit."""
        self._folder = folder
        self._store = SqliteStore(folder.root, now=now)
        self._actor = actor
        self._now = now

    def set(self, quota: Quota) -> Quota | None:
        """Set a quota, in place of the one of its name, which is given.

        Raises:
            StoreAway: the store cannot be written.
        """
        at = int(self._now() * 1_000_000)
        with self._store.changing() as main:
            found = main.execute("SELECT body FROM quota WHERE name = ?", (quota.name,)).fetchone()
            before = None if found is None else _read(found[0])
            # Newer than the one before, whatever the clock says.
            generation = at if before is None else max(at, before.generation + 1)
            quota = msgspec.structs.replace(quota, generation=generation)
            main.execute(
                "INSERT OR REPLACE INTO quota VALUES(?,?)", (quota.name, _json.encode(_fields(quota)).decode())
            )
            change: dict[str, Any] = {"before": None if before is None else before.shown, "after": quota.shown}
            write_audit(main, at, self._actor, "quota set", quota.name, change)
        return before

    def remove(self, quota: Quota) -> None:
        """Take a quota away. What was spent stands.

        Raises:
            Refused: there is none of its name.
            StoreAway: as `set`.
        """
        with self._store.changing() as main:
            if not main.execute("DELETE FROM quota WHERE name = ?", (quota.name,)).rowcount:
                raise Refused(f"there is no quota for {quota.name}")
            write_audit(main, int(self._now() * 1_000_000), self._actor, "quota remove", quota.name, {})

    def list(self) -> list[Quota]:
        """All of them.

        Raises:
            StoreAway: the store cannot be read.
        """
        return read_stored(self._folder)

    def close(self) -> None:
        """Nothing more is changed."""
        self._store.close()


def read_stored(folder: LedgerFolder) -> list[Quota]:
    """The store's quotas.

    Raises:
        StoreAway: the store cannot be read.
    """
    main = read_file(folder.root / MAIN_FILE)
    if main is None:
        return []
    with closing(main):
        return _all(main)


def merged(of_file: Iterable[Quota], stored: Iterable[Quota]) -> tuple[Quota, ...]:
    """Those of the file, and those of the store that it does not have."""
    file = tuple(of_file)
    names = {quota.name for quota in file}
    return file + tuple(quota for quota in stored if quota.name not in names)


class QuotaWatch:
    """Sees whether the store's quotas have changed. For one thread.

    Attributes:
        quotas: as they were read last. `are_known`: they could be read, or there is no store.
    """

    __slots__ = ("_connection", "_file", "_serial", "_version", "are_known", "quotas")

    def __init__(self, folder: LedgerFolder) -> None:
        self._file = folder.root / MAIN_FILE
        self._connection: sqlite3.Connection | None = None
        self._serial = (0, 0)  # of the file that is open
        self._version = -1
        self.quotas: list[Quota] = []
        self.are_known = False

    def has_changed(self) -> bool:
        """Look; whether `quotas` are others now. What cannot be read stays as it was known."""
        try:
            if self._connection is None or serial_of(self._file) != self._serial:
                self.close()  # somebody removed it, or put another in its place
                self._serial = serial_of(self._file)
                self._connection, self._version = read_file(self._file), -1
            if self._connection is None:
                return self._is_new([])
            [version] = self._connection.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return False
            self._version = version
            return self._is_new(_all(self._connection))
        except (sqlite3.Error, StoreAway):
            self.close()
            return False

    def close(self) -> None:
        """The next look opens the store anew."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _is_new(self, quotas: list[Quota]) -> bool:
        before, self.quotas, self.are_known = self.quotas, quotas, True
        return before != quotas


def _all(main: sqlite3.Connection) -> list[Quota]:
    """Raises StoreAway."""
    try:
        if main.execute("SELECT 1 FROM sqlite_master WHERE name = 'quota'").fetchone() is None:
            return []  # of an earlier dragoman
        return [quota for (body,) in main.execute(_ALL) if (quota := _read(body)) is not None]
    except sqlite3.Error as problem:
        raise StoreAway(str(problem)) from None


def _fields(quota: Quota) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(quota)
    return fields


def _read(body: str) -> Quota | None:
    try:
        return msgspec.convert(_json.decode(body.encode()), Quota)
    except msgspec.ValidationError:
        return None  # a later dragoman wrote it
