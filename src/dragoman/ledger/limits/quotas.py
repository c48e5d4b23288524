"""Quotas in the ledger's store. A quota of the configuration file replaces the store's quota of the same scope and
period.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman.config.quotas import Quota
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Missing, StoreAway
from dragoman.ledger.replica.file import ReplicaWatch
from dragoman.ledger.stores.files import MAIN_FILE
from dragoman.ledger.stores.managing import open_managed
from dragoman.ledger.stores.watching import WatchedFile

ALL_QUOTAS: Final = "SELECT body FROM quota ORDER BY name"
_SET: Final = "INSERT INTO quota VALUES(?,?) ON CONFLICT(name) DO UPDATE SET body = excluded.body"


class QuotaBook:
    """Manages the store's quotas. Every change stands in the audit.

    Beside PostgreSQL there may be quotas of this machine alone, created while its ledger was in files. Where the store
    has none of their name, they apply until they are removed here.
    """

    __slots__ = ("_actor", "_machine", "_now", "_store")

    def __init__(self, folder: LedgerFolder, *, actor: str, now: Callable[[], float] = time.time) -> None:
        """Create it. `actor` is who makes the changes, for the audit."""
        self._store = open_managed(folder, now=now)
        self._machine = None if folder.store is None else open_managed(LedgerFolder(folder.root), now=now)
        self._actor = actor
        self._now = now

    def set(self, quota: Quota) -> Quota | None:
        """Set a quota. Return the previous one of its name. Raises `StoreAway`: the store cannot be written."""
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
        """Remove a quota from the store and from this machine. Its spend stays.

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
            raise Missing(f"there is no quota for {quota.name}")

    def list(self) -> list[Quota]:
        """Return all quotas of the store. Raises `StoreAway`: the store cannot be read."""
        return read_bodies(self._store.select(ALL_QUOTAS))

    def of_machine(self) -> Sequence[Quota]:
        """Return the quotas of this machine alone that apply beside the store's. Raises as `list`."""
        if self._machine is None:
            return []
        stored = self.list()
        return merged(stored, read_bodies(self._machine.select(ALL_QUOTAS)))[len(stored) :]

    def close(self) -> None:
        """Close the store. No further change is made."""
        self._store.close()
        if self._machine is not None:
            self._machine.close()


def read_stored(folder: LedgerFolder) -> list[Quota]:
    """Return the quotas of the store and of this machine. Those of PostgreSQL come from this machine's copy.

    Raises:
        StoreAway: they cannot be read.
    """
    watch = QuotaWatch(folder)
    try:
        return watch.read()
    finally:
        watch.close()


def merged(*places: Iterable[Quota]) -> tuple[Quota, ...]:
    """Return the quotas of the first place, and of each further place those that no earlier place has."""
    found: dict[str, Quota] = {}
    for place in places:
        for quota in place:
            found.setdefault(quota.name, quota)
    return tuple(found.values())


class QuotaWatch:
    """Watches the store's quotas for changes. For one thread.

    Attributes:
        quotas: as they were read last.
        are_known: they could be read, or there is no store.
    """

    __slots__ = ("_found", "_watched", "are_known", "quotas")

    def __init__(self, folder: LedgerFolder) -> None:
        of_machine = WatchedFile(folder.root / MAIN_FILE)
        self._watched: list[WatchedFile | ReplicaWatch] = [of_machine]
        if folder.store is not None:
            self._watched.insert(0, ReplicaWatch(folder))
        self._found: list[list[Quota]] = [[] for _ in self._watched]
        self.quotas: list[Quota] = []
        self.are_known = False

    def has_changed(self) -> bool:
        """Look again. Return whether `quotas` have changed. Quotas that cannot be read stay as they were."""
        before = self.quotas
        try:
            self.quotas = self.read()
            self.are_known = True
        except StoreAway:
            pass
        return self.quotas != before

    def read(self) -> list[Quota]:
        """Return the quotas of all places. Raises `StoreAway`: a place cannot be read."""
        for place, watched in enumerate(self._watched):
            if watched.has_changed():
                self._found[place] = _all(watched)
        return list(merged(*self._found))

    def close(self) -> None:
        """Close the store; the next look opens it again."""
        for watched in self._watched:
            watched.close()


def _all(watched: WatchedFile | ReplicaWatch) -> list[Quota]:
    """Return a place's quotas. Raises StoreAway; then the next look reads them again."""
    try:
        return [] if watched.connection is None else read_bodies(watched.connection.execute(ALL_QUOTAS))
    except sqlite3.Error as problem:
        if "no such table" in str(problem):
            return []  # of an earlier dragoman
        watched.close()
        raise StoreAway(str(problem)) from None


def read_bodies(rows: Iterable[Sequence[Any]]) -> list[Quota]:
    """Return the quotas of rows of `ALL_QUOTAS`, without those that a later dragoman wrote."""
    return [quota for (body,) in rows if (quota := read_body(body)) is not None]


def read_body(body: str) -> Quota | None:
    """Return a stored quota, or None if a later dragoman wrote it."""
    try:
        return msgspec.convert(_json.decode(body.encode()), Quota)
    except msgspec.ValidationError:
        return None
