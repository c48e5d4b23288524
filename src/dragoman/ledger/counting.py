"""The counters of a ledger's folder, put together with what the ledger has."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dragoman.ledger.counters.sqlite import COUNTERS_FILE, SqliteCounters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Account
from dragoman.ledger.seeding import leasing_holders, live_holders, read_adjusted, read_seeds, read_spent


def open_counters(folder: LedgerFolder) -> SqliteCounters:
    """Those that all workers of the folder share. Nothing happens before the first call."""
    return SqliteCounters(
        folder.root / COUNTERS_FILE,
        seeds=partial(read_seeds, folder),
        adjusted=partial(read_adjusted, folder),
        live=partial(live_holders, folder),
        leasing=partial(leasing_holders, folder),
    )


def correct_counters(folder: LedgerFolder, accounts: Iterable[Account]) -> None:
    """What was spent of accounts was corrected: workers feel it at their next call. Nothing without counters.

    Raises:
        CountersAway: not all of them are corrected; the next sweep does it.
    """
    if not (folder.root / COUNTERS_FILE).exists():
        return
    counters = open_counters(folder)
    try:
        for account in accounts:
            counters.correct(account)
    finally:
        counters.close()


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
