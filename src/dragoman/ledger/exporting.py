"""Attempts as CSV, with what was corrected of each."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.stores.files import month_file, months_in, read_file
from dragoman.ledger.stores.schema import COLUMNS

#: A cell that begins so is a formula to spreadsheets.
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
_ADJUSTED: Final = "(SELECT sum(nano) FROM adjustment WHERE attempt = attempt.id) AS adjusted"
_ROWS: Final = f"SELECT {', '.join(COLUMNS)}, {_ADJUSTED} FROM attempt WHERE started >= ? ORDER BY id"


def export_csv(folder: LedgerFolder, *, since: float = 0.0) -> Iterator[str]:
    """Lines of CSV (RFC 4180): a head, then an attempt a line. Times are microseconds since 1970, money nano-dollars,
    `adjusted` what corrections add to `nano`; unknown is empty.

    Args:
        since: Unix seconds.

    Raises:
        StoreAway: a file cannot be read.
    """
    yield _line([*COLUMNS, "adjusted"])
    try:
        for month in months_in(folder.root):
            connection = read_file(month_file(folder.root, month))
            if connection is not None:
                with closing(connection):
                    for row in connection.execute(_ROWS, (int(since * 1_000_000),)):
                        yield _line([_cell(value) for value in row])
    except sqlite3.Error as problem:
        raise StoreAway(str(problem)) from None


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULAS) else text


def _line(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
