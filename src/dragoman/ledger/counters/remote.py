"""Counters of several machines: what is the same wherever they stand. See `Counters` and `Place`.

A life of theirs is one life of the server that has them. Who hears of another one tells what it has used of every
account (`greet`), and is then awaited no more; nothing is leased until all who may hold leases of the life before were
heard, or these have ended. Then each account is filled from the ledger's rows, beside what was told: journals of other
machines cannot be read from here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, final

import msgspec

from dragoman.ledger.interfaces import Account, Claim, CountersAway, Lease, Seed
from dragoman.ledger.limits.accounts import is_concurrent, is_recorded
from dragoman.ledger.limits.leases import SILENT_SECONDS, unasked
from dragoman.ledger.stores.schema import ADJUSTED

#: By account, what each holder spent.
Spent: TypeAlias = dict[Account, dict[str, int]]


@final
class Share(msgspec.Struct, frozen=True):
    """What a holder has of an account. `seen`: seconds of the counters' clock, at its last call. `told`: what it had
    used then."""

    account: Account
    holder: str
    amount: int
    seen: float
    told: int


@final
class Listing(msgspec.Struct, frozen=True):
    """All shares of those who have not ended, what corrections add to each account, the counters' clock, and who is
    known to have ended, by account."""

    shares: Sequence[Share]
    adjusted: Mapping[Account, int]
    now: float
    ended: Collection[tuple[Account, str]] = ()


class Place(Protocol):
    """Where the counters stand. Each call is one step that nobody sees half of; any may raise CountersAway."""

    def epoch(self) -> str:
        """Of the life that goes on; "" where the server's life has none yet."""
        ...

    def begin(self, epoch: str, awaited: Collection[str]) -> str:
        """Begin a life, where none goes on; gives the epoch of the one that does."""
        ...

    def awaited(self) -> set[str]:
        """Who was not heard in this life, of those who may use leases of the one before."""
        ...

    def heard(self, *holders: str) -> None:
        """These are awaited no more."""
        ...

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease | None:
        """As `Counters.take`; None: call again with what the account is filled with (see `Roster.filling`), where it is
        not yet, in one piece: what was told stays, but of those who have ended by it. `announces`: what is told is kept
        until then."""
        ...

    def fold(self, account: Account, holder: str, spent: int) -> None:
        """As `Counters.fold`."""
        ...

    def expire(self, account: Account, holder: str, used: int, since: float | None = None) -> None:
        """As `Counters.expire`. `since`: nobody heard it after that, by the counters' clock; None: 90 seconds ago. Who
        stood still between its look and this would else take what was leased since."""
        ...

    def correct(self, account: Account, adjusted: int) -> None:
        """Corrections add so much."""
        ...

    def listing(self) -> Listing:
        """See `Listing`."""
        ...

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        """What is leased and spent of those accounts that are filled."""
        ...

    def tidy(self) -> None:
        """Forget who ended a day ago, and accounts whose period ended some time ago."""
        ...

    def set_patience(self, seconds: float) -> None:
        """A call waits for an answer for so long from now on."""
        ...

    def close(self) -> None:
        """The next call opens it anew."""
        ...


class Roster(Protocol):
    """What the ledger of several machines says. Any may raise CountersAway."""

    def join(self, holder: str) -> None:
        """This one may have leases from now on."""
        ...

    def live(self) -> set[str]:
        """All who joined and whose rows are not all in the store."""
        ...

    def lost(self) -> set[str]:
        """Of these, whose machine was not heard for some minutes."""
        ...

    def ended(self) -> set[str]:
        """Who joined and has ended, as far as it is known yet."""
        ...

    def divide(self, holder: str, wanted: int) -> int:
        """How many of `PARTS` are this holder's from now on, which wants so many: what others have is theirs."""
        ...

    def release(self, holders: Collection[str]) -> None:
        """These have ended, and the counters know all that they used: their parts are free, and they are forgotten some
        time after."""
        ...

    def was_used(self, account: Account) -> bool:
        """Whether there is a row of an account by somebody who has ended."""
        ...

    def seeds(self, accounts: Collection[Account]) -> dict[Account, Seed]:
        """What the rows say of accounts, one state of all."""
        ...

    def filling(self, account: Account) -> str:
        """What an account is filled with, a `Seed` in words with a blank between: what is closed, what corrections add,
        how many holders have not ended, each of these with what it used, then who has ended."""
        ...

    def set_patience(self, seconds: float) -> None:
        """A call waits for an answer for so long from now on."""
        ...

    def close(self) -> None:
        """The next call opens it anew."""
        ...


class RemoteCounters:
    """See `Counters`.

    Attributes:
        epoch: of this life of the counters, as far as is known; "" before the first call.
    """

    __slots__ = ("_cold_in", "_place", "_roster", "epoch")
    #: Others than the processes of this machine use them.
    is_shared: Final = True

    def __init__(self, place: Place, roster: Roster) -> None:
        self._place = place
        self._roster = roster
        #: The life in which the account that was asked for first the last time was cold, as the next one may be.
        self._cold_in: str | None = None
        self.epoch = ""

    def take(self, claim: Claim) -> Lease:
        is_first = claim.number == 1
        # In a life that was settling yet, others might end between the reading and the call, with rows that it misses.
        is_ahead = is_first and self._cold_in == claim.epoch
        filling = self._roster.filling(claim.account) if is_ahead and is_recorded(claim.account) else None
        lease = self._place.take(claim, announces=False, filling=filling)
        if lease is None:  # what stands in no row is never asked for
            lease = self._place.take(claim, announces=False, filling=self._roster.filling(claim.account))
        if lease is None:
            raise CountersAway("an account was not filled")
        if is_first and is_recorded(claim.account):
            self._cold_in = claim.epoch if lease.was_cold else None
        return Lease("lost", epoch=self.look()) if lease.outcome == "lost" else lease

    def fold(self, account: Account, holder: str, spent: int) -> None:
        self._place.fold(account, holder, spent)

    def expire(self, account: Account, holder: str, used: int) -> None:
        self._place.expire(account, holder, used)

    def correct(self, account: Account) -> None:
        # Two who do this at once may write the older sum last: the next sweep finds it.
        if is_recorded(account):
            self._place.correct(account, self._roster.seeds((account,))[account].adjusted)

    def look(self) -> str:
        """The epoch of the life that goes on; one is begun where none does.

        Raises:
            CountersAway: it is not known.
        """
        epoch = self._place.epoch()
        if not epoch:
            epoch = self._place.begin(secrets.token_hex(8), self._roster.live())
        self.epoch = epoch
        return epoch

    def meet(self) -> None:
        """All that a first lease needs is in reach: what begins slowly has begun.

        Raises:
            CountersAway: it is not.
        """
        self.look()
        self._roster.live()

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        """A holder uses no lease of a life before this one, and has used what its claims say; gives the epoch.

        Raises:
            CountersAway: not all of it was heard.
        """
        epoch = self.look()
        for claim in claims:
            lease = self._place.take(msgspec.structs.replace(claim, epoch=epoch), announces=True)
            if lease is not None and lease.outcome == "lost":
                raise CountersAway("another life of the counters has begun meanwhile")
        self._place.heard(holder)
        return epoch

    def join(self, holder: str) -> None:
        """A holder may have leases from now on: a life that begins later waits for it.

        Raises:
            CountersAway: it may have none.
        """
        self._roster.join(holder)

    def sweep(self, spent: Callable[[Collection[Account]], Spent]) -> None:
        """As `SqliteCounters.sweep`, by what the store says and what was told. It does not matter who does it.

        Raises:
            CountersAway, StoreAway, OSError: not all is folded.
        """
        self.look()
        listing, awaited = self._place.listing(), self._place.awaited()
        live, lost = self._roster.live(), self._roster.lost()  # a holder of a share has joined before
        over = self._roster.ended()
        if ended := awaited - live:
            self._place.heard(*ended)
        known = spent([account for account in listing.adjusted if is_recorded(account)])
        for share in listing.shares:
            by_rows = known[share.account].get(share.holder, 0) if is_recorded(share.account) else 0
            if share.holder not in live:
                has = by_rows if is_recorded(share.account) else 0 if is_concurrent(share.account) else share.amount
                self._place.fold(share.account, share.holder, has)
            elif share.seen <= listing.now - SILENT_SECONDS:
                goes_on = not (share.holder in lost and is_concurrent(share.account))
                used = max(share.told, by_rows) if goes_on else 0
                if used != share.amount:
                    self._place.expire(share.account, share.holder, used, listing.now - SILENT_SECONDS)
        asked = {(share.account, share.holder) for share in listing.shares} | set(listing.ended)
        for account, holder, amount in unasked(known, asked, over):
            self._place.fold(account, holder, amount)
        for account, holder, amount in unasked(known, asked, lost):
            self._place.expire(account, holder, amount)
        for account, amount in listing.adjusted.items():
            if is_recorded(account) and known[account].get(ADJUSTED, 0) != amount:
                self._place.correct(account, known[account].get(ADJUSTED, 0))
        self._roster.release(over)
        # After the release: who ended and has no share any more would be one who never asked.
        self._place.tidy()

    def divide(self, holder: str, wanted: int) -> int:
        """As `Roster.divide`. Raises CountersAway."""
        return self._roster.divide(holder, wanted)

    def was_used(self, account: Account) -> bool | None:
        """As `Roster.was_used`; None: it is not known."""
        try:
            return self._roster.was_used(account)
        except CountersAway:
            return None

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        """What is leased and spent of accounts in all; those that nobody asked for are missing.

        Raises:
            CountersAway: they cannot be read.
        """
        return self._place.totals(accounts)

    def set_patience(self, seconds: float) -> None:
        """A call waits for an answer for so long from now on."""
        self._place.set_patience(seconds)
        self._roster.set_patience(seconds)

    def close(self) -> None:
        """The next call opens all anew."""
        self._place.close()
        self._roster.close()
