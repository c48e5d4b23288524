"""Counters in the PostgreSQL that holds the ledger. Each call is one database function.

A life of the counters is one life of the server process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Final, cast

from dragoman.ledger.counters.apart import Database
from dragoman.ledger.counters.remote import Listing, Share
from dragoman.ledger.interfaces import Account, Claim, Lease
from dragoman.ledger.limits.accounts import is_recorded

#: Seconds for which an ended holder is remembered, and after the end of its period for which an account is kept.
_REMEMBERED: Final = 2 * 86_400.0
_KEPT_AFTER: Final = 2 * 3_600.0
_SHARES: Final = """
SELECT account, holder, amount, seen, told FROM counter_share JOIN counter_account ON id = account
WHERE amount IS NOT NULL AND life = (SELECT counter_epoch()) AND is_seeded
"""
_ENDED: Final = "SELECT account, holder FROM counter_share WHERE amount IS NULL"
_ACCOUNTS: Final = (
    "SELECT id, adjusted, closed FROM counter_account WHERE life = (SELECT counter_epoch()) AND is_seeded"
)
_TOTALS: Final = """
SELECT id, (closed + adjusted + coalesce((SELECT sum(amount) FROM counter_share WHERE account = id), 0))::bigint
FROM counter_account WHERE id = ANY($1::bigint[]) AND life = (SELECT counter_epoch()) AND is_seeded
"""
_CLOSE_AT: Final = """
UPDATE counter_account SET closed = greatest(closed, $2)
WHERE id = $1 AND life = (SELECT counter_epoch()) AND is_seeded RETURNING 1
"""
#: By the server's clock, and by another one.
_TAKE, _TAKE_AT = [
    "SELECT concat_ws('|', outcome, amount_now, is_tight::int, others, epoch_now) "
    f"FROM counter_take($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, {clock})"
    for clock in ("NULL", "$13")
]


class PostgresqlPlace:
    """See `Place`."""

    __slots__ = ("_database", "_now")

    def __init__(self, database: Database, *, now: Callable[[], float] | None = None) -> None:
        """Create it over a database. `now`: the seconds of a clock that all holders share, in place of the server's."""
        self._database = database
        self._now = now

    def epoch(self) -> str:
        [(epoch,)] = self._ask("SELECT counter_epoch()")
        return str(epoch or "")

    def begin(self, epoch: str, awaited: Collection[str]) -> str:
        [(begun,)] = self._ask("SELECT counter_begin($1, $2::text[], $3)", epoch, list(awaited), self._clock())
        return str(begun)

    def awaited(self) -> set[str]:
        return {str(holder) for (holder,) in self._ask("SELECT holder FROM counter_awaited")}

    def heard(self, *holders: str) -> None:
        self._ask("DELETE FROM counter_awaited WHERE holder = ANY($1::text[]) RETURNING 1", list(holders))

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease:
        """As `Place.take`; it fills a cold account by itself."""
        told = claim.facts.spent + claim.facts.reserved
        values = (
            claim.epoch, claim.account, claim.holder, claim.number, told, claim.want, claim.least, claim.limit,
            claim.generation, claim.until, is_recorded(claim.account), announces,
        )  # fmt: skip
        if self._now is None:
            found = self._database.ask(_TAKE, *values)
        else:
            found = self._database.ask(_TAKE_AT, *values, self._now())
        outcome, amount, is_tight, others, epoch = found.split("|")
        return Lease(cast(Any, outcome), int(amount), is_tight == "1", epoch, int(others))

    def fold(self, account: Account, holder: str, spent: int) -> None:
        self._ask("SELECT counter_fold($1, $2, $3, $4)", account, holder, spent, self._clock())

    def expire(self, account: Account, holder: str, used: int, since: float | None = None) -> None:
        self._ask("SELECT counter_expire($1, $2, $3, $4, $5)", account, holder, used, self._clock(), since)

    def correct(self, account: Account, adjusted: int) -> None:
        self._ask("UPDATE counter_account SET adjusted = $2 WHERE id = $1 AND is_seeded RETURNING 1", account, adjusted)

    def close_at(self, account: Account, least: int) -> None:
        self._ask(_CLOSE_AT, account, least)

    def listing(self) -> Listing:
        shares = [Share(*row) for row in self._ask(_SHARES)]
        [(now,)] = self._ask("SELECT counter_clock($1)", self._clock())
        ended = self._ask(_ENDED)
        # After the shares: each of theirs is among these.
        accounts = self._ask(_ACCOUNTS)
        adjusted = {id: amount for id, amount, _ in accounts}
        return Listing(shares, adjusted, now, ended, {id: amount for id, _, amount in accounts})

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        return dict(self._ask(_TOTALS, list(accounts)))

    def tidy(self) -> None:
        self._ask(
            "DELETE FROM counter_share WHERE amount IS NULL AND seen <= counter_clock($1) - $2 RETURNING 1",
            self._clock(), _REMEMBERED,
        )  # fmt: skip
        self._ask("DELETE FROM counter_account WHERE until <= $1 RETURNING 1", time.time() - _KEPT_AFTER)
        self._ask("DELETE FROM counter_share WHERE account NOT IN (SELECT id FROM counter_account) RETURNING 1")

    def set_patience(self, seconds: float) -> None:
        self._database.set_patience(seconds)

    def close(self) -> None:
        self._database.close()

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._database.fetch(statement, *values)

    def _clock(self) -> float | None:
        return None if self._now is None else self._now()
