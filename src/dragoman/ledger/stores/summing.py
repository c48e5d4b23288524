"""Update the sums once for a batch of new rows: a trigger for each row costs as much as the row itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar, final

from dragoman.ledger.journal.records import Row, Settlement
from dragoman.ledger.stores.inserting import Batch, total
from dragoman.ledger.stores.schema import ADDED, CHARGED, GROUPS, SUMS

#: Rows from which on that is cheaper.
MANY: Final = 16
_HOUR: Final = 3_600_000_000
#: What is added up of an attempt.
_FIGURES: Final = ("nano", "input", "output", "cache_read", "cache_write", "reasoning", "charged_tokens")
_figures: Final = attrgetter(*_FIGURES)
_Kind: TypeAlias = tuple[tuple[object, ...], tuple[int, ...], str]
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
    sums.finish()
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

    __slots__ = ("_kinds", "charged", "used")

    def __init__(self) -> None:
        self.used: dict[tuple[object, ...], Sequence[int]] = {}
        self.charged: dict[tuple[int, str], Sequence[int]] = {}
        self._kinds: dict[_Kind, list[Settlement]] = {}  # of batches that have several

    def add(self, batch: Batch) -> None:
        """Add what the final rows of a batch used and are charged."""
        started, first = batch.column("started"), batch.rows[0]
        if batch.is_one_kind and _hour(min(started)) == _hour(max(started)):
            if first.settlement is not None:
                self._add_kind(_kind(first, first.settlement), [batch.column(name) for name in _FIGURES])
            return
        kinds = self._kinds
        for row in batch.rows:
            end = row.settlement
            if end is not None:
                kind = _kind(row, end)
                if kind in kinds:
                    kinds[kind].append(end)
                else:
                    kinds[kind] = [end]

    def finish(self) -> None:
        """Add what came in batches of several kinds: a kind's rows of all of them together."""
        for kind, ends in self._kinds.items():
            self._add_kind(kind, [*zip(*map(_figures, ends), strict=True)])
        self._kinds = {}

    def _add_kind(self, kind: _Kind, figures: Sequence[Sequence[Any]]) -> None:
        """Add rows that have one group, and the same accounts and holder. Each of `_FIGURES` is added at once."""
        group, accounts, holder = kind
        nano, inputs, outputs, *others, charged = figures
        cost, unpriced = total(nano), 0
        if cost is None:
            cost, unpriced = _sum(nano), sum([each is None for each in nano])
        input, output = _sum(inputs), _sum(outputs)
        _add(self.used, group, (cost, unpriced, input, output, *map(_sum, others), len(nano)))
        if accounts:
            tokens = input + output
            if charged.count(None) < len(charged):
                each = zip(inputs, outputs, charged, strict=True)
                tokens = sum([(i or 0) + (o or 0) if told is None else told for i, o, told in each])
            for account in accounts:
                _add(self.charged, (account, holder), (cost, tokens))


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


def _kind(row: Row, end: Settlement) -> _Kind:
    """Return what an attempt's sums are kept by, in the order of `GROUPS`; its accounts, and its holder."""
    intent = row.intent
    group = (_hour(intent.started), intent.key, intent.owner, intent.team, intent.route, intent.target, end.state)
    return group, intent.accounts, row.holder
