"""Keep this machine's copy up to date: look twice a second for new audit entries, and copy the keys they name.

The audit names every change, and each entry's digest covers the previous entry. So another store, or a store restored
to an earlier state, is recognised by the digest of the last entry that the copy knows. Then everything is copied again.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.keys import KEY_FIELDS
from dragoman.ledger.replica.age import Moment, now
from dragoman.ledger.replica.file import Heard, Replica
from dragoman.ledger.stores.postgresql import prepare
from dragoman.ledger.stores.postgresql_connection import Connection

#: Seconds between two looks, and between two notes of how old the copy is while the store is away.
_EVERY: Final = 0.5
_NOTE_EVERY: Final = 10.0
#: Changes beyond which all is copied anew.
_MOST_CHANGES: Final = 10_000
_KEYS: Final = f"SELECT {KEY_FIELDS} FROM virtual_key"
_DIGESTS: Final = "SELECT digest, key, until FROM key_digest"
_QUOTAS: Final = "SELECT name, body FROM quota"
_LAST: Final = "SELECT id, digest FROM audit ORDER BY id DESC LIMIT 1"
_SINCE: Final = f"SELECT action, subject FROM audit WHERE id > $1 ORDER BY id LIMIT {_MOST_CHANGES + 1}"


class ReplicaKeeper:
    """Keeps the copy up to date. For one thread."""

    __slots__ = ("_connection", "_is_ready", "_moment", "_noted", "_replica")

    def __init__(self, folder: LedgerFolder, *, moment: Callable[[], Moment] = now) -> None:
        assert folder.store is not None
        self._connection = Connection(folder.store)
        self._replica = Replica(folder, moment=moment)
        self._moment = moment
        self._is_ready = False
        self._noted = 0.0

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set. While the store or the folder cannot be reached, try again."""
        while not stop.is_set():
            with contextlib.suppress(StoreAway, Refused, OSError):
                self.refresh()
            stop.wait(_EVERY)
        self.close()

    def has_heard(self) -> bool:
        """Return whether this machine has a copy. Raises StoreAway if it cannot be written."""
        return self._replica.heard() is not None

    def refresh(self) -> None:
        """Bring the copy up to date.

        Raises:
            StoreAway, Refused, OSError: this failed; the copy's age is written down.
        """
        try:
            self._refresh()
        except StoreAway:
            moment = self._moment()
            if not 0 <= moment.ticks - self._noted < _NOTE_EVERY:
                self._replica.grow_old()
                self._noted = moment.ticks
            raise

    def close(self) -> None:
        """Close everything; the next look opens it again."""
        self._connection.close()
        self._replica.close()

    # ------------------------------------------------------------ inside

    def _refresh(self) -> None:
        connection = self._connection
        if not (self._is_ready and connection.is_open):
            with connection.transaction():
                prepare(connection)
            self._is_ready = True
        before, moment = self._replica.heard(), self._moment()  # what is heard is as old as the question
        with connection.transaction(is_reading=True):
            number, digest = next(iter(connection.fetch(_LAST)), (0, b""))
            heard = Heard(number, digest, self._holders(), 0.0, moment)
            names, has_quotas = self._changed(before)
            if names is None:
                self._replica.write(
                    heard,
                    since=before,
                    keys=connection.fetch_each(_KEYS),
                    digests=connection.fetch_each(_DIGESTS),
                    quotas=connection.fetch(_QUOTAS),
                    is_whole=True,
                )
                return
            keys: Sequence[Any] = ()
            digests: Sequence[Any] = ()
            if names:
                keys = connection.fetch(f"{_KEYS} WHERE name = ANY($1::text[])", names)
                digests = connection.fetch(f"{_DIGESTS} WHERE key = ANY($1::text[])", names)
            quotas = connection.fetch(_QUOTAS) if has_quotas else None
            self._replica.write(heard, since=before, keys=keys, digests=digests, quotas=quotas)

    def _changed(self, before: Heard | None) -> tuple[list[str] | None, bool]:
        """Return the keys that changed (None: perhaps all), and whether quotas did."""
        if before is None:
            return None, True
        connection = self._connection
        if before.number:
            known = connection.fetch("SELECT digest FROM audit WHERE id = $1", before.number)
            if not known or known[0][0] != before.digest:
                return None, True
        entries = connection.fetch(_SINCE, before.number)
        names, has_quotas = set(), False
        for action, subject in entries:
            kind = action.partition(" ")[0]
            if kind == "key":
                names.add(subject)
            elif kind == "quota":
                has_quotas = True
            elif kind != "adjust":
                return None, True  # whatever it is, it may be of keys
        return (None if len(entries) > _MOST_CHANGES else sorted(names)), has_quotas

    def _holders(self) -> tuple[str, ...]:
        """Return the holders that may have leases."""
        if self._connection.fetch("SELECT to_regclass('holder') IS NULL")[0][0]:
            return ()
        return tuple(id for (id,) in self._connection.fetch("SELECT id FROM holder WHERE ended IS NULL ORDER BY id"))
