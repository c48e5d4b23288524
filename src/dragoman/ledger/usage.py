"""What was spent, summed by whatever groups: from the sums by hour, also of months whose attempts were dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Final, final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, month_file, months_in, read_file
from dragoman.ledger.stores.schema import SUMS

#: What may be summed by, in SQL over the sums by hour. Days and months are those of UTC.
GROUPINGS: Final[dict[str, str]] = {
    "key": "key",
    "owner": "owner",
    "team": "team",
    "route": "route",
    "target": "target",
    "state": "state",
    "day": "strftime('%Y-%m-%d', hour * 3600, 'unixepoch')",
    "month": "strftime('%Y-%m', hour * 3600, 'unixepoch')",
}


@final
class Used(msgspec.Struct):
    """The sum of a group. `group`: the values of what was summed by. `unpriced`: attempts whose cost nobody knows; they
    are not in `nano`."""

    group: tuple[str, ...]
    nano: int = 0
    unpriced: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    attempts: int = 0


def read_usage(
    folder: LedgerFolder, by: Sequence[str], *, since: float = 0.0, key: str | None = None, until: float | None = None
) -> list[Used]:
    """Sums by groups of `GROUPINGS`, sorted by them.

    Args:
        since, until: Unix seconds; the hours that they stand in count.
        key: of this key alone.

    Raises:
        StoreAway: a file cannot be read.
    """
    found: dict[tuple[str, ...], Used] = {}
    groups = ", ".join(GROUPINGS[name] for name in by)
    condition = "hour >= ? AND hour <= ? AND (? IS NULL OR key = ?)"
    sums = ", ".join(f"sum({name})" for name in SUMS)
    statement = f"SELECT {sums}{', ' if groups else ''}{groups} FROM usage_hour WHERE {condition}"
    statement += f" GROUP BY {groups}" if groups else ""
    bounds = (int(since // 3600), int(until // 3600) if until is not None else 1 << 40, key, key)
    try:
        main = read_file(folder.root / MAIN_FILE)
        dropped: set[str] = set()
        connections = [main] if main is not None else []
        if main is not None:
            dropped = {month for (month,) in main.execute("SELECT month FROM dropped")}
        for month in months_in(folder.root):
            if month not in dropped and (file := read_file(month_file(folder.root, month))) is not None:
                connections.append(file)
        for connection in connections:
            with closing(connection):
                for row in connection.execute(statement, bounds):
                    if row[0] is not None:
                        _add(found, row)
    except sqlite3.Error as problem:
        raise StoreAway(str(problem)) from None
    return [found[group] for group in sorted(found)]


def _add(found: dict[tuple[str, ...], Used], row: tuple[int | str, ...]) -> None:
    size = len(SUMS)
    group = tuple(map(str, row[size:]))
    used = found.setdefault(group, Used(group))
    for name, value in zip(SUMS, row[:size], strict=True):
        setattr(used, name, getattr(used, name) + value)
