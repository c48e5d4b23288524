"""Sum up spend by groups, from the hourly sums, which cover months whose attempts were dropped too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.stores.opening import open_reading
from dragoman.ledger.stores.schema import SUMS

#: What may be summed by, in SQL over the sums by hour; of days and months, which are those of UTC, the day's number.
GROUPINGS: Final[dict[str, str]] = {
    "key": "key",
    "owner": "owner",
    "team": "team",
    "route": "route",
    "target": "target",
    "state": "state",
    "day": "hour / 24",
    "month": "hour / 24",
}
_DATES: Final = {"day": "%Y-%m-%d", "month": "%Y-%m"}
_SECONDS_OF_DAY: Final = 86_400
#: 31 December 9999, in days since 1970: a row has room for later ones, a calendar has not.
_LAST_DAY: Final = 2_932_896


@final
class Used(msgspec.Struct):
    """The sum of a group.

    Attributes:
        group: the values by which the sum is grouped.
        unpriced: the number of attempts of unknown cost, which `nano` does not include.
    """

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
    folder: LedgerFolder,
    by: Sequence[str],
    *,
    since: float = 0.0,
    until: float | None = None,
    key: str | None = None,
    team: str | None = None,
) -> list[Used]:
    """Return sums by groups of `GROUPINGS`, sorted by group.

    Args:
        since, until: Unix seconds; the hours that contain them count.
        key, team: count only this one.

    Raises:
        StoreAway: the store cannot be read.
    """
    found: dict[tuple[str, ...], Used] = {}
    groups = ", ".join(GROUPINGS[name] for name in by)
    condition = "hour >= ? AND hour <= ?"
    condition += "".join(f" AND (CAST(? AS text) IS NULL OR {name} = ?)" for name in ("key", "team"))
    sums = ", ".join(f"CAST(sum({name}) AS bigint)" for name in SUMS)
    statement = f"SELECT {sums}{', ' if groups else ''}{groups} FROM :usage_hour WHERE {condition}"
    statement += f" GROUP BY {groups}" if groups else ""
    bounds = (int(since // 3600), int(until // 3600) if until is not None else 1 << 40, key, key, team, team)
    with open_reading(folder) as reading:
        for row in reading.sums(statement, *bounds):
            if row[0] is not None:
                _add(found, by, row)
    return [found[group] for group in sorted(found)]


def _add(found: dict[tuple[str, ...], Used], by: Sequence[str], row: tuple[int | str, ...]) -> None:
    size = len(SUMS)
    group = tuple([_label(name, value) for name, value in zip(by, row[size:], strict=True)])
    used = found.setdefault(group, Used(group))
    for name, value in zip(SUMS, row[:size], strict=True):
        setattr(used, name, getattr(used, name) + value)


def _label(name: str, value: int | str) -> str:
    """Return a group's value as it is shown."""
    if name not in _DATES:
        return str(value)
    return time.strftime(_DATES[name], time.gmtime(min(int(value), _LAST_DAY) * _SECONDS_OF_DAY))
