"""The arithmetic of leases: the counters' answer to a holder, and what the holder may do with it.

An account is one quota in one period. A *holder* leases an absolute part of it and uses this part without asking. All
numbers are absolute, so a repeated or late call changes nothing. No I/O and no clock: times are seconds of a monotonic
clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, final

import msgspec

from dragoman.ledger.interfaces import Account, Facts, Lease

#: Where less than this share of the limit is left, leases are exact: nobody holds what another could use.
_TIGHT_SHARE: Final = 10
#: For how long a lease may be used after the call that it answers was made.
LEASE_SECONDS: Final = 60.0
#: Who is silent for so long has nothing but what it has used. Shippers of several machines look every 20 s, so that the
#: leases of a machine that is lost are free within twice `LEASE_SECONDS`.
SILENT_SECONDS: Final = 1.5 * LEASE_SECONDS
#: Who was not heard of for so long has ended for all others.
GONE_SECONDS: Final = 86_400.0
#: The whole of what is served while nobody counts, in parts that 1 to 24 holders can have alike.
PARTS: Final = 5_354_228_880


@final
class Share(msgspec.Struct, frozen=True):
    """The counters' decision: what the holder may have spent and reserved in all, whether its least demand did not fit,
    and whether the limit is near.
    """

    amount: int
    is_refused: bool
    is_tight: bool


def share(others: int, facts: Facts, *, want: int, least: int, limit: int, neighbours: int = 0) -> Share:
    """Return a holder's part of an account.

    A holder keeps what it has used, whatever the limit is. Beyond that it gets `want` as far as there is room, and only
    `least` when little is left. What it gets beyond `least` leaves room for its neighbours: all of them together hold
    no more than half of what is left.

    Args:
        others: what all other holders have, with what is closed.
        facts: the holder's own.
        want, least: the amounts beyond its facts that the holder would like and that it needs.
        neighbours: the number of other holders.
    """
    told = facts.spent + facts.reserved
    room = limit - others
    if told + least > room:
        return Share(told, least > 0, True)
    left = room - told - least
    is_tight = left * _TIGHT_SHARE < limit
    ahead = 0 if is_tight else min(max(want - least, 0), left // (2 * (neighbours + 1)) if neighbours else left)
    return Share(told + least + ahead, False, is_tight)


def unasked(
    known: Mapping[Account, Mapping[str, int]], shares: Collection[tuple[Account, str]], ended: Collection[str]
) -> list[tuple[Account, str, int]]:
    """Return what ended holders used of accounts without ever asking for a lease: their overdraft.

    These accounts were filled before the holders began.

    Args:
        known: each account's use by holder, from the rows.
        shares: the accounts and holders that have, or had, a share.
    """
    return [
        (account, holder, amount)
        for account, by_holder in known.items()
        for holder, amount in by_holder.items()
        if amount and holder in ended and (account, holder) not in shares
    ]


class Balance:
    """A holder's side of one account. For one thread.

    During a call, and after a call without an answer, the holder admits only what the smallest possible answer allows:
    the counters may have given the rest to others.

    Attributes:
        reserved: for attempts under way.
        spent: by attempts that have ended.
        held: what may be spent and reserved in all.
        until: when the lease ends.
        is_tight: the limit is near, so unneeded leases are given back at once.
        number: of the last call.
        ceiling: up to so much the lease may be used without a further look; each call takes it back.
        is_idle: nothing was admitted since the last tick.
    """

    __slots__ = ("ceiling", "held", "is_idle", "is_tight", "number", "reserved", "spent", "until")

    def __init__(self) -> None:
        self.held = self.reserved = self.spent = self.number = 0
        self.until = 0.0
        self.is_idle = self.is_tight = False
        self.ceiling: float = -1

    @property
    def facts(self) -> Facts:
        """The totals that the counters must know."""
        return Facts(self.spent, self.reserved)

    @property
    def used(self) -> int:
        """Spent and reserved together."""
        return self.spent + self.reserved

    @property
    def is_exact(self) -> bool:
        """Whether the lease equals what was used, so that there is nothing to report."""
        return self.held == self.spent + self.reserved

    def fits(self, amount: int, now: float) -> bool:
        """Return whether a further amount is within the lease."""
        return now < self.until and self.spent + self.reserved + amount <= self.held

    def reserve(self, amount: int) -> None:
        """Reserve an amount."""
        self.reserved += amount

    def settle(self, reserved: int, actual: int) -> None:
        """End a reservation that cost `actual`. A cost above the reservation counts in full."""
        self.reserved -= reserved
        self.spent += actual

    def call(self) -> int:
        """Begin a call. Return its number."""
        self.number += 1
        self.held = self.used
        self.ceiling = -1
        return self.number

    def hear(self, lease: Lease, *, number: int, made: float) -> None:
        """Take an answer to the call `number`, made at time `made`. Ignore answers to earlier calls than the last."""
        if number != self.number or lease.outcome in ("stale", "lost", "settling"):
            return
        self.held = lease.amount
        self.is_tight = lease.is_tight
        self.until = made + LEASE_SECONDS
