"""How many final attempts a machine has brought into a PostgreSQL, as the store and the machine know it.

The store keeps the number in the transaction that takes the attempts. The machine keeps it in a file. A store that has
less was restored from an older state, and journals no longer have all that it lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.ledger.interfaces import StoreAway, StoreRestored
from dragoman.ledger.stores.postgresql_connection import Connection

_FILE: Final = "brought"
#: Seconds between two writes of the file while more is brought.
_WRITE_EVERY: Final = 1.0
_ADD: Final = """
INSERT INTO brought VALUES($1, $2, $3) ON CONFLICT(machine)
DO UPDATE SET count = brought.count + excluded.count, at = greatest(brought.at, excluded.at) RETURNING count
"""
_READ: Final = """
SELECT value, coalesce((SELECT count FROM brought WHERE machine = $1), 0),
  coalesce((SELECT at FROM brought WHERE machine = $1), 0) FROM meta WHERE name = 'identity'
"""
_SET_ASIDE: Final = "INSERT INTO set_aside VALUES($1, $2, $3, $4) ON CONFLICT DO NOTHING"
#: A counter's life in a restored database is older than what its holders know.
_END_LIFE: Final = "UPDATE counter_life SET server = 'restored'"
_HAS_LIFE: Final = "SELECT to_regclass('counter_life') IS NOT NULL"


@final
class Mark(msgspec.Struct, frozen=True):
    """The attempts brought to the store of this `identity`. `at`: when the last one was, in microseconds."""

    identity: str = ""
    count: int = 0
    at: int = 0


@final
class Brought:
    """The mark of one machine. For one thread.

    Attributes:
        notices: lines for the log, which the caller removes.
        until: while a restored store gets back what the journals have: what ended later was never brought; else None.
        missing: attempts that a restored store lacks.
    """

    __slots__ = (
        "_file", "_machine", "_mark", "_pending", "_recovered", "_since", "_was_read", "_write_at", "missing",
        "notices", "until",
    )  # fmt: skip

    def __init__(self, root: Path, machine: Callable[[], str]) -> None:
        """Create it. `machine` returns this machine's name, or raises OSError."""
        self._file = root / _FILE
        self._machine = machine
        self._mark = read_mark(root)
        self._pending: Mark | None = None  # until the transaction is committed
        self._recovered = 0  # the same, of what is missing
        self._was_read = False
        self._since = 0
        self._write_at = 0.0
        self.until: int | None = None
        self.missing = 0
        self.notices: list[str] = []

    def check(self, connection: Connection) -> None:
        """Compare both sides, in a transaction. Raises `StoreRestored`: the store has less than was brought."""
        stored, before = stored_mark(connection, self._machine()), self._mark
        self._was_read = True
        if before.identity not in ("", stored.identity):
            self.notices.append(
                f"the ledger's store is not the one that this machine brought {before.count} attempts to until "
                f"{shown(before.at)}; dragoman ledger copy brings what that one had"
            )
        elif stored.count < before.count:
            self.missing, self._since, self.until = before.count - stored.count, stored.at, before.at
            self._write()  # the file keeps what was known until all is delivered again
            self._mark = stored
            self.notices.append(
                f"the ledger's store was restored from an older state: it lacks {self.missing} attempts that this "
                f"machine brought after {shown(stored.at)}; what the journals still have is delivered again"
            )
            raise StoreRestored(self.notices[-1])
        self._mark = stored

    def add(self, connection: Connection, count: int, recovered: int, at: int) -> None:
        """Count attempts, in the transaction that takes them. `recovered`: those of them that ended before `until`.

        Raises:
            StoreRestored, StoreAway: the store has less than was brought.
        """
        self._pending = None
        if not self._was_read:
            self.check(connection)
        if not count:
            return
        [(total,)] = connection.fetch(_ADD, self._machine(), count, at if self.until is None else self._since)
        if total - count < self._mark.count:
            self._was_read = False  # the next delivery checks before it adds
            raise StoreAway("the store was restored")
        self._pending, self._recovered = Mark(self._mark.identity, total, at), recovered

    def was_taken(self) -> None:
        """Note that the transaction was committed."""
        if self._pending is not None:
            self._mark, self._pending = self._pending, None
            self.missing -= self._recovered
            if self.until is None and time.monotonic() >= self._write_at:
                self._write()

    def end_restoring(self, connection: Connection, now: int) -> None:
        """Record what is missing, in a transaction, when all journals were delivered again."""
        if connection.fetch(_HAS_LIFE)[0][0]:
            connection.execute(_END_LIFE)
        if self.missing > 0:
            span = f"between {shown(self._since)} and {shown(self.until or 0)}"
            reason = (
                f"the store was restored from an older state: {self.missing} attempts that machine {self._machine()} "
                f"had brought {span} are missing, and no journal has them"
            )
            connection.execute(_SET_ASIDE, f"restored.{now}.{self._machine()}", reason, b"", now)
            self.notices.append(f"ledger: {reason}")
        else:
            self.notices.append("ledger: journals had all that the restored store lacked; nothing is missing")

    def has_ended_restoring(self) -> None:
        """Note that this was committed."""
        self.until, self.missing = None, 0
        self._write()

    def close(self) -> None:
        """Keep the mark. Raises OSError."""
        if self._was_read and self.until is None:
            self._write()
        self._was_read = False

    def _write(self) -> None:
        mark = self._mark
        self._write_at = time.monotonic() + _WRITE_EVERY
        new = self._file.with_suffix(".new")
        new.write_text(f"{mark.identity} {mark.count} {mark.at}\n", encoding="ascii")
        os.replace(new, self._file)


def read_mark(root: Path) -> Mark:
    """Return the mark as a machine knows it."""
    try:
        identity, count, at = (root / _FILE).read_text(encoding="ascii").split()
        return Mark(identity, int(count), int(at))
    except (OSError, ValueError):
        return Mark()


def stored_mark(connection: Connection, machine: str) -> Mark:
    """Return the mark as the store knows it. Raises StoreAway."""
    identity, count, at = connection.fetch(_READ, machine)[0]
    return Mark(identity, count, at)


def shown(at: int) -> str:
    """Return a time as it is told."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at > 0 else "the beginning"
