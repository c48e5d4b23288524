"""The counters of one machine: a SQLite file that all workers share. It may be lost; the ledger fills it again.

Nothing in it is durable: after a restart of the machine the counters have a new life. Its name (`epoch`) contains the
system's boot id. Each call is one short transaction.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

from dragoman.ledger.interfaces import Account, Claim, CountersAway, Lease, Seed, StoreAway
from dragoman.ledger.limits.accounts import is_concurrent, is_recorded
from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS, share, unasked
from dragoman.ledger.replica.age import read_boot
from dragoman.ledger.stores.files import Serial, is_busy, is_damage, make_file, serial_of
from dragoman.ledger.stores.schema import ADJUSTED

COUNTERS_FILE: Final = "counters.sqlite"
#: Seconds that a call waits for another process's: the event loop waits with it.
_PATIENCE: Final = 0.25
#: Seconds for which an ended holder is remembered.
_REMEMBERED: Final = 86_400.0
#: Seconds after the end of its period for which an account is kept: clocks are wrong, and attempts go on.
_KEPT_AFTER: Final = 2 * 3_600.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS life(epoch TEXT NOT NULL, boot TEXT NOT NULL, began REAL NOT NULL);
CREATE TABLE IF NOT EXISTS awaited(holder TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS account(
  id INTEGER PRIMARY KEY, closed INTEGER NOT NULL, quota INTEGER NOT NULL, generation INTEGER NOT NULL,
  until REAL NOT NULL, adjusted INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS share(
  account INTEGER NOT NULL, holder TEXT NOT NULL, amount INTEGER, number INTEGER NOT NULL, seen REAL NOT NULL,
  PRIMARY KEY(account, holder)) WITHOUT ROWID;
"""


#: Of `_SCHEMA`; a file of another one is begun anew.
_VERSION: Final = 1
_TABLES: Final = ("life", "awaited", "account", "share")
#: Shares that one transaction folds: other processes wait for no more than these.
_AT_ONCE: Final = 64
#: By account, what each holder spent; of which holder and account, and what it used.
_Spent: TypeAlias = dict[Account, dict[str, int]]
_Used: TypeAlias = list[tuple[Account, str, int]]


class SqliteCounters:
    """Counters in a SQLite file; see `Counters`. For one thread at a time.

    Attributes:
        epoch: of the current life as far as this process knows; "" before the first call.
    """

    __slots__ = (
        "_adjusted", "_connection", "_ended", "_file", "_leasing", "_live", "_lock", "_now", "_seeds", "_serial",
        "epoch",
    )  # fmt: skip
    #: Only processes of this machine use them.
    is_shared: Final = False

    def __init__(
        self,
        file: Path,
        *,
        seeds: Callable[[Collection[Account]], dict[Account, Seed]],
        adjusted: Callable[[Account], int],
        live: Callable[[], set[str]],
        leasing: Callable[[], set[str]],
        ended: Callable[[], set[str]] = lambda: set(),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it; the first call opens the file.

        Args:
            seeds: reads from the ledger what accounts have.
            adjusted: reads the sum of an account's corrections.
            live: the holders whose journals are not read to their end.
            leasing: those of `live` that run and may hold leases.
            ended: the holders whose journals are read to their end and still kept.
            now: the seconds of a clock that all processes of the machine share.
        """
        self._file = file
        self._seeds = seeds
        self._adjusted = adjusted
        self._live = live
        self._leasing = leasing
        self._ended = ended
        self._now = now
        self._lock = threading.RLock()  # to close a connection while another thread uses it ends the process
        self._connection: sqlite3.Connection | None = None
        self._serial: Serial = (0, 0)  # of the file that is open
        self.epoch = ""

    def take(self, claim: Claim) -> Lease:
        with self._changing() as connection:
            if claim.epoch != self.epoch:
                return Lease("lost", epoch=self.epoch)
            if self._is_settling(connection, claim.holder):
                return Lease("settling", epoch=self.epoch)
            quota = self._account(connection, claim)
            found = connection.execute(
                "SELECT amount, number FROM share WHERE account = ? AND holder = ?", (claim.account, claim.holder)
            ).fetchone()
            if found is not None and (found[0] is None or claim.number <= found[1]):
                return Lease("stale", epoch=self.epoch)
            total, holders = connection.execute(
                "SELECT (SELECT closed + adjusted FROM account WHERE id = ?) + coalesce(sum(amount), 0), "
                "count(amount) FROM share WHERE account = ?",
                (claim.account, claim.account),
            ).fetchone()
            others = total - (0 if found is None else found[0])
            holders -= found is not None
            given = share(others, claim.facts, want=claim.want, least=claim.least, limit=quota, neighbours=holders)
            self._keep(connection, claim, given.amount)
            outcome: Literal["refused", "granted"] = "refused" if given.is_refused else "granted"
            return Lease(outcome, given.amount, given.is_tight, self.epoch, others)

    def fold(self, account: Account, holder: str, spent: int) -> None:
        with self._changing() as connection:
            self._fold(connection, account, holder, spent)

    def expire(self, account: Account, holder: str, used: int) -> None:
        with self._changing() as connection:
            self._expire(connection, account, holder, used, self._now() - SILENT_SECONDS)

    def join(self, holder: str) -> None:
        """Do nothing: a holder's journal already says that it may have leases."""

    def look(self) -> str:
        """Return the epoch of the current life. Raises CountersAway."""
        with self._changing():
            return self.epoch

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        """Record that a holder uses no lease of an earlier life. Return the epoch.

        What it has used (`claims`) stands in its journal, except for accounts that no row tells of.

        Raises:
            CountersAway: nothing was recorded.
        """
        with self._changing() as connection:
            connection.execute("DELETE FROM awaited WHERE holder = ?", (holder,))
            for claim in claims:
                if not is_recorded(claim.account):
                    self._account(connection, claim)
                    self._keep(connection, claim, claim.facts.spent + claim.facts.reserved)
            return self.epoch

    def correct(self, account: Account) -> None:
        with self._changing() as connection:
            # It is read where nobody else writes one: what was read later is written later.
            known = connection.execute("SELECT adjusted FROM account WHERE id = ?", (account,)).fetchone()
            if known is not None and is_recorded(account):
                values = (self._adjusted(account), account)
                connection.execute("UPDATE account SET adjusted = ? WHERE id = ?", values)

    def sweep(self, spent: Callable[[Collection[Account]], _Spent]) -> None:
        """Fold all holders that have ended, and expire those that were silent for too long.

        `spent` reads the ledger by account and holder, with corrections under their own name. Others may call the
        counters meanwhile. What stands in no row is folded at its lease.

        Raises:
            CountersAway, StoreAway, OSError: not everything is folded.
        """
        with self._changing() as connection:
            shares = connection.execute("SELECT account, holder, amount, seen FROM share").fetchall()
            given: list[tuple[Account, str, int, float]] = [each for each in shares if each[2] is not None]
            adjusted = dict(connection.execute("SELECT id, adjusted FROM account").fetchall())
        epoch, silent_since = self.epoch, self._now() - SILENT_SECONDS
        live, over = self._live(), self._ended()  # a holder of a share had a journal before it
        known = spent([account for account in adjusted if is_recorded(account)])
        ended: _Used = [
            (account, holder, _of_ended(account, holder, amount, known))
            for account, holder, amount, _ in given
            if holder not in live
        ] + unasked(known, {(account, holder) for account, holder, _, _ in shares}, over)
        silent = {
            account
            for account, holder, amount, seen in given
            if amount and seen <= silent_since and holder in live and is_recorded(account)
        }
        used: _Used = [
            (account, holder, amount)
            for account, seed in (self._seeds(silent) if silent else {}).items()
            for holder, amount in seed.by_holder.items()
        ]
        self._close(epoch, ended, used, silent_since)
        self._forget(over)
        for account, amount in adjusted.items():
            if is_recorded(account) and known[account].get(ADJUSTED, 0) != amount:
                self.correct(account)

    def _close(self, epoch: str, ended: _Used, used: _Used, silent_since: float) -> None:
        """Fold and expire in pieces, each of which may be repeated, if the life in which the ledger was read still goes
        on.
        """
        for first in range(0, max(len(ended), len(used), 1), _AT_ONCE):
            with self._changing() as connection:
                if self.epoch != epoch:
                    return
                for account, holder, amount in ended[first : first + _AT_ONCE]:
                    self._fold(connection, account, holder, amount)
                for account, holder, amount in used[first : first + _AT_ONCE]:
                    self._expire(connection, account, holder, amount, silent_since)

    def _forget(self, over: set[str]) -> None:
        """Delete holders that ended a day ago, and accounts of earlier periods.

        A holder whose journal is still there (`over`) is kept: it would look like one that never asked, and be counted
        again. A clock that was ahead keeps a journal for longer than a day.
        """
        with self._changing() as connection:
            old = connection.execute(
                "SELECT account, holder FROM share WHERE amount IS NULL AND seen <= ?", (self._now() - _REMEMBERED,)
            ).fetchall()
            forgotten = [(account, holder) for account, holder in old if holder not in over]
            connection.executemany("DELETE FROM share WHERE account = ? AND holder = ?", forgotten)
            connection.execute("DELETE FROM account WHERE until <= ?", (time.time() - _KEPT_AFTER,))
            connection.execute("DELETE FROM share WHERE account NOT IN (SELECT id FROM account)")

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        """Return what is leased and spent of these accounts. Accounts that nobody has asked for are missing.

        Raises:
            CountersAway: they cannot be read.
        """
        found = {}
        with self._changing() as connection:
            for account in accounts:
                row = connection.execute(
                    "SELECT closed + adjusted + (SELECT coalesce(sum(amount), 0) FROM share WHERE account = id) "
                    "FROM account WHERE id = ?",
                    (account,),
                ).fetchone()
                if row is not None:
                    found[account] = row[0]
        return found

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                connection, self._connection = self._connection, None
                connection.close()

    # ------------------------------------------------------------ inside

    def _account(self, connection: sqlite3.Connection, claim: Claim) -> int:
        """Return the limit that applies. Seed the account if it is cold."""
        found = connection.execute("SELECT quota, generation FROM account WHERE id = ?", (claim.account,)).fetchone()
        if found is None:
            seed = self._seeds((claim.account,))[claim.account] if is_recorded(claim.account) else Seed()
            now = self._now()
            connection.execute(
                "INSERT INTO account VALUES(?,?,?,?,?,?)",
                (claim.account, seed.closed, claim.limit, claim.generation, claim.until, seed.adjusted),
            )
            rows: list[tuple[object, ...]]
            rows = [(claim.account, holder, amount, 0, now) for holder, amount in seed.by_holder.items()]
            rows += [(claim.account, holder, None, 0, now) for holder in seed.ended]
            connection.executemany("INSERT INTO share VALUES(?,?,?,?,?)", rows)
            return claim.limit
        if claim.generation > found[1]:
            connection.execute(
                "UPDATE account SET quota = ?, generation = ? WHERE id = ?",
                (claim.limit, claim.generation, claim.account),
            )
            return claim.limit
        return int(found[0])

    def _keep(self, connection: sqlite3.Connection, claim: Claim, amount: int) -> None:
        values = (claim.account, claim.holder, amount, claim.number, self._now())
        connection.execute("INSERT OR REPLACE INTO share VALUES(?,?,?,?,?)", values)

    def _is_settling(self, connection: sqlite3.Connection, holder: str) -> bool:
        """Return whether another holder may still use a lease of the previous life."""
        if connection.execute("SELECT 1 FROM awaited LIMIT 1").fetchone() is None:
            return False
        connection.execute("DELETE FROM awaited WHERE holder = ?", (holder,))
        [began] = connection.execute("SELECT began FROM life").fetchone()
        if self._now() >= began + LEASE_SECONDS:
            connection.execute("DELETE FROM awaited")
        return connection.execute("SELECT 1 FROM awaited LIMIT 1").fetchone() is not None

    def _fold(self, connection: sqlite3.Connection, account: Account, holder: str, spent: int) -> None:
        changed = connection.execute(
            "UPDATE share SET amount = NULL, seen = ? WHERE account = ? AND holder = ? AND amount IS NOT NULL",
            (self._now(), account, holder),
        ).rowcount
        if not changed:  # who never asked has what it used while nobody counted
            changed = connection.execute(
                "INSERT OR IGNORE INTO share SELECT id, ?, NULL, 0, ? FROM account WHERE id = ?",
                (holder, self._now(), account),
            ).rowcount
        if changed:
            connection.execute("UPDATE account SET closed = closed + ? WHERE id = ?", (spent, account))

    def _expire(
        self, connection: sqlite3.Connection, account: Account, holder: str, used: int, silent_since: float
    ) -> None:
        connection.execute(
            "UPDATE share SET amount = ? WHERE account = ? AND holder = ? AND amount IS NOT NULL AND seen <= ?",
            (used, account, holder, silent_since),
        )
        if used:
            connection.execute(
                "INSERT OR IGNORE INTO share SELECT id, ?, ?, 0, ? FROM account WHERE id = ?",
                (holder, used, self._now(), account),
            )

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction, of one thread at a time. Raises CountersAway if nothing changed."""
        with self._lock:
            try:
                connection = self._opened()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    [self.epoch] = connection.execute("SELECT epoch FROM life").fetchone()
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.rollback()
            except sqlite3.Error as problem:
                self.close()
                if is_damage(problem):
                    for suffix in ("", "-wal", "-shm"):
                        with contextlib.suppress(OSError):
                            os.unlink(f"{self._file}{suffix}")
                raise CountersAway(f"{self._file.name}: {problem}") from None
            except (OSError, StoreAway, OverflowError) as problem:  # sums beyond 64 bits: nothing more is admitted
                raise CountersAway(f"{self._file.name}: {problem}") from None

    def _opened(self) -> sqlite3.Connection:
        """Return the connection. Raises OSError, sqlite3.Error."""
        if self._connection is not None and serial_of(self._file) == self._serial:
            return self._connection
        self.close()  # somebody removed the file
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_file(self._file)
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=_PATIENCE)
        until = time.monotonic() + _PATIENCE
        try:
            while not self._is_prepared(connection):
                # Two that turn one new file to WAL do not wait for each other: SQLite refuses one at once.
                if time.monotonic() > until:
                    raise OSError("another process has it")
                time.sleep(0.002)
        except BaseException:
            connection.close()
            raise
        self._connection, self._serial = connection, serial_of(self._file)
        return connection

    def _is_prepared(self, connection: sqlite3.Connection) -> bool:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                for table in _TABLES:
                    connection.execute(f"DROP TABLE IF EXISTS {table}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            self._begin_life(connection)
            connection.execute("COMMIT")
        except sqlite3.OperationalError as problem:
            if connection.in_transaction:
                connection.rollback()
            if not is_busy(problem):
                raise
            return False
        return True

    def _begin_life(self, connection: sqlite3.Connection) -> None:
        """Begin a new life if the file is new or older than the machine's boot.

        Leases of the previous life are forgotten. Accounts that stand in no row stay as they were last reported.
        """
        boot = read_boot()
        if connection.execute("SELECT 1 FROM life WHERE boot = ?", (boot,)).fetchone() is not None:
            return
        for account, amount in connection.execute(
            "SELECT account, sum(amount) FROM share WHERE amount IS NOT NULL GROUP BY account"
        ).fetchall():
            if not is_concurrent(account):
                connection.execute("UPDATE account SET closed = closed + ? WHERE id = ?", (amount, account))
        connection.execute("DELETE FROM share")
        for (account,) in connection.execute("SELECT id FROM account").fetchall():
            if is_recorded(account):
                connection.execute("DELETE FROM account WHERE id = ?", (account,))
        connection.execute("DELETE FROM life")
        connection.execute("DELETE FROM awaited")
        connection.execute("INSERT INTO life VALUES(?,?,?)", (secrets.token_hex(8), boot, self._now()))
        connection.executemany("INSERT INTO awaited VALUES(?)", [(holder,) for holder in self._leasing()])


def _of_ended(account: Account, holder: str, amount: int, known: _Spent) -> int:
    """Return the share of a holder that has ended, by its rows. What stands in no row stays."""
    if is_recorded(account):
        return known[account].get(holder, 0)
    return 0 if is_concurrent(account) else amount
