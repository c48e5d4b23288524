"""The records of one journal → rows: an intent and its settlement are one row. No I/O.

A row leaves when it is final. What is still open holds the place back from which the journal is read again after a
restart, so that nothing is delivered by halves; what is read again gives the same rows.
"""

from __future__ import annotations

from typing import TypeAlias, final

from dragoman.ledger.journal.records import Intent, PriceSnapshot, Record, Row, Settlement

#: Where a record stands: the number of its segment, and its first byte there.
Place: TypeAlias = tuple[int, int]


@final
class Merging:
    """Of one holder.

    Attributes:
        holder: its name.
        is_at: up to where all was taken.
        snapshots: prices that came since they were last taken away.
        orphans: settlements without an intent: their intent was damaged.
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
        """The next record; gives the row that is final now."""
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
        """Intents without a settlement."""
        return len(self._open)

    def oldest(self) -> Place:
        """From where the journal must be read again after a restart."""
        return next(iter(self._open.values()))[0] if self._open else self.is_at

    def first_due(self) -> int | None:
        """When the oldest attempt that goes on, and was not delivered as such, began; None without one."""
        return next((intent.started for id, (_, intent) in self._open.items() if id not in self._told), None)

    def going_on(self, before: int) -> list[Row]:
        """Attempts that began before this time and go on, each once."""
        rows = [
            Row(self.holder, intent)
            for id, (_, intent) in self._open.items()
            if intent.started < before and id not in self._told
        ]
        self._told.update(row.intent.id for row in rows)
        return rows

    def interrupted(self, now: int) -> list[Row]:
        """All that is open, for the writer is dead: each costs what was expected of it, and the tokens that were set
        apart, if anything was."""
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
