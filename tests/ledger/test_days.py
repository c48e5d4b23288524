"""Days and months pass, and the counters have what was used: histories made up by number, on counters of every kind."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.quotas import Quota, period_of
from dragoman.ledger.counters import postgresql, sqlite
from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.interfaces import Claim, Facts, Seed
from dragoman.ledger.limits import budgets
from dragoman.ledger.limits.accounts import Need, charge_of
from ledger.counting_engines import REMOTE, CountingEngines, Ledger
from ledger.days_model import KEPT_AFTER, START, Clock, DaysWorld
from ledger.dict_place import DictPlace
from ledger.leases_model import Wrong
from profiles import IS_SOAK

#: How many are played, and from which number on.
HISTORIES = int(os.environ.get("DRAGOMAN_DAYS", "20000" if IS_SOAK else "150"))
FIRST = int(os.environ.get("DRAGOMAN_DAYS_FROM", "0"))


class WorldRoster(Ledger):
    """What the world's table says of who may have leases."""

    def __init__(self, world: DaysWorld) -> None:
        super().__init__(world.seed, world.live, world.ended)
        self._world = world

    def lost(self) -> set[str]:
        return self._world.lost_holders()

    def release(self, holders: Collection[str]) -> None:
        self._world.release(holders)


class FleetWorld(DaysWorld):
    """Of machines, with counters in dictionaries under the real `RemoteCounters`."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "fleet")
        self.place = DictPlace(self.seed, lambda: self.now)
        self.begin(RemoteCounters(self.place, WorldRoster(self)))

    def another_life(self, *, is_empty: bool) -> None:
        self.place.restart(is_empty=is_empty)

    def forget_old(self) -> None:
        self.place.forget(self.wall - KEPT_AFTER)
        if self.chance.random() < 0.1:
            self.place.write_down()


class MachineWorld(DaysWorld):
    """Of one machine, with its counters."""

    def __init__(self, number: int, root: Path) -> None:
        super().__init__(number, "machine")
        self._file = root / "counters.sqlite"
        self.begin(
            SqliteCounters(
                self._file,
                seeds=lambda accounts: {account: self.seed(account) for account in accounts},
                adjusted=lambda account: self.adjusted.get(account, 0),
                live=self.live,
                leasing=self.leasing,
                ended=self.ended,
                now=lambda: self.now,
            )
        )

    def another_life(self, *, is_empty: bool) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._file}{suffix}").unlink(missing_ok=True)


class EngineWorld(DaysWorld):
    """Of machines, with counters in a real server."""

    def __init__(self, number: int, engines: CountingEngines, kind: str, root: Path) -> None:
        super().__init__(number, "fleet")
        self._engines, self._kind, self._root = engines, kind, root
        self.open = engines.open(kind, root, self.seed, self.live, lambda: self.now, ended=self.ended)
        counters: Any = self.open.__enter__()
        counters._roster = WorldRoster(self)
        self.begin(counters)

    def another_life(self, *, is_empty: bool) -> None:
        self._engines.another_life(self._kind, self._root, is_empty=is_empty)


def lived(monkeypatch: pytest.MonkeyPatch, world: DaysWorld) -> None:
    """A history, by the clock of its world."""
    for module in (sqlite, postgresql, budgets):
        monkeypatch.setattr(module, "time", Clock(world))
    world.play(world.chance.randrange(5, 120))


@contextmanager
def numbered(number: int) -> Iterator[None]:
    try:
        yield
    except Wrong as problem:
        raise AssertionError(f"history {number}: {problem}") from None


def test_a_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(FIRST, FIRST + HISTORIES):
        with numbered(number):
            lived(monkeypatch, FleetWorld(number))


def test_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number in range(FIRST, FIRST + HISTORIES // 3):
        world = MachineWorld(number, tmp_path)
        try:
            with numbered(number):
                lived(monkeypatch, world)
        finally:
            world.counters.close()
            world.another_life(is_empty=True)


@pytest.mark.parametrize("kind", REMOTE)
def test_real_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counting: CountingEngines, kind: str) -> None:
    for number in range(FIRST, FIRST + max(HISTORIES // 75, 2)):
        world = EngineWorld(number, counting, kind, tmp_path)
        try:
            with numbered(number):
                lived(monkeypatch, world)
        finally:
            world.open.__exit__(None, None, None)


def test_periods_follow_each_other_in_every_zone() -> None:
    """Whatever the clocks do there: a moment is in one period, and where it ends the next one begins."""
    zones = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana", "Pacific/Kiritimati")
    for zone in zones:
        for per in ("hour", "day", "week", "month"):
            moment = START
            while moment < START + (40 if per == "hour" else 500) * 86_400.0:
                since, until = period_of(per, zone, moment)
                assert since <= moment < until
                assert period_of(per, zone, until - 0.5) == (since, until)
                assert period_of(per, zone, until)[0] == until
                moment = until


def told(account: int, holder: str, number: int, used: int, epoch: str, least: int = 0) -> Claim:
    return Claim(account, holder, number, Facts(used), least, least, 100, 1, epoch)


@pytest.mark.parametrize("kind", REMOTE)
def test_rows_that_come_when_their_holder_has_long_ended_count(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """Its machine did not reach the store for a day and more. The counters never heard of these rows: a budget of a
    month had so much too much left."""
    rows = {4: {"a": 10}}
    ended: set[str] = set()
    live = {"a", "late"}
    seed = Seed(0, {"a": 10, "late": 0})
    opened = counting.open(kind, tmp_path, lambda account: seed, lambda: live, lambda: 1_000.0, ended=lambda: ended)
    with opened as counters:
        assert isinstance(counters, RemoteCounters)
        epoch = counters.greet("a")
        counters.greet("late")
        for holder, used in (("a", 10), ("late", 30)):
            assert counters.take(told(4, holder, 1, used, epoch)).outcome == "granted"
        ended.add("late")
        live.remove("late")
        for forgotten in (False, True):
            counters.sweep(lambda accounts: rows)
            assert counters.totals([4]) == {4: 10 + rows[4].get("late", 0)}
            rows[4]["late"] = 25 if forgotten else 20
            counters.sweep(lambda accounts: rows)
            assert counters.totals([4]) == {4: 10 + rows[4]["late"]}
            ended.clear()


@pytest.mark.parametrize("is_asked", [False, True])
@pytest.mark.parametrize("kind", REMOTE)
def test_who_is_forgotten_and_announces_itself_is_counted_once(
    tmp_path: Path, counting: CountingEngines, kind: str, is_asked: bool
) -> None:
    """It does not know yet that others took it for ended when a life of the counters begins. Its rows were counted, and
    what it announced beside them."""
    rows = {4: {"a": 10, "gone": 30}}
    seed = Seed(30, {"a": 10})
    opened = counting.open(kind, tmp_path, lambda account: seed, lambda: {"a"}, lambda: 1_000.0)
    with opened as counters:
        assert isinstance(counters, RemoteCounters)
        epoch = counters.greet("a", [told(4, "a", 1, 10, "")])
        if is_asked:
            assert counters.take(told(4, "a", 2, 10, epoch)).outcome == "granted"
        counters.greet("gone", [told(4, "gone", 7, 30, "")])
        counters.greet("a")
        lease = counters.take(told(4, "a", 3, 10, epoch, least=5))
        assert (lease.outcome, lease.others) == ("granted", 60)  # until a shipper has looked
        for _ in range(2):
            counters.sweep(lambda accounts: rows)
            assert counters.totals([4]) == {4: 45}


def test_what_stands_in_no_row_is_told_in_a_new_life_of_a_machine(tmp_path: Path) -> None:
    """The file was lost: who had told of its requests had nothing new to tell, and others were given their places."""
    clock = [1_000.0]
    charge = charge_of(Quota("all", "", "concurrent", 2), "", START)
    need = Need(charge, 1)
    counters = SqliteCounters(
        tmp_path / "counters.sqlite", seeds=lambda accounts: dict.fromkeys(accounts, Seed()),
        adjusted=lambda account: 0, live=lambda: {"a", "b"}, leasing=lambda: {"a", "b"}, now=lambda: clock[0],
    )  # fmt: skip
    first, other = (budgets.Budgets(counters, name, now=lambda: clock[0]) for name in ("a", "b"))
    first.greet()
    other.greet()
    assert first.admit([need]) is None
    assert first.admit([need]) is None
    for _ in range(100):
        clock[0] += 1.0
        first.tick(START)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{tmp_path / 'counters.sqlite'}{suffix}").unlink(missing_ok=True)
    for _ in range(200):
        clock[0] += 1.0
        assert other.admit([need]) is not None
        first.tick(START)
    counters.close()


def test_who_ended_is_counted_once_while_its_journal_is_there(tmp_path: Path) -> None:
    """It is kept for an hour by the wall clock, which was ahead when it was written."""
    clock, live = [1_000.0], {"a", "gone"}
    rows = {4: {"gone": 30}}
    counters = SqliteCounters(
        tmp_path / "counters.sqlite", seeds=lambda accounts: {4: Seed(0, {"a": 0, "gone": 30})},
        adjusted=lambda account: 0, live=lambda: live, leasing=lambda: live, ended=lambda: {"gone"} - live,
        now=lambda: clock[0],
    )  # fmt: skip
    epoch = counters.look()
    counters.greet("gone")
    assert counters.take(told(4, "a", 1, 0, epoch)).outcome == "granted"
    live.remove("gone")
    for _ in range(4):
        counters.sweep(lambda accounts: rows)
        assert counters.totals([4]) == {4: 30}
        clock[0] += 0.9 * 86_400.0
    counters.close()


@pytest.mark.parametrize("kind", REMOTE)
def test_a_place_is_kept_while_a_machine_does_not_reach_the_store(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """Its worker reaches the counters; it had nothing to tell, seemed silent, and its machine seemed lost."""
    clock = [1_000.0]
    charge = charge_of(Quota("all", "", "concurrent", 1), "", START)
    live = {"a", "b"}
    opened = counting.open(kind, tmp_path, lambda account: Seed(), lambda: live, lambda: clock[0])
    with opened as counters:
        assert isinstance(counters, RemoteCounters)
        counters._roster.lost = lambda: {"a"}  # type: ignore[method-assign]
        first, other = (budgets.Budgets(counters, name, now=lambda: clock[0]) for name in ("a", "b"))
        first.greet()
        other.greet()
        assert first.admit([Need(charge, 1)]) is None
        for _ in range(200):
            clock[0] += 1.0
            first.tick(START)
        counters.sweep(lambda accounts: {})
        assert other.admit([Need(charge, 1)]) is not None
        first.settle(Need(charge, 1), 0)
        clock[0] += 1.0
        assert other.admit([Need(charge, 1)]) is None
