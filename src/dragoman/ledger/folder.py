"""Where the ledger of a gateway stands in its state folder."""

from __future__ import annotations

from pathlib import Path
from typing import final
from urllib.parse import urlsplit

import msgspec

from dragoman.secret import Secret


def place_of(store: Secret) -> str:
    """`postgresql://HOST:PORT/DATABASE`: what may be shown of an address."""
    parts = urlsplit(store.reveal())
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


@final
class LedgerFolder(msgspec.Struct, frozen=True):
    """`root`: the store's files; `journals`: what the workers write. `store`: the address of a PostgreSQL that has the
    rows in place of the files; `counters`: of a Valkey that counts limits in its place."""

    root: Path
    store: Secret | None = None
    counters: Secret | None = None

    @classmethod
    def of(cls, state: Path, store: Secret | None = None, counters: Secret | None = None) -> LedgerFolder:
        """That of a gateway's state folder."""
        return cls(state / "ledger", store, counters)

    @property
    def journals(self) -> Path:
        """The workers' journals, and how far each is delivered."""
        return self.root / "journals"

    @property
    def shipper_lock(self) -> Path:
        """Who delivers has it."""
        return self.root / "shipper.lock"

    @property
    def bell(self) -> Path:
        """A FIFO by which the shipper is woken."""
        return self.root / "bell"

    @property
    def asleep(self) -> Path:
        """One byte: 1 while the shipper sleeps."""
        return self.root / "asleep"
