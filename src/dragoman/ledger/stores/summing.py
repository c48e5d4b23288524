"""Update the sums once for a batch of new rows: a trigger for each row costs as much as the row itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, TypeVar, final

from dragoman.ledger.journal.records import Intent, Row, Settlement
from dragoman.ledger.stores.inserting import Batch, total
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


def end_summing(connection: sqlite3.Connection, sums: Sums) -> None:
    """Update the sums by rows that all became final, or open, since `begin_summing`."""
    connection.executemany(_ADD, [(*group, *each) for group, each in sums.used.items()])
    connection.executemany(_CHARGE, [(*who, *each) for who, each in sums.charged.items()])
    connection.execute("DELETE FROM summing")


@final
class Sums:
    """What batches add to the sums.

    Attributes:
        used: in the order of `SUMS`, by `GROUPS`.
        charged: nano-dollars and tokens, by account and holder.
    """

    __slots__ = ("charged", "used")

    def __init__(self) -> None:
        self.used: dict[tuple[object, ...], Sequence[int]] = {}
        self.charged: dict[tuple[int, str], Sequence[int]] = {}

    def add(self, batch: Batch) -> None:
        """Add what the final rows of a batch used and are charged."""
        started = batch.column("started")
        if batch.is_one_kind and _hour(min(started)) == _hour(max(started)):
            self._add_kind(batch)
            return
        kinds: dict[tuple[object, ...], list[Row]] = {}
        for row in batch.rows:
            if row.settlement is not None:
                kind = (*_group(row.intent, row.settlement), row.intent.accounts, row.holder)
                kinds.setdefault(kind, []).append(row)
        for rows in kinds.values():
            self._add_kind(Batch(rows))

    def _add_kind(self, batch: Batch) -> None:
        """Add rows that have one group, and the same accounts and holder. Each column is added at once."""
        first = batch.rows[0]
        if first.settlement is None:
            return
        nano, input, output = batch.column("nano"), _sum(batch.column("input")), _sum(batch.column("output"))
        cost, unpriced = total(nano), 0
        if cost is None:
            cost, unpriced = _sum(nano), sum([each is None for each in nano])
        others = [_sum(batch.column(name)) for name in ("cache_read", "cache_write", "reasoning")]
        _add(self.used, _group(first.intent, first.settlement), (cost, unpriced, input, output, *others, len(nano)))
        if first.intent.accounts:
            tokens = input + output
            charged = batch.column("charged_tokens")
            if charged.count(None) < len(charged):
                tokens = sum([row.settlement.tokens for row in batch.rows if row.settlement is not None])
            for account in first.intent.accounts:
                _add(self.charged, (account, first.holder), (cost, tokens))


_Key = TypeVar("_Key")


def _add(sums: dict[_Key, Sequence[int]], key: _Key, more: Sequence[int]) -> None:
    before = sums.get(key)
    sums[key] = more if before is None else [each + further for each, further in zip(before, more, strict=True)]


def _sum(figures: Sequence[Any]) -> int:
    """Return the sum of what is known."""
    known = total(figures)
    return sum(filter(None, figures)) if known is None else known


def _hour(started: int) -> int:
    return started // _HOUR if started >= 0 else -(-started // _HOUR)  # as SQL divides


def _group(intent: Intent, end: Settlement) -> tuple[object, ...]:
    """Return what an attempt's sums are kept by, in the order of `GROUPS`."""
    return _hour(intent.started), intent.key, intent.owner, intent.team, intent.route, intent.target, end.state
