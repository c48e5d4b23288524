"""Find virtual keys by the SHA-256 of the secret that a client sends.

Keys stand in the configuration file, in the store and, beside PostgreSQL, in this machine's own file. A name in an
earlier of these places hides the same name in a later one. This machine keeps a copy of PostgreSQL's keys. When the
store was not reached for too long, the copy may be out of date, and its keys admit no one until the store is reached.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.keys import KEY_FIELDS, VirtualKey, read_key
from dragoman.ledger.replica.age import Moment
from dragoman.ledger.replica.age import now as moment_now
from dragoman.ledger.replica.file import ReplicaWatch
from dragoman.ledger.stores.files import MAIN_FILE
from dragoman.ledger.stores.watching import WatchedFile

#: Seconds for which a look at the store holds.
_LOOK: Final = 0.25
#: Keys that are remembered, also those that are not ours.
_MOST_REMEMBERED: Final = 10_000
#: Seconds without an answer of the store after which its keys are refused.
MAX_AGE: Final = 86_400.0


def _do_nothing() -> None:
    pass


class KeyRing:
    """Finds keys by their digest. For one thread. It looks at the store at most every quarter of a second.

    Attributes:
        learned: called when a key was read from the store, before it admits a client. Its quotas stand in the store too
            and must apply from the first request.
    """

    __slots__ = (
        "_has_stored", "_looked", "_machine", "_max_age", "_names", "_now", "_of_file", "_replica", "_store",
        "_too_old", "learned",
    )  # fmt: skip

    def __init__(
        self,
        folder: LedgerFolder | None,
        of_file: Mapping[bytes, VirtualKey] = {},
        *,
        max_age: float = MAX_AGE,
        now: Callable[[], float] = time.time,
        moment: Callable[[], Moment] = moment_now,
    ) -> None:
        """Create it.

        Args:
            folder: the ledger's place; None: there is no store.
            of_file: the configuration's keys by digest.
            max_age: seconds without contact to PostgreSQL after which its keys are refused.
        """
        self._now = now
        self._max_age = max_age
        self._looked = 0.0
        self._too_old = self._has_stored = False
        self.learned: Callable[[], None] = _do_nothing
        self._machine = None if folder is None else _Keys(WatchedFile(folder.root / MAIN_FILE))
        has_copy = folder is not None and folder.store is not None
        self._replica = ReplicaWatch(folder, moment=moment) if folder is not None and has_copy else None
        self._store = None if self._replica is None else _Keys(self._replica)
        self.take(of_file)

    def take(self, of_file: Mapping[bytes, VirtualKey]) -> None:
        """Use these keys of the configuration file from now on."""
        self._of_file = dict(of_file)
        self._names = {key.name for key in of_file.values()}

    @property
    def has_any(self) -> bool:
        """Whether there is any key, so that clients need one."""
        if self._of_file:
            return True
        self._look()
        return self._has_stored

    @property
    def is_too_old(self) -> bool:
        """Whether the store was not reached for so long that its keys are refused."""
        self._look()
        return self._too_old

    def find(self, digest: bytes) -> VirtualKey | None:
        """Return the key with this SHA-256, or None if there is none, or it has expired or is disabled."""
        key = self._of_file.get(digest)
        if key is None:
            self._look()
            key = self._stored(digest)
        return key if key is not None and key.holds_at(self._now()) else None

    def seconds(self) -> float | None:
        """Return the seconds since the last contact to a shared store.

        The result is infinite if there was none, and None if the store is not shared.
        """
        self._look()
        return None if self._replica is None else self._replica.seconds()

    def close(self) -> None:
        """Close the store; the next look opens it again."""
        for place in (self._store, self._machine):
            if place is not None:
                place.close()

    def _stored(self, digest: bytes) -> VirtualKey | None:
        if self._store is not None and (key := self._store.find(digest, self.learned)) is not None:
            return None if self._too_old or key.name in self._names else key
        key = None if self._machine is None else self._machine.find(digest, self.learned)
        if key is None or key.name in self._names or (self._store is not None and self._store.has(key.name)):
            return None
        return key

    def _look(self) -> None:
        """Check whether the store's keys have changed."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        for place in (self._store, self._machine):
            if place is not None:
                place.look()
        replica, places = self._replica, (self._store, self._machine)
        self._too_old = replica is not None and replica.seconds() > self._max_age
        # A store of which nothing is known here may have keys.
        is_unheard = replica is not None and replica.heard is None
        self._has_stored = is_unheard or any(place is not None and place.has_any for place in places)


class _Keys:
    """The keys of one file. `has_any`: it has a key, or may have one."""

    __slots__ = ("_is_known", "_remembered", "_watched", "has_any")

    def __init__(self, watched: WatchedFile | ReplicaWatch) -> None:
        self._watched = watched
        self._remembered: dict[bytes, VirtualKey | None] = {}
        self.has_any = self._is_known = False

    def look(self) -> None:
        """Check whether the keys have changed."""
        try:
            if not self._watched.has_changed():
                return
            self._remembered.clear()
            connection = self._watched.connection
            self.has_any = connection is not None and _has_one(connection)
            self._is_known = True
        except (sqlite3.Error, StoreAway):
            self.close()  # what was known stays: where clients needed a key they need one still
            if not self._is_known:
                self.has_any = True  # whether there are keys nobody can say until the file can be read

    def find(self, digest: bytes, learned: Callable[[], None]) -> VirtualKey | None:
        """Return the key with this SHA-256, valid or not. `learned` is that of `KeyRing`."""
        connection = self._watched.connection
        if not self.has_any or connection is None:
            return None
        if digest in self._remembered:
            return self._remembered[digest]
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        try:
            found = self._remembered[digest] = _find(connection, digest)
        except sqlite3.Error:
            return None  # a key that cannot be looked up lets nobody in
        if found is not None:
            learned()
        return found

    def has(self, name: str) -> bool:
        """Return whether there is a key of this name. True if it cannot be read."""
        if self._watched.connection is None:
            return self.has_any
        try:
            found = self._watched.connection.execute("SELECT 1 FROM virtual_key WHERE name = ?", (name,)).fetchone()
        except sqlite3.Error:
            return True
        return found is not None

    def close(self) -> None:
        """Close the file; the next look opens it again."""
        self._remembered.clear()
        self._watched.close()


def _has_one(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM virtual_key LIMIT 1").fetchone() is not None


def _find(connection: sqlite3.Connection, digest: bytes) -> VirtualKey | None:
    found = connection.execute(
        f"SELECT {KEY_FIELDS}, until FROM key_digest JOIN virtual_key ON name = key WHERE digest = ?", (digest,)
    ).fetchone()
    if found is None:
        return None
    key, until = read_key(found[:-1]), found[-1]
    if until is None or (key.expires is not None and key.expires <= until):
        return key
    return msgspec.structs.replace(key, expires=until)  # a secret that was rotated away
