"""The store of several machines: a PostgreSQL database, written by their shippers and by commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, final

from dragoman import _json
from dragoman.ledger.interfaces import Missing, Refused, StoreAway
from dragoman.ledger.journal.records import PriceSnapshot, Row, Settlement
from dragoman.ledger.stores.brought import Brought
from dragoman.ledger.stores.files import month_of
from dragoman.ledger.stores.postgresql_connection import Connection, StoreCollided, numbered
from dragoman.ledger.stores.postgresql_schema import (
    LOCK,
    SCHEMA,
    STEPS,
    TYPES,
    VERSION,
    next_month,
    partition_of,
    render_partitions,
)
from dragoman.ledger.stores.schema import COLUMNS, GROUPS, SETTLED, SUMS
from dragoman.ledger.stores.values import (
    Correction,
    Noted,
    adjustment_id,
    chained,
    check_credit,
    check_repeated,
    derived_id,
    ending_values,
    row_values,
)
from dragoman.secret import Secret

_ID_SIZE: Final = 16
_GIVEN: Final = ", ".join(f"${place + 1}::{kind}[]" for place, kind in enumerate(TYPES.values()))
#: In the order of ids, so that two who give the same rows wait for each other and do not lock each other up.
_INSERT: Final = (
    f"INSERT INTO attempt({', '.join(COLUMNS)}) SELECT * FROM unnest({_GIVEN}) AS given({', '.join(COLUMNS)}) "
    f"ORDER BY id ON CONFLICT(id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in SETTLED)} "
    "WHERE attempt.state = 'reserved' AND excluded.state <> 'reserved'"
)
_SETTLE: Final = (
    f"UPDATE attempt SET {', '.join(f'{name} = ${place + 2}' for place, name in enumerate(SETTLED))} "
    "WHERE id = $1 AND state = 'reserved'"
)
_ADJUST: Final = "INSERT INTO adjustment VALUES($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
_KEEP_USAGE: Final = (
    f"INSERT INTO usage_hour(month, {', '.join((*GROUPS, *SUMS))}) "
    f"VALUES({', '.join(f'${place + 1}' for place in range(len(GROUPS) + len(SUMS) + 1))})"
)
_KEEP_SPEND: Final = "INSERT INTO spend(month, account, holder, nano, tokens) VALUES($1, $2, $3, $4, $5)"
_INTERRUPTED: Final = "SELECT id, nano FROM attempt WHERE id = ANY($1::uuid[]) AND state = 'interrupted'"
_FINAL: Final = "SELECT id FROM attempt WHERE id = ANY($1::uuid[]) AND state <> 'reserved'"
_LOCKED: Final = f"SELECT pg_advisory_xact_lock({LOCK})"
_MONTHS: Final = (
    "SELECT right(relname, 7) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
    "WHERE inhparent = 'attempt'::regclass ORDER BY 1"
)
#: How often is tried what another shipper's delivery crossed.
_TURNS: Final = 3
#: Partitions that are made ahead.
_AHEAD: Final = 2


class PostgresqlStore:
    """A `Store` in PostgreSQL. For one thread at a time. It creates its tables if there are none."""

    __slots__ = ("_brought", "_connection", "_is_ready", "_months", "_now")

    def __init__(
        self, address: Secret, *, brought: Brought | None = None, now: Callable[[], float] = time.time
    ) -> None:
        """Create it. `address` is that of `Connection`; `now` returns Unix seconds.

        `brought` counts what this machine delivers; None for a store that no shipper writes.
        """
        self._brought = brought
        self._connection = Connection(address)
        self._now = now
        self._is_ready = False
        self._months: set[str] = set()  # those that have partitions, as far as is known

    def deliver(self, rows: Sequence[Row], snapshots: Iterable[PriceSnapshot] = ()) -> None:
        prices = [(price.id, price.target, price.source, price.body) for price in snapshots]
        if prices:
            with self._writing() as connection:
                connection.execute_many("INSERT INTO price VALUES($1, $2, $3, $4) ON CONFLICT DO NOTHING", prices)
        if not rows:
            return
        for _ in range(_TURNS - 1):
            with suppress(StoreCollided):
                return self._deliver(rows)
        self._deliver(rows)

    def settle(self, settlement: Settlement) -> bool:
        if len(settlement.id) != _ID_SIZE:
            return False
        with self._writing() as connection:
            if connection.execute(_SETTLE, settlement.id, *ending_values(settlement)):
                return True
            if not connection.fetch("SELECT 1 FROM attempt WHERE id = $1", settlement.id):
                month = month_of(settlement.id)
                if connection.fetch("SELECT 1 FROM dropped WHERE month = $1", month):
                    raise Refused(f"the attempts of {month} were dropped")
                return False
            self._adjust_late(connection, [settlement])
            return True

    def set_aside(self, name: str, reason: str, data: bytes) -> None:
        with self._writing() as connection:
            values = (name, reason, data, self._micros())
            connection.execute("INSERT INTO set_aside VALUES($1, $2, $3, $4) ON CONFLICT DO NOTHING", *values)

    def adjust(self, attempt: bytes, nano: int, *, reason: str, actor: str, token: str = "") -> bool:
        id = adjustment_id(attempt, nano, reason=reason, actor=actor, token=token)
        with self._writing() as connection:
            found = connection.fetch("SELECT state, nano FROM attempt WHERE id = $1 FOR UPDATE", attempt)
            if not found:
                raise Missing("there is no such attempt")
            if found[0][0] == "reserved":
                raise Refused("expected an attempt that has ended")
            stored = connection.fetch("SELECT nano, reason FROM adjustment WHERE attempt = $1 AND id = $2", attempt, id)
            if stored:
                check_repeated(stored[0], nano, reason)
                return False
            [(others,)] = connection.fetch("SELECT sum(nano)::bigint FROM adjustment WHERE attempt = $1", attempt)
            check_credit((found[0][1] or 0) + (others or 0), nano)
            PostgresqlChange(connection, self._now).note(
                actor, "adjust", attempt.hex(), {"nano": nano, "reason": reason, "id": id.hex()}
            )
            priced = connection.fetch("SELECT 1 FROM adjustment WHERE attempt = $1 AND prices <> 0", attempt)
            prices = int(found[0][1] is None and not priced)
            connection.execute(_ADJUST, id, attempt, nano, prices, reason, actor, self._micros())
        return True

    def take_corrections(self, entries: Sequence[Correction]) -> None:
        attempts = sorted({entry[1] for entry in entries})
        with self._writing() as connection:
            known = {id for (id,) in connection.fetch(_FINAL, attempts)}
            if not known.issuperset(attempts):
                raise Refused("there is no such attempt")
            connection.execute_many(_ADJUST, sorted(entries, key=lambda entry: (entry[1], entry[0])))

    def accounts_of(self, attempt: bytes) -> list[int]:
        with self._writing() as connection:
            found = connection.fetch("SELECT accounts FROM attempt WHERE id = $1", attempt)
        return [int(account) for (accounts,) in found if accounts for account in accounts.split(",")]

    def audit(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        with self._writing() as connection:
            PostgresqlChange(connection, self._now).note(actor, action, subject, change)

    def drop_before(self, day: str) -> list[str]:
        self._is_ready = False  # so that the next months are made
        with self._writing() as connection:
            connection.execute(_LOCKED)
            old = [month for month in months_of(connection) if month < day[:7]]
            held = [
                month for month in old if connection.fetch(f"SELECT 1 FROM {partition_of('attempt', month)} LIMIT 1")
            ]
            for month in held:
                connection.execute("INSERT INTO dropped VALUES($1, $2) ON CONFLICT DO NOTHING", month, self._micros())
            for month in old:
                connection.execute(f"DROP TABLE {partition_of('attempt', month)}, {partition_of('adjustment', month)}")
        self._months.difference_update(old)
        return held

    @contextmanager
    def changing(self) -> Iterator[PostgresqlChange]:
        """As `Managed.changing`."""
        with self._writing() as connection:
            connection.execute(_LOCKED)  # first of all, so that changes end in the order of their audit entries
            yield PostgresqlChange(connection, self._now)

    def select(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """As `Managed.select`."""
        with self._writing() as connection:
            return connection.fetch(numbered(statement), *values)

    def look_back(self) -> None:
        """See `Store.look_back`."""
        if self._brought is not None and self._brought.until is None:
            with self._writing() as connection:
                self._brought.check(connection)

    def end_look_back(self) -> tuple[int, list[str]]:
        """See `Store.end_look_back`."""
        if self._brought is None:
            return 0, []
        missing = 0
        if self._brought.until is not None:
            with self._writing() as connection:
                self._brought.end_restoring(connection, self._micros())
            missing = max(0, self._brought.missing)
            self._brought.has_ended_restoring()
        notices, self._brought.notices = self._brought.notices, []
        return missing, notices

    def close(self) -> None:
        self._is_ready = False
        if self._brought is not None:
            with suppress(OSError):
                self._brought.close()
        self._connection.close()

    # ------------------------------------------------------------ inside

    def _deliver(self, rows: Sequence[Row]) -> None:
        months = {month_of(row.intent.id) for row in rows}
        was_known = self._is_ready and months <= self._months
        self._make_partitions(months)
        try:
            self._insert(rows)
        except Refused:
            self._is_ready = False  # perhaps somebody else has dropped a month since
            self._make_partitions(months)
            if not was_known:
                raise
            self._insert(rows)

    def _insert(self, rows: Sequence[Row]) -> None:
        with self._writing() as connection:
            until = None if self._brought is None else self._brought.until
            moved = [_moved(connection, those) for those in _in_kinds(rows, until)]
            if sum(moved) < len(rows):  # some stood there, perhaps with other values
                self._adjust_late(connection, [row.settlement for row in rows if row.settlement is not None])
            if self._brought is not None:
                self._brought.add(connection, moved[1] + moved[2], moved[1], self._micros())
        if self._brought is not None:
            self._brought.was_taken()

    def _adjust_late(self, connection: Connection, given: Sequence[Settlement]) -> None:
        """Turn further rows of closed attempts into corrections, each with the difference."""
        known = [each for each in given if each.nano is not None and each.state != "interrupted"]
        stored = dict(connection.fetch(_INTERRUPTED, [each.id for each in known])) if known else {}
        entries: dict[bytes, tuple[object, ...]] = {}
        for each in known:
            if each.id in stored and (each.nano != stored[each.id]):
                nano = stored.pop(each.id)
                assert each.nano is not None
                id = derived_id(each.id, "late")
                entries[each.id] = (
                    id,
                    each.id,
                    each.nano - (nano or 0),
                    int(nano is None),
                    "late",
                    "shipper",
                    each.ended,
                )
        if entries:
            connection.execute_many(_ADJUST, [entries[attempt] for attempt in sorted(entries)])

    def _make_partitions(self, months: set[str]) -> None:
        """Create the partitions of months. Raises Refused if one of them was dropped."""
        if months <= self._months and self._is_ready:
            return
        with self._writing() as connection:
            connection.execute(_LOCKED)
            self._months = set(months_of(connection))
            missing = months - self._months
            dropped = connection.fetch("SELECT month FROM dropped WHERE month = ANY($1::text[])", sorted(missing))
            if dropped:
                raise Refused(f"the attempts of {dropped[0][0]} were dropped")
            for month in sorted(missing):
                connection.execute(render_partitions(month))
        self._months |= months

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Run one transaction; create the tables first if necessary. Raises StoreAway, Refused."""
        if not (self._is_ready and self._connection.is_open):
            with self._connection.transaction():
                prepare(self._connection, self._now())
            self._is_ready = True
        with self._connection.transaction():
            yield self._connection

    def _micros(self) -> int:
        return int(self._now() * 1_000_000)


@final
class PostgresqlChange:
    """`Change` over PostgreSQL."""

    __slots__ = ("_connection", "_now")

    def __init__(self, connection: Connection, now: Callable[[], float]) -> None:
        self._connection = connection
        self._now = now

    def select(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.fetch(numbered(statement), *values)

    def execute(self, statement: str, *values: object) -> int:
        return self._connection.execute(numbered(statement), *values)

    def note(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        self.note_all([(int(self._now() * 1_000_000), actor, action, subject, _json.encode(change).decode())])

    def note_all(self, entries: Iterable[Noted]) -> None:
        connection = self._connection
        connection.execute(_LOCKED)  # one after the other: each entry's digest covers the one before it
        last = connection.fetch("SELECT id, digest FROM audit ORDER BY id DESC LIMIT 1") or [(0, bytes(32))]
        rows = chained((last[0][0], last[0][1]), entries)
        connection.execute_many("INSERT INTO audit VALUES($1, $2, $3, $4, $5, $6, $7, $8)", rows)

    def keep_sums(
        self, month: str, at: int, usage: Iterable[tuple[Any, ...]], spend: Iterable[tuple[Any, ...]]
    ) -> None:
        connection = self._connection
        if month in months_of(connection):  # one that was made ahead
            if connection.fetch(f"SELECT 1 FROM {partition_of('attempt', month)} LIMIT 1"):
                raise Refused(f"there are attempts of {month}")
            connection.execute(f"DROP TABLE {partition_of('attempt', month)}, {partition_of('adjustment', month)}")
        connection.execute_many(_KEEP_USAGE, sorted((month, *row) for row in usage))
        connection.execute_many(_KEEP_SPEND, sorted((month, *row) for row in spend))
        connection.execute("INSERT INTO dropped VALUES($1, $2) ON CONFLICT DO NOTHING", month, at)


def prepare(connection: Connection, now: float | None = None) -> None:
    """Create the tables if there are none, and the partitions of this month and the next ones. Call it in a
    transaction.

    Raises:
        StoreAway: a later dragoman created the tables.
    """
    month = time.strftime("%Y-%m", time.gmtime(now))
    connection.execute(_LOCKED)
    if not connection.fetch("SELECT 1 FROM pg_namespace WHERE nspname = $1", SCHEMA):
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
    version = read_version(connection) or 0
    for statements in STEPS[version:]:
        connection.execute(statements)
    if version < VERSION:
        connection.execute("UPDATE meta SET value = $1 WHERE name = 'version'", str(VERSION))
    for _ in range(_AHEAD + 1):
        if not connection.fetch("SELECT 1 FROM dropped WHERE month = $1", month):
            connection.execute(render_partitions(month))
        month = next_month(month)


def migrate_postgresql(address: Secret) -> tuple[int, int]:
    """Migrate the tables. Return the previous version, 0 if there were none, and the current one.

    Raises:
        StoreAway: a later dragoman created the tables, or they cannot be changed.
    """
    connection = Connection(address)
    try:
        with connection.transaction():
            connection.execute(_LOCKED)  # so that the version of before is the one that is brought up
            before = read_version(connection) or 0
            prepare(connection)
        return before, VERSION
    finally:
        connection.close()


def read_version(connection: Connection) -> int | None:
    """Return the version of the tables, or None if there are none yet.

    Raises:
        StoreAway: a later dragoman created them.
    """
    if connection.fetch("SELECT to_regclass('meta') IS NULL")[0][0]:
        return None
    version = int(connection.fetch("SELECT value FROM meta WHERE name = 'version'")[0][0])
    if version > VERSION:
        raise StoreAway(f"{connection.name}: a later dragoman has written it")
    return version


def months_of(connection: Connection) -> list[str]:
    """Return the months that have partitions, in order."""
    return [name.replace("_", "-") for (name,) in connection.fetch(_MONTHS)]


def _moved(connection: Connection, rows: Sequence[Row]) -> int:
    """Insert rows, or settle them. Return how many changed."""
    return sum(connection.execute(_INSERT, *zip(*map(row_values, those), strict=True)) for those in _distinct(rows))


def _in_kinds(rows: Sequence[Row], until: int | None) -> tuple[Sequence[Row], Sequence[Row], Sequence[Row]]:
    """Split rows: those that go on, those that ended until a moment, and all others."""
    going_on = [row for row in rows if row.settlement is None]
    if until is None and not going_on:
        return (), (), rows
    final = [row for row in rows if row.settlement is not None]
    early = [row for row in final if until is not None and row.settlement and row.settlement.ended <= until]
    late = [row for row in final if until is None or (row.settlement and row.settlement.ended > until)]
    return going_on, early, late


def _distinct(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield batches of rows without repeated ids. A row that repeats an id comes in a later batch."""
    turn = list(rows)
    while turn:
        first: dict[bytes, Row] = {}
        again = [row for row in turn if first.setdefault(row.intent.id, row) is not row]
        yield list(first.values())
        turn = again
