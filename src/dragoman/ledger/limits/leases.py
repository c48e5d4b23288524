"""The arithmetic of leases: what one account's counters answer a holder, and what a holder may do with the answer.

An account is one quota in one period. Who admits requests, a *holder*, leases an absolute part of it, and uses it
without asking. All numbers are absolute, so that a call that comes twice or late changes nothing. No I/O, no clock:
times are seconds of a clock that only goes forward.
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
    """What the counters decide: how much the holder may have used and reserved in all, whether what it asked for at
    least did not fit, and whether the limit is near."""

    amount: int
    is_refused: bool
    is_tight: bool


def share(others: int, facts: Facts, *, want: int, least: int, limit: int, neighbours: int = 0) -> Share:
    """A holder's part of an account.

    What it has used is its own whatever the limit says: it is done. Beyond that it gets `want` as room allows, and only
    `least` where little is left. What it gets beyond `least` leaves its neighbours enough: all of them together hold no
    more than half of what is left.

    Args:
        others: what all other holders have, and what is closed.
        facts: of the holder. `want`, `least`: beyond them.
        neighbours: how many other holders there are.
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
    """What the ended used of accounts without ever asking for them, which were filled before they began: it was served
    while nobody counted. `known`: by the rows; `shares`: who has one, or had."""
    return [
        (account, holder, amount)
        for account, by_holder in known.items()
        for holder, amount in by_holder.items()
        if amount and holder in ended and (account, holder) not in shares
    ]


class Balance:
    """A holder's side of one account. For one thread.

    While a call is under way, and after one of which no answer came, nothing is admitted but what the smallest answer
    allows: the counters may have given the rest to others.

    Attributes:
        reserved: of attempts that are under way. `spent`: of those that ended.
        held: what may be used and reserved in all.
        until: when the lease may be used no more.
        is_tight: the limit is near: what is not needed goes back at once.
        number: of the last call.
    """

    __slots__ = ("held", "is_tight", "number", "reserved", "spent", "until")

    def __init__(self) -> None:
        self.held = self.reserved = self.spent = self.number = 0
        self.until = 0.0
        self.is_tight = False

    @property
    def facts(self) -> Facts:
        """What the counters are to know."""
        return Facts(self.spent, self.reserved)

    @property
    def used(self) -> int:
        """Spent and reserved."""
        return self.spent + self.reserved

    @property
    def is_exact(self) -> bool:
        """Whether the lease is what was used: there is nothing to tell."""
        return self.held == self.spent + self.reserved

    def fits(self, amount: int, now: float) -> bool:
        """Whether so much more is within the lease."""
        return now < self.until and self.spent + self.reserved + amount <= self.held

    def reserve(self, amount: int) -> None:
        """Set so much apart."""
        self.reserved += amount

    def settle(self, reserved: int, actual: int) -> None:
        """What was set apart is over, and cost so much; more than was set apart stands too."""
        self.reserved -= reserved
        self.spent += actual

    def call(self) -> int:
        """A call is made now; gives its number."""
        self.number += 1
        self.held = self.used
        return self.number

    def hear(self, lease: Lease, *, number: int, made: float) -> None:
        """An answer. `made`: when the call was; one to an earlier call than the last says nothing."""
        if number != self.number or lease.outcome in ("stale", "lost", "settling"):
            return
        self.held = lease.amount
        self.is_tight = lease.is_tight
        self.until = made + LEASE_SECONDS
