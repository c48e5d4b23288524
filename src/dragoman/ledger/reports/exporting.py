"""Export attempts as CSV, with each attempt's corrections."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.stores.opening import open_reading
from dragoman.ledger.stores.schema import ADJUSTED_NANO, COLUMNS

#: A cell that begins so is a formula to spreadsheets.
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
#: The names of the columns.
HEAD: Final = (*COLUMNS, "adjusted")
_ROWS: Final = f"SELECT {', '.join(COLUMNS)}, {ADJUSTED_NANO} FROM :attempt WHERE started >= ? ORDER BY id"


def export_csv(folder: LedgerFolder, *, since: float = 0.0) -> Iterator[str]:
    """Yield lines of CSV (RFC 4180): a header, then one attempt per line.

    Times are microseconds since 1970, money is nano-dollars, `adjusted` is the sum of corrections of `nano`. Unknown
    values are empty.

    Args:
        since: Unix seconds.

    Raises:
        StoreAway: the store cannot be read.
    """
    yield csv_line(HEAD)
    for row in export_rows(folder, since=since):
        yield csv_line(row)


def export_rows(folder: LedgerFolder, *, since: float = 0.0) -> Iterator[tuple[Any, ...]]:
    """Yield the same as values. Raises StoreAway."""
    with open_reading(folder) as reading:
        for month in reading.months():
            yield from reading.select(month, _ROWS, int(since * 1_000_000))


def csv_line(values: Iterable[object]) -> str:
    """Return a line of CSV that contains no spreadsheet formula."""
    out = io.StringIO()
    csv.writer(out).writerow([_cell(value) for value in values])
    return out.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULAS) else text
