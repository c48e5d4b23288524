"""Counters that several machines share: what all servers have in common. See `Counters` and `Place`.

A life of the counters is one life of their server. When a holder learns of a new life, it reports what it has used of
every account (`greet`). No lease is given until every holder that may have a lease of the previous life has reported or
has ended. Then each account is filled from the ledger's rows and these reports, because the journals of other machines
cannot be read from here.
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
    """A holder's part of an account.

    Attributes:
        seen: time of its last call, in seconds of the counters' clock.
        told: what it reported as used in that call.
    """

    account: Account
    holder: str
    amount: int
    seen: float
    told: int


@final
class Listing(msgspec.Struct, frozen=True):
    """The shares of all holders that have not ended, the corrections of each account, the time by the counters' clock,
    the holders that are known to have ended, by account, and the closed part of each account.
    """

    shares: Sequence[Share]
    adjusted: Mapping[Account, int]
    now: float
    ended: Collection[tuple[Account, str]] = ()
    closed: Mapping[Account, int] = {}


class Place(Protocol):
    """A server that keeps counters. Each call is one atomic step; each may raise CountersAway."""

    def epoch(self) -> str:
        """Return the epoch of the current life, or "" if the server's life has none yet."""
        ...

    def begin(self, epoch: str, awaited: Collection[str]) -> str:
        """Begin a life if none is current. Return the epoch of the current one."""
        ...

    def awaited(self) -> set[str]:
        """Return the holders that may use leases of the previous life and have not reported in this one."""
        ...

    def heard(self, *holders: str) -> None:
        """Record that these holders have reported."""
        ...

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease | None:
        """As `Counters.take`, but None if the account is cold: then call again with its filling (see `Roster.filling`).

        The filling is applied in one step. Reports stay, except those of holders that have ended by it. `announces`
        keeps what the claim reports until then.
        """
        ...

    def fold(self, account: Account, holder: str, spent: int) -> None:
        """As `Counters.fold`."""
        ...

    def expire(self, account: Account, holder: str, used: int, since: float | None = None) -> None:
        """As `Counters.expire`.

        Args:
            since: expire the holder only if it was not heard after this time of the counters' clock; None: 90 seconds
                ago. A caller that stood still between its look and this call would otherwise take a newer lease away.
        """
        ...

    def correct(self, account: Account, adjusted: int) -> None:
        """Set the sum of an account's corrections."""
        ...

    def close_at(self, account: Account, least: int) -> None:
        """Raise the closed part of a filled account to at least this amount."""
        ...

    def listing(self) -> Listing:
        """Return all shares; see `Listing`."""
        ...

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        """Return what is leased and spent of each account that is filled."""
        ...

    def tidy(self) -> None:
        """Forget holders that ended a day ago, and accounts whose period ended some time ago."""
        ...

    def set_patience(self, seconds: float) -> None:
        """Set how many seconds each later call waits for an answer."""
        ...

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        ...


class Roster(Protocol):
    """What a ledger that several machines share knows of its holders. Each call may raise CountersAway."""

    def join(self, holder: str) -> None:
        """Record that this holder may have leases from now on."""
        ...

    def live(self) -> set[str]:
        """Return all holders that joined and whose rows are not all in the store."""
        ...

    def lost(self) -> set[str]:
        """Return those of `live` whose machine was not heard for some minutes."""
        ...

    def ended(self) -> set[str]:
        """Return the holders that joined and are known to have ended."""
        ...

    def divide(self, holder: str, wanted: int) -> int:
        """Give a holder up to `wanted` of the `PARTS` that no other holder has. Return how many it has from now on."""
        ...

    def release(self, holders: Collection[str]) -> None:
        """Free the parts of these holders and forget them some time later.

        Call it when they have ended and the counters know all that they used.
        """
        ...

    def was_used(self, account: Account) -> bool:
        """Return whether a holder that has ended has a row of this account."""
        ...

    def seeds(self, accounts: Collection[Account]) -> dict[Account, Seed]:
        """Return the rows' sums for these accounts, all from one snapshot."""
        ...

    def filling(self, account: Account) -> str:
        """Return a `Seed` as words with a space between them.

        The words are: the closed sum, the sum of corrections, the number of holders that have not ended, each of these
        with what it used, then the holders that have ended.
        """
        ...

    def set_patience(self, seconds: float) -> None:
        """Set how many seconds each later call waits for an answer."""
        ...

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        ...


class RemoteCounters:
    """Counters that several machines share; see `Counters`.

    Attributes:
        epoch: of the current life as far as this process knows; "" before the first call.
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
        """Return the epoch of the current life; begin a life if there is none.

        Raises:
            CountersAway: the epoch is not known.
        """
        epoch = self._place.epoch()
        if not epoch:
            epoch = self._place.begin(secrets.token_hex(8), self._roster.live())
        self.epoch = epoch
        return epoch

    def meet(self) -> None:
        """Connect to everything that a first lease needs, so that the first request does not wait for slow connections.

        Raises:
            CountersAway: something cannot be reached.
        """
        self.look()
        self._roster.live()

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        """Report what a holder has used, and that it uses no lease of an earlier life. Return the epoch.

        Raises:
            CountersAway: not every claim was recorded.
        """
        epoch = self.look()
        for claim in claims:
            lease = self._place.take(msgspec.structs.replace(claim, epoch=epoch), announces=True)
            if lease is not None and lease.outcome == "lost":
                raise CountersAway("another life of the counters has begun meanwhile")
        self._place.heard(holder)
        return epoch

    def join(self, holder: str) -> None:
        """Record that a holder may have leases from now on, so that a later life waits for its report.

        Raises:
            CountersAway: the holder may have none.
        """
        self._roster.join(holder)

    def sweep(self, spent: Callable[[Collection[Account]], Spent], *, expires: bool = True) -> None:
        """As `SqliteCounters.sweep`, from the store's rows and the holders' reports. Any machine may do it.

        With `expires` False nobody is taken for silent. After a time in which nobody reached the counters, holders have
        used what they could not report yet.

        Raises:
            CountersAway, StoreAway, OSError: not everything is folded.
        """
        self.look()
        listing, awaited = self._place.listing(), self._place.awaited()
        live, lost = self._roster.live(), self._roster.lost()  # a holder of a share has joined before
        over = self._roster.ended()
        if ended := awaited - live:
            self._place.heard(*ended)
        known = spent([account for account in listing.adjusted if is_recorded(account)])
        self._count_late(listing, known, live, over)
        for share in listing.shares:
            by_rows = known[share.account].get(share.holder, 0) if is_recorded(share.account) else 0
            if share.holder not in live:
                has = by_rows if is_recorded(share.account) else 0 if is_concurrent(share.account) else share.amount
                is_closed = is_recorded(share.account) and share.holder not in over
                self._place.fold(share.account, share.holder, 0 if is_closed else has)
            elif expires and share.seen <= listing.now - SILENT_SECONDS:
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

    def _count_late(self, listing: Listing, known: Spent, live: Collection[str], over: Collection[str]) -> None:
        """Close what the rows say of ended holders.

        Rows come late when their machine did not reach the store for a day. A forgotten holder was folded before that,
        and its rows stand for what it announced in a new life. A holder that ended lately is folded instead of this, so
        that nobody is counted twice.
        """
        ended = set(listing.ended)
        for account, by_holder in known.items():
            least = sum(
                amount
                for holder, amount in by_holder.items()
                if holder != ADJUSTED and ((account, holder) in ended or not (holder in live or holder in over))
            )
            if least > listing.closed.get(account, 0):
                self._place.close_at(account, least)

    def divide(self, holder: str, wanted: int) -> int:
        """As `Roster.divide`. Raises CountersAway."""
        return self._roster.divide(holder, wanted)

    def was_used(self, account: Account) -> bool | None:
        """As `Roster.was_used`; None if it is not known."""
        try:
            return self._roster.was_used(account)
        except CountersAway:
            return None

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        """Return what is leased and spent of these accounts. Accounts that nobody has asked for are missing.

        Raises:
            CountersAway: they cannot be read.
        """
        return self._place.totals(accounts)

    def set_patience(self, seconds: float) -> None:
        """Set how many seconds each later call waits for an answer."""
        self._place.set_patience(seconds)
        self._roster.set_patience(seconds)

    def close(self) -> None:
        """Close all connections; the next call opens new ones."""
        self._place.close()
        self._roster.close()
