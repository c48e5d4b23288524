"""The counters of a ledger's folder, put together with what the ledger has."""

from __future__ import annotations

from functools import partial

from dragoman.ledger.counters.sqlite import COUNTERS_FILE, SqliteCounters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.seeding import leasing_holders, live_holders, read_seed, read_spent


def open_counters(folder: LedgerFolder) -> SqliteCounters:
    """Those that all workers of the folder share. Nothing happens before the first call."""
    return SqliteCounters(
        folder.root / COUNTERS_FILE,
        seed=partial(read_seed, folder),
        live=partial(live_holders, folder),
        leasing=partial(leasing_holders, folder),
    )


def fold_ended(folder: LedgerFolder) -> None:
    """What the ended have leased becomes what they spent, and what the silent have, what they used. Nothing where there
    are no counters.

    Raises:
        CountersAway, StoreAway, OSError: not all is folded.
    """
    if not (folder.root / COUNTERS_FILE).exists():
        return
    counters = open_counters(folder)
    try:
        counters.sweep(partial(read_spent, folder))
    finally:
        counters.close()
