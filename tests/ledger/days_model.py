"""A world in which days pass: machines with workers (real `Budgets`), counters that come, go and come back empty or as
they were, a store that is away for some, shippers that are late, corrections, periods that end under open attempts.

What was used of every account is summed up by itself, from what each attempt reserved and cost. Whatever happens, no
more is admitted than the limit and the overdraft; in the end the counters have that sum, and what is left can be had.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from dragoman.config.quotas import Period, Quota, Unit
from dragoman.ledger.interfaces import Claim, CountersAway, Lease, Seed
from dragoman.ledger.limits.accounts import Accounts, Charge, Need, Scopes, is_concurrent, is_recorded
from dragoman.ledger.limits.budgets import Budgets
from dragoman.ledger.limits.leases import GONE_SECONDS, LEASE_SECONDS, PARTS, SILENT_SECONDS
from dragoman.ledger.stores.schema import ADJUSTED
from ledger.leases_model import Wrong

#: 2030-10-25: days with 25 hours are near.
START: Final = 1_919_116_800.0
KEPT_AFTER: Final = 2 * 3_600.0
_LOST_AFTER: Final = 3 * LEASE_SECONDS
_MARGIN: Final = 600.0
_JOURNAL_KEPT: Final = 3_600.0
_ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati")
_KINDS: Final[tuple[tuple[Unit, Period], ...]] = (
    ("usd", "day"), ("usd", "month"), ("usd", "week"), ("tokens", "day"), ("tokens", "total"), ("tokens", "hour"),
    ("usd", "hour"), ("requests", "day"), ("requests", "minute"), ("concurrent", "total"), ("usd", "total"),
)  # fmt: skip
_MICRO: Final = 1_000


class Clock:
    """In place of `time`, in modules that ask for the day."""

    def __init__(self, world: DaysWorld) -> None:
        self._world = world

    def time(self) -> float:
        return self._world.wall

    def monotonic(self) -> float:
        import time

        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        import time

        time.sleep(seconds)


class Attempt:
    """Of a request: what it has set apart."""

    def __init__(self, needs: Sequence[Need]) -> None:
        self.needs = needs


class Worker:
    """One life. `spent`: by its journal, ended attempts; `rows`: of that, what the store has."""

    def __init__(self, world: DaysWorld, machine: Machine, name: str) -> None:
        self.world, self.machine, self.name = world, machine, name
        self.is_shared = world.kind == "fleet"
        self.lost = ""
        self.heard = world.now
        self.attempts: list[Attempt] = []
        self.spent: dict[int, int] = {}
        self.rows: dict[int, int] = {}
        self.journal: list[tuple[int, int]] = []  # not yet in the store
        self.has_joined = self.is_dead = self.is_finished = self.is_gone = self.was_known = False
        self.journal_until = 0.0  # of the wall clock
        self.quotas = world.quotas
        self.accounts = Accounts(self.quotas)
        self.budgets = Budgets(
            self, name, begin=partial(world.join, self), holders=partial(world.holders, self),
            divide=partial(world.divide, self), was_used=partial(world.was_used, self), now=lambda: world.now,
        )  # fmt: skip

    # what `Budgets` asks of counters

    @property
    def epoch(self) -> str:
        return str(self.world.counters.epoch)

    def take(self, claim: Claim) -> Lease:
        return self._called(lambda: self.world.counters.take(claim))  # type: ignore[no-any-return]

    def look(self) -> str:
        return self._called(lambda: self.world.counters.look())  # type: ignore[no-any-return]

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        return self._called(lambda: self.world.counters.greet(holder, claims))  # type: ignore[no-any-return]

    def _called(self, call: Any) -> Any:
        if self.lost == "questions" or self.world.are_away:
            raise CountersAway("cut off")
        found = call()
        if self.lost:
            raise CountersAway("no answer")
        self.heard = self.world.now
        return found

    def used(self, account: int) -> int:
        """The sum, by itself."""
        going = sum(
            need.amount for each in self.attempts for need in each.needs
            if need.charge.account == account and not need.is_used
        )  # fmt: skip
        return self.spent.get(account, 0) + going

    def write(self, account: int, amount: int) -> None:
        self.spent[account] = self.spent.get(account, 0) + amount
        self.journal.append((account, amount))


class Machine:
    """`known`: who leases, by its copy, heard of the store `heard` seconds ago by the clock of the world."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_store = True
        self.is_frozen = False
        self.has_shipper = True
        self.known: frozenset[str] = frozenset()
        self.heard = 0.0


class Holder:
    """A row of the table of those who may have leases."""

    def __init__(self, worker: Worker, now: float) -> None:
        self.worker, self.seen = worker, now
        self.ended: float | None = None
        self.part = 0


Kind: TypeAlias = Literal["machine", "fleet"]


class DaysWorld:
    """Plays one history, made up by its number. Raises `Wrong`."""

    def __init__(self, number: int, kind: Kind) -> None:
        self.chance = random.Random(number)
        self.kind = kind
        self.now, self.wall = 1_000.0, START + self.chance.randrange(40 * 86_400)
        self.are_away = False
        self.generation = 1
        self.quotas = self._made_up_quotas()
        self.most: dict[str, int] = {quota.name: quota.amount for quota in self.quotas}
        self.machines = [Machine("m0")] + ([Machine("m1")] if kind == "fleet" else [])
        self.workers: list[Worker] = []
        self.table: dict[str, Holder] = {}
        self.adjusted: dict[int, int] = {}
        self.charges: dict[int, Charge] = {}
        self.over: dict[int, int] = {}  # what attempts cost beyond what was set apart for them
        #: What nobody can know any more, as is said: of who was not heard when the counters lost all, and, of what
        #: stands in no row, of who ended.
        self.forgiven: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.log: list[str] = []
        self.unheard: set[Worker] = set()  # when a life of the counters began, and since
        self.counters: Any = None

    def begin(self, counters: Any) -> None:
        """With these counters."""
        self.counters = counters
        for machine in self.machines:
            for _ in range(self.chance.randrange(1, 3)):
                self.begin_worker(machine)

    def _made_up_quotas(self) -> tuple[Quota, ...]:
        chance = self.chance
        kinds = chance.sample(_KINDS, chance.randrange(1, 4))
        serves = chance.random() < 0.5
        return tuple([
            Quota(
                "all", "", unit, chance.choice((60, 100, 1_000)) if unit != "concurrent" else chance.choice((2, 5)),
                per, "UTC" if unit == "concurrent" else chance.choice(_ZONES),
                on_outage="serve" if serves else "refuse", overdraft=24 if serves else 0, generation=1,
                reserve=chance.choice(("bound", "bound", "expected")) if unit in ("usd", "tokens") else "bound",
            )
            for unit, per in kinds
        ])  # fmt: skip

    # ------------------------------------------------------------ who may have leases

    def join(self, worker: Worker) -> None:
        if self.kind == "fleet":
            if not worker.machine.has_store:
                raise CountersAway("no store")
            self.table.setdefault(worker.name, Holder(worker, self.now))
        worker.has_joined = True

    def holders(self, worker: Worker) -> Collection[str]:
        if self.kind == "fleet":
            return worker.machine.known
        return {each.name for each in self.workers if each.has_joined and not each.is_finished}

    def divide(self, worker: Worker, wanted: int) -> int:
        if self.kind == "machine":
            return wanted
        if not worker.machine.has_store:
            raise CountersAway("no store")
        mine = self.table.get(worker.name)
        if mine is None or mine.ended is not None:
            return 0
        rest = PARTS - sum(each.part for name, each in self.table.items() if name != worker.name)
        mine.part = min(wanted, rest)
        return mine.part

    def was_used(self, worker: Worker, account: int) -> bool | None:
        if self.kind == "machine":
            return self.seed(account).closed > 0
        if not worker.machine.has_store:
            return None
        return any(each.rows.get(account, 0) for each in self.workers if each.name not in self.live())

    def live(self) -> set[str]:
        if self.kind == "machine":
            return {each.name for each in self.workers if not each.is_finished}
        return {name for name, each in self.table.items() if each.ended is None}

    def leasing(self) -> set[str]:
        if self.kind == "machine":
            return {each.name for each in self.workers if each.has_joined and not each.is_dead}
        return self.live()

    def ended(self) -> set[str]:
        if self.kind == "machine":
            return {each.name for each in self.workers if each.is_finished and not each.is_gone}
        return {name for name, each in self.table.items() if each.ended is not None}

    def lost_holders(self) -> set[str]:
        return {name for name, each in self.table.items() if each.ended is None and each.seen <= self.now - _LOST_AFTER}

    def release(self, holders: Collection[str]) -> None:
        for name in holders:
            each = self.table.get(name)
            if each is not None and each.ended is not None:
                each.part = 0
                if each.ended <= self.now - GONE_SECONDS:
                    del self.table[name]

    def tidy(self, machine: Machine) -> None:
        for each in self.table.values():
            if each.worker.machine is machine and each.ended is None:
                if each.worker.is_finished:
                    each.ended = self.now
                else:
                    each.seen = self.now
        for each in self.table.values():
            if each.ended is None and each.seen <= self.now - GONE_SECONDS:
                each.ended = self.now

    # ------------------------------------------------------------ the ledger

    def seed(self, account: int) -> Seed:
        if not is_recorded(account):
            return Seed()
        live = self.live()
        by_holder = {
            each.name: each.used(account) if self.kind == "machine" else each.rows.get(account, 0)
            for each in self.workers if each.name in live
        }  # fmt: skip
        closed = sum(each.rows.get(account, 0) for each in self.workers if each.name not in live)
        return Seed(closed, by_holder, frozenset(self.ended()), self.adjusted.get(account, 0))

    def spent(self, accounts: Collection[int]) -> dict[int, dict[str, int]]:
        return {
            account: {each.name: each.rows[account] for each in self.workers if account in each.rows}
            | ({ADJUSTED: self.adjusted[account]} if account in self.adjusted else {})
            for account in accounts
        }

    def deliver(self, worker: Worker, *, all_of_it: bool = True) -> None:
        if not worker.machine.has_store or worker.machine.is_frozen:
            return
        count = len(worker.journal) if all_of_it else self.chance.randrange(len(worker.journal) + 1)
        for account, amount in worker.journal[:count]:
            if is_recorded(account):
                worker.rows[account] = worker.rows.get(account, 0) + amount
        del worker.journal[:count]
        if worker.is_dead and not worker.journal:
            if not worker.is_finished:
                worker.journal_until = self.wall + _JOURNAL_KEPT
            worker.is_finished = True
            if worker in self.unheard:
                self.unheard.discard(worker)
                for account, amount in worker.spent.items():
                    if not is_recorded(account):
                        self.gone[account] = self.gone.get(account, 0) + amount

    def ship(self, machine: Machine) -> None:
        """A round of its shipper: leases are looked at when all is delivered."""
        if machine.is_frozen or not machine.has_store or not machine.has_shipper:
            return
        for worker in self.workers:
            if worker.machine is machine:
                self.deliver(worker)
                worker.is_gone = worker.is_gone or (worker.is_finished and worker.journal_until < self.wall)
        if self.kind == "fleet":
            self.tidy(machine)
        if not self.are_away:
            self.counters.sweep(self.spent)

    def adjust(self, worker: Worker, delta: int) -> None:
        known = [account for account in worker.rows if is_recorded(account) and account & 3 == 0]
        if not known:
            return
        account = self.chance.choice(known)
        delta = max(delta, -worker.rows[account] - min(0, self.adjusted.get(account, 0)))
        if delta + self.adjusted.get(account, 0) < -sum(each.rows.get(account, 0) for each in self.workers):
            return
        self.adjusted[account] = self.adjusted.get(account, 0) + delta
        if not self.are_away and self.chance.random() < 0.5:
            self.counters.look()
            self.counters.correct(account)

    # ------------------------------------------------------------ workers

    def begin_worker(self, machine: Machine) -> None:
        worker = Worker(self, machine, f"w{len(self.workers)}")
        self.workers.append(worker)
        worker.budgets.greet()
        if self.kind == "fleet" and machine.has_store:
            self.hear(machine)

    def hear(self, machine: Machine) -> None:
        machine.known, machine.heard = frozenset(self.live()), self.now

    def total(self, account: int) -> int:
        """All that was used, but what corrections add."""
        return sum(each.used(account) for each in self.workers)

    def admit(self, worker: Worker, size: int) -> Attempt | None:
        if worker.is_dead or worker.machine.is_frozen:
            return None
        charges = worker.accounts.charges(Scopes(), self.wall)
        for charge in charges:
            if not charge.since <= self.wall < charge.until:
                raise Wrong(f"{charge} at {self.wall}")
            self.charges[charge.account] = charge
        needs = [_need(charge, size) for charge in charges]
        if worker.budgets.admit(needs) is not None:
            return None
        attempt = Attempt(needs)
        worker.attempts.append(attempt)
        for need in needs:
            if need.is_used:
                worker.spent[need.charge.account] = worker.spent.get(need.charge.account, 0) + need.amount
            self._judge(need.charge)
        return attempt

    def _judge(self, charge: Charge) -> None:
        account = charge.account
        factor = _MICRO if charge.is_usd else 1
        quota = charge.quota
        allowed = (self.most[quota.name] + quota.overdraft) * factor + self.over.get(account, 0)
        allowed += max(0, -self.adjusted.get(account, 0))
        taken_for_ended = {
            each for each in self.workers if each.has_joined and not each.is_finished and each.name not in self.live()
        }  # fmt: skip
        untold = sum(each.used(account) - each.rows.get(account, 0) for each in self.unheard | taken_for_ended)
        self.forgiven[account] = max(untold, self.forgiven.get(account, 0))
        allowed += self.forgiven[account] + self.gone.get(account, 0)
        total = sum(each.used(account) for each in self.workers if not (is_concurrent(account) and each.is_dead))
        if total > allowed:
            raise Wrong(f"{total} of {allowed} admitted of {quota.name}")

    def settle(self, worker: Worker, which: int, share: int) -> None:
        if worker.is_dead or worker.machine.is_frozen or not worker.attempts:
            return
        attempt = worker.attempts.pop(which % len(worker.attempts))
        costly = [need for need in attempt.needs if not need.is_used and not is_concurrent(need.charge.account)]
        for need in attempt.needs:
            if is_concurrent(need.charge.account):
                worker.budgets.settle(need, 0)
        if not costly:
            return
        expects = any(need.charge.quota.reserve == "expected" for need in costly)
        parts = (1.0, 1.0, 0.5, 0.0, 1.7 if expects else 1.0)[share % 5]
        unit = max(need.amount // (_MICRO if need.charge.is_usd else 1) for need in costly)
        nano, tokens = int(unit * _MICRO * parts), int(unit * parts)
        for need in costly:
            account, actual = need.charge.account, nano if need.charge.is_usd else tokens
            worker.write(account, actual)
            self.over[account] = self.over.get(account, 0) + max(0, actual - need.amount)
        worker.budgets.settle_all(costly, nano, tokens)

    def tick(self, worker: Worker) -> None:
        """As `Ledger.tick` does once a second."""
        if worker.is_dead or worker.machine.is_frozen:
            return
        if worker.quotas is not self.quotas and (self.kind == "machine" or worker.machine.has_store):
            worker.quotas = self.quotas
            worker.accounts = Accounts(self.quotas)
        if self.kind == "fleet":
            if worker.machine.has_store:
                self.hear(worker.machine)
            self._judge_life(worker)
        worker.budgets.tick(self.wall)
        if not worker.lost and not self.are_away:
            self.unheard.discard(worker)

    def _judge_life(self, worker: Worker) -> None:
        if not worker.budgets.has_begun:
            return
        is_known = worker.name in worker.machine.known
        worker.was_known = worker.was_known or is_known
        if not worker.was_known:
            return
        worker.budgets.has_ended = not is_known or self.now - worker.machine.heard > GONE_SECONDS - _MARGIN
        if not is_known:  # it drains, and another takes its place
            while worker.attempts:
                self.settle(worker, 0, 0)
            worker.budgets.close()
            self.die(worker)

    def die(self, worker: Worker) -> None:
        """What it left open costs what was set apart."""
        if worker.is_dead:
            return
        worker.is_dead = True
        for attempt in worker.attempts:
            for need in attempt.needs:
                if not need.is_used and not is_concurrent(need.charge.account):
                    worker.write(need.charge.account, need.amount)
        worker.attempts = []
        if sum(not each.is_dead for each in self.workers) < 4:
            self.begin_worker(worker.machine)

    # ------------------------------------------------------------ histories

    def play(self, length: int) -> None:
        """Some steps; then all goes well, and everything must agree."""
        for _ in range(length):
            self.step()
        self.end()

    def step(self) -> None:
        chance = self.chance
        worker = chance.choice(self.workers)
        kind = chance.randrange(24)
        match kind:
            case 0 | 1 | 2 | 3 | 4:
                self.admit(worker, 1 + chance.randrange(40))
            case 5 | 6 | 7 | 8:
                self.settle(worker, chance.randrange(9), chance.randrange(99))
            case 9 | 10:
                self.now, self.wall = self.now + 1.0, self.wall + 1.0
                self.tick(worker)
            case 11:
                self.deliver(worker, all_of_it=chance.random() < 0.7)
            case 12:
                self.ship(worker.machine)
            case 13:
                self.pass_time(chance.choice((5.0, 61.0, 95.0, 200.0, 3_700.0)))
            case 14:
                self.pass_time(chance.choice((0.3, 1.0, 1.0, 2.5, 8.0, 31.0)) * 86_400.0)
            case 15:
                self.are_away = not self.are_away and chance.random() < 0.6
            case 16:
                worker.lost = chance.choice(("questions", "answers", "", ""))
            case 17:
                worker.machine.has_store = chance.random() < 0.5
                worker.machine.has_shipper = chance.random() < 0.7
            case 18:
                self.die(worker)
            case 19:
                self.restart(is_empty=chance.random() < 0.5)
            case 20:
                self.change_limits()
            case 21:
                self.adjust(worker, chance.randrange(-20_000, 20_000))
            case 22:
                if len(self.workers) < 12:
                    self.begin_worker(worker.machine)
            case _:
                # So far back only where all that goes on stands in journals: what is forgotten is filled by them again.
                far = -3 * 86_400.0 if self.kind == "machine" else -60.0
                self.wall += chance.choice((-3_600.0, 3_600.0, -30.0, 30.0, far))

    def change_limits(self) -> None:
        self.generation += 1
        self.quotas = tuple([
            Quota(**{
                **{name: getattr(quota, name) for name in Quota.__struct_fields__},
                "amount": self.chance.choice((2, 5) if quota.unit == "concurrent" else (40, 60, 100, 150, 1_000)),
                "generation": self.generation,
            })
            for quota in self.quotas
        ])  # fmt: skip
        for quota in self.quotas:
            self.most[quota.name] = max(self.most[quota.name], quota.amount)

    def restart(self, *, is_empty: bool) -> None:
        for account in self.charges:
            if not is_recorded(account):
                gone = sum(each.used(account) for each in self.workers if each.is_finished)
                self.gone[account] = max(gone, self.gone.get(account, 0))
        self.unheard |= {each for each in self.workers if not each.is_finished}
        self.another_life(is_empty=is_empty)

    def another_life(self, *, is_empty: bool) -> None:
        """Of the counters."""
        raise NotImplementedError

    def pass_time(self, seconds: float) -> None:
        """Who lives goes on ticking, and shippers look."""
        left = seconds
        while left > 0:
            step = min(left, 10.0 if left <= 200.0 or left > seconds - 120.0 else 40_000.0)
            self.now, self.wall, left = self.now + step, self.wall + step, left - step
            self.forget_old()
            silent = [each for each in self.workers if not each.is_finished and each.heard <= self.now - SILENT_SECONDS]
            self.unheard.update([each for each in silent if each.lost or self.are_away])
            for machine in self.machines:
                if step > 100.0 or self.chance.random() < 0.5:
                    self.ship(machine)
            for worker in list(self.workers):
                self.tick(worker)

    def forget_old(self) -> None:
        """Counters that forget accounts of themselves some time after their period's end."""

    def end(self) -> None:
        for machine in self.machines:
            machine.has_store, machine.is_frozen, machine.has_shipper = True, False, True
        self.are_away = False
        for _ in range(3):
            for worker in list(self.workers):
                worker.lost = ""
                while worker.attempts:
                    self.settle(worker, 0, 0)
                self.tick(worker)
                self.deliver(worker)
            for machine in self.machines:
                self.ship(machine)
            self.pass_time(SILENT_SECONDS + 1.0)
        for machine in self.machines:
            self.ship(machine)
        self.check_sums()
        self.check_left()

    def check_sums(self) -> None:
        recorded = [account for account in self.charges if is_recorded(account)]
        for account, total in self.counters.totals(recorded).items():
            true = self.total(account) + self.adjusted.get(account, 0)
            if total != true:
                raise Wrong(f"{self.charges[account].quota.name}: {total} by the counters, {true} is used")
        if sum(each.part for each in self.table.values()) > PARTS:
            raise Wrong("more than the whole is divided")

    def check_left(self) -> None:
        """What is left of each account of now can be had, and no more."""
        self.begin_worker(self.machines[0])
        worker = self.workers[-1]
        for charge in worker.accounts.charges(Scopes(), self.wall):
            if not charge.quota.is_recorded:
                continue
            left = charge.limit - self.total(charge.account) - self.adjusted.get(charge.account, 0)
            if left > 0 and worker.budgets.admit([Need(charge, left + 1)]) is None:
                raise Wrong(f"{charge.quota.name}: {left} is left, and more is given")
            self.now += 1.0
            if left > 0 and worker.budgets.admit([Need(charge, left)]) is not None:
                # One who is forgotten announced what it used before anybody asked: until a shipper has looked.
                for machine in self.machines:
                    self.ship(machine)
                self.now += 1.0
                if worker.budgets.admit([Need(charge, left)]) is None:
                    continue
                raise Wrong(f"{charge.quota.name}: {left} is left, and nobody gets it")


def _need(charge: Charge, size: int) -> Need:
    unit = charge.quota.unit
    if unit in ("requests", "concurrent"):
        return Need(charge, 1, unit == "requests")
    return Need(charge, size * (_MICRO if unit == "usd" else 1))
