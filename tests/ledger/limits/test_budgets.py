"""Budgets of workers: 0 overspend over any number of them, and nothing is refused while something is left."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.quotas import Period, Quota, Unit
from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.interfaces import Claim, CountersAway, Lease, Seed
from dragoman.ledger.limits.accounts import Accounts, Charge, Row, Scopes, charge_of
from dragoman.ledger.limits.budgets import Budgets, Need, Refusal
from dragoman.ledger.limits.leases import SILENT_SECONDS
from for_each import for_each

NOW = 1_795_305_600.0
LIMIT = 50_000  # micro-dollars


def quota(amount: int = LIMIT, **more: object) -> Quota:
    return Quota("all", "", "usd", amount, "day", **more)  # type: ignore[arg-type]


class Fleet:
    """Some workers, their counters, and one clock."""

    def __init__(self, folder: Path, count: int) -> None:
        self.now = 1.0
        self.folder = folder
        self.names = [f"worker-{number}" for number in range(count)]
        self.workers = [self.worker(name) for name in self.names]

    def counters(self) -> SqliteCounters:
        return SqliteCounters(
            self.folder / "counters.sqlite",
            seeds=lambda accounts: dict.fromkeys(accounts, Seed()), adjusted=lambda account: 0,
            live=lambda: set(self.names), leasing=set, now=lambda: self.now,
        )  # fmt: skip

    def worker(self, name: str) -> Budgets:
        return Budgets(self.counters(), name, now=lambda: self.now)

    def idle(self) -> None:
        """Two seconds without a request."""
        for _ in range(2):
            self.now += 1.0
            for worker in self.workers:
                worker.tick(NOW + self.now)


@pytest.mark.parametrize("workers", [1, 8])
def test_many_workers_admit_what_is_there_and_no_more(tmp_path: Path, workers: int) -> None:
    """T6, T7: a budget for 50 calls, and 100 at each worker."""
    fleet = Fleet(tmp_path, workers)
    charge = charge_of(quota(), "", NOW)
    need = Need(charge, charge.limit // 50)
    chance = random.Random(workers)
    calls = [worker for worker in fleet.workers for _ in range(100)]
    chance.shuffle(calls)
    admitted = []
    for worker in calls:
        if worker.admit([need]) is None:
            admitted.append(worker)
    fleet.idle()  # what somebody holds ahead goes back, and the last calls find it
    for worker in fleet.workers:
        while worker.admit([need]) is None:
            admitted.append(worker)
    assert len(admitted) == 50
    for worker in admitted:
        worker.settle(need, need.amount)
    fleet.idle()
    assert fleet.counters().totals([charge.account]) == {charge.account: charge.limit}


def test_nothing_is_refused_once_what_was_set_apart_is_back(tmp_path: Path) -> None:
    """T5, T15, T17: attempts that cost less than was set apart, or nothing."""
    fleet = Fleet(tmp_path, 4)
    charge = charge_of(quota(), "", NOW)
    whole = Need(charge, charge.limit // 10)
    chance = random.Random(7)
    spent = 0
    for _ in range(300):
        worker = chance.choice(fleet.workers)
        if worker.admit([whole]) is None:
            actual = chance.choice((0, 0, whole.amount // 100))
            spent += actual
            worker.settle(whole, actual)
    fleet.idle()
    assert fleet.counters().totals([charge.account]) == {charge.account: spent}
    rest = Need(charge, charge.limit - spent)
    assert fleet.workers[2].admit([rest]) is None
    assert fleet.workers[1].admit([Need(charge, 1)]) == Refusal(charge, "spent")


def test_a_limit_is_lowered_and_raised_and_what_was_spent_stays(tmp_path: Path) -> None:
    """T18: another amount is the same account."""
    fleet = Fleet(tmp_path, 2)
    charges = [charge_of(quota(amount, generation=number), "", NOW) for number, amount in enumerate((100, 40, 70), 1)]
    assert len({charge.account for charge in charges}) == 1
    first, second = fleet.workers
    high, low, middle = charges
    assert first.admit([Need(high, 50_000)]) is None
    first.settle(Need(high, 50_000), 50_000)
    assert second.admit([Need(low, 1)]) == Refusal(low, "spent")
    assert second.admit([Need(high, 1)]) == Refusal(high, "spent")  # an older word of the limit
    assert first.admit([Need(middle, 20_000)]) is None
    fleet.idle()
    assert second.admit([Need(middle, 1)]) == Refusal(middle, "spent")


def test_what_is_leased_ahead_is_not_used_beyond_a_lowered_limit(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 1)
    [worker] = fleet.workers
    high, low = charge_of(quota(100, generation=1), "", NOW), charge_of(quota(5, generation=2), "", NOW)
    for _ in range(6):
        fleet.now += 0.5
        assert worker.admit([Need(high, 1_000)]) is None
    asked = worker.exchanges
    assert worker.admit([Need(high, 10)]) is None and worker.exchanges == asked  # it has leased ahead
    assert worker.admit([Need(low, 10)]) == Refusal(low, "spent")


def test_beyond_a_lowered_limit_nothing_that_came_back_is_used_again_while_nobody_counts(tmp_path: Path) -> None:
    """What a worker set apart before is its own. What of it cost less was spent anew, above the limit."""
    for cost in (20_000, 21_000):  # so the last answer was to a request, and to what is told of a cost above its bound
        fleet = Fleet(tmp_path / str(cost), 2)
        high, low = charge_of(quota(100, generation=1), "", NOW), charge_of(quota(40, generation=2), "", NOW)
        first, second = fleet.workers
        for amount in (20_000, 30_000):
            assert second.admit([Need(high, amount)]) is None
        assert first.admit([Need(high, 30_000)]) is None
        first.settle(Need(high, 30_000), 30_000)
        assert second.admit([Need(low, 40_000)]) == Refusal(low, "spent")
        second.settle(Need(low, 20_000), cost)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqliteCounters, "take", Away.take)
            assert second.admit([Need(low, 1)]) == Refusal(low, "away")  # from here on nobody is asked for a while
            second.settle(Need(low, 30_000), 0)
            assert second.admit([Need(low, 1)]) == Refusal(low, "away")
        fleet.now += 1.0
        assert second.admit([Need(low, 0)]) is None  # what costs nothing
        assert second.admit([Need(low, 1)]) == Refusal(low, "spent")


def test_what_cost_more_than_was_set_apart_is_everybodys_business_at_once(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 2)
    charge = charge_of(quota(reserve="expected"), "", NOW)
    first, second = fleet.workers
    need = Need(charge, 10)
    assert first.admit([need]) is None
    first.settle(need, charge.limit + 5)
    first.tick(NOW)
    assert second.admit([Need(charge, 1)]) == Refusal(charge, "spent")


class Away:
    """Counters that cannot be asked."""

    epoch = ""
    is_shared = True

    def take(self, claim: Claim) -> Lease:
        raise CountersAway("locked")

    def look(self) -> str:
        raise CountersAway("locked")

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        raise CountersAway("locked")


class Gone:
    """Counters that can be asked until they are gone."""

    is_shared = True

    def __init__(self, counters: SqliteCounters) -> None:
        self.counters: SqliteCounters | Away = counters

    @property
    def epoch(self) -> str:
        return self.counters.epoch

    def take(self, claim: Claim) -> Lease:
        return self.counters.take(claim)

    def look(self) -> str:
        return self.counters.look()

    def greet(self, holder: str, claims: Sequence[Claim] = ()) -> str:
        return self.counters.greet(holder, claims)


def test_while_the_counters_are_away_the_quota_says_what_becomes_of_requests(tmp_path: Path) -> None:
    """Who never could ask them has no part of what is served without them."""
    budgets = Budgets(Away(), "one", holders=lambda: ["one"])
    for policy, overdraft in (("refuse", 0), ("serve", 5)):
        charge = charge_of(quota(on_outage=policy, overdraft=overdraft), "", NOW)
        assert budgets.admit([Need(charge, 5)]) == Refusal(charge, "away")


@pytest.mark.parametrize("holders", [["one"], ["one", "two"], ["two"], []])
def test_what_is_served_while_the_counters_are_away_is_the_overdraft_at_most(
    tmp_path: Path, holders: list[str]
) -> None:
    """L9: divided by those who may have leases; who is not among them began later, and has no part."""
    fleet, overdraft = Fleet(tmp_path, 1), 100_000
    counters = Gone(fleet.counters())
    worker = Budgets(counters, "one", holders=lambda: holders, now=lambda: fleet.now)
    lenient = charge_of(quota(on_outage="serve", overdraft=overdraft // 1_000), "", NOW)
    strict = charge_of(quota(zone="Asia/Tokyo"), "", NOW)
    need = Need(lenient, 1_000)
    assert worker.admit([need]) is None  # it has begun, and told of this one
    worker.settle(need, 1_000)
    counters.counters = Away()
    for _ in range(2):
        fleet.now += SILENT_SECONDS
        assert worker.admit([Need(strict, 1)]) == Refusal(strict, "away")
        while worker.admit([need]) is None:
            worker.settle(need, 1_000)
        share = overdraft // len(holders) if "one" in holders else 0
        assert worker.used(lenient) == (1_000 + share, 0)
    counters.counters = fleet.counters()
    fleet.now += 1
    worker.tick(NOW)
    assert counters.counters.totals([lenient.account]) == {lenient.account: 1_000 + share}  # it is told


def test_an_overdraft_that_was_used_is_not_there_a_second_time(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 1)
    counters = Gone(fleet.counters())
    worker = Budgets(counters, "one", holders=lambda: ["one"], now=lambda: fleet.now)
    charge = charge_of(quota(on_outage="serve", overdraft=1), "", NOW)
    everything = Need(charge, charge.limit)
    assert worker.admit([everything]) is None
    worker.settle(everything, charge.limit)
    for _ in range(2):
        counters.counters = Away()
        fleet.now += SILENT_SECONDS
        while worker.admit([Need(charge, 500)]) is None:
            worker.settle(Need(charge, 500), 500)
        assert worker.used(charge) == (charge.limit + 1_000, 0)
        counters.counters = fleet.counters()
        fleet.now += 1
        worker.tick(NOW)


def test_a_lease_makes_calls_rare_and_a_refusal_is_remembered(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 1)
    [worker] = fleet.workers
    charge = charge_of(quota(), "", NOW)
    need = Need(charge, charge.limit // 100_000)
    for _ in range(3_000):
        fleet.now += 0.001
        assert worker.admit([need]) is None
        worker.settle(need, need.amount)
    assert worker.exchanges < 150
    before = worker.exchanges
    for _ in range(100):
        assert worker.admit([Need(charge, charge.limit * 2)]) == Refusal(charge, "spent")
    assert worker.exchanges == before + 1


def test_all_of_a_requests_accounts_or_none(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 1)
    [worker] = fleet.workers
    wide, narrow = charge_of(quota(), "", NOW), charge_of(Quota("key", "ci", "requests", 1, "minute"), "ci", NOW)
    assert worker.admit([Need(wide, 10), Need(narrow, 1)]) is None
    assert worker.admit([Need(wide, 10), Need(narrow, 1)]) == Refusal(narrow, "spent")
    assert worker.used(wide) == (0, 10)


def test_while_the_counters_begin_anew_the_quota_says_what_becomes_of_requests(tmp_path: Path) -> None:
    """A life that waits for who may hold leases of the one before."""
    silent = SqliteCounters(
        tmp_path / "counters.sqlite",
        seeds=lambda accounts: dict.fromkeys(accounts, Seed()), adjusted=lambda account: 0,
        live=set, leasing=lambda: {"somebody"}, now=lambda: 1.0,
    )  # fmt: skip
    used: dict[int, bool | None] = {}
    budgets = Budgets(silent, "one", holders=lambda: ["one"], was_used=used.get, now=lambda: 1.0)
    strict, lenient = (charge_of(quota(on_outage=policy, zone=zone, overdraft=1), "", NOW) for policy, zone in
                       (("refuse", "UTC"), ("serve", "Europe/Berlin")))  # fmt: skip
    assert budgets.admit([Need(strict, 5)]) == Refusal(strict, "settling")
    assert budgets.admit([Need(lenient, 5)]) == Refusal(lenient, "settling")  # who has ended may have overdrawn it
    used[lenient.account] = False
    later = Budgets(silent, "one", holders=lambda: ["one"], was_used=used.get, now=lambda: 1.0)
    assert later.admit([Need(lenient, 5)]) is None


@pytest.mark.parametrize("unit", ["requests", "usd", "tokens"])
def test_who_ends_or_is_killed_takes_little_with_it(tmp_path: Path, unit: Unit) -> None:
    """What stands in no row is folded at its lease: after twenty kills nearly all of a month's requests are there."""
    fleet = Fleet(tmp_path, 2)
    charge = charge_of(Quota("all", "", unit, 100_000, "month"), "", NOW)
    need = Need(charge, 1)
    ended: list[str] = []
    counters = fleet.counters()
    for number in range(20):
        worker = fleet.worker(f"life {number}")
        fleet.names.append(f"life {number}")
        for _ in range(200):
            fleet.now += 0.001
            assert worker.admit([need]) is None
            worker.settle(need, 1)
        if number % 2:
            worker.close()
            assert worker.used(charge) == (200, 0)
        fleet.names.remove(f"life {number}")
        ended.append(f"life {number}")
        counters.sweep(lambda accounts: {account: dict.fromkeys(ended, 200) for account in accounts})
    [total] = counters.totals([charge.account]).values()
    assert 4_000 <= total <= 4_000 + 10 * 100_000 // 1_024


def test_an_alert_counts_what_all_workers_used(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 4)
    charge = charge_of(quota(), "", NOW)
    need = Need(charge, charge.limit // 5)
    for worker in fleet.workers:
        assert worker.admit([need]) is None
    assert fleet.workers[3].total(charge) == 4 * need.amount


def test_sums_beyond_64_bits_admit_nothing_and_break_nothing(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 1)
    [worker] = fleet.workers
    charge = charge_of(quota(), "", NOW)
    need = Need(charge, 1)
    assert worker.admit([need]) is None
    for _ in range(3):
        worker.settle(need, 2**62)
    worker.tick(NOW)
    assert worker.admit([need]) is not None


def test_which_quotas_hold_for_a_request() -> None:
    each, ci = Quota("key", "*", "usd", 10, "day"), Quota("key", "ci", "usd", 50, "day")
    label, team = Quota("label", "cost=*", "tokens", 9, "month"), Quota("team", "a", "usd", 9, "day")
    accounts = Accounts([each, ci, label, team, Quota("all", "", "concurrent", 3), Quota("target", "x/y", "usd", 1)])
    scopes = Scopes(key="ci", labels={"cost": "1"}, target="x/y", route="fast")

    def found(scopes: Scopes) -> list[str]:
        return [f"{charge.quota.place}={charge.value}" for charge in accounts.charges(scopes, NOW)]

    assert found(scopes) == ["key:ci=ci", "label:cost=*=cost=1", "all=", "target:x/y=x/y"]
    assert found(Scopes(key="other", team="a")) == ["key:*=other", "team:a=a", "all="]
    assert found(Scopes()) == ["all="]
    one, two = (accounts.charges(Scopes(key=name), NOW)[0] for name in ("a", "b"))
    assert one.account != two.account
    named: Charge = charge_of(ci, "ci", NOW)
    assert named.account == charge_of(each, "ci", NOW).account  # a quota of its own goes on where that of all was


_scopes = st.builds(
    Scopes,
    key=st.sampled_from(("", "a", "b")),
    team=st.sampled_from(("", "a")),
    labels=st.sampled_from(({}, {"cost": "1"}, {"cost": "2"})),
    route=st.sampled_from(("", "fast")),
    target=st.sampled_from(("x/y", "x/z")),
)


@given(st.lists(st.tuples(_scopes, st.integers(0, 3 * 86_400)), min_size=1, max_size=30), st.booleans())
def test_what_is_remembered_of_a_request_is_what_holds(asked: list[tuple[Scopes, int]], has_labels: bool) -> None:
    """Whoever asks, and whatever the clock says now."""
    quotas = [
        Quota("all", "", "requests", 3, "minute"), Quota("key", "*", "usd", 1, "day"), Quota("route", "fast", "usd", 1),
        Quota("team", "a", "tokens", 9, "hour", reserve="expected"), Quota("all", "", "concurrent", 3),
    ]  # fmt: skip
    if has_labels:
        quotas.append(Quota("label", "cost=*", "tokens", 9, "month"))
    accounts = Accounts(quotas)
    for scopes, after in asked:
        now = NOW + after
        found = accounts.of_request(scopes, scopes.route, scopes.target, now)
        held = Accounts(quotas).charges(scopes, now)
        once = tuple(need.charge for need in found.once)
        costly = tuple(charge for charge, _ in found.costly)
        assert sorted(once + costly, key=lambda charge: charge.account) == sorted(
            held, key=lambda charge: charge.account
        )
        assert all(charge.quota.unit in ("requests", "concurrent") for charge in once)
        assert {need.amount for need in found.once} <= {1}
        assert set(found.recorded) == {charge.account for charge in held if charge.quota.is_recorded}
        parts = {("usd", "bound"): 0, ("usd", "expected"): 1, ("tokens", "bound"): 2, ("tokens", "expected"): 3}
        assert all(part == parts[charge.quota.unit, charge.quota.reserve] for charge, part in found.costly)
        assert found.parts == {part for _, part in found.costly}


@for_each("per", ["minute", "hour", "day", "week", "month"])
def test_a_clock_that_was_ahead_leaves_nobody_in_a_period_to_come(per: Period) -> None:
    """A worker whose clock went back goes by the account of its neighbours, not by one that nobody else uses."""
    accounts = Accounts([Quota("all", "", "usd", 10, per)])
    seconds = {"minute": 60, "hour": 3_600}.get(per, 40 * 86_400)
    [before], [ahead], [after] = (accounts.charges(Scopes(), now) for now in (NOW, NOW + seconds, NOW))
    assert before.account == after.account != ahead.account
    assert after.account == charge_of(accounts.quotas[0], "", NOW).account


def test_nothing_is_leased_before_others_can_know_of_the_holder(tmp_path: Path) -> None:
    """A place of the names that is away for a moment must be asked again: an unknown holder would be folded."""
    fleet = Fleet(tmp_path, 1)
    tries: list[float] = []

    def begin() -> None:
        tries.append(fleet.now)
        if len(tries) < 3:
            raise CountersAway("the names cannot be written")

    worker = Budgets(fleet.counters(), "one", begin=begin, now=lambda: fleet.now)
    charge = charge_of(quota(), "", NOW)
    found = []
    for _ in range(4):
        found.append(worker.admit([Need(charge, 1)]))
        fleet.now += 1
    assert found == [Refusal(charge, "away")] * 2 + [None] * 2
    assert len(tries) == 3


def test_what_fits_a_lease_of_a_life_that_just_ended_fits_no_more(tmp_path: Path) -> None:
    """The first quota of a request fits a lease; the call for the second one tells that this life is over."""
    fleet = Fleet(tmp_path, 2)
    one, two = fleet.workers
    spent, asked = charge_of(quota(), "", NOW), charge_of(Quota("all", "", "requests", 100, "day"), "", NOW)
    assert one.admit([Need(spent, 500)]) is None
    one.settle(Need(spent, 500), 0)  # the lease stays until somebody needs it
    for file in tmp_path.glob("counters.sqlite*"):
        file.unlink()
    assert two.admit([Need(spent, spent.limit)]) is None
    assert one.admit([Need(spent, 500), Need(asked, 1)]) == Refusal(spent, "spent")


def test_who_has_ended_for_the_others_uses_no_lease(tmp_path: Path) -> None:
    worker = Fleet(tmp_path, 1).workers[0]
    charge = charge_of(quota(), "", NOW)
    for _ in range(2):
        assert worker.admit([Need(charge, 1)]) is None
        worker.has_ended = True
        assert worker.admit([Need(charge, 1)]) == Refusal(charge, "away")
        worker.has_ended = False


@pytest.mark.parametrize("seed", range(12))
def test_what_is_within_leases_is_admitted_as_by_asking(tmp_path: Path, seed: int) -> None:
    """Three accounts of each request, some near their limits, of two workers."""
    chance = random.Random(seed)
    units: tuple[Unit, ...] = ("usd", "tokens", "requests")
    limits = [chance.choice((30, 200, 100_000)) for _ in units]
    quotas = [Quota("all", "", unit, limit, "day") for unit, limit in zip(units, limits, strict=True)]
    charges = [charge_of(each, "", NOW) for each in quotas]
    quick, asking = Fleet(tmp_path / "quick", 2), Fleet(tmp_path / "asking", 2)
    rows = [Row(tuple(charges), (2,), (0, 1)) for _ in quick.workers]
    opened: list[tuple[int, list[int]]] = []
    for _ in range(80):
        number, step = chance.randrange(2), chance.random()
        if step < 0.6:
            amounts = [chance.randrange(2_000), chance.randrange(5), 1]
            refusal = asking.workers[number].admit(rows[number].needs(amounts))
            assert quick.workers[number].admit_row(rows[number], amounts) == refusal
            if refusal is None:
                opened.append((number, amounts))
        elif step < 0.9 and opened:
            number, amounts = opened.pop(chance.randrange(len(opened)))
            nano, tokens = chance.randrange(3_000), chance.randrange(6)
            quick.workers[number].settle_row(rows[number], amounts, nano, tokens)
            for need, actual in zip(rows[number].needs(amounts)[:2], (nano, tokens), strict=True):
                asking.workers[number].settle(need, actual)
        elif step < 0.92:  # another amount: the same accounts
            limits = [max(1, int(limit * chance.choice((0.5, 2)))) for limit in limits]
            charges = [
                charge_of(
                    msgspec.structs.replace(charge.quota, amount=limit, generation=charge.quota.generation + 1), "", NOW
                )
                for charge, limit in zip(charges, limits, strict=True)
            ]
            rows[chance.randrange(2)] = Row(tuple(charges), (2,), (0, 1))
        else:
            for fleet in (quick, asking):
                fleet.now += 1.0
                fleet.workers[number].tick(NOW + fleet.now)
        for one, other in zip(quick.workers, asking.workers, strict=True):
            assert [one.used(charge) for charge in charges] == [other.used(charge) for charge in charges]
            assert (one.exchanges, one.reached) == (other.exchanges, other.reached)
    asked = [charge.account for charge in charges]
    assert quick.counters().totals(asked) == asking.counters().totals(asked)


def test_a_row_finds_its_accounts_anew_after_their_period(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, 1)
    [worker], charge = fleet.workers, charge_of(quota(), "", NOW)
    row = Row((charge,), (), (0,))
    assert worker.admit_row(row, [10]) is None
    worker.settle_row(row, [10], 3, 0)
    assert worker.admit_row(row, [0]) is None  # nobody expected it to cost anything
    for _ in range(2):
        worker.tick(charge.until)
    assert worker.used(charge) == (0, 0)
    worker.settle_row(row, [0], 7, 0)
    assert worker.used(charge) == (7, 0)
