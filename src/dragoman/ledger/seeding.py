"""What the ledger has of an account: from this the counters are filled when they lost their memory.

Rows that are in the store, those that wait in journals, and what is set apart for attempts that go on, each once.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from dragoman.ledger.accounts import is_of_tokens
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Account, Seed, StoreAway
from dragoman.ledger.journal import segments_of
from dragoman.ledger.locking import FileLock
from dragoman.ledger.reading import JournalReader
from dragoman.ledger.records import Row
from dragoman.ledger.stores.files import MAIN_FILE, month_file, month_of, months_in, read_file

_SPENT: Final = "SELECT holder, nano, tokens FROM spend WHERE account = ?"


def read_seed(folder: LedgerFolder, account: Account) -> Seed:
    """All of an account.

    Raises:
        StoreAway, OSError: a file cannot be read.
    """
    # The journals first: a row that reaches the store meanwhile is seen there, and counted once.
    waiting: dict[bytes, Row] = {}
    unfinished: set[str] = set()
    ended: set[str] = set()
    for holder, numbers in _journals(folder).items():
        reader = JournalReader(folder.journals, holder)
        if reader.is_finished:
            ended.add(holder)
            continue
        unfinished.add(holder)
        waiting.update((row.intent.id, row) for row in _read(reader, numbers) if account in row.intent.accounts)
    spent: dict[str, int] = {}
    is_tokens = is_of_tokens(account)
    for file in _files(folder):
        ids = [id for id in waiting if file == month_file(folder.root, month_of(id))]
        for holder, nano, tokens in _stored(file, account, ids, waiting):
            spent[holder] = spent.get(holder, 0) + (tokens if is_tokens else nano)
    for row in waiting.values():
        spent[row.holder] = spent.get(row.holder, 0) + _cost(row, is_tokens=is_tokens)
    return Seed(
        sum(amount for holder, amount in spent.items() if holder not in unfinished),
        {holder: spent.get(holder, 0) for holder in unfinished},
        frozenset(ended),
    )


def read_spent(folder: LedgerFolder, account: Account) -> dict[str, int]:
    """What holders have spent of an account by the store's rows, in nano-dollars or tokens.

    Raises:
        StoreAway: a file cannot be read.
    """
    spent: dict[str, int] = {}
    is_tokens = is_of_tokens(account)
    for file in _files(folder):
        for holder, nano, tokens in _stored(file, account, (), {}):
            spent[holder] = spent.get(holder, 0) + (tokens if is_tokens else nano)
    return spent


def live_holders(folder: LedgerFolder) -> set[str]:
    """Those whose journals somebody writes, or whose rows are not all in the store."""
    return {holder for holder in _journals(folder) if not JournalReader(folder.journals, holder).is_finished}


def leasing_holders(folder: LedgerFolder) -> set[str]:
    """Those that live and may have leases of an account."""
    found = set()
    for path in folder.journals.glob("*.lock"):
        lock = FileLock(path)
        with contextlib.suppress(OSError):
            if path.stat().st_size and not lock.take():
                found.add(path.stem)
        lock.give_back()
    return found


def _journals(folder: LedgerFolder) -> dict[str, list[int]]:
    try:
        return segments_of(os.listdir(folder.journals))
    except FileNotFoundError:
        return {}


def _read(reader: JournalReader, numbers: list[int]) -> list[Row]:
    """All that was not delivered, and what goes on."""
    rows: list[Row] = []
    is_more = True
    while is_more:
        look = reader.look(numbers, is_dead=False)
        rows += look.rows
        is_more = look.is_more
    return rows + reader.merging.going_on(1 << 62)


def _files(folder: LedgerFolder) -> list[Path]:
    return [*(month_file(folder.root, month) for month in months_in(folder.root)), folder.root / MAIN_FILE]


def _stored(
    file: Path, account: Account, ids: Iterable[bytes], waiting: dict[bytes, Row]
) -> list[tuple[str, int, int]]:
    """What a file has of an account; those of these attempts that are final in it no longer wait."""
    try:
        connection = read_file(file)
        if connection is None:
            return []
        with closing(connection):
            connection.execute("BEGIN")  # one state of the file
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'spend'").fetchone() is None:
                return []
            for id in ids:
                found = connection.execute("SELECT state <> 'reserved' FROM attempt WHERE id = ?", (id,)).fetchone()
                if found is not None and found[0]:
                    del waiting[id]
            return connection.execute(_SPENT, (account,)).fetchall()
    except sqlite3.Error as problem:
        raise StoreAway(f"{file.name}: {problem}") from None


def _cost(row: Row, *, is_tokens: bool) -> int:
    settlement = row.settlement
    if is_tokens:
        return row.intent.size if settlement is None else (settlement.input or 0) + (settlement.output or 0)
    return (row.intent.reserved if settlement is None else settlement.nano) or 0
