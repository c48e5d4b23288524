"""The holders and the spend of a ledger that several machines share, as PostgreSQL knows them."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Final

from dragoman.ledger.counters.apart import Database
from dragoman.ledger.counters.remote import Spent
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Account, CountersAway, Seed
from dragoman.ledger.journal.writing import sync_folder
from dragoman.ledger.limits.accounts import TOKENS, is_of_tokens
from dragoman.ledger.limits.leases import GONE_SECONDS, LEASE_SECONDS, PARTS
from dragoman.ledger.limits.seeding import live_holders
from dragoman.ledger.locking import FileLock
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.ledger.stores.postgresql_schema import LOCK
from dragoman.ledger.stores.schema import ADJUSTED

_MACHINE_FILE: Final = "machine"
_NAME: Final = re.compile(r"[0-9a-f]{16}")
#: Seconds without a word of a machine's shipper after which it is lost.
_LOST_AFTER: Final = 3 * LEASE_SECONDS
_JOIN: Final = "INSERT INTO holder(id, machine) VALUES($1, $2) ON CONFLICT DO NOTHING"
_DIVIDE: Final = f"""
UPDATE holder SET part = least($2::bigint, {PARTS} - (SELECT coalesce(sum(part), 0) FROM holder WHERE id <> $1)::bigint)
WHERE id = $1 AND ended IS NULL RETURNING part
"""
_WAS_USED: Final = f"""
SELECT 1 FROM spend LEFT JOIN holder ON holder.id = spend.holder
WHERE account = $1::bigint AND spend.holder <> '{ADJUSTED}' AND (holder.id IS NULL OR ended IS NOT NULL) LIMIT 1
"""
#: One statement, so that all of it is of one moment.
_SEEDS: Final = """
SELECT account, holder, sum(nano)::bigint, sum(tokens)::bigint FROM spend WHERE account = ANY($1::bigint[])
GROUP BY 1, 2 UNION ALL SELECT NULL, id, (ended IS NOT NULL)::int, 0 FROM holder
"""
#: As `Roster.filling` says it; also one statement.
_FILLING: Final = f"""
SELECT concat_ws(' ', coalesce(sum(amount) FILTER (WHERE is_closed), 0),
  coalesce(sum(amount) FILTER (WHERE name = '{ADJUSTED}'), 0), count(*) FILTER (WHERE is_live),
  string_agg(name || ' ' || amount, ' ') FILTER (WHERE is_live), string_agg(name, ' ') FILTER (WHERE has_ended))
FROM (
  SELECT coalesce(holder.id, used.holder) AS name, coalesce(amount, 0) AS amount,
    holder.id IS NOT NULL AND ended IS NULL AS is_live, ended IS NOT NULL AS has_ended,
    (holder.id IS NULL OR ended IS NOT NULL) AND coalesce(used.holder, '') <> '{ADJUSTED}' AS is_closed
  FROM holder FULL JOIN (
    SELECT holder, sum(CASE WHEN $1::bigint & 3 = {TOKENS} THEN tokens ELSE nano END)::bigint AS amount
    FROM spend WHERE account = $1::bigint GROUP BY 1) AS used ON holder.id = used.holder) AS each
"""
_SPENT: Final = (
    "SELECT account, holder, sum(nano)::bigint, sum(tokens)::bigint FROM spend WHERE account = ANY($1::bigint[]) "
    "GROUP BY 1, 2"
)


class SharedRoster:
    """The roster in PostgreSQL; see `Roster`.

    Attributes:
        folder: this machine's state folder, where `ended` sees which holders live.
    """

    __slots__ = ("_database", "_folder")

    def __init__(self, folder: LedgerFolder, database: Database) -> None:
        self._folder = folder
        self._database = database

    def join(self, holder: str) -> None:
        try:
            machine = machine_of(self._folder)
        except OSError as problem:
            raise CountersAway(f"the name of this machine: {problem.strerror}") from None

        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit = on")  # a life that begins must find it
                connection.execute(_JOIN, holder, machine)

        self._database.do(work)

    def live(self) -> set[str]:
        rows = self._database.fetch("SELECT id FROM holder WHERE ended IS NULL")
        return {id for (id,) in rows}

    def lost(self) -> set[str]:
        statement = f"SELECT id FROM holder WHERE ended IS NULL AND seen <= clock_timestamp() - {_seconds(_LOST_AFTER)}"
        return {id for (id,) in self._database.fetch(statement)}

    def ended(self) -> set[str]:
        return {id for (id,) in self._database.fetch("SELECT id FROM holder WHERE ended IS NOT NULL")}

    def divide(self, holder: str, wanted: int) -> int:
        def work(connection: Connection) -> int:
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit = on")  # a part that was given up may be given
                connection.execute(f"SELECT pg_advisory_xact_lock({LOCK + 1})")
                found = connection.fetch(_DIVIDE, holder, wanted)
            return int(found[0][0]) if found else 0

        return self._database.do(work)

    def release(self, holders: Collection[str]) -> None:
        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute("UPDATE holder SET part = 0 WHERE part > 0 AND id = ANY($1::text[])", list(holders))
                connection.execute(
                    f"DELETE FROM holder WHERE ended <= clock_timestamp() - {_seconds(GONE_SECONDS)} "
                    "AND id = ANY($1::text[])",
                    list(holders),
                )

        if holders:
            self._database.do(work)

    def was_used(self, account: Account) -> bool:
        return bool(self._database.fetch(_WAS_USED, account))

    def seeds(self, accounts: Collection[Account]) -> dict[Account, Seed]:
        rows = self._database.fetch(_SEEDS, list(accounts))
        live = {holder for account, holder, has_ended, _ in rows if account is None and not has_ended}
        ended = frozenset(holder for account, holder, has_ended, _ in rows if account is None and has_ended)
        found = _by_account(accounts, [row for row in rows if row[0] is not None])
        seeds = {}
        for account, by_holder in found.items():
            adjusted = by_holder.pop(ADJUSTED, 0)
            closed = sum(amount for holder, amount in by_holder.items() if holder not in live)
            seeds[account] = Seed(closed, {each: by_holder.get(each, 0) for each in live}, ended, adjusted)
        return seeds

    def filling(self, account: Account) -> str:
        return self._database.ask(_FILLING, account)

    def spent(self, accounts: Collection[Account]) -> Spent:
        """Return what each holder spent of these accounts by the rows. Corrections stand under `ADJUSTED`.

        Raises:
            CountersAway: it cannot be read.
        """
        rows = self._database.fetch(_SPENT, list(accounts))
        return _by_account(accounts, rows)

    def tidy(self) -> None:
        """Record that this machine lives and which of its holders have ended.

        A holder that was not heard for a day has ended. It is forgotten when the counters know what it used
        (`release`).

        Raises:
            CountersAway, OSError: it is not recorded.
        """
        machine = machine_of(self._folder)
        # In this order: who joined has a journal, so who is read here and has none any more has ended.
        joined = self._database.fetch("SELECT id FROM holder WHERE machine = $1 AND ended IS NULL", machine)
        live = live_holders(self._folder)
        gone = [id for (id,) in joined if id not in live]

        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute("UPDATE holder SET ended = clock_timestamp() WHERE id = ANY($1::text[])", gone)
                connection.execute(
                    "UPDATE holder SET seen = clock_timestamp() WHERE machine = $1 AND ended IS NULL", machine
                )
                connection.execute(
                    "UPDATE holder SET ended = clock_timestamp() WHERE ended IS NULL "
                    f"AND seen <= clock_timestamp() - {_seconds(GONE_SECONDS)}"
                )

        self._database.do(work)

    def set_patience(self, seconds: float) -> None:
        self._database.set_patience(seconds)

    def close(self) -> None:
        self._database.close()


def machine_of(folder: LedgerFolder) -> str:
    """Return the machine name that a state folder keeps; create one if there is none.

    Raises:
        OSError: the name cannot be kept.
    """
    path = folder.root / _MACHINE_FILE
    folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _name_in(path) or _new_name(path)


def _new_name(path: Path) -> str:
    """Write a new name so that it survives a power cut. Otherwise this machine would become another one."""
    lock = FileLock(path.with_name(f"{_MACHINE_FILE}.lock"))
    lock.take(waits=True)
    try:
        name = _name_in(path)  # another worker was quicker
        if name is None:
            name = secrets.token_hex(8)
            own = path.with_name(f"{_MACHINE_FILE}.new")
            with own.open("w", encoding="ascii") as file:
                file.write(name)
                file.flush()
                os.fsync(file.fileno())
            os.replace(own, path)
            sync_folder(path.parent)
        return name
    finally:
        lock.give_back()


def _name_in(path: Path) -> str | None:
    """Return the name in a file, or None if there is no whole one. Raises OSError."""
    try:
        name = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return name if _NAME.fullmatch(name) else None


def _by_account(accounts: Collection[Account], rows: list[tuple[int, str, int, int]]) -> Spent:
    found: Spent = {account: {} for account in accounts}
    for account, holder, nano, tokens in rows:
        found[account][holder] = tokens if is_of_tokens(account) else nano
    return found


def _seconds(count: float) -> str:
    return f"interval '{count:.0f} seconds'"
