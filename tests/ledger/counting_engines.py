"""The counters that the tests are for, side by side: SQLite's, PostgreSQL's and Valkey's, where this platform has
them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from reliability.engine_valkey import MISSING as NO_VALKEY
from reliability.engine_valkey import Valkey
from reliability.engines import MISSING as NO_POSTGRESQL

from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.interfaces import Claim, Seed
from dragoman.ledger.stores.schema import ADJUSTED
from dragoman.secret import Secret
from ledger.engines import Engines, emptied

REMOTE: Final = (*(() if NO_POSTGRESQL else ("postgresql",)), *(() if NO_VALKEY else ("valkey",)))
KINDS: Final = ("sqlite", *REMOTE)
_PATIENCE: Final = 30.0
Counters = SqliteCounters | RemoteCounters


class Ledger:
    """What a ledger of the tests says of accounts; see `Roster`."""

    def __init__(
        self, seed: Callable[[int], Seed], live: Callable[[], set[str]], ended: Callable[[], set[str]] = set
    ) -> None:
        self._seed, self._live, self._ended = seed, live, ended

    def seeds(self, accounts: Collection[int]) -> dict[int, Seed]:
        return {account: self._seed(account) for account in accounts}

    def filling(self, account: int) -> str:
        return render_filling(self._seed(account))

    def live(self) -> set[str]:
        return self._live()

    def lost(self) -> set[str]:
        return set()

    def ended(self) -> set[str]:
        return self._ended()

    def release(self, holders: Collection[str]) -> None: ...

    def join(self, holder: str) -> None: ...

    def set_patience(self, seconds: float) -> None: ...

    def close(self) -> None: ...


def render_filling(seed: Seed) -> str:
    """A seed as counters are given it; see `Roster.filling`."""
    live = [f"{holder} {used}" for holder, used in seed.by_holder.items()]
    return " ".join([str(seed.closed), str(seed.adjusted), str(len(live)), *live, *seed.ended])


class _WithRows:
    """A `PostgresqlPlace`, which fills accounts from the tables beside it: they say what the test's ledger says."""

    def __init__(self, place: Any, database: Any, seed: Callable[[int], Seed]) -> None:
        self._place, self._database, self._seed = place, database, seed
        self._written: dict[int, Seed] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)

    def take(self, claim: Claim, **named: Any) -> Any:
        account, seed = claim.account, self._seed(claim.account)
        if self._written.get(account) != seed:
            self._written = {account: seed}
            spent = {**seed.by_holder, "closed": seed.closed, ADJUSTED: seed.adjusted}
            self._database.do(partial(_write_rows, account, spent, list(seed.by_holder), list(seed.ended)))
        return self._place.take(claim, **named)


def _write_rows(account: int, spent: dict[str, int], live: list[str], ended: list[str], connection: Any) -> None:
    with connection.transaction():
        connection.execute("DELETE FROM holder")
        connection.execute("DELETE FROM spend WHERE account = $1", account)
        connection.execute(
            "INSERT INTO spend SELECT $1, holder, '2026-11', amount, amount FROM unnest($2::text[], $3::bigint[]) AS "
            "one(holder, amount)",
            account, list(spent), list(spent.values()),
        )  # fmt: skip
        connection.execute(
            "INSERT INTO holder(id, machine, ended) SELECT id, 'one', NULL FROM unnest($1::text[]) AS one(id) UNION "
            "ALL SELECT id, 'one', clock_timestamp() FROM unnest($2::text[]) AS one(id)",
            live, ended,
        )  # fmt: skip


class CountingEngines:
    """Gives empty counters. One PostgreSQL and one Valkey serve all tests of a process."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._valkey: Valkey | None = None

    @property
    def valkey(self) -> Valkey:
        """The Valkey."""
        if self._valkey is None:
            self._valkey = Valkey().__enter__()
        return self._valkey

    @contextmanager
    def open(
        self, kind: str, root: Path, seed: Callable[[int], Seed], live: Callable[[], set[str]],
        now: Callable[[], float], leasing: Callable[[], set[str]] | None = None,
        ended: Callable[[], set[str]] = set,
    ) -> Iterator[Counters]:  # fmt: skip
        """Empty counters of a kind. `leasing`: as `live` where a kind has only one of them."""
        ledger = Ledger(seed, leasing or live, ended)
        if kind == "sqlite":
            counters: Counters = SqliteCounters(
                root / "counters.sqlite", seeds=ledger.seeds, adjusted=lambda account: 0, live=live,
                leasing=leasing or live, ended=ended, now=now,
            )  # fmt: skip
        elif kind == "postgresql":
            from dragoman.ledger.counters.postgresql import PostgresqlPlace

            database = self.database()
            database.do(lambda connection: connection.execute(emptied(COUNTER_TABLES)))
            place = _WithRows(PostgresqlPlace(database, now=now), database, seed)
            counters = RemoteCounters(place, ledger)  # type: ignore[arg-type]
        else:
            from dragoman.ledger.counters.valkey import ValkeyPlace

            self.valkey.ask("FLUSHALL")
            counters = RemoteCounters(ValkeyPlace(Secret(self.valkey.address), patience=_PATIENCE, now=now), ledger)
        try:
            yield counters
        finally:
            counters.close()

    def database(self) -> Any:
        """A connection to the PostgreSQL."""
        from dragoman.ledger.counters.apart import Database
        from dragoman.ledger.counters.postgresql_schema import TABLES, VERSION

        return Database(Secret(self._engines.server.address), TABLES, version=VERSION, patience=_PATIENCE)

    def another_life(self, kind: str, root: Path, *, is_empty: bool) -> None:
        """The server's life is another one: it has lost all, or has what it had."""
        if kind == "sqlite":
            for suffix in ("", "-wal", "-shm"):
                (root / f"counters.sqlite{suffix}").unlink(missing_ok=True)
        elif kind == "postgresql":
            database = self.database()
            database.do(lambda connection: connection.execute("UPDATE counter_life SET server = 'before'"))
            if is_empty:
                database.do(lambda connection: connection.execute(emptied(COUNTER_TABLES)))
            database.close()
        elif is_empty:
            self.valkey.ask("FLUSHALL")
        else:
            for bucket in range(64):
                self.valkey.ask("HSET", f"dragoman:{{b{bucket:02}}}:life", "server", "before")

    def close(self) -> None:
        """No more tests."""
        if self._valkey is not None:
            self._valkey.__exit__()


COUNTER_TABLES: Final = "counter_life, counter_awaited, counter_account, counter_share"
