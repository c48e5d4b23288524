"""Who shows a key: found by the SHA-256 of what is shown, in the configuration's file and in the store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.keys import KEY_FIELDS, VirtualKey, read_key
from dragoman.ledger.stores.files import MAIN_FILE, read_file, serial_of

#: Seconds for which a look at the store holds.
_LOOK: Final = 0.25
#: Keys that are remembered, those that are none of ours among them.
_MOST_REMEMBERED: Final = 10_000


class KeyRing:
    """Finds keys by their digest. For one thread; the store is looked at again a quarter of a second after a look."""

    __slots__ = (
        "_connection", "_file", "_has_any", "_is_known", "_looked", "_now", "_of_file", "_remembered", "_serial",
        "_version",
    )  # fmt: skip

    def __init__(
        self,
        folder: LedgerFolder | None,
        of_file: Mapping[bytes, VirtualKey] = {},
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`folder` None: there is no store. `of_file`: by digest."""
        self._file = None if folder is None else folder.root / MAIN_FILE
        self._now = now
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._serial = (0, 0)  # of the file that is open
        self._looked = 0.0
        self._has_any = self._is_known = False
        self._remembered: dict[bytes, VirtualKey | None] = {}
        self.take(of_file)

    def take(self, of_file: Mapping[bytes, VirtualKey]) -> None:
        """Go by these keys of the configuration's file from now on."""
        self._of_file = dict(of_file)

    @property
    def has_any(self) -> bool:
        """Whether there is a key at all, so that clients need one."""
        if self._of_file:
            return True
        self._look()
        return self._has_any

    def find(self, digest: bytes) -> VirtualKey | None:
        """The key with this SHA-256; None: none of ours, expired or disabled."""
        key = self._of_file.get(digest)
        if key is None:
            self._look()
            key = self._known(digest) if self._has_any else None
        return key if key is not None and key.holds_at(self._now()) else None

    def close(self) -> None:
        """The next look opens the store anew."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()
        self._remembered.clear()

    def _known(self, digest: bytes) -> VirtualKey | None:
        if digest in self._remembered:
            return self._remembered[digest]
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        try:
            found = None if self._connection is None else _find(self._connection, digest)
        except sqlite3.Error:
            return None  # a key that cannot be looked up lets nobody in
        if found is None or found.name not in {key.name for key in self._of_file.values()}:
            self._remembered[digest] = found
            return found
        return None

    def _look(self) -> None:
        """See whether the store's keys have changed."""
        now = time.monotonic()
        if now - self._looked < _LOOK or self._file is None:
            return
        self._looked = now
        try:
            if self._connection is None or serial_of(self._file) != self._serial:
                self.close()  # somebody removed it, or put another in its place
                self._serial = serial_of(self._file)
                self._connection, self._version = read_file(self._file), -1
            if self._connection is None:
                self._has_any, self._is_known = False, True
                return
            [version] = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._version = version
                self._remembered.clear()
                found = self._connection.execute("SELECT 1 FROM virtual_key LIMIT 1").fetchone()
                self._has_any, self._is_known = found is not None, True
        except (sqlite3.Error, StoreAway):
            self.close()  # what was known stays: where clients needed a key they need one still
            if not self._is_known:
                self._has_any = True  # whether there are keys nobody can say until the file can be read


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
