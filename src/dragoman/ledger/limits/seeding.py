"""Read the ledger's sums of accounts, from which counters that lost their memory are filled.

The sums cover the rows in the store, the rows that wait in journals, and the reservations of open attempts, each once.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Account, Seed, StoreAway
from dragoman.ledger.journal.reading import JournalReader
from dragoman.ledger.journal.records import Row
from dragoman.ledger.journal.writing import segments_of
from dragoman.ledger.limits.accounts import is_of_tokens
from dragoman.ledger.locking import FileLock
from dragoman.ledger.stores.files import MAIN_FILE, month_file, month_of, months_in, read_file
from dragoman.ledger.stores.schema import ADJUSTED

#: What holders spent of accounts, in nano-dollars or tokens.
Spent: TypeAlias = dict[Account, dict[str, int]]

_SPENT: Final = "SELECT holder, sum(nano), sum(tokens) FROM {} WHERE account = ? GROUP BY holder"
_FINAL: Final = "SELECT state <> 'reserved' FROM attempt WHERE id = ?"


def read_seeds(folder: LedgerFolder, accounts: Collection[Account]) -> dict[Account, Seed]:
    """Return the sums of these accounts, in one pass over the journals and the files.

    Raises:
        StoreAway, OSError: a file cannot be read.
    """
    # The journals first: a row that reaches the store meanwhile is seen there, and counted once.
    wanted = set(accounts)
    waiting: dict[bytes, Row] = {}
    unfinished: set[str] = set()
    ended: set[str] = set()
    for holder, numbers in _journals(folder).items():
        reader = JournalReader(folder.journals, holder)
        if reader.is_finished:
            ended.add(holder)
            continue
        unfinished.add(holder)
        rows = _read(reader, numbers)
        waiting.update((row.intent.id, row) for row in rows if not wanted.isdisjoint(row.intent.accounts))
    spent = _spent(folder, accounts, waiting)
    for row in waiting.values():
        for account in wanted.intersection(row.intent.accounts):
            by_holder = spent[account]
            by_holder[row.holder] = by_holder.get(row.holder, 0) + _cost(row, is_tokens=is_of_tokens(account))
    seeds = {}
    for account, by_holder in spent.items():
        adjusted = by_holder.pop(ADJUSTED, 0)
        closed = sum(amount for holder, amount in by_holder.items() if holder not in unfinished)
        going = {holder: by_holder.get(holder, 0) for holder in unfinished}
        seeds[account] = Seed(closed, going, frozenset(ended), adjusted)
    return seeds


def read_spent(folder: LedgerFolder, accounts: Collection[Account]) -> Spent:
    """Return what holders have spent of these accounts by the store's rows. Corrections stand under `ADJUSTED`.

    Raises:
        StoreAway: a file cannot be read.
    """
    return _spent(folder, accounts, {})


def read_adjusted(folder: LedgerFolder, account: Account) -> int:
    """Return the sum of an account's corrections in nano-dollars. Raises `StoreAway`: a file cannot be read."""
    return read_spent(folder, (account,))[account].get(ADJUSTED, 0)


def live_holders(folder: LedgerFolder) -> set[str]:
    """Return the holders whose journals have a writer or rows that are not in the store."""
    return {holder for holder in _journals(folder) if not JournalReader(folder.journals, holder).is_finished}


def leasing_holders(folder: LedgerFolder) -> set[str]:
    """Return the holders that live and may have leases."""
    found = set()
    for path in folder.journals.glob("*.lock"):
        lock = FileLock(path)
        with contextlib.suppress(OSError):
            if path.stat().st_size and not lock.take():
                found.add(path.stem)
        lock.give_back()
    return found


def sharing_holders(folder: LedgerFolder) -> set[str]:
    """Return the holders that may have leases, and those that had, until all of their rows are in the store."""
    found = leasing_holders(folder)
    for holder in live_holders(folder) - found:
        lock = FileLock(folder.journals / f"{holder}.lock")
        with contextlib.suppress(OSError):
            if lock.take():
                found.add(holder)
        lock.give_back()
    return found


def ended_holders(folder: LedgerFolder) -> set[str]:
    """Return the holders whose rows are all in the store and whose journals still exist."""
    return {holder for holder in _journals(folder) if JournalReader(folder.journals, holder).is_finished}


def was_used(folder: LedgerFolder, account: Account) -> bool | None:
    """Return whether a holder that has ended used an account, or None if it cannot be told."""
    try:
        return read_seeds(folder, (account,))[account].closed > 0
    except (StoreAway, OSError):
        return None


def _journals(folder: LedgerFolder) -> dict[str, list[int]]:
    try:
        return segments_of(os.listdir(folder.journals))
    except FileNotFoundError:
        return {}


def _read(reader: JournalReader, numbers: list[int]) -> list[Row]:
    """Return a journal's rows that were not delivered, and its open attempts."""
    rows: list[Row] = []
    is_more = True
    while is_more:
        look = reader.look(numbers, is_dead=False)
        rows += look.rows
        is_more = look.is_more
    return rows + reader.merging.going_on(1 << 62)


def _spent(folder: LedgerFolder, accounts: Collection[Account], waiting: dict[bytes, Row]) -> Spent:
    """Return the sums of all files. Waiting attempts that are final in a file are removed from `waiting`."""
    by_month: dict[str, list[bytes]] = {}
    for id in waiting:
        by_month.setdefault(month_of(id), []).append(id)
    parts: dict[str, Spent] = {}
    for month in months_in(folder.root):
        with _opened(month_file(folder.root, month)) as file:
            if file is not None:
                for id in by_month.get(month, ()):
                    found = file.execute(_FINAL, (id,)).fetchone()
                    if found is not None and found[0]:
                        del waiting[id]
                parts[month] = _stored(file, accounts)
    # Last the one that takes what is dropped: it stands in a month's file, in this one, or for a moment in both.
    with _opened(folder.root / MAIN_FILE) as main:
        spent: Spent = {account: {} for account in accounts} if main is None else _stored(main, accounts)
        if main is not None:
            _add(spent, _stored(main, accounts, table="dropped_spend"))
        dropped = set() if main is None else {month for (month,) in main.execute("SELECT month FROM dropped")}
    for month, part in parts.items():
        if month not in dropped:
            _add(spent, part)
    return spent


def _add(spent: Spent, part: Spent) -> None:
    for account, by_holder in part.items():
        for holder, amount in by_holder.items():
            spent[account][holder] = spent[account].get(holder, 0) + amount


def _stored(file: sqlite3.Connection, accounts: Iterable[Account], *, table: str = "spend") -> Spent:
    """Return a file's sums of accounts."""
    has_any = file.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is not None
    statement = _SPENT.format(table)
    return {
        account: {row[0]: row[2 if is_of_tokens(account) else 1] for row in file.execute(statement, (account,))}
        if has_any
        else {}
        for account in accounts
    }


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Yield a read-only snapshot of a file, or None if it does not exist. Raises StoreAway."""
    try:
        file = read_file(path)
        if file is None:
            yield None
            return
        with closing(file):
            file.execute("BEGIN")
            yield file
    except sqlite3.Error as problem:
        raise StoreAway(f"{path.name}: {problem}") from None


def _cost(row: Row, *, is_tokens: bool) -> int:
    settlement = row.settlement
    if is_tokens:
        return (row.intent.reserved_tokens or 0) if settlement is None else settlement.tokens
    return (row.intent.reserved if settlement is None else settlement.nano) or 0
