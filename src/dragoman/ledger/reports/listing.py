"""Pages of rows, the newest first: attempts, and the audit of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.stores.opening import open_reading
from dragoman.ledger.stores.schema import ADJUSTED_NANO, COLUMNS

#: What attempts may be picked by.
PICKED_BY: Final = ("key", "owner", "team", "route", "target", "state")
#: Above every id.
_LAST_ID: Final = b"\xff" * 16
_AUDIT: Final = "SELECT id, at, actor, action, subject, change FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?"


def list_attempts(
    folder: LedgerFolder,
    picked: Mapping[str, str],
    *,
    since: float = 0.0,
    until: float | None = None,
    before: bytes = _LAST_ID,
    limit: int,
    patience: float,
) -> list[dict[str, Any]]:
    """Return attempts by the columns of `schema.COLUMNS`, with the sum of corrections as `adjusted` in nano-dollars.

    Ids are hexadecimal.

    Args:
        picked: values of `PICKED_BY` to filter by.
        since, until: the range of start times in Unix seconds.
        before: return only attempts older than this id.
        patience: seconds that the store may take to answer.

    Raises:
        StoreAway: the store cannot be read.
    """
    conditions = "".join(f" AND {name} = ?" for name in picked)
    statement = (
        f"SELECT {', '.join(COLUMNS)}, {ADJUSTED_NANO} FROM :attempt "
        f"WHERE id < ? AND started >= ? AND started < ?{conditions} ORDER BY id DESC LIMIT ?"
    )
    bounds = int(since * 1_000_000), (1 << 62) if until is None else int(until * 1_000_000)
    found: list[dict[str, Any]] = []
    with open_reading(folder, patience=patience) as reading:
        for month in reversed(reading.months()):
            values = (before, *bounds, *picked.values(), limit - len(found))
            found += [_fields(row) for row in reading.select(month, statement, *values)]
            if len(found) >= limit:
                break
    return found


def list_audit(
    folder: LedgerFolder, *, before: int | None = None, limit: int, patience: float
) -> list[tuple[int, int, str, str, str, str]]:
    """Return audit entries: number, microseconds since 1970, actor, action, subject, change as JSON text.

    Raises:
        StoreAway: the store cannot be read.
    """
    with open_reading(folder, patience=patience) as reading:
        rows: list[Any] = list(reading.select(None, _AUDIT, (1 << 62) if before is None else before, limit))
    return rows


def team_of(folder: LedgerFolder, attempt: bytes, *, patience: float) -> str | None:
    """Return the team of an attempt, or None if there is no such attempt.

    Raises:
        StoreAway: the store cannot be read.
    """
    with open_reading(folder, patience=patience) as reading:
        for month in reversed(reading.months()):
            for (team,) in reading.select(month, "SELECT team FROM :attempt WHERE id = ?", attempt):
                found: str = team
                return found
    return None


def _fields(row: Sequence[Any]) -> dict[str, Any]:
    names = (*COLUMNS, "adjusted")
    return {
        name: bytes(value).hex() if isinstance(value, bytes) else bool(value) if name == "reported" else value
        for name, value in zip(names, row, strict=True)
    }
