"""Update the sums once for a batch of new rows: a trigger for each row costs as much as the row itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from dragoman.ledger.journal.records import Row, Settlement
from dragoman.ledger.stores.schema import ADDED, CHARGED, GROUPS, SUMS

#: Rows from which on that is cheaper.
MANY: Final = 16
_HOUR: Final = 3_600_000_000
_ADD: Final = f"INSERT INTO usage_hour VALUES({','.join('?' * len((*GROUPS, *SUMS)))}) {ADDED}"
_CHARGE: Final = f"INSERT INTO spend VALUES(?,?,?,?) {CHARGED}"
#: A file that an earlier dragoman made keeps its triggers, which move the sums whatever `summing` says.
_READY: Final = (
    "SELECT count(*) = 2 FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'attempt' "
    "AND instr(sql, 'FROM summing')"
)


def can_sum(connection: sqlite3.Connection) -> bool:
    """Return whether the triggers of a month's file let the store update the sums."""
    found: tuple[int] = connection.execute(_READY).fetchone()
    return bool(found[0])


def begin_summing(connection: sqlite3.Connection) -> None:
    """Suspend the triggers that update sums, until `end_summing` or a rollback."""
    connection.execute("INSERT INTO summing VALUES(1)")


def end_summing(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Update the sums by these rows. Those that are final became final since `begin_summing`."""
    used, charged = _added_up(rows)
    connection.executemany(_ADD, used)
    connection.executemany(_CHARGE, charged)
    connection.execute("DELETE FROM summing")


def _added_up(rows: Iterable[Row]) -> tuple[Sequence[tuple[object, ...]], Sequence[tuple[object, ...]]]:
    """Return the sums by group, and by account and holder. Rows are grouped first; then each column is added at
    once.
    """
    used: dict[tuple[object, ...], list[Settlement]] = {}
    charged: dict[tuple[tuple[int, ...], str], list[Settlement]] = {}
    for row in rows:
        end, intent = row.settlement, row.intent
        if end is None:
            continue
        started = intent.started
        hour = started // _HOUR if started >= 0 else -(-started // _HOUR)  # as SQL divides
        group = (hour, intent.key, intent.owner, intent.team, intent.route, intent.target, end.state)
        if group in used:
            used[group].append(end)
        else:
            used[group] = [end]
        if intent.accounts:
            charged.setdefault((intent.accounts, row.holder), []).append(end)
    spent: dict[tuple[int, str], list[int]] = {}
    for (accounts, holder), ends in charged.items():
        nano, tokens = sum([end.nano or 0 for end in ends]), sum([end.tokens for end in ends])
        for account in accounts:
            sums = spent.setdefault((account, holder), [0, 0])
            sums[0] += nano
            sums[1] += tokens
    return [(*group, *_sums(ends)) for group, ends in used.items()], [(*who, *sums) for who, sums in spent.items()]


def _sums(ends: Sequence[Settlement]) -> tuple[int, ...]:
    """Return the sums in the order of `SUMS`."""
    return (
        sum([end.nano or 0 for end in ends]),
        sum([end.nano is None for end in ends]),
        sum([end.input or 0 for end in ends]),
        sum([end.output or 0 for end in ends]),
        sum([end.cache_read or 0 for end in ends]),
        sum([end.cache_write or 0 for end in ends]),
        sum([end.reasoning or 0 for end in ends]),
        len(ends),
    )
