"""The interfaces `Store` and `Counters`. One test suite holds for every implementation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

import msgspec

from dragoman.ledger.journal.records import PriceSnapshot, Row, Settlement


class StoreAway(Exception):
    """The store cannot be reached or written now. It took nothing of the call; the caller repeats it later."""


class StoreDamaged(StoreAway):
    """A part of the store was damaged and put aside. The journals deliver again what they still have."""


class StoreRestored(StoreDamaged):
    """The store has less than was delivered to it: it was restored from an older state."""


class Refused(Exception):
    """The store can never take what it was given, because it breaks a rule."""


class Missing(Refused):
    """The named thing does not exist."""


class Store(Protocol):
    """The truth of the ledger: rows of attempts, their sums, corrections.

    Rows may come repeatedly and in any order. A further row of a final attempt changes nothing; if it differs, it
    becomes an adjustment whose id is derived from the attempt's. Sums change in the same transaction as the rows.
    """

    def deliver(self, rows: Sequence[Row], snapshots: Iterable[PriceSnapshot] = ()) -> None:
        """Take rows. Return when they are durable.

        Raises:
            StoreAway: nothing was taken; try again.
            Refused: one of the rows can never be taken; nothing was.
        """
        ...

    def settle(self, settlement: Settlement) -> bool:
        """Settle a row whose intent was delivered before. Return False if there is no such row.

        Raises:
            StoreAway, Refused: as `deliver`.
        """
        ...

    def set_aside(self, name: str, reason: str, data: bytes) -> None:
        """Keep a record that can never be a row, so that it is seen and counted. A repeated call changes nothing.

        Raises:
            StoreAway: it is not kept.
        """
        ...

    def adjust(self, attempt: bytes, nano: int, *, reason: str, actor: str, token: str = "") -> bool:
        """Correct the cost of a final attempt by `nano` nano-dollars. Return False if this correction was made before.

        Args:
            token: distinguishes the correction from others of the same words; with "", the same words are the same
                correction.

        Raises:
            Refused: there is no such attempt, it is not final, or the token belongs to another correction.
            StoreAway: as `deliver`.
        """
        ...

    def take_corrections(self, entries: Sequence[tuple[bytes, bytes, int, int, str, str, int]]) -> None:
        """Take corrections from another store as they are; see `values.Correction`. A repeated call changes nothing.

        Raises:
            Refused: one corrects an attempt that is not a final attempt of this store.
            StoreAway: as `deliver`.
        """
        ...

    def accounts_of(self, attempt: bytes) -> list[int]:
        """Return the accounts that an attempt is charged to.

        Raises:
            StoreAway: the store cannot be read.
        """
        ...

    def audit(self, actor: str, action: str, subject: str, change: dict[str, Any]) -> None:
        """Append who changed what to the audit. Each entry's digest covers the previous entry.

        Raises:
            StoreAway: it is not written.
        """
        ...

    def drop_before(self, day: str) -> list[str]:
        """Drop the attempts of months that ended before a day (`2026-11-22`). Their sums stay. Return the months.

        Raises:
            StoreAway: not all are dropped.
        """
        ...

    def look_back(self) -> None:
        """Compare what the store has with what was delivered.

        Raises:
            StoreRestored: it has less. The caller delivers again what the journals have, then calls `end_look_back`.
            StoreAway: as `deliver`.
        """
        ...

    def end_look_back(self) -> tuple[int, list[str]]:
        """After all journals were delivered, record what a restored store still lacks.

        Return how many attempts are missing, and new lines for the log. Raises StoreAway as `deliver`.
        """
        ...

    def close(self) -> None:
        """Release the store. No further call is made."""
        ...


# ---------------------------------------------------------------- limits

#: One quota in one period, by what it is: a number that follows from its words.
Account: TypeAlias = int


@final
class Facts(msgspec.Struct, frozen=True):
    """A holder's totals for one account over the holder's life: `spent`, and `reserved` for attempts under way.

    The unit is the account's: nano-dollars, tokens or requests.
    """

    spent: int = 0
    reserved: int = 0


@final
class Lease(msgspec.Struct, frozen=True):
    """The counters' answer to a claim.

    Attributes:
        outcome: `granted`; `refused`: the facts are recorded, but `least` did not fit beyond them; `stale`: a later
            call was recorded already, and nothing changed; `lost`: the counters have a new life (`epoch`) and want
            every holder's facts again; `settling`: the life is new, another holder may still use a lease of the
            previous one, and nothing is leased.
        amount: what the holder may have spent and reserved in all.
        is_tight: the limit is near, so leases are exact.
        epoch: the counters' current epoch.
        others: what all other holders have of the account, with what is closed.
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
    """A holder's call of the counters for one account.

    Attributes:
        number: grows with each call of this holder for this account; a call that is not newer does nothing.
        facts: are always recorded.
        want, least: what the holder would like and what it needs beyond its facts.
        limit, generation: of the quota; the counters keep the limit of the highest generation seen.
        epoch: the one that the caller knows; another one is answered with `lost`.
        until: the end of the period in Unix seconds; the account may be forgotten some time later.
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
    """The ledger's sums of an account, in nano-dollars or tokens.

    Attributes:
        by_holder: of holders whose journals are not read to their end, with what they have reserved.
        closed: of all other holders.
        ended: those of them that ended recently, so that a late call of theirs is recognised.
        adjusted: the sum of corrections, which is in none of the others.
    """

    closed: int = 0
    by_holder: Mapping[str, int] = {}
    ended: frozenset[str] = frozenset()
    adjusted: int = 0

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.closed + self.adjusted + sum(self.by_holder.values())


class Counters(Protocol):
    """How much of each account is leased to which holder. Counters may lose their memory; the ledger never does."""

    epoch: str

    @property
    def is_shared(self) -> bool:
        """Whether other machines use these counters, so that each of their lives needs every holder's report."""
        ...

    def look(self) -> str:
        """Return the epoch of the current life. Raises CountersAway."""
        ...

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        """Report what a holder has used, and that it uses no lease of an earlier life. Return the epoch. Raises
        CountersAway.
        """
        ...

    def take(self, claim: Claim) -> Lease:
        """Record the facts, then lease up to `want` as far as there is room. A cold account is seeded first, in one
        step.

        Raises:
            CountersAway: nothing was recorded.
        """
        ...

    def fold(self, account: Account, holder: str, spent: int) -> None:
        """Add what an ended holder spent to the account and end its lease.

        The holder's name stays known, so that a late call of it does nothing. A repeated call changes nothing, nor does
        one for a cold account.

        Raises:
            CountersAway: nothing changed.
        """
        ...

    def expire(self, account: Account, holder: str, used: int) -> None:
        """Reduce a silent holder's lease to what it has used by its journal. It may use the lease no more.

        Raises:
            CountersAway: nothing changed.
        """
        ...

    def correct(self, account: Account) -> None:
        """Read the sum of an account's corrections from the ledger again.

        A repeated call changes nothing, nor does one for a cold account.

        Raises:
            CountersAway: nothing changed.
        """
        ...


class CountersAway(Exception):
    """The counters cannot be asked now."""
