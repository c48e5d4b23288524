"""Merge a journal's records into rows: an intent and its settlement become one row. No I/O.

A row leaves when it is final. The oldest open attempt determines where reading resumes after a restart, so nothing is
half delivered. Reading the same records again gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, final

from dragoman.ledger.journal.records import Intent, Placed, PriceSnapshot, Row, Settlement

#: Where a record stands: the number of its segment, and its first byte there.
Place: TypeAlias = tuple[int, int]


@final
class Merging:
    """The state of merging one holder's journal.

    Attributes:
        holder: the holder's name.
        is_at: the place up to which all records were taken.
        snapshots: price snapshots that came since they were last taken away.
        orphans: the number of settlements without an intent, because the intent was damaged.
    """

    __slots__ = ("_open", "_told", "holder", "is_at", "orphans", "snapshots")

    def __init__(self, holder: str, is_at: Place = (0, 0)) -> None:
        self.holder = holder
        self.is_at = is_at
        self.snapshots: list[PriceSnapshot] = []
        self.orphans: list[Settlement] = []
        self._open: dict[bytes, tuple[int, int, Intent]] = {}  # with their places; the oldest stands first
        self._told: set[bytes] = set()  # of these, those that were delivered as open

    def take(self, segment: int, found: Iterable[Placed]) -> list[Row]:
        """Take the next records of a segment, each with its place there. Return the rows that they make final."""
        rows: list[Row] = []
        holder, opened, told = self.holder, self._open, self._told
        for place, record in found:
            if type(record) is Settlement:
                begun = opened.pop(record.id, None)
                if begun is None:
                    self.orphans.append(record)
                    continue
                if told:
                    told.discard(record.id)
                rows.append(Row(holder, begun[2], record))
            elif type(record) is Intent:
                opened[record.id] = (segment, place, record)
            elif type(record) is PriceSnapshot:
                self.snapshots.append(record)
        return rows

    @property
    def open_attempts(self) -> int:
        """The number of intents without a settlement."""
        return len(self._open)

    def oldest(self) -> Place:
        """Return the place from which the journal must be read again after a restart."""
        return next(iter(self._open.values()))[:2] if self._open else self.is_at

    def first_due(self) -> int | None:
        """Return the start of the oldest open attempt that was not delivered as open yet, or None."""
        return next((intent.started for id, (_, _, intent) in self._open.items() if id not in self._told), None)

    def going_on(self, before: int) -> list[Row]:
        """Return the open attempts that began before a time. Each is returned once."""
        rows = [
            Row(self.holder, intent)
            for id, (_, _, intent) in self._open.items()
            if intent.started < before and id not in self._told
        ]
        self._told.update(row.intent.id for row in rows)
        return rows

    def interrupted(self, now: int) -> list[Row]:
        """Close all open attempts, because their writer is dead.

        Each costs what was expected of it, and the tokens that were reserved for it, if there were any.
        """
        rows = [
            Row(
                self.holder,
                intent,
                Settlement(
                    intent.id,
                    now,
                    "interrupted",
                    intent.expected,
                    reason="process_died",
                    charged_tokens=intent.reserved_tokens,
                ),
            )
            for _, _, intent in self._open.values()
        ]
        self._open.clear()
        self._told.clear()
        return rows
