"""Insert many rows into a month's file with few statements and few values."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Final, final

from msgspec.structs import astuple

from dragoman.ledger.journal.records import Intent, Row, Settlement
from dragoman.ledger.stores.schema import COLUMNS, SETTLED
from dragoman.ledger.stores.values import OPEN_VALUES, joined

#: Python's module looks for an adapter of each value that is no `int`, `float`, `str` or `bytearray`, which costs more
#: than the value: what is unknown is given as "", the id as a `bytearray`, `reported` as an `int`.
_UNKNOWN: Final = frozenset(
    ("reserved", "expected", "reserved_tokens", "ended", "nano", "price", "input", "output", "cache_read",
     "cache_write", "reasoning", "status", "charged_tokens")
)  # fmt: skip
#: Rows that one statement takes, the most first. Each step of a statement lets go of the interpreter and asks for it
#: again, which beside a busy event loop costs more than the row.
_SIZES: Final = (64, 16, 4, 1)
#: Columns in the order of an intent's fields, the holder, and those of a settlement but its id.
_ORDER: Final = (*Intent.__struct_fields__, "holder", *Settlement.__struct_fields__[1:])
_PLACES: Final = {name: place for place, name in enumerate(_ORDER)}
_UNKNOWN_PLACES: Final = frozenset([_PLACES[name] for name in _UNKNOWN])
#: In place of a settlement's fields while an attempt goes on.
_OPEN: Final = (b"", *OPEN_VALUES)
_FORMS: Final = (("id", bytearray), ("accounts", joined), ("reported", int))
#: Columns that are the same together in most rows: without keys, without quotas, of one key, of one target, of answers
#: that ended well. What all rows of a statement have alike is given once: a value costs 0.1 µs.
_OFTEN_ALIKE: Final = tuple(
    frozenset([_PLACES[name] for name in names])
    for names in (
        ("holder", "ordinal", "state", "reported", "reason", "status"),
        ("key", "owner", "team", "route", "target", "price", "accounts", "charged_tokens"),
        ("reserved", "expected", "reserved_tokens"),
        ("cache_read", "cache_write", "reasoning"),
        ("client_request", "provider_request"),
    )
)
#: For rows that tell of an intent as it stands: sums that are added up from them are those of the table.
_TOLD: Final = COLUMNS[1 : COLUMNS.index("ended")]


@final
class Batch:
    """Rows of one statement, as columns.

    Attributes:
        rows: the rows.
        is_one_kind: they have the same key, target and state, and so on.
    """

    __slots__ = ("_alike", "_columns", "is_one_kind", "rows")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        endings = [_OPEN if row.settlement is None else astuple(row.settlement) for row in rows]
        self._columns = columns = [
            *zip(*[astuple(row.intent) for row in rows], strict=True),
            [row.holder for row in rows],
            *islice(zip(*endings, strict=True), 1, None),
        ]
        groups = [group for group in _OFTEN_ALIKE if _are_alike([columns[place] for place in group])]
        self._alike = frozenset(chain.from_iterable(groups))
        self.is_one_kind = groups[:2] == [*_OFTEN_ALIKE[:2]]

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, as they stand in the records."""
        return self._columns[_PLACES[name]]

    def insert(self, connection: sqlite3.Connection, *, as_told: bool) -> int:
        """Insert the rows, or settle open ones. Return the number of rows that changed something.

        Args:
            as_told: settle a row only if its intent is the one in the table.
        """
        columns, alike = [*self._columns], self._alike
        for name, form in _FORMS:
            place = _PLACES[name]
            columns[place] = [form(columns[place][0])] if place in alike else list(map(form, columns[place]))
        apart = [place for place in range(len(columns)) if place not in alike]
        holes = frozenset([place for place in apart if place in _UNKNOWN_PLACES and total(columns[place]) is None])
        for place in holes:
            columns[place] = ["" if value is None else value for value in columns[place]]
        values = [columns[place][0] for place in sorted(alike)]
        values += chain.from_iterable(zip(*[columns[place] for place in apart], strict=True))
        return connection.execute(_statement(len(self.rows), alike, holes, as_told=as_told), values).rowcount


def batches(rows: Sequence[Row]) -> Iterator[Batch]:
    """Yield the rows in batches of the size of one statement."""
    first = 0
    while first < len(rows):
        size = next(size for size in _SIZES if size <= len(rows) - first)
        yield Batch(rows[first : first + size])
        first += size


def total(figures: Sequence[Any]) -> int | None:
    """Return the sum of a column, or None if one of its figures is unknown. To look for an unknown one takes longer."""
    try:
        known: int = sum(figures)
    except TypeError:
        return None
    return known


def _are_alike(columns: Sequence[Sequence[Any]]) -> bool:
    """Return whether each of these columns has one value for all rows."""
    return all(column.count(column[0]) == len(column) for column in columns)


@cache
def _statement(size: int, alike: frozenset[int], holes: frozenset[int], *, as_told: bool) -> str:
    """Return the statement for so many rows.

    Args:
        alike: the places of columns that are given once, before the rows.
        holes: those of columns in which some are unknown.
    """
    apart = [place for place in range(len(_ORDER)) if place not in alike]
    chosen = {place: f"same.c{place}" for place in alike}
    for number, place in enumerate(apart, 1):
        column = f"rows.column{number}"
        chosen[place] = f"nullif({column}, '')" if place in holes else column
    same = ", ".join([f"? AS c{place}" for place in sorted(alike)]) or "1"
    row = f"({','.join('?' * len(apart))})"
    statement = (
        f"INSERT INTO attempt({','.join(_ORDER)}) SELECT {', '.join([chosen[place] for place in range(len(_ORDER))])}"
        f" FROM (SELECT {same}) AS same CROSS JOIN (VALUES {','.join([row] * size)}) AS rows WHERE true"
        f" ON CONFLICT(id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in SETTLED)}"
        " WHERE attempt.state = 'reserved' AND excluded.state <> 'reserved'"
    )
    return statement + "".join([f" AND attempt.{name} IS excluded.{name}" for name in _TOLD]) if as_told else statement
