"""Insert many rows into a month's file with few statements and few values."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

from msgspec.structs import astuple

from dragoman.ledger.journal.records import Intent, Row, Settlement
from dragoman.ledger.stores.schema import COLUMNS, SETTLED
from dragoman.ledger.stores.values import OPEN_VALUES, ending_values, joined

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
_FORMS: Final = (("id", bytearray), ("accounts", joined), ("reported", int))
#: Columns that have nothing together in most rows: without keys, without quotas, and of servers of one's own. Where all
#: rows of a statement have nothing there, it says so itself: a value costs 0.1 µs.
_OFTEN_EMPTY: Final = tuple(
    tuple([_PLACES[name] for name in names])
    for names in (
        ("owner", "team", "client_request"),
        ("accounts", "reserved", "expected", "reserved_tokens", "charged_tokens"),
        ("cache_read", "cache_write", "reasoning", "provider_request"),
    )
)
#: For rows that tell of an intent as it stands: sums that are added up from them are those of the table.
_TOLD: Final = COLUMNS[1 : COLUMNS.index("ended")]


def parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield the rows in batches of the size of one statement."""
    first = 0
    while first < len(rows):
        size = next(size for size in _SIZES if size <= len(rows) - first)
        yield rows[first : first + size]
        first += size


def insert(connection: sqlite3.Connection, rows: Sequence[Row], *, as_told: bool) -> int:
    """Insert a batch of `parts`, or settle open rows. Return the number of rows that changed something.

    Args:
        as_told: settle a row only if its intent is the one in the table.
    """
    columns: list[Sequence[Any]] = [
        *zip(*[astuple(row.intent) for row in rows], strict=True),
        [row.holder for row in rows],
        *zip(*[_ending(row) for row in rows], strict=True),
    ]
    for name, form in _FORMS:
        columns[_PLACES[name]] = list(map(form, columns[_PLACES[name]]))
    left_out = frozenset(chain.from_iterable([places for places in _OFTEN_EMPTY if _are_empty(columns, places)]))
    for place in _UNKNOWN_PLACES - left_out:
        if None in columns[place]:
            columns[place] = ["" if value is None else value for value in columns[place]]
    given = [column for place, column in enumerate(columns) if place not in left_out]
    values = list(chain.from_iterable(zip(*given, strict=True)))
    return connection.execute(_statement(len(rows), left_out, as_told=as_told), values).rowcount


def _ending(row: Row) -> tuple[Any, ...]:
    return OPEN_VALUES if row.settlement is None else ending_values(row.settlement)


def _are_empty(columns: Sequence[Sequence[Any]], places: Sequence[int]) -> bool:
    """Return whether all values of these columns are None or ""."""
    for place in places:
        column = columns[place]
        if column[0] not in (None, "") or column.count(column[0]) < len(column):
            return False
    return True


@cache
def _statement(size: int, left_out: frozenset[int], *, as_told: bool) -> str:
    """Return the statement for so many rows. `left_out`: the places of columns that have nothing."""
    columns = [
        ("nullif(?,'')" if name in _UNKNOWN else "?") if place not in left_out else "NULL" if name in _UNKNOWN else "''"
        for place, name in enumerate(_ORDER)
    ]
    row = f"({','.join(columns)})"
    statement = (
        f"INSERT INTO attempt({','.join(_ORDER)}) VALUES{','.join([row] * size)}"
        f" ON CONFLICT(id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in SETTLED)}"
        " WHERE attempt.state = 'reserved' AND excluded.state <> 'reserved'"
    )
    return statement + "".join([f" AND attempt.{name} IS excluded.{name}" for name in _TOLD]) if as_told else statement
