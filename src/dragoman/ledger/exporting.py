"""Attempts as CSV, with what was corrected of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.stores.opening import open_reading
from dragoman.ledger.stores.schema import COLUMNS

#: A cell that begins so is a formula to spreadsheets.
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
_ADJUSTED: Final = "(SELECT CAST(sum(nano) AS bigint) FROM :adjustment WHERE attempt = attempt.id) AS adjusted"
_ROWS: Final = f"SELECT {', '.join(COLUMNS)}, {_ADJUSTED} FROM :attempt WHERE started >= ? ORDER BY id"


def export_csv(folder: LedgerFolder, *, since: float = 0.0) -> Iterator[str]:
    """Lines of CSV (RFC 4180): a head, then an attempt a line. Times are microseconds since 1970, money nano-dollars,
    `adjusted` what corrections add to `nano`; unknown is empty.

    Args:
        since: Unix seconds.

    Raises:
        StoreAway: the store cannot be read.
    """
    yield _line([*COLUMNS, "adjusted"])
    with open_reading(folder) as reading:
        for month in reading.months():
            for row in reading.select(month, _ROWS, int(since * 1_000_000)):
                yield _line([_cell(value) for value in row])


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
