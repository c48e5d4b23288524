"""What the ledger needs of a store, and what limits will need of counters. One suite of tests holds for every store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

import msgspec

from dragoman.ledger.journal.records import PriceSnapshot, Row, Settlement


class StoreAway(Exception):
    """The store cannot be written now. Nothing of what was given stands in it; the same is given again later."""


class StoreDamaged(StoreAway):
    """A part of the store was damaged and put aside: what journals still have is to be given anew."""


class Refused(Exception):
    """The store takes what was given at no time: it breaks one of its rules."""


class Missing(Refused):
    """What was named is not there."""


class Store(Protocol):
    """The truth: rows of attempts, their sums, corrections.

    Rows come again and in any order: a further row of an attempt that is final changes nothing, and where it differs
    becomes an adjustment, whose id follows from the attempt's. Sums move with rows that changed state, in the same
    transaction.
    """

    def deliver(self, rows: Sequence[Row], snapshots: Iterable[PriceSnapshot] = ()) -> None:
        """Take rows; returns when they are durable.

        Raises:
            StoreAway: nothing was taken; try again.
            Refused: one of them can never be taken; nothing was.
        """
        ...

    def settle(self, settlement: Settlement) -> bool:
        """Settle a row whose intent was delivered before; False: there is none.

        Raises:
            StoreAway, Refused: as `deliver`.
        """
        ...

    def set_aside(self, name: str, reason: str, data: bytes) -> None:
        """Keep a record that can never be a row, so that it is seen and counted. The same once more changes nothing.

        Raises:
            StoreAway: it is not kept.
        """
        ...

    def adjust(self, attempt: bytes, nano: int, *, reason: str, actor: str, token: str = "") -> bool:
        """Correct what a final attempt cost by so many nano-dollars; whether it was not done before. `token`: tells it
        from others of the same words; "": the same words are the same correction.

        Raises:
            Refused: there is no such attempt, or it goes on; or the token was another correction's.
            StoreAway: as `deliver`.
        """
        ...

    def take_corrections(self, entries: Sequence[tuple[bytes, bytes, int, int, str, str, int]]) -> None:
        """Take corrections as they stand in another store: see `values.Correction`. The same once more changes nothing.

        Raises:
            Refused: one is of no final attempt of this store.
            StoreAway: as `deliver`.
        """
        ...

    def accounts_of(self, attempt: bytes) -> list[int]:
        """The accounts that an attempt is charged to.

        Raises:
            StoreAway: the store cannot be read.
        """
        ...

    def audit(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        """Write down who changed what. Each entry's digest covers the one before it.

        Raises:
            StoreAway: it is not written.
        """
        ...

    def drop_before(self, day: str) -> list[str]:
        """Drop the attempts of months that ended before a day (`2026-11-22`); their sums stay. Gives the months.

        Raises:
            StoreAway: not all are dropped.
        """
        ...

    def close(self) -> None:
        """Nothing more is given."""
        ...


# ---------------------------------------------------------------- limits

#: One quota in one period, by what it is: a number that follows from its words.
Account: TypeAlias = int


@final
class Facts(msgspec.Struct, frozen=True):
    """What a holder has done with an account over its life, absolutely: `spent`, and `reserved` for what is under way.
    Nano-dollars, tokens or requests."""

    spent: int = 0
    reserved: int = 0


@final
class Lease(msgspec.Struct, frozen=True):
    """What the counters answer.

    Attributes:
        outcome: `granted`; `refused`: the facts are recorded, and `least` beyond them did not fit; `stale`: a later
            call was heard already, nothing changed; `lost`: the counters are another life of theirs (`epoch`) and want
            every holder's facts anew; `settling`: this life is new, somebody may still use a lease of the one before,
            and nothing is leased.
        amount: what the holder may have used and reserved in all.
        is_tight: the limit is near, so leases are exact.
        epoch: of the counters.
        others: what all others have of the account, and what is closed of it.
        was_cold: the account was filled from the ledger for this call.
    """

    outcome: Literal["granted", "refused", "stale", "lost", "settling"]
    amount: int = 0
    is_tight: bool = True
    epoch: str = ""
    others: int = 0
    was_cold: bool = False


@final
class Claim(msgspec.Struct, frozen=True):
    """What a holder calls the counters for.

    Attributes:
        number: grows with each call of this holder for this account; one that is not newer does nothing.
        facts: are recorded always. `want`, `least`: beyond them.
        limit, generation: of the quota; the counters keep the limit of the highest generation seen.
        epoch: that the caller knows; another one is answered with `lost`.
        until: Unix seconds of the period's end: what the account has may be forgotten some time after.
    """

    account: Account
    holder: str
    number: int
    facts: Facts
    want: int
    least: int
    limit: int
    generation: int
    epoch: str
    until: float = float("inf")


@final
class Seed(msgspec.Struct, frozen=True):
    """What the ledger has of an account, in nano-dollars or tokens. `by_holder`: of those whose journals are not at
    their end, with what is set apart for attempts that go on; `closed`: of all others. `ended`: of these, who ended
    not long ago, so that a late call of theirs is known as one. `adjusted`: what corrections add; it is in none of the
    others."""

    closed: int = 0
    by_holder: Mapping[str, int] = {}
    ended: frozenset[str] = frozenset()
    adjusted: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.closed + self.adjusted + sum(self.by_holder.values())


class Counters(Protocol):
    """How much of each account is leased to whom. They may lose their memory; the ledger never does."""

    epoch: str

    @property
    def is_shared(self) -> bool:
        """Whether other machines use them, so that what was used must be told in each life of theirs."""
        ...

    def look(self) -> str:
        """The epoch of the life that goes on. Raises CountersAway."""
        ...

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        """No lease of an earlier life is used, and what was is in the claims; gives the epoch. Raises CountersAway."""
        ...

    def take(self, claim: Claim) -> Lease:
        """Record the facts; then lease up to `want` as room allows. A cold account is seeded first, in one piece.

        Raises:
            CountersAway: nothing was recorded.
        """
        ...

    def fold(self, account: Account, holder: str, spent: int) -> None:
        """A holder has ended: what it spent is the account's. Its name stays known, so that a late call of it does
        nothing. Once more, or where the account is cold, changes nothing.

        Raises:
            CountersAway: nothing changed.
        """
        ...

    def expire(self, account: Account, holder: str, used: int) -> None:
        """A holder was silent for so long that it may use its lease no more: it has what it used, as its journal says.

        Raises:
            CountersAway: nothing changed.
        """
        ...

    def correct(self, account: Account) -> None:
        """What was spent was corrected: what all corrections add up to is read from the ledger anew. Once more, or
        where the account is cold, changes nothing.

        Raises:
            CountersAway: nothing changed.
        """
        ...


class CountersAway(Exception):
    """The counters cannot be asked now."""
