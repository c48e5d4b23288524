"""What every store must do: the same suite for each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.records import Intent, Row, Settlement
from dragoman.ledger.stores.files import MAIN_FILE, month_file, months_in
from ledger.histories import HOLDER


def rows_of(records: Sequence[Intent | Settlement]) -> list[Row]:
    """Each record as a row: an intent as one that goes on, a settlement as a final one."""
    intents = {record.id: record for record in records if type(record) is Intent}
    return [
        Row(HOLDER, record) if type(record) is Intent else Row(HOLDER, intents[record.id], record)
        for record in records
    ]  # fmt: skip


def dump(folder: Path) -> list[tuple[object, ...]]:
    """All that stands in a SQLite store, but for when a correction was written."""
    found: list[tuple[object, ...]] = []
    files = [month_file(folder, month) for month in months_in(folder)]
    for file in [*files, folder / MAIN_FILE]:
        if not file.exists():
            continue
        connection = sqlite3.connect(file)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (table,) in tables:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "at"]
            rows = connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
            found += [(file.name, table, *row) for row in sorted(rows, key=repr)]
        connection.close()
    return found


def sums(folder: LedgerFolder) -> dict[str, int]:
    """The sums by hour of a store, added up."""
    total: dict[str, int] = {}
    for month in months_in(folder.root):
        connection = sqlite3.connect(month_file(folder.root, month))
        cursor = connection.execute("SELECT * FROM usage_hour")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            for name, value in zip(names, row, strict=True):
                if isinstance(value, int) and name != "hour":
                    total[name] = total.get(name, 0) + value
        connection.close()
    return total
