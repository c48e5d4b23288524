"""The store of one machine: SQLite files in the ledger's folder, written by the shipper and by commands."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from dragoman import _json
from dragoman.ledger.interfaces import Missing, Refused, StoreAway, StoreDamaged
from dragoman.ledger.journal.records import PriceSnapshot, Row, Settlement
from dragoman.ledger.stores.files import (
    MAIN_FILE,
    Serial,
    is_damage,
    month_file,
    month_of,
    months_in,
    open_file,
    read_file,
    renew_month,
    serial_of,
)
from dragoman.ledger.stores.inserting import batches
from dragoman.ledger.stores.mending import COPY_FILE, keep_copy, mend
from dragoman.ledger.stores.schema import GROUPS, MAIN, MONTH, SETTLED, SUMS
from dragoman.ledger.stores.summing import MANY, Sums, begin_summing, can_sum, end_summing
from dragoman.ledger.stores.values import (
    Correction,
    Noted,
    adjustment_id,
    chained,
    check_credit,
    check_repeated,
    derived_id,
    ending_values,
)

#: Files of months that are open at once.
_MOST_OPEN: Final = 3
_SETTLE: Final = (
    f"UPDATE attempt SET {', '.join(f'{name} = ?' for name in SETTLED)} WHERE id = ? AND state = 'reserved'"
)
_KEEP_USAGE: Final = (
    f"INSERT OR REPLACE INTO dropped_usage(month, {', '.join((*GROUPS, *SUMS))}) "
    f"VALUES(?,{','.join('?' * len((*GROUPS, *SUMS)))})"
)
_KEEP_SPEND: Final = "INSERT OR REPLACE INTO dropped_spend(month, account, holder, nano, tokens) VALUES(?,?,?,?,?)"
_FINAL: Final = "SELECT 1 FROM attempt WHERE id = ? AND state <> 'reserved'"
_ADJUST: Final = "INSERT OR IGNORE INTO adjustment(id, attempt, nano, prices, reason, actor, at) VALUES(?,?,?,?,?,?,?)"
#: What stands nowhere else; a month's sums come to `dropped_usage` when its file is dropped.
_LOOKED_AT: Final = (
    "virtual_key", "key_digest", "quota", "dropped", "usage_hour", "spend", "dropped_usage", "dropped_spend",
)  # fmt: skip


class SqliteStore:
    """A `Store` in SQLite files. For one thread at a time."""

    __slots__ = ("_folder", "_main", "_months", "_now", "_serials")

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        """Create it. The first write creates `folder`; `now` returns Unix seconds."""
        self._folder = folder
        self._now = now
        self._main: sqlite3.Connection | None = None
        self._months: dict[str, sqlite3.Connection] = {}
        self._serials: dict[Path, Serial] = {}  # of the files that are open

    def deliver(self, rows: Sequence[Row], snapshots: Iterable[PriceSnapshot] = ()) -> None:
        if prices := [(price.id, price.target, price.source, price.body) for price in snapshots]:
            with self._writing(None) as main:
                main.executemany("INSERT OR IGNORE INTO price VALUES(?,?,?,?)", prices)
        for month, those in _by_month(rows).items():
            with self._writing(month) as connection:
                if len(those) < MANY or not can_sum(connection) or not _take_new(connection, those):
                    self._take(connection, those)

    def settle(self, settlement: Settlement) -> bool:
        if not self._has_month(settlement.id):
            return False
        with self._writing(month_of(settlement.id)) as connection:
            if connection.execute(_SETTLE, (*ending_values(settlement), settlement.id)).rowcount:
                return True
            if connection.execute("SELECT 1 FROM attempt WHERE id = ?", (settlement.id,)).fetchone() is None:
                return False
            self._adjust_late(connection, settlement)
            return True

    def set_aside(self, name: str, reason: str, data: bytes) -> None:
        with self._writing(None) as main:
            main.execute("INSERT OR IGNORE INTO set_aside VALUES(?,?,?,?)", (name, reason, data, self._micros()))

    def adjust(self, attempt: bytes, nano: int, *, reason: str, actor: str, token: str = "") -> bool:
        id = adjustment_id(attempt, nano, reason=reason, actor=actor, token=token)
        if not self._has_month(attempt):
            raise Missing("there is no such attempt")
        with self._writing(month_of(attempt)) as connection:
            found = connection.execute("SELECT state, nano FROM attempt WHERE id = ?", (attempt,)).fetchone()
            if found is None:
                raise Missing("there is no such attempt")
            if found[0] == "reserved":
                raise Refused("expected an attempt that has ended")
            stored = connection.execute("SELECT nano, reason FROM adjustment WHERE id = ?", (id,)).fetchone()
            if stored is not None:
                check_repeated(stored, nano, reason)
                return False
            others = connection.execute("SELECT sum(nano) FROM adjustment WHERE attempt = ?", (attempt,)).fetchone()
            check_credit((found[1] or 0) + (others[0] or 0), nano)
        # The audit comes first: a correction that nobody accounts for must not be, one that was announced and not made
        # is shown by `check`.
        self.audit(actor, "adjust", attempt.hex(), {"nano": nano, "reason": reason, "id": id.hex()})
        with self._writing(month_of(attempt)) as connection:
            known = _is_priced(connection, attempt)
            connection.execute(_ADJUST, (id, attempt, nano, not known, reason, actor, self._micros()))
        return True

    def take_corrections(self, entries: Sequence[Correction]) -> None:
        by_month: dict[str, list[Correction]] = {}
        for entry in entries:
            by_month.setdefault(month_of(entry[1]), []).append(entry)
        for month, those in by_month.items():
            if not self._has_month(those[0][1]):
                raise Refused("there is no such attempt")
            with self._writing(month) as connection:
                for entry in those:
                    if connection.execute(_FINAL, (entry[1],)).fetchone() is None:
                        raise Refused("there is no such attempt")
                connection.executemany(_ADJUST, those)

    def accounts_of(self, attempt: bytes) -> list[int]:
        if not self._has_month(attempt):
            return []
        with self._writing(month_of(attempt)) as connection:
            found = connection.execute("SELECT accounts FROM attempt WHERE id = ?", (attempt,)).fetchone()
        return [] if found is None or not found[0] else [int(account) for account in found[0].split(",")]

    def audit(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        with self._writing(None) as main:
            write_audit(main, self._micros(), actor, action, subject, change)

    def drop_before(self, day: str) -> list[str]:
        self.look()
        months = months_in(self._folder)
        old = [month for month in months if month < day[:7]]
        for month in months[len(old) :]:
            with contextlib.suppress(sqlite3.Error):  # who writes to it says what is wrong
                renew_month(self._path(month))
        for month in old:
            if (connection := self._months.pop(month, None)) is not None:
                connection.close()
            with self._writing(None) as main:
                if main.execute("SELECT 1 FROM dropped WHERE month = ?", (month,)).fetchone() is None:
                    keep_sums(main, month, self._micros(), *_sums_of(self._path(month)))
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{self._path(month)}{suffix}")
        self._copy()
        return old

    def look(self) -> None:
        """Read the data that stands in no journal, such as keys and quotas.

        Raises:
            StoreAway: it cannot be read.
            StoreDamaged: it was damaged, and is repaired.
        """
        if self._path(None).exists():
            with self._writing(None) as main:
                for table in _LOOKED_AT:
                    for _ in main.execute(f"SELECT * FROM {table}"):
                        pass

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction on the data that belongs to no month, such as keys and the audit.

        Raises:
            StoreAway, Refused: as `deliver`; nothing was changed.
        """
        with self._writing(None) as main:
            yield main
        self._copy()

    def look_back(self) -> None:
        """See `Store.look_back`. A damaged file says so itself."""

    def end_look_back(self) -> tuple[int, list[str]]:
        """See `Store.end_look_back`."""
        return 0, []

    def close(self) -> None:
        for connection in (*self._months.values(), *([self._main] if self._main is not None else ())):
            connection.close()
        self._months.clear()
        self._serials.clear()
        self._main = None

    # ------------------------------------------------------------ inside

    def _has_month(self, attempt: bytes) -> bool:
        """Return whether the attempt's month exists, or existed. An id that is not an attempt's must not create one."""
        month = month_of(attempt)
        return self._path(month).exists() or self._is_dropped(month)

    def _take(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        for batch in batches(rows):
            if batch.insert(connection, as_told=False) < len(batch.rows):
                for row in batch.rows:  # some stood there, perhaps with other values
                    if row.settlement is not None:
                        self._adjust_late(connection, row.settlement)

    def _adjust_late(self, connection: sqlite3.Connection, given: Settlement) -> None:
        """Turn a further row of a closed attempt into a correction with the difference."""
        stored = connection.execute("SELECT nano, state FROM attempt WHERE id = ?", (given.id,)).fetchone()
        if given.nano is None or given.state == "interrupted" or stored[1] != "interrupted":
            return
        difference = given.nano - (stored[0] or 0)
        if difference or stored[0] is None:
            values = (
                derived_id(given.id, "late"),
                given.id,
                difference,
                stored[0] is None,
                "late",
                "shipper",
                given.ended,
            )
            connection.execute(_ADJUST, values)

    @contextmanager
    def _writing(self, month: str | None) -> Iterator[sqlite3.Connection]:
        """Run one transaction. SQLite's errors become the interface's exceptions."""
        connection: sqlite3.Connection | None = None
        path = self._path(month)
        serial = serial_of(path)
        try:
            while True:
                connection = self._opened(month, path, serial)
                connection.execute("BEGIN IMMEDIATE")
                serial = serial_of(path)
                if serial == self._serials[path]:
                    break
                connection.rollback()  # it was mended while this one waited: what is written here would be lost
            yield connection
            connection.execute("COMMIT")
        except sqlite3.IntegrityError as problem:
            raise Refused(str(problem)) from None
        except sqlite3.Error as problem:
            self.close()
            connection = None
            if is_damage(problem):
                _mend(path, serial)
            raise StoreAway(f"{path.name}: {problem}") from None
        except OverflowError as problem:
            raise Refused(str(problem)) from None
        finally:
            if connection is not None and connection.in_transaction:
                connection.rollback()

    def _opened(self, month: str | None, path: Path, serial: Serial) -> sqlite3.Connection:
        if self._serials.get(path, serial) != serial:
            self.close()  # somebody removed it, or put another in its place
        found = self._main if month is None else self._months.get(month)
        if found is not None:
            return found
        if month is None:
            found = self._main = open_file(path, MAIN)
        else:
            if len(self._months) >= _MOST_OPEN:
                self._months.pop(next(iter(self._months))).close()
            if self._is_dropped(month):
                raise Refused(f"the attempts of {month} were dropped")
            found = self._months[month] = open_file(path, MONTH)
        # Of before it was opened: if another one came between, the next look finds that.
        self._serials[path] = serial_of(path) if serial == (0, 0) else serial
        return found

    def _is_dropped(self, month: str) -> bool:
        with self._writing(None) as main:  # what is wrong with that file is not this month's
            return main.execute("SELECT 1 FROM dropped WHERE month = ?", (month,)).fetchone() is not None

    def _copy(self) -> None:
        """Copy the data that belongs to no month, if there is any that stands nowhere else, or was."""
        main = self._main
        with contextlib.suppress(OSError, sqlite3.Error):  # the one of before stays
            if main is not None and ((self._folder / COPY_FILE).exists() or _has_any(main)):
                keep_copy(main, self._folder)

    def _path(self, month: str | None) -> Path:
        return self._folder / MAIN_FILE if month is None else month_file(self._folder, month)

    def _micros(self) -> int:
        return int(self._now() * 1_000_000)


def _by_month(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Group rows by the month of their ids. Usually there is one, as the oldest and the newest id show."""
    ids = [row.intent.id for row in rows]
    if ids and (month := month_of(min(ids))) == month_of(max(ids)):
        return {month: rows}
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(month_of(row.intent.id), []).append(row)
    return {**found}


def _take_new(connection: sqlite3.Connection, rows: Sequence[Row]) -> bool:
    """Insert rows that all change something, with their sums.

    Return False, with nothing done, if one changes nothing or contradicts the intent in the store.
    """
    connection.execute("SAVEPOINT batch")
    begin_summing(connection)
    sums = Sums()
    for batch in batches(rows):
        if batch.insert(connection, as_told=True) < len(batch.rows):
            connection.execute("ROLLBACK TO batch")
            return False
        sums.add(batch)
    end_summing(connection, sums)
    connection.execute("RELEASE batch")
    return True


def _mend(path: Path, serial: Serial) -> None:
    """Repair a file. Raises StoreDamaged if it is repaired, StoreAway if it is not or another process repairs it."""
    try:
        name = mend(path, serial)
    except (OSError, sqlite3.Error) as problem:
        raise StoreAway(f"{path.name} is damaged: {problem}") from None
    if name:
        raise StoreDamaged(f"{path.name} is damaged; it was kept as {name}")


def _has_any(main: sqlite3.Connection) -> bool:
    """Return whether there is data that stands nowhere else."""
    return any(main.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None for table in _LOOKED_AT)


def _sums_of(file: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return a month's hourly sums, and what was charged to accounts. Raises StoreAway."""
    connection = read_file(file)
    if connection is None:
        return [], []
    with closing(connection):
        has_spend = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'spend'").fetchone() is not None
        return (
            connection.execute(f"SELECT {', '.join((*GROUPS, *SUMS))} FROM usage_hour").fetchall(),
            connection.execute("SELECT * FROM spend").fetchall() if has_spend else [],
        )


def write_audit(
    main: sqlite3.Connection, at: int, actor: str, action: str, subject: str, change: dict[str, Any]
) -> None:
    """Append an entry to the chain, inside a transaction."""
    write_entries(main, [(at, actor, action, subject, _json.encode(change).decode())])


def write_entries(main: sqlite3.Connection, entries: Iterable[Noted]) -> None:
    """Append entries to the chain, inside a transaction."""
    last = main.execute("SELECT id, digest FROM audit ORDER BY id DESC LIMIT 1").fetchone() or (0, bytes(32))
    main.executemany("INSERT INTO audit VALUES(?,?,?,?,?,?,?,?)", chained(last, entries))


def keep_sums(
    main: sqlite3.Connection,
    month: str,
    at: int,
    usage: Iterable[tuple[object, ...]],
    spend: Iterable[tuple[object, ...]],
) -> None:
    """Keep the sums of a month whose attempts are dropped, inside a transaction."""
    main.executemany(_KEEP_USAGE, [(month, *row) for row in usage])
    main.executemany(_KEEP_SPEND, [(month, *row) for row in spend])
    main.execute("INSERT OR IGNORE INTO dropped VALUES(?,?)", (month, at))


def _is_priced(connection: sqlite3.Connection, attempt: bytes) -> bool:
    [nano] = connection.execute("SELECT nano FROM attempt WHERE id = ?", (attempt,)).fetchone()
    found = connection.execute("SELECT 1 FROM adjustment WHERE attempt = ? AND prices", (attempt,)).fetchone()
    return nano is not None or found is not None
