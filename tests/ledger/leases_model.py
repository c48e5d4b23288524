"""A small world of holders, counters and a store, in which messages freeze, come late, come twice or are lost.

The holders' side (`Balance`) and the arithmetic (`share`) are the real ones; the counters are written down here a
second time, with dictionaries, and are what those in SQLite are compared with. A `fault` puts one of the mistakes back
that section 19 of the design names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from dragoman.ledger.interfaces import Claim, Facts, Lease, Seed
from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS, Balance, share

Fault: TypeAlias = Literal[
    "late messages count", "facts are asked for", "leases never end", "epoch outlives its server",
    "seeds come in pieces", "silence is for ever",
]  # fmt: skip
FAULTS: tuple[Fault, ...] = get_args(Fault)


class Wrong(AssertionError):
    """The model found overspend, or a lease that nobody gives back."""


class Account:
    """What the counters have of one account; `None` in `shares`: the holder has ended."""

    def __init__(self, seed: Seed, limit: int, generation: int) -> None:
        self.closed = seed.closed
        self.limit, self.generation = limit, generation
        self.shares: dict[str, int | None] = {**dict.fromkeys(seed.ended), **seed.by_holder}
        self.numbers: dict[str, int] = {}
        self.seen: dict[str, float] = {}

    @property
    def total(self) -> int:
        return self.closed + sum(amount or 0 for amount in self.shares.values())


class ReferenceCounters:
    """Counters in dictionaries: what `Counters` promises, as plainly as it can be said."""

    def __init__(
        self,
        seed: Callable[[int], Seed],
        live: Callable[[], set[str]],
        now: Callable[[], float],
        fault: Fault | None = None,
    ) -> None:
        self._seed, self._live, self._now, self._fault = seed, live, now, fault
        self.life = 0
        self.accounts: dict[int, Account] = {}
        self._awaited: set[str] = set()
        self._began = -LEASE_SECONDS
        self.old_seeds: dict[int, Seed] = {}  # of the fault that reads in pieces

    @property
    def epoch(self) -> str:
        return f"life {self.life}"

    def restart(self, memory: dict[int, Account] | None = None) -> None:
        """Lose all, or all since a snapshot."""
        if self._fault == "epoch outlives its server":
            self.accounts = memory or {}
            return
        self.life += 1
        self.accounts = {}  # a snapshot is older than the truth
        self._awaited, self._began = self._live(), self._now()

    def take(self, claim: Claim) -> Lease:
        if claim.epoch != self.epoch:
            return Lease("lost", epoch=self.epoch)
        self._awaited.discard(claim.holder)
        if self._awaited and self._now() < self._began + LEASE_SECONDS:
            return Lease("settling", epoch=self.epoch)  # nothing is read yet: who was not heard may still spend
        account = self.accounts.get(claim.account)
        if account is None:
            seed = self._seed(claim.account)
            if self._fault == "seeds come in pieces" and (old := self.old_seeds.get(claim.account)):
                seed = Seed(seed.closed, {**old.by_holder, **seed.by_holder}, seed.ended)
            account = self.accounts[claim.account] = Account(seed, claim.limit, claim.generation)
            account.seen = dict.fromkeys(seed.by_holder, self._now())
        holder = claim.holder
        is_late = claim.number <= account.numbers.get(holder, 0)
        if holder in account.shares and account.shares[holder] is None:
            return Lease("stale", epoch=self.epoch)
        if is_late and self._fault != "late messages count":
            return Lease("stale", epoch=self.epoch)
        account.numbers[holder], account.seen[holder] = claim.number, self._now()
        if claim.generation > account.generation:
            account.limit, account.generation = claim.limit, claim.generation
        others = account.total - (account.shares.get(holder) or 0)
        told = claim.facts.spent + claim.facts.reserved
        neighbours = sum(amount is not None for name, amount in account.shares.items() if name != holder)
        asked = {"want": claim.want, "least": claim.least, "limit": account.limit, "neighbours": neighbours}
        given = share(others, claim.facts, **asked)
        if self._fault == "facts are asked for" and told + claim.least > account.limit - others:
            return Lease("refused", account.shares.get(holder) or 0, True, self.epoch)
        account.shares[holder] = given.amount
        outcome: Literal["refused", "granted"] = "refused" if given.is_refused else "granted"
        return Lease(outcome, given.amount, given.is_tight, self.epoch, others)

    def fold(self, account: int, holder: str, spent: int) -> None:
        found = self.accounts.get(account)
        if found is not None and found.shares.get(holder, 0) is not None:  # who never asked has what it overdrew
            found.closed += spent
            found.shares[holder] = None

    def expire(self, account: int, holder: str, used: int, since: float | None = None) -> None:
        found = self.accounts.get(account)
        if found is None or self._fault == "silence is for ever":
            return
        if holder not in found.shares and used:
            found.shares[holder], found.seen[holder] = used, self._now()
        if found.shares.get(holder) is None:
            return
        if found.seen.get(holder, -1e9) <= (self._now() - SILENT_SECONDS if since is None else since):
            found.shares[holder] = used


class Attempt(NamedTuple):
    account: int
    reserved: int


class Holder:
    """One life of one worker. `journal`: what ended, by account; `open`: what goes on."""

    def __init__(self, name: str, offset: float) -> None:
        self.name, self.offset = name, offset
        self.balances: dict[int, Balance] = {}
        self.open: list[Attempt] = []
        self.journal: dict[int, int] = {}
        self.over: dict[int, int] = {}  # what attempts cost beyond what was set apart for them
        self.epoch = "life 0"
        self.is_dead = self.is_frozen = self.is_delivered = False
        self.is_gone = False  # frozen, and will never come back
        self.quota = (100, 1)

    def balance(self, account: int) -> Balance:
        return self.balances.setdefault(account, Balance())

    def used(self, account: int) -> int:
        """By its journal."""
        return self.journal.get(account, 0) + sum(each.reserved for each in self.open if each.account == account)


class Call(NamedTuple):
    holder: Holder
    claim: Claim
    made: float


class World:
    """Plays one history. Raises `Wrong`."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.fault = fault
        self.now = 0.0
        self.most = 100  # the highest limit so far
        self.quota = (100, 1)
        self.holders: list[Holder] = [Holder(f"h{number}", 0.0) for number in range(3)]
        self.count = len(self.holders)
        self.counters = ReferenceCounters(self.seed, self.live, lambda: self.now, fault)
        self.calls: list[Call] = []
        self.answers: list[tuple[Call, Lease]] = []
        self.memory: dict[int, Account] = {}

    # ------------------------------------------------------------ the store

    def live(self) -> set[str]:
        return {each.name for each in self.holders if not each.is_dead}

    def seed(self, account: int) -> Seed:
        ended = {each.name: each.journal.get(account, 0) for each in self.holders if each.is_delivered}
        by_holder = {each.name: each.used(account) for each in self.holders if not each.is_delivered}
        return Seed(sum(ended.values()), by_holder, frozenset(ended))

    def recover(self, holder: Holder) -> None:
        """What a dead holder left open costs what was set apart; then its leases are folded."""
        if not holder.is_dead or holder.is_delivered:
            return
        for attempt in holder.open:
            holder.journal[attempt.account] = holder.journal.get(attempt.account, 0) + attempt.reserved
        holder.open = []
        holder.is_delivered = True
        for account in list(holder.balances):
            self.counters.fold(account, holder.name, holder.journal.get(account, 0))

    # ------------------------------------------------------------ holders

    def account_of(self, holder: Holder) -> int:
        """The hour by the holder's own clock."""
        return int((self.now + holder.offset) // 3_600)

    def call(self, holder: Holder, account: int, want: int, least: int) -> None:
        balance = holder.balance(account)
        limit, generation = holder.quota
        number = balance.call()
        claim = Claim(account, holder.name, number, balance.facts, want, least, limit, generation, holder.epoch)
        self.calls.append(Call(holder, claim, self.now))

    def fits(self, balance: Balance, amount: int) -> bool:
        if self.fault == "leases never end":
            return balance.used + amount <= balance.held
        return balance.fits(amount, self.now)

    def admit(self, holder: Holder, amount: int, *, is_heard: bool) -> None:
        """`is_heard`: the call that is needed for it is heard and answered at once."""
        if holder.is_dead or holder.is_frozen:
            return
        account = self.account_of(holder)
        balance = holder.balance(account)
        if not self.fits(balance, amount):
            self.call(holder, account, amount + 20, amount)
            if not is_heard:
                return
            self.talk()
            if not self.fits(balance, amount):
                return
        balance.reserve(amount)
        holder.open.append(Attempt(account, amount))
        total = sum(each.used(account) - each.over.get(account, 0) for each in self.holders)
        if total > self.most:
            raise Wrong(f"{total} of {self.most} admitted in account {account}")

    def settle(self, holder: Holder, which: int, more: int) -> None:
        if holder.is_dead or holder.is_frozen or not holder.open:
            return
        attempt = holder.open.pop(which % len(holder.open))
        actual = (attempt.reserved, attempt.reserved // 2, 0, attempt.reserved + 15)[more % 4]
        holder.journal[attempt.account] = holder.journal.get(attempt.account, 0) + actual
        beyond = max(0, actual - attempt.reserved)
        holder.over[attempt.account] = holder.over.get(attempt.account, 0) + beyond
        holder.balance(attempt.account).settle(attempt.reserved, actual)

    def tick(self, holder: Holder) -> None:
        if not holder.is_dead and not holder.is_frozen:
            holder.quota = self.quota
            for account in list(holder.balances):
                self.call(holder, account, 0, 0)

    # ------------------------------------------------------------ messages

    def talk(self) -> None:
        """The last call is heard and answered."""
        self.arrive(len(self.calls) - 1)
        self.answer(len(self.answers) - 1)

    def arrive(self, which: int, *, stays: bool = False) -> None:
        """A call is heard; `stays`: and will be once more."""
        if self.calls:
            place = which % len(self.calls)
            call = self.calls[place] if stays else self.calls.pop(place)
            lease = self.counters.take(call.claim)
            self.answers.append((call, lease))
            account = self.counters.accounts.get(call.claim.account)
            told = call.claim.facts.spent + call.claim.facts.reserved
            if lease.outcome in ("granted", "refused") and (account is None or
                    (account.shares.get(call.claim.holder) or 0) < told):  # fmt: skip
                raise Wrong("the counters do not know what was told")

    def answer(self, which: int) -> None:
        if not self.answers:
            return
        call, lease = self.answers.pop(which % len(self.answers))
        holder = call.holder
        if holder.is_dead or holder.is_frozen:
            return
        if lease.outcome == "lost":
            if lease.epoch > holder.epoch:
                holder.epoch = lease.epoch
                for balance in holder.balances.values():
                    balance.call()  # nothing is held of the life before
            return
        if call.claim.epoch == holder.epoch:
            holder.balance(call.claim.account).hear(lease, number=call.claim.number, made=call.made)

    # ------------------------------------------------------------ histories

    def play(self, steps: Sequence[tuple[int, int, int]]) -> None:
        for kind, first, second in steps:
            self.step(kind, first, second)
        self.end()

    def step(self, kind: int, first: int, second: int) -> None:
        holder = self.holders[first % len(self.holders)]
        match kind:
            case 0 | 1 | 2:
                self.admit(holder, 1 + second % 40, is_heard=second % 4 > 0)
            case 3 | 4:
                self.settle(holder, second, second // 7)
            case 5:
                self.tick(holder)
                if second % 3 and self.calls:
                    self.talk()
            case 6 | 7 | 8:
                self.arrive(second)
            case 9 | 10:
                self.answer(second)
            case 11:  # a message is lost, or comes twice
                self.arrive(second, stays=True) if first % 2 else self.calls and self.calls.pop(
                    second % len(self.calls)
                )
            case 12:
                self.now += (1, 20, 70, 130, 1_900)[second % 5]
                for each in self.holders:
                    for account in list(each.balances):
                        self.counters.expire(account, each.name, each.used(account))
            case 13:
                self.die(holder, second)
            case 14:
                self.renew(second)
            case _ if first < 6:
                holder.is_frozen = holder.is_gone or not holder.is_frozen
                holder.is_gone = holder.is_frozen and (holder.is_gone or (not second % 3 and not holder.is_dead))
            case _:  # its clock is wrong by up to an hour from now on
                holder.offset = (-3_600.0, 0.0, 3_600.0, 60.0)[second % 4]

    def die(self, holder: Holder, second: int) -> None:
        if not holder.is_dead and sum(not each.is_dead for each in self.holders) <= 3 and self.count < 8:
            holder.is_dead = True
            self.holders.append(Holder(f"h{self.count}", holder.offset))
            self.holders[-1].epoch = self.counters.epoch
            self.count += 1
        if second % 2:
            self.recover(holder)

    def renew(self, second: int) -> None:
        """The limit is lowered or raised, or the counters restart, or a slow worker reads what it will seed."""
        match second % 6:
            case 0 | 1:
                self.quota = ((40, 100, 150)[second // 6 % 3], self.quota[1] + 1)
                self.most = max(self.most, self.quota[0])
            case 2:
                self.counters.restart(self.memory)
                self.memory = {}
            case 3:
                self.memory = {}
                for number, account in self.counters.accounts.items():
                    self.memory[number] = copied = Account(Seed(account.closed, {}), account.limit, account.generation)
                    copied.shares, copied.numbers = dict(account.shares), dict(account.numbers)
            case _:
                for account in range(-1, 3):
                    self.counters.old_seeds[account] = self.seed(account)

    def end(self) -> None:
        """All goes well from now on: then the leases must be what was spent, and what is left can be had."""
        self.calls, self.answers = [], []
        for holder in self.holders:
            holder.is_frozen = holder.is_gone
            while holder.open and not holder.is_gone:
                self.settle(holder, 0, 0) if not holder.is_dead else self.recover(holder)
            self.recover(holder)
        self.now += SILENT_SECONDS + 1
        for holder in self.holders:
            for account in list(holder.balances):
                self.counters.expire(account, holder.name, holder.used(account))
        for _ in range(3):  # a lost life is told, then what is known, then the truth
            for holder in self.holders:
                self.tick(holder)
            while self.calls:
                self.arrive(0)
            while self.answers:
                self.answer(0)
        for number, account in self.counters.accounts.items():
            spent = sum(each.used(number) for each in self.holders)
            if account.total != spent:
                raise Wrong(f"account {number}: {account.total} is leased, {spent} is spent")
            left = self.quota[0] - spent
            if left > 0:
                asked = Claim(number, "new", 1, Facts(), left, left, *self.quota, self.counters.epoch)
                if self.counters.take(asked).outcome != "granted":
                    raise Wrong(f"account {number}: {left} is left, and nobody gets it")
                self.counters.fold(number, "new", 0)
