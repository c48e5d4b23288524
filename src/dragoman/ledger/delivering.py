"""Give rows to the store in batches, and set aside what it refuses, so that the others go on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import final

import msgspec

from dragoman.ledger.interfaces import Refused, Store
from dragoman.ledger.journal.reading import Odd
from dragoman.ledger.journal.records import PriceSnapshot, Row, Settlement, encode_record


@final
class Shipped(msgspec.Struct):
    """What a shipper has done.

    Attributes:
        missing: attempts that a restored store lacks and no journal has.
        problem: why nothing can be delivered now; "" if it can.
        notices: lines for the log, which the reader removes.
    """

    rows: int = 0
    set_aside: int = 0
    missing: int = 0
    problem: str = ""
    notices: list[str] = []


@final
class Delivery:
    """What a shipper gives to its store. It counts in `shipped`.

    Attributes:
        oldest_id: the lowest id of what is kept: months that end before it go.
    """

    __slots__ = ("_batch", "_shipped", "_store", "oldest_id")

    def __init__(self, store: Store, shipped: Shipped, *, batch: int) -> None:
        """Create it. `batch`: the number of rows that the store gets at once."""
        self._store = store
        self._shipped = shipped
        self._batch = batch
        self.oldest_id = bytes(16)

    def give(self, rows: Sequence[Row], snapshots: Sequence[PriceSnapshot]) -> None:
        """Deliver rows, and the prices by which they were counted. Raises StoreAway."""
        for first in range(0, max(len(rows), 1), self._batch):
            batch = rows[first : first + self._batch]
            if batch or snapshots:
                self._give_batch(batch, snapshots)
            snapshots = ()

    def give_odd(self, orphans: Sequence[Settlement], odd: Sequence[Odd]) -> None:
        """Settle by settlements without an intent, and set aside bytes that are no record. Raises StoreAway."""
        for settlement in orphans:
            try:
                reason = None if self._store.settle(settlement) else "settled without an intent"
            except Refused as problem:
                reason = str(problem)
            if reason is not None:
                self._set_aside(settlement.id.hex(), reason, encode_record(settlement))
        for each in odd:
            self._set_aside(each.name, each.reason, each.data)

    def _give_batch(self, rows: Sequence[Row], snapshots: Sequence[PriceSnapshot]) -> None:
        """Deliver rows; halve a refused batch until the refused row is found."""
        try:
            self._store.deliver(rows, snapshots)
            self._shipped.rows += len(rows)
            for row in [row for row in rows if row.intent.id < self.oldest_id]:  # it came late, or a clock was wrong
                self._set_row_aside(row, "dated before what is kept: it counts, and goes with its month")
        except Refused as problem:
            if len(rows) == 1:
                self._set_row_aside(rows[0], str(problem))
                return
            if not rows:
                return
            middle = len(rows) // 2
            self._give_batch(rows[:middle], ())
            self._give_batch(rows[middle:], ())

    def _set_row_aside(self, row: Row, reason: str) -> None:
        data = encode_record(row.intent) + (encode_record(row.settlement) if row.settlement else b"")
        self._set_aside(row.intent.id.hex(), reason, data)

    def _set_aside(self, name: str, reason: str, data: bytes) -> None:
        with contextlib.suppress(Refused):
            self._store.set_aside(name, reason, data)
        self._shipped.set_aside += 1
