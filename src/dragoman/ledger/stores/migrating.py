"""Migrate the tables of an earlier dragoman, step by step.

Steps add and never change what is there, so a gateway of the previous version goes on with the files that it has open;
it does not open a newer store. A migration holds the store's lock. The first record migrates too.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import final

import msgspec

from dragoman.ledger.folder import LedgerFolder, place_of
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, month_file, months_in, open_file, read_file, version_of
from dragoman.ledger.stores.schema import MAIN, MONTH, VERSION


@final
class Migrated(msgspec.Struct, frozen=True):
    """A migration of `name` from version `before` (0: there were no tables) to `now`."""

    name: str
    before: int
    now: int


def migrate(folder: LedgerFolder) -> list[Migrated]:
    """Migrate the folder's store; create its tables if there are none.

    Raises:
        StoreAway: a later dragoman created the tables, or they cannot be written.
    """
    if folder.store is not None:
        from dragoman.ledger.stores.postgresql import migrate_postgresql

        return [Migrated(place_of(folder.store), *migrate_postgresql(folder.store))]
    months = [month_file(folder.root, month) for month in months_in(folder.root)]
    return [_brought_up(folder.root / MAIN_FILE, MAIN), *(_brought_up(file, MONTH) for file in months)]


def _brought_up(file: Path, schema: str) -> Migrated:
    try:
        before = 0
        if (connection := read_file(file)) is not None:
            before = version_of(connection)
            connection.close()
        open_file(file, schema).close()
    except sqlite3.Error as problem:
        raise StoreAway(f"{file.name}: {problem}") from None
    return Migrated(file.name, before, VERSION)
