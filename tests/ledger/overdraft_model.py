"""A world of workers that serve while nobody counts: real `Budgets`, counters that come and go for each of them, a
store that is away for some, workers that join, die, and are folded. Whatever happens, all of them together use no more
of an account than its limit and its overdraft, but for what nobody can know (ADR 42): what a worker neither told nor
delivered before it was taken for silent, and was cut off from the counters, or died. A `fault` puts a mistake back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dragoman.config.quotas import Quota
from dragoman.ledger.interfaces import Claim, CountersAway, Lease, Seed
from dragoman.ledger.limits.accounts import Charge, Need, charge_of
from dragoman.ledger.limits.budgets import PARTS, Budgets
from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS
from ledger.leases_model import ReferenceCounters, Wrong

LIMIT, OVERDRAFT = 100, 24
#: Seconds between two looks of shippers.
LOOK_EVERY = 20.0
START = 1_795_305_600.0
OverdraftFault: TypeAlias = Literal[
    "who never asked is not folded", "parts by the list alone", "nobody asks the ledger", "a used part is given up",
    "silent when it is written", "long attempts are not told", "a first look expires", "a failed look is forgotten",
    "what nobody answered was told",
]  # fmt: skip
OVERDRAFT_FAULTS: tuple[OverdraftFault, ...] = get_args(OverdraftFault)


class Reference(ReferenceCounters):
    """The model's, as workers call them."""

    is_shared = True

    def look(self) -> str:
        return self.epoch

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        self._awaited.discard(holder)
        return self.epoch

    def totals(self, accounts: Collection[int]) -> dict[int, int]:
        return {account: self.accounts[account].total for account in accounts if account in self.accounts}


class Attempt(NamedTuple):
    need: Need


#: What each worker told at its last call that was heard, by account.
Told: TypeAlias = dict[tuple[int, str], int]


class Link:
    """A worker's way to the counters. `lost`: nothing, `questions` or `answers`; `cut_at`: when it alone lost them."""

    is_shared = True

    def __init__(self, world: OverdraftWorld) -> None:
        self._world = world
        self.lost = ""
        self.cut_at = float("-inf")

    @property
    def epoch(self) -> str:
        return str(self._world.counters.epoch)

    def take(self, claim: Claim) -> Lease:
        return self._called(lambda: self._heard(claim))

    def _heard(self, claim: Claim) -> Lease:
        lease: Lease = self._world.counters.take(claim)
        if lease.outcome in ("granted", "refused"):
            self._world.told[claim.account, claim.holder] = claim.facts.spent + claim.facts.reserved
            self._world.heard[claim.account, claim.holder] = self._world.now
            self._world.is_known(claim.account, claim.holder)
        return lease

    def look(self) -> str:
        return self._called(self._world.counters.look)

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        return self._called(lambda: self._world.counters.greet(holder, claims))

    def _called(self, call: Callable[[], Any]) -> Any:
        if self.lost == "questions":
            raise CountersAway("cut off")
        found = call()
        if self.lost:
            raise CountersAway("no answer")
        return found


class Worker:
    """One life. `spent`: by its journal; `rows`: of that, what the store has. `known`: who leases, by its copy."""

    def __init__(self, world: OverdraftWorld, name: str) -> None:
        self.name = name
        self.link = Link(world)
        self.open: list[Attempt] = []
        self.spent: dict[int, int] = {}
        self.rows: dict[int, int] = {}
        self.known: Collection[str] = ()
        self.has_store = True
        self.has_joined = self.is_dead = self.is_delivered = False
        self.budgets = Budgets(
            self.link, name, begin=partial(world.join, self), holders=lambda: self.known,
            divide=partial(world.divide, self), was_used=partial(world.was_used, self), now=lambda: world.now,
        )  # fmt: skip

    def used(self, account: int) -> int:
        going = sum(each.need.amount for each in self.open if each.need.charge.account == account)
        return self.spent.get(account, 0) + going


#: What happens, to whom, and how: see `OverdraftWorld.step`.
Step: TypeAlias = tuple[int, int, int]
#: Of which account and worker, whether it has ended, what it used, and since when it must have been silent.
Plan: TypeAlias = list[tuple[int, Worker, bool, int, float | None]]


def made_up(number: int) -> list[Step]:
    """The history of a number. Steps that matter together come together more often than chance would have it: counters
    that are away for all or for one, once or twice, and what is asked for before, meanwhile and after; somebody who
    dies; a shipper that stands still between its look and what it does."""
    chance = random.Random(number)
    pick, who, most = chance.randrange, chance.choice((2, 3, 10)), chance.randrange(10, 80)
    is_mixed = chance.random() < 0.5  # else nearly all is of one account

    def how() -> int:
        return pick(840) if is_mixed else 80 * pick(10) + 2 * pick(20)

    def some(*kinds: int, of: int | None = None) -> list[Step]:
        return [(chance.choice(kinds), pick(who) if of is None else of, how()) for _ in range(pick(1, 6))]

    def all_ask() -> list[Step]:
        return [(3, each, 0) for each in range(3)]

    steps: list[Step] = []
    while len(steps) < most:
        one = pick(who)
        match pick(8):
            case 0 | 1:
                steps += [*some(0), (7, 0, pick(2)), *some(0, 3, 5, 6, 10, 11, 14, 15), (13, one, pick(4))]
                if pick(2):  # they are back, and away a second time before anybody could tell
                    steps += [*some(0, 5), (7, 0, 2), (12, one, 2), (7, 0, pick(2)), (13, one, 1)]
                steps += [(7, 0, 2), (12, one, 2), *all_ask()]
                if pick(2):
                    steps += [(13, one, pick(4)), (7, 0, pick(2)), *all_ask(), (7, 0, 2)]
            case 2:
                steps += [(8, one, pick(2)), *some(1, 3, 5, 6, 9, of=one), *some(3, 5, 13)]
                steps += [(8, one, 2), *some(3, 6, 12)]
            case 3:
                one = chance.choice((one, -1))  # -1: who began last
                steps += [*all_ask(), (15, one, 0), (13, one, pick(3)), (8, one, pick(3)), (3, one, how())]
                steps += [(10, one, 0), (11, one, 0), *some(6, 12, 13)]
            case 4:
                steps += [(13, one, 3), (12, one, 0), *some(0, 3), (13, one, pick(4)), (12, one, 1), *some(0, 3)]
            case 5:  # what nobody answered costs nothing, and then there is another life
                steps += [(15, 0, 0), (0, -1, pick(40)), (7, 0, 1), (0, -1, how()), (15, 0, 0), (3, -1, 0)]
                steps += [(5, -2, 14), (14, 0, 0)]
            case _:
                steps += some(*range(16))
    return steps


class OverdraftWorld:
    """Plays one history. Raises `Wrong`."""

    def __init__(self, fault: OverdraftFault | None = None, counters: Any = None) -> None:
        self.fault = fault
        self.now = 1_000.0
        self.generation = 1
        self.limit = self.most = LIMIT
        self.parts: dict[str, int] = {}
        self.ended: set[str] = set()
        self.workers: list[Worker] = []
        self.plans: list[Plan] = []
        self.told: Told = {}
        self.heard: dict[tuple[int, str], float] = {}
        self.unknown: Told = {}  # of those that were taken for silent, what neither rows nor a call had told
        self.are_away = self.has_failed = False  # the counters, for shippers as well; the last look
        self.looked_at = self.expires_from = float("-inf")
        self.counters = counters or Reference(self.seed, self.live, lambda: self.now)
        for _ in range(2):
            self.begin()

    def charge(self, which: int) -> Charge:
        quota = Quota(
            "all", "", "tokens", self.limit, ("month", "day")[which % 2], on_outage="serve", overdraft=OVERDRAFT,
            generation=self.generation,
        )  # fmt: skip
        return charge_of(quota, "", START)

    # ------------------------------------------------------------ the ledger

    def live(self) -> set[str]:
        return {each.name for each in self.workers if each.has_joined and each.name not in self.ended}

    def seed(self, account: int) -> Seed:
        ended = {each.name: each.spent.get(account, 0) for each in self.workers if each.name in self.ended}
        live = {each.name: each.used(account) for each in self.workers if each.name in self.live()}
        return Seed(sum(ended.values()), live, frozenset(ended))

    def join(self, worker: Worker) -> None:
        if not worker.has_store:
            raise CountersAway("no store")
        worker.has_joined = True
        self.parts.setdefault(worker.name, 0)

    def divide(self, worker: Worker, wanted: int) -> int:
        if not worker.has_store:
            raise CountersAway("no store")
        if self.fault == "parts by the list alone":
            return wanted
        rest = PARTS - sum(part for name, part in self.parts.items() if name != worker.name)
        self.parts[worker.name] = min(wanted, rest)
        return self.parts[worker.name]

    def was_used(self, worker: Worker, account: int) -> bool | None:
        if self.fault == "nobody asks the ledger":
            return False
        if not worker.has_store:
            return None
        return any(each.rows.get(account, 0) for each in self.workers if each.name in self.ended)

    def deliver(self, worker: Worker) -> None:
        if worker.has_store:
            worker.rows = dict(worker.spent)
            if worker.is_dead and worker.has_joined:
                self.ended.add(worker.name)

    def sweep(self) -> None:
        """As shippers do now and then."""
        self.do(self.read())

    def expires(self) -> bool:
        """Note that a shipper looks. Return whether it takes anybody for silent.

        Where the counters were away, those that are back tell first.
        """
        has_failed = self.has_failed and self.fault != "a failed look is forgotten"
        if has_failed or self.now > self.looked_at + 2 * LOOK_EVERY:
            self.expires_from = self.now + LOOK_EVERY
        self.has_failed = False
        self.looked_at = self.now
        expires = self.now >= self.expires_from or self.fault == "a first look expires"
        if expires:
            self.note_silent()
        return expires

    def read(self) -> Plan:
        """What a shipper that looks now will do; another one may be quicker, and this one stand still for a while."""
        expires = self.expires()
        accounts = [self.charge(which).account for which in range(2)]
        since = None if self.fault == "silent when it is written" else self.now - SILENT_SECONDS
        return [
            (account, worker, worker.name in self.ended, self.known(worker, account), since)
            for worker in self.workers if worker.has_joined and (expires or worker.name in self.ended)
            for account in accounts
        ]  # fmt: skip

    def note_silent(self) -> None:
        """Note what a shipper that looks now cannot know."""
        for each in self.workers:
            for account in (self.charge(which).account for which in range(2)):
                unknown = each.used(account) - self.known(each, account)
                if each.has_store:  # its rows come within a second, but not those of what goes on
                    unknown = min(unknown, each.used(account) - each.spent.get(account, 0))
                heard = self.heard.get((account, each.name), -1e9)
                is_cut = each.link.lost or heard <= each.link.cut_at  # it is back, and had no time to tell
                if heard <= self.now - SILENT_SECONDS and unknown > 0 and (is_cut or each.is_dead):
                    self.unknown[account, each.name] = max(unknown, self.unknown.get((account, each.name), 0))

    def is_known(self, account: int, name: str) -> None:
        """Forget what nobody knew of a worker, unless others used it meanwhile: that stays overspent."""
        if sum(each.used(account) for each in self.workers) <= self.most:
            self.unknown.pop((account, name), None)

    def known(self, worker: Worker, account: int) -> int:
        """What a shipper knows that a worker used: its rows, and while it lives what it told, which is what it has set
        apart, too."""
        rows = worker.rows.get(account, 0)
        return rows if worker.name in self.ended else max(rows, self.told.get((account, worker.name), 0))

    def do(self, plan: Plan) -> None:
        for account, worker, has_ended, used, since in plan:
            if not has_ended:
                self.counters.expire(account, worker.name, used, since)
            elif not (self.fault == "who never asked is not folded" and self.is_unknown(account, worker)):
                self.counters.fold(account, worker.name, used)
            if used >= worker.used(account):
                self.is_known(account, worker.name)
        self.parts.update({worker.name: 0 for _, worker, has_ended, *_ in plan if has_ended})

    def is_unknown(self, account: int, worker: Worker) -> bool:
        known = getattr(self.counters, "accounts", {}).get(account)
        return known is not None and worker.name not in known.shares

    # ------------------------------------------------------------ workers

    def begin(self) -> None:
        """One more, which greets and joins where it can."""
        worker = Worker(self, f"w{len(self.workers)}")
        self.workers.append(worker)
        worker.budgets.greet()
        worker.known = tuple(self.live())

    def admit(self, worker: Worker, which: int, amount: int) -> None:
        need = Need(self.charge(which), amount)
        if worker.is_dead or worker.budgets.admit((need,)) is not None:
            return
        worker.open.append(Attempt(need))
        account = need.charge.account
        total = sum(each.used(account) for each in self.workers)
        unknown = sum(used for (of, _), used in self.unknown.items() if of == account)
        if total > self.most + OVERDRAFT + unknown:
            raise Wrong(f"{total} of {self.most} and {OVERDRAFT} admitted")

    def settle(self, worker: Worker, which: int, share: int) -> None:
        if worker.is_dead or not worker.open:
            return
        need = worker.open.pop(which % len(worker.open)).need
        actual = (need.amount, need.amount // 2, 0)[share % 3]
        worker.spent[need.charge.account] = worker.spent.get(need.charge.account, 0) + actual
        worker.budgets.settle(need, actual)

    def tick(self, worker: Worker) -> None:
        if not worker.is_dead:
            if worker.has_store:
                worker.known = tuple(self.live())
            self.now += 1.0
            if self.fault == "a used part is given up":
                worker.budgets._overdrawn.clear()
            for line in worker.budgets._lines.values():
                if self.fault == "long attempts are not told":
                    line.told = line.balance.used
                if self.fault == "what nobody answered was told":
                    line.is_unheard = False
            worker.budgets.tick(START)

    def wait(self, seconds: float) -> None:
        """All that live go on ticking, which takes no time of its own here, and shippers deliver where they reach the
        store."""
        until = self.now + seconds
        while self.now < until:
            self.now += 10.0
            for each in self.workers:
                self.tick(each)
                self.now -= 0.0 if each.is_dead else 1.0
                self.deliver(each)
            if self.are_away:
                self.has_failed = True
            elif self.now >= self.looked_at + LOOK_EVERY:
                self.sweep()

    def die(self, worker: Worker) -> None:
        """What it left open costs what was set apart."""
        if worker.is_dead or len(self.workers) > 9:
            return
        worker.is_dead = True
        for attempt in worker.open:
            account = attempt.need.charge.account
            worker.spent[account] = worker.spent.get(account, 0) + attempt.need.amount
        worker.open = []
        self.begin()

    # ------------------------------------------------------------ histories

    def play(self, steps: Sequence[Step]) -> None:
        for kind, first, second in steps:
            worker = self.workers[first % len(self.workers)]
            self.step(worker, kind, second)
        self.end()

    def step(self, worker: Worker, kind: int, second: int) -> None:
        match kind:
            case 0 | 1 | 2:
                self.admit(worker, second // 40, 1 + second % 40)
            case 3:
                for amount in (20, 8, 4, 1):
                    for _ in range(4):
                        self.admit(worker, second, amount)
            case 4 | 5:
                self.settle(worker, second, second // 7)
            case 6:
                self.tick(worker)
            case 7:  # the counters are away for all, or come back
                lost = ("questions", "answers", "", "")[second % 4]
                self.are_away = lost != ""
                # Who made holders tell first looks often: no absence within that time passes unnoticed.
                self.has_failed |= self.are_away and self.now < self.expires_from
                for each in self.workers:
                    each.link.lost = lost
            case 8:
                worker.link.lost = ("questions", "answers", "")[second % 3]
                if worker.link.lost:
                    worker.link.cut_at = self.now
            case 9:
                worker.has_store = second % 3 > 0
            case 10:
                self.die(worker)
            case 11:
                self.deliver(worker)
            case 12 if self.are_away:
                self.has_failed = True
            case 12 if second % 4 == 0:
                self.plans.append(self.read())
            case 12 if second % 4 == 1 and self.plans:
                self.do(self.plans.pop(second % len(self.plans)))
            case 12:
                self.sweep()
            case 13:
                self.wait((10.0, 20.0, LEASE_SECONDS + 10.0, SILENT_SECONDS + 10.0)[second % 4])
            case 14 if second % 3:
                self.limit = (60, 100, 130)[second // 3 % 3]
                self.most, self.generation = max(self.most, self.limit), self.generation + 1
            case 14:
                self.restart()
            case _:
                if len(self.workers) <= 9:
                    self.begin()

    def restart(self) -> None:
        self.counters.restart()

    def end(self) -> None:
        """All comes back: then the counters have what was used, and nobody has a part of what ended ones had."""
        self.are_away = False
        for each in self.workers:
            each.link.lost, each.has_store = "", True
            while each.open:
                self.settle(each, 0, 0)
            self.deliver(each)
        for turn in range(5):
            for seconds in (SILENT_SECONDS + 1, LOOK_EVERY):
                self.now += seconds
                self.sweep()
            for each in self.workers if turn < 4 else ():
                self.tick(each)
        accounts = [self.charge(which).account for which in range(2)]
        for account, total in self.counters.totals(accounts).items():
            spent = sum(each.used(account) for each in self.workers)
            if total != spent:
                raise Wrong(f"{total} is leased, {spent} is spent")
        if sum(self.parts.values()) > PARTS:
            raise Wrong("more than the whole is divided")
