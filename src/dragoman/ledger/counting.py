"""Open and maintain the counters of a ledger's folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.counters.sqlite import COUNTERS_FILE, SqliteCounters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Account
from dragoman.ledger.limits.seeding import (
    ended_holders,
    leasing_holders,
    live_holders,
    read_adjusted,
    read_seeds,
    read_spent,
)

if TYPE_CHECKING:
    from dragoman.ledger.counters.roster import SharedRoster

#: Seconds that a worker's event loop waits for counters of several machines, and who has time.
PATIENCE: Final = 0.25
MUCH_PATIENCE: Final = 5.0


def open_counters(folder: LedgerFolder, *, has_time: bool = False) -> SqliteCounters | RemoteCounters:
    """Return the counters that all workers of the folder share, or all machines of its store.

    Nothing is opened before the first call. `has_time`: no request waits for these calls, so they may take longer.
    """
    if folder.store is not None:
        return _open_remote(folder, has_time=has_time)[0]
    return SqliteCounters(
        folder.root / COUNTERS_FILE,
        seeds=partial(read_seeds, folder),
        adjusted=partial(read_adjusted, folder),
        live=partial(live_holders, folder),
        leasing=partial(leasing_holders, folder),
        ended=partial(ended_holders, folder),
    )


def _open_remote(folder: LedgerFolder, *, has_time: bool) -> tuple[RemoteCounters, SharedRoster]:
    """Return the counters of several machines and their roster. Raises MissingExtra."""
    from dragoman.ledger.counters import apart, postgresql, postgresql_schema, roster

    assert folder.store is not None
    patience = MUCH_PATIENCE if has_time else PATIENCE
    tables, version = postgresql_schema.TABLES, postgresql_schema.VERSION
    database = apart.Database(folder.store, tables, version=version, patience=patience)
    shared = roster.SharedRoster(folder, database)
    if folder.counters is None:
        return RemoteCounters(postgresql.PostgresqlPlace(database), shared), shared
    from dragoman.ledger.counters.valkey import ValkeyPlace

    return RemoteCounters(ValkeyPlace(folder.counters, patience=patience), shared), shared


def correct_counters(folder: LedgerFolder, accounts: Iterable[Account]) -> None:
    """Tell the counters that corrections were made to these accounts, so that workers see them in their next call.

    Does nothing if there are no counters.

    Raises:
        CountersAway: not all accounts were corrected; the next sweep corrects the rest.
    """
    if not _has_counters(folder):
        return
    counters = open_counters(folder, has_time=True)
    try:
        counters.look()
        for account in accounts:
            counters.correct(account)
    finally:
        counters.close()


def fold_ended(folder: LedgerFolder, expires: bool) -> None:
    """Fold the leases of holders that have ended into their spend, and expire those of silent holders.

    Does nothing if there are no counters. Counters of several machines that cannot be reached wait for the next time,
    and leases there expire only if `expires`: see `RemoteCounters.sweep`.

    Raises:
        CountersAway, StoreAway, OSError: not everything is folded.
    """
    if folder.store is not None:
        counters, shared = _open_remote(folder, has_time=True)
        try:
            shared.tidy()
            counters.sweep(shared.spent, expires=expires)
        finally:
            counters.close()
        return
    if not _has_counters(folder):
        return
    of_machine = open_counters(folder)
    try:
        of_machine.sweep(partial(read_spent, folder))
    finally:
        of_machine.close()


def read_used(folder: LedgerFolder, accounts: Collection[Account]) -> dict[Account, int]:
    """Return what the ledger has of these accounts, in nano-dollars or tokens.

    Raises:
        StoreAway, CountersAway, OSError: it cannot be read.
    """
    if folder.store is None:
        return {account: seed.total for account, seed in read_seeds(folder, accounts).items()}
    counters, shared = _open_remote(folder, has_time=True)
    try:
        return {account: seed.total for account, seed in shared.seeds(accounts).items()}
    finally:
        counters.close()


def read_totals(folder: LedgerFolder, accounts: Collection[Account]) -> dict[Account, int]:
    """Return what is leased and spent of these accounts by the counters. Accounts that nobody has asked for are
    missing.

    Raises:
        CountersAway: they cannot be read.
    """
    if not accounts or not _has_counters(folder):
        return {}
    counters = open_counters(folder, has_time=True)
    try:
        counters.look()
        return counters.totals(accounts)
    finally:
        counters.close()


def _has_counters(folder: LedgerFolder) -> bool:
    return folder.store is not None or (folder.root / COUNTERS_FILE).exists()
