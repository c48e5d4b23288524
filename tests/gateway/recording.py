"""A gateway that records, and the rows that stand in its ledger afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.gateway.accounting import Ledger
from dragoman.gateway.telemetry.record import Observer
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.stores.files import month_file, months_in, read_file
from gateway.running import Running, gateway


class Recording(NamedTuple):
    """The gateway, its ledger's folder, and what observes it."""

    running: Running
    folder: LedgerFolder
    observer: Observer


@contextmanager
def recording(folder: Path, more: str = "", *, syncs: bool = False, **options: Any) -> Iterator[Recording]:
    """Run a gateway with a ledger until the block ends; all of it is delivered then. `syncs`: see `Ledger`."""
    observer, ledger = Observer(), LedgerFolder.of(folder / "state")
    with gateway(folder, more, observer=observer, ledger=Ledger(ledger, observer, syncs=syncs), **options) as running:
        yield Recording(running, ledger, observer)


def rows(folder: LedgerFolder) -> list[dict[str, Any]]:
    """All attempts, in the order in which they began."""
    found: list[dict[str, Any]] = []
    for month in months_in(folder.root):
        connection = read_file(month_file(folder.root, month))
        if connection is None:
            continue
        connection.row_factory = sqlite3.Row
        found += [dict(row) for row in connection.execute("SELECT * FROM attempt ORDER BY id")]
        connection.close()
    return found
