"""Merge a journal's records into rows: an intent and its settlement become one row. No I/O.

A row leaves when it is final. The oldest open attempt determines where reading resumes after a restart, so nothing is
half delivered. Reading the same records again gives the same rows.
"""

from __future__ import annotations

from typing import TypeAlias, final

from dragoman.ledger.journal.records import Intent, PriceSnapshot, Record, Row, Settlement

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
        self._open: dict[bytes, tuple[Place, Intent]] = {}  # the oldest stands first
        self._told: set[bytes] = set()  # of these, those that were delivered as open

    def take(self, place: Place, record: Record) -> Row | None:
        """Take the next record. Return the row that it makes final, if any."""
        if type(record) is Intent:
            self._open[record.id] = (place, record)
        elif type(record) is Settlement:
            opened = self._open.pop(record.id, None)
            if opened is not None:
                self._told.discard(record.id)
                return Row(self.holder, opened[1], record)
            self.orphans.append(record)
        elif type(record) is PriceSnapshot:
            self.snapshots.append(record)
        return None

    @property
    def open_attempts(self) -> int:
        """The number of intents without a settlement."""
        return len(self._open)

    def oldest(self) -> Place:
        """Return the place from which the journal must be read again after a restart."""
        return next(iter(self._open.values()))[0] if self._open else self.is_at

    def first_due(self) -> int | None:
        """Return the start of the oldest open attempt that was not delivered as open yet, or None."""
        return next((intent.started for id, (_, intent) in self._open.items() if id not in self._told), None)

    def going_on(self, before: int) -> list[Row]:
        """Return the open attempts that began before a time. Each is returned once."""
        rows = [
            Row(self.holder, intent)
            for id, (_, intent) in self._open.items()
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
            for _, intent in self._open.values()
        ]
        self._open.clear()
        self._told.clear()
        return rows
