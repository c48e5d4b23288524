"""Quotas that stand in the ledger's store, beside those of the configuration's file, which stand over the same ones."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman.config.quotas import Quota
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, read_file, serial_of
from dragoman.ledger.stores.managing import open_managed

ALL_QUOTAS: Final = "SELECT body FROM quota ORDER BY name"
_SET: Final = "INSERT INTO quota VALUES(?,?) ON CONFLICT(name) DO UPDATE SET body = excluded.body"


class QuotaBook:
    """The store's quotas, for whoever manages them. Every change stands in the audit.

    Beside a PostgreSQL there may be quotas of this machine alone, made while its ledger stood in files: they hold here
    until they are removed here, where the store has none of their name.
    """

    __slots__ = ("_actor", "_machine", "_now", "_store")

    def __init__(self, folder: LedgerFolder, *, actor: str, now: Callable[[], float] = time.time) -> None:
        """`actor`: who changes, for the audit."""
        self._store = open_managed(folder, now=now)
        self._machine = None if folder.store is None else open_managed(LedgerFolder(folder.root), now=now)
        self._actor = actor
        self._now = now

    def set(self, quota: Quota) -> Quota | None:
        """Set a quota, in place of the one of its name, which is given.

        Raises:
            StoreAway: the store cannot be written.
        """
        at = int(self._now() * 1_000_000)
        with self._store.changing() as change:
            found = change.select("SELECT body FROM quota WHERE name = ?", quota.name)
            before = read_body(found[0][0]) if found else None
            # Newer than the one before, whatever the clock says.
            generation = at if before is None else max(at, before.generation + 1)
            quota = msgspec.structs.replace(quota, generation=generation)
            body = _json.encode(msgspec.to_builtins(quota)).decode()
            change.execute(_SET, quota.name, body)
            both = {"before": None if before is None else before.shown, "after": quota.shown}
            change.note(self._actor, "quota set", quota.name, both)
        return before

    def remove(self, quota: Quota) -> None:
        """Take a quota away, of the store and of this machine. What was spent stands.

        Raises:
            Refused: there is none of its name.
            StoreAway: as `set`.
        """
        removed = False
        for place in (self._store, self._machine):
            if place is None or not place.select("SELECT 1 FROM quota WHERE name = ?", quota.name):
                continue
            with place.changing() as change:
                change.execute("DELETE FROM quota WHERE name = ?", quota.name)
                change.note(self._actor, "quota remove", quota.name, {})
            removed = True
        if not removed:
            raise Refused(f"there is no quota for {quota.name}")

    def list(self) -> list[Quota]:
        """All of the store.

        Raises:
            StoreAway: the store cannot be read.
        """
        return read_bodies(self._store.select(ALL_QUOTAS))

    def of_machine(self) -> Sequence[Quota]:
        """Those of this machine alone that hold beside the store's. Raises as `list`."""
        if self._machine is None:
            return []
        stored = self.list()
        return merged(stored, read_bodies(self._machine.select(ALL_QUOTAS)))[len(stored) :]

    def close(self) -> None:
        """Nothing more is changed."""
        self._store.close()
        if self._machine is not None:
            self._machine.close()


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
        return read_bodies(main.execute(ALL_QUOTAS))
    except sqlite3.Error as problem:
        raise StoreAway(str(problem)) from None


def read_bodies(rows: Iterable[Sequence[Any]]) -> list[Quota]:
    """Of rows of `ALL_QUOTAS`, without those that a later dragoman wrote."""
    return [quota for (body,) in rows if (quota := read_body(body)) is not None]


def read_body(body: str) -> Quota | None:
    """A quota as it is kept; None: a later dragoman wrote it."""
    try:
        return msgspec.convert(_json.decode(body.encode()), Quota)
    except msgspec.ValidationError:
        return None
