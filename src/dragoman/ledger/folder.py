"""The files of the ledger in a gateway's state folder."""

from __future__ import annotations

from pathlib import Path
from typing import final
from urllib.parse import urlsplit

import msgspec

from dragoman.secret import Secret


def place_of(store: Secret) -> str:
    """Return a store's address without its secrets: `postgresql://HOST:PORT/DATABASE`."""
    parts = urlsplit(store.reveal())
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


@final
class LedgerFolder(msgspec.Struct, frozen=True):
    """The place of a ledger.

    Attributes:
        root: the folder of the store's files and the journals.
        store: the address of a PostgreSQL that keeps the rows in place of files.
        counters: the address of a Valkey that counts limits in place of the store.
    """

    root: Path
    store: Secret | None = None
    counters: Secret | None = None

    @classmethod
    def of(cls, state: Path, store: Secret | None = None, counters: Secret | None = None) -> LedgerFolder:
        """Return the ledger's place in a gateway's state folder."""
        return cls(state / "ledger", store, counters)

    @property
    def journals(self) -> Path:
        """The folder of the workers' journals and of how far each is delivered."""
        return self.root / "journals"

    @property
    def shipper_lock(self) -> Path:
        """The lock file that the running shipper holds."""
        return self.root / "shipper.lock"

    @property
    def bell(self) -> Path:
        """The FIFO that wakes the shipper."""
        return self.root / "bell"

    @property
    def asleep(self) -> Path:
        """A file of one byte: 1 while the shipper sleeps."""
        return self.root / "asleep"
