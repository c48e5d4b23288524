"""One worker's budgets: its leases of all accounts, which it takes from the counters and gives back.

A request within the leases is admitted without a call. Otherwise the counters are called once, inline (0.1 ms); that is
rare, because a lease covers ten seconds' need. For one thread.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.ledger.interfaces import Account, Claim, Counters, CountersAway, Lease
from dragoman.ledger.limits.accounts import Charge, Need, Row
from dragoman.ledger.limits.leases import PARTS, Balance
from dragoman.ledger.limits.lines import TOLD_AFTER, Line

#: Seconds of its need that a worker leases ahead, and the part of a limit that it leases ahead at most.
_AUTONOMY: Final = 10.0
_MOST_AHEAD: Final = 16
#: The same of what stands in no row, and not for an hour at most: what a worker holds when it is killed is lost of it.
_MOST_LOST: Final = 1_024
#: Seconds for which a refusal holds, so that a storm of refused requests is none of calls.
_REFUSED_FOR: Final = 0.1
#: Seconds between two calls to counters that are away.
_AWAY_FOR: Final = 0.5
#: Seconds for which it is remembered who leases, and between two questions to a ledger that did not answer as asked.
_SEEN_FOR: Final = 1.0
_PAUSE: Final = 4.0
#: Accounts that are told in one second only since this worker's part of an overdraft has grown.
_MOST_TOLD: Final = 50
#: Why something was not admitted.
Cause: TypeAlias = Literal["spent", "away", "settling"]


@final
class Refusal(msgspec.Struct, frozen=True):
    """A need that was not admitted, and the cause."""

    charge: Charge
    cause: Cause


class Budgets:
    """The budgets of one holder.

    Attributes:
        exchanges: the number of calls so far.
        reached: charges whose next alert was reached; the caller removes them.
        has_ended: other processes regard this worker as ended, or soon will, so it uses no lease.
    """

    __slots__ = (
        "_away_until", "_begin", "_counters", "_divide", "_divide_at", "_divided", "_epoch", "_grown_at", "_has_begun",
        "_holder", "_holders", "_lines", "_looked_at", "_now", "_overdrawn", "_part", "_seen", "_seen_at",
        "_turn", "_unread_until", "_wanted", "_was_used", "exchanges", "has_ended", "reached",
    )  # fmt: skip

    def __init__(
        self,
        counters: Counters,
        holder: str,
        *,
        begin: Callable[[], None] = lambda: None,
        holders: Callable[[], Collection[str]] = lambda: (),
        divide: Callable[[int], int] = lambda wanted: wanted,
        was_used: Callable[[Account], bool | None] = lambda account: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it.

        Args:
            begin: called before the first lease.
            holders: returns the holders that may have leases, as last known.
            divide: returns how many of `PARTS` this holder gets when it wants some; raises CountersAway.
            was_used: returns whether a holder that has ended used an account; None if it cannot be read.
        """
        self._counters = counters
        self._holder = holder
        self._begin = begin
        self._holders = holders
        self._divide = divide
        self._was_used = was_used
        self._grown_at = float("-inf")  # when the part became greater last, by the wall clock
        self._overdrawn: set[Account] = set()  # beyond leases, and not known to be within the limit since
        self._part = self._divided = self._wanted = 0  # as it holds here, was given last, and was asked for
        self._seen: Collection[str] = ()
        self._seen_at = self._divide_at = self._unread_until = float("-inf")
        self._now = now
        self._epoch = ""
        self._lines: dict[Account, Line] = {}
        self._turn = 0  # rises with each line that ends: rows have to find theirs anew
        self._away_until = self._looked_at = 0.0
        self._has_begun = False
        self.exchanges = 0
        self.has_ended = False
        self.reached: list[Charge] = []

    def admit_row(self, row: Row, amounts: Sequence[int]) -> Refusal | None:
        """Reserve an amount of each of a request's accounts, or none.

        Those that are below the ceilings of their leases need no further look, and no look for their lines.
        """
        if row.turn == self._turn and self._now() < row.until and not self.has_ended:
            balances = row.balances
            for balance, amount in zip(balances, amounts, strict=True):
                reserved = balance.reserved + amount
                if balance.spent + reserved > balance.ceiling:
                    break
                balance.reserved = reserved
                balance.is_idle = False
            else:
                for place in row.used:
                    amount, balance = amounts[place], balances[place]
                    balance.reserved -= amount
                    balance.spent += amount
                return None
            for done, amount in zip(balances, amounts, strict=True):
                if done is balance:
                    break
                done.reserved -= amount
        refusal = self.admit(row.needs(amounts))
        row.balances = balances = tuple([self._line_of(charge).balance for charge in row.charges])
        row.turn, row.until = self._turn, min([each.until for each in balances], default=math.inf)
        return refusal

    def settle_row(self, row: Row, amounts: Sequence[int], nano: int, tokens: int) -> None:
        """End what `admit_row` reserved for an attempt, which is not what it spent at once. Dollar accounts are charged
        `nano`, all others `tokens`.
        """
        if row.turn != self._turn:
            return self.settle_all([row.needs(amounts)[place] for place in row.costly], nano, tokens)
        for place in row.costly:
            balance, charge = row.balances[place], row.charges[place]
            balance.spent = spent = balance.spent + (nano if charge.is_usd else tokens)
            balance.reserved = reserved = balance.reserved - amounts[place]
            if spent + reserved > balance.ceiling:
                self._judge(self._lines[charge.account])
        return None

    def admit(self, needs: Sequence[Need]) -> Refusal | None:
        """Reserve all needs, or none.

        While the counters are away or begin a new life, the worker reserves beyond its leases, within its part of what
        the quota allows as overdraft, and reports it later.
        """
        now, epoch = self._now(), self._epoch
        asked = []
        for need in needs:
            charge = need.charge
            line = self._line_of(charge)
            line.balance.is_idle = False
            if self.has_ended or not line.balance.fits(need.amount, now):
                cause = "away" if self.has_ended else self._call(line, need.amount, now)
                if cause is not None and (cause == "spent" or not self._may_overdraw(line, need.amount, now)):
                    return Refusal(charge, cause)
            asked.append(line)
        if self._epoch != epoch:  # a life of the counters ended meanwhile, and so did what fitted its leases
            return self.admit(needs)
        for need, line in zip(needs, asked, strict=True):
            balance = line.balance
            balance.reserved += need.amount
            if line.others + balance.spent + balance.reserved >= line.alert_at:
                self.reached.append(line.charge)
            if balance.ceiling < 0:  # no call has just raised it
                line.raise_ceiling()
        for need in needs:
            if need.is_used:
                self.settle(need, need.amount)
        return None

    def settle(self, need: Need, actual: int) -> None:
        """End a reservation that cost `actual`."""
        self.settle_all((need,), actual, actual)

    def settle_all(self, needs: Sequence[Need], nano: int, tokens: int) -> None:
        """End reservations of several accounts. Dollar accounts are charged `nano`, all others `tokens`."""
        for need in needs:
            line = self._line_of(need.charge)
            line.balance.settle(need.amount, nano if need.charge.is_usd else tokens)
            if line.balance.used > line.balance.ceiling:
                self._judge(line)

    def _judge(self, line: Line) -> None:
        """Tell others at once of what was spent beyond a lease, and where little is left of what was not."""
        balance = line.balance
        if balance.used > balance.held or (balance.is_tight and not balance.is_exact):
            self._tell(line)

    def tick(self, wall: float) -> None:
        """Do what is due every second: return leases, report overdrafts, greet new counters. `wall`: Unix seconds."""
        now = self._now()
        # One machine's counters begin anew where their file was lost. They wait no longer than one lease.
        looks = self._counters.is_shared or (self._has_begun and now >= self._looked_at + TOLD_AFTER)
        if looks and now >= self._away_until:
            self._looked_at = now
            self._look()
        if self._counters.is_shared:
            self._look_who_leases(now)
        told = 0
        for account, line in tuple(self._lines.items()):
            balance = line.balance
            is_beyond = line.leased is not None  # also where a call of which no answer came makes it look exact
            is_due = line.is_due(now, is_shared=self._counters.is_shared)
            if is_beyond or is_due or (
                not balance.is_exact and (balance.is_idle or balance.is_tight or balance.used > balance.held)
            ):  # fmt: skip
                self._tell(line)
            elif line.part is not None and line.part < self._part and line.charge.overdraft and told < _MOST_TOLD:
                told += 1
                self._tell(line)  # its part has grown since
            balance.is_idle = True
            if line.charge.until <= wall and balance.is_exact and not balance.reserved:
                del self._lines[account]
                self._turn += 1
                self._overdrawn.discard(account)

    @property
    def has_begun(self) -> bool:
        """Whether other holders know that this worker may have leases."""
        return self._has_begun

    @property
    def is_away(self) -> bool:
        """Whether the counters did not answer the last call."""
        return self._now() < self._away_until

    def greet(self) -> None:
        """Tell the counters that this worker exists and has no lease of an earlier life."""
        self._epoch = ""
        try:
            self._make_ready()
        except CountersAway:
            self._away_until = self._now() + _AWAY_FOR

    def used(self, charge: Charge) -> tuple[int, int]:
        """Return what this worker has spent of an account, and what it has reserved."""
        line = self._lines.get(charge.account)
        return (0, 0) if line is None else (line.balance.spent, line.balance.reserved)

    def total(self, charge: Charge) -> int:
        """Return what all holders have used of an account, as far as this worker knows."""
        line = self._lines.get(charge.account)
        return 0 if line is None else line.others + line.balance.spent + line.balance.reserved

    def close(self) -> None:
        """Give back what is leased and unused."""
        for line in self._lines.values():
            if line.leased is not None or not line.balance.is_exact:
                self._tell(line)

    # ------------------------------------------------------------ inside

    def _line_of(self, charge: Charge) -> Line:
        line = self._lines.get(charge.account)
        return line if line is not None and line.charge is charge else self._line(charge)

    def _line(self, charge: Charge) -> Line:
        """Return the state of a charge's account, with the charge as it is now."""
        line = self._lines.get(charge.account)
        if line is None:
            line = self._lines[charge.account] = Line(charge, Balance(), 0.0)
        elif charge.limit < line.charge.limit:
            line.balance.until = 0.0  # of what was leased ahead, what fits the lower limit is admitted by a call
        line.charge = charge
        line.alert_at = charge.alerts[0] if charge.alerts else math.inf
        line.refused_until = 0.0  # its limit may have changed
        line.balance.ceiling = -1  # and its alerts
        return line

    def _may_overdraw(self, line: Line, amount: int, now: float) -> bool:
        """Return whether an amount is within this worker's part of the overdraft.

        A holder that began after the last known list has no part. All overspending that this worker knows of counts
        against its own part, because its origin is unknown. A part that has grown since the last answer came from a
        holder whose use that answer may miss.
        """
        charge = line.charge
        if charge.quota.on_outage != "serve" or not self._has_begun:
            return False
        if self._holder not in self._seen:
            self._seen_at = float("-inf")
        self._look_who_leases(now)
        if self._holder not in self._seen or (line.part is None and not self._is_unused(line, now)):
            return False
        part = min(self._part, line.part or 0)
        overspent = max(0, line.others + line.told - charge.limit)
        used = line.balance.used
        leased = used if line.leased is None else line.leased
        if now >= line.balance.until:  # what ended for less since is others'
            leased = min(leased, used)
        if used + amount > leased + charge.overdraft * part // PARTS - overspent:
            return False
        line.leased = leased
        self._overdrawn.add(charge.account)
        return True

    def _look_who_leases(self, now: float) -> None:
        """Update this worker's part: all known holders have equal parts. A greater part applies when it is granted.

        A part in use is not given up until an account is within its limit with all of it.
        """
        if not self._has_begun or 0 <= now - self._seen_at < _SEEN_FOR:
            return
        self._seen, self._seen_at = self._holders(), now
        fair = PARTS // len({*self._seen, self._holder})
        if fair == self._divided or (fair < self._part and self._overdrawn):
            return
        before, self._part = self._part, min(self._part, fair)
        if fair != self._wanted or now >= self._divide_at:
            self._wanted, self._divide_at = fair, now + _PAUSE
            with contextlib.suppress(CountersAway):
                self._part = self._divided = self._divide(fair)
        if self._part > before:
            self._grown_at = time.time()

    def _is_unused(self, line: Line, now: float) -> bool:
        """Return whether no ended holder used an account about which the counters never answered. It may have used this
        part.
        """
        charge = line.charge
        if charge.since < self._grown_at:
            if not charge.quota.is_recorded or now < self._unread_until:
                return False
            was_used = self._was_used(charge.account)
            if was_used is None:
                self._unread_until = now + _PAUSE
            if was_used is not False:
                return False
        line.part = self._part
        return True

    def _call(self, line: Line, amount: int, now: float) -> Cause | None:
        """Lease what is needed and a little ahead. Return None if the amount fits now."""
        if now < line.refused_until and amount >= line.refused:
            return "spent"
        elapsed = max(now - line.asked, 0.1)
        ahead = int((line.balance.used - line.used) / elapsed * _AUTONOMY) if line.asked else 0
        most = line.charge.limit // _MOST_AHEAD
        if not line.charge.quota.is_recorded and line.charge.quota.per not in ("minute", "hour"):
            most = most if line.charge.quota.unit == "concurrent" else line.charge.limit // _MOST_LOST
        if line.charge.quota.reserve == "expected":
            most = 0  # what another worker's attempts cost beyond what was expected is to be felt here at once
        lease = self._exchange(line, want=amount + max(0, min(ahead, most)), least=amount)
        if lease is None:
            return "away"
        if lease.outcome == "refused":
            line.refused, line.refused_until = amount, now + _REFUSED_FOR
            return "spent"
        if lease.outcome == "granted" and (not amount or line.balance.fits(amount, now)):
            return None
        return "settling"

    def _tell(self, line: Line) -> None:
        self._exchange(line, want=0, least=0)

    def _exchange(self, line: Line, *, want: int, least: int) -> Lease | None:
        """Call the counters, and once more if they have a new life. Return None if they are away."""
        now = self._now()
        if now < self._away_until:
            return None
        told = line.balance.used
        try:
            self._make_ready()
            if self._counters.is_shared or line.charge.overdraft:
                self._look_who_leases(now)
            lease = self._take(line, want, least, now)
            if lease.outcome == "lost":
                self._meet()
                lease = self._take(line, want, least, now)
        except CountersAway:
            self._away_until, line.is_unheard = now + _AWAY_FOR, True
            return None
        line.asked, line.used = now, line.balance.used
        if lease.outcome in ("granted", "refused"):
            line.is_unheard = False
            line.others, line.told, line.leased, line.part = lease.others, told, None, self._part
            if lease.others + told <= line.charge.limit:
                self._overdrawn.discard(line.charge.account)
            elif lease.amount <= told:  # what comes back of it is not to be used again without a call
                line.balance.until = 0.0
            line.raise_ceiling()
        return lease

    def _take(self, line: Line, want: int, least: int, now: float) -> Lease:
        claim = self._claim(line, want, least)
        self.exchanges += 1
        lease = self._counters.take(claim)
        line.balance.hear(lease, number=claim.number, made=now)
        return lease

    def _claim(self, line: Line, want: int, least: int) -> Claim:
        """Build a claim. Nothing more is admitted until it is answered: the counters may give the unused rest to
        others.
        """
        charge, balance = line.charge, line.balance
        number = balance.call()
        if line.leased is not None and line.leased > balance.held:
            line.leased = balance.held
        return Claim(
            charge.account,
            self._holder,
            number,
            balance.facts,
            want,
            least,
            charge.limit,
            charge.quota.generation,
            self._epoch,
            charge.until,
        )

    def _look(self) -> None:
        try:
            if self._counters.look() != self._epoch:
                self._epoch = ""
            self._make_ready()
        except CountersAway:
            self._away_until = self._now() + _AWAY_FOR

    def _make_ready(self) -> None:
        """Do what a first lease needs. Raises CountersAway."""
        if not self._epoch:
            self._meet()
        if not self._has_begun:
            # After the greeting: a life that begins after `_begin` waits for those that have not greeted it.
            self._begin()
            self._has_begun = True

    def _meet(self) -> None:
        """Drop all leases of an earlier life if the counters have a new one. Raises CountersAway."""
        self._epoch = ""  # until all is told
        for line in self._lines.values():
            line.balance.call()
        used = [self._claim(line, 0, 0) for line in self._lines.values() if line.balance.used]
        self._epoch = self._counters.greet(self._holder, used)
