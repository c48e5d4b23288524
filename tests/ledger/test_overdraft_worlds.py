"""What is served while nobody counts is the overdraft at most, whoever joins, dies, is cut off or comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.interfaces import Claim, Facts, Seed
from dragoman.ledger.limits.leases import SILENT_SECONDS
from for_each import for_each
from ledger.counting_engines import KINDS, REMOTE, CountingEngines
from ledger.leases_model import Wrong
from ledger.overdraft_model import (
    LIMIT,
    LOOK_EVERY,
    OVERDRAFT,
    OVERDRAFT_FAULTS,
    OverdraftFault,
    OverdraftWorld,
    Plan,
    Step,
    made_up,
)
from profiles import IS_SOAK

HISTORIES = 100_000
#: Of these, what `make test` plays: each fault that is put back is found among them.
PLAYED = 300
#: Where each fault was found: of these histories it is looked for there first, and in all where they have changed.
FOUND_AT: Final[dict[OverdraftFault, int]] = {
    "who never asked is not folded": 4, "parts by the list alone": 17, "nobody asks the ledger": 166,
    "a used part is given up": 17, "silent when it is written": 84, "long attempts are not told": 120,
    "a first look expires": 122, "a failed look is forgotten": 290, "what nobody answered was told": 20,
}  # fmt: skip
#: Histories in which somebody used too much once, without the steps that do not matter, and what is said of it.
FOUND: Final[dict[str, list[Step]]] = {
    # The counters were told of less, gave the rest to others, and the worker used its overdraft beyond what it had
    # used before.
    "ended for less while a life began": [
        (15, 5, 117), (3, 9, 449), (14, 9, 300), (1, 6, 683), (15, 0, 640), (5, 0, 397), (10, 2, 744), (5, 5, 332),
        (13, 3, 702), (3, 3, 73), (7, 3, 617), (3, 0, 697),
    ],
    # The worker took the counters for knowing what it told before, so what it needed no more stayed leased.
    "ended for less, and the answer before was lost": [
        (2, 6, 520), (7, 1, 469), (0, 0, 555), (15, 0, 500), (3, 2, 249), (5, 6, 120), (14, 4, 174),
    ],
    # Others had it, and the worker's overdraft began behind all that it had used within the lease.
    "ended for less after the lease": [
        (8, 9, 1), (3, 9, 482), (8, 9, 2), (6, 0, 488), (3, 0, 96), (0, 9, 508), (0, 0, 486), (8, 0, 1), (6, 0, 110),
        (1, 0, 486), (5, 0, 500), (13, 6, 434), (13, 5, 586), (3, 8, 756), (3, 1, 672), (7, 0, 1), (3, 7, 676),
    ],
}  # fmt: skip
_LEASED: Final[list[Step]] = [(0, 5, 823), (0, 5, 726), (0, 4, 581), (0, 2, 758), (7, 0, 0), (13, 2, 3)]
_BACK: Final[list[Step]] = [(7, 0, 2), (12, 2, 2)]
_USED: Final[list[Step]] = [(3, 1, 0), (3, 2, 0), (13, 2, 3), (7, 0, 0), (3, 2, 0)]
#: The counters came back after 90 s, and a shipper looked before a worker could tell; after two times, the same.
BACK_AFTER_SILENCE: Final[dict[OverdraftFault, list[Step]]] = {
    "a first look expires": [*_LEASED, *_BACK, *_USED],
    "a failed look is forgotten": [*_LEASED, *_BACK, (7, 0, 0), (13, 2, 1), *_BACK, *_USED],
}


@for_each("steps", FOUND.values())
def test_what_was_used_too_often_once_is_used_once(steps: list[Step]) -> None:
    OverdraftWorld().play(steps)


@for_each("fault, steps", BACK_AFTER_SILENCE.items())
def test_who_was_cut_off_with_everybody_tells_before_anybody_is_taken_for_silent(
    fault: OverdraftFault, steps: list[Step]
) -> None:
    OverdraftWorld().play(steps)
    with pytest.raises(Wrong):
        OverdraftWorld(fault).play(steps)


def test_no_more_than_the_limit_and_the_overdraft_is_used() -> None:
    _play_each(range(PLAYED))


@pytest.mark.soak
def test_no_more_than_the_limit_and_the_overdraft_is_used_in_many_histories() -> None:
    _play_each(range(PLAYED, HISTORIES if IS_SOAK else 2 * PLAYED))


def _play_each(numbers: range) -> None:
    for number in numbers:
        try:
            OverdraftWorld().play(made_up(number))
        except Wrong as problem:
            raise AssertionError(f"history {number}: {problem}") from None


class _RealWorld(OverdraftWorld):
    """One history in real counters, with what shippers do."""

    def __init__(self, engines: CountingEngines, kind: str, root: Path) -> None:
        self._engines, self._kind, self._root = engines, kind, root
        self.open = engines.open(
            kind, root, self.seed, self.live, lambda: self.now, ended=lambda: set(self.ended)
        )  # fmt: skip
        self.workers = []
        super().__init__(counters=self.open.__enter__())

    def sweep(self) -> None:
        expires = self.expires()
        sweep = self.counters.sweep
        if isinstance(self.counters, RemoteCounters):
            sweep = partial(sweep, expires=expires)
        sweep(
            lambda accounts: {
                account: {each.name: each.rows.get(account, 0) for each in self.workers} for account in accounts
            }
        )
        self.parts.update(dict.fromkeys(self.ended, 0))

    def do(self, plan: Plan) -> None:
        self.sweep()

    def restart(self) -> None:
        self._engines.another_life(self._kind, self._root, is_empty=True)


@pytest.mark.parametrize("kind", KINDS)
def test_so_it_is_with_real_counters(
    tmp_path_factory: pytest.TempPathFactory, counting: CountingEngines, kind: str
) -> None:
    histories = [*FOUND.values(), *BACK_AFTER_SILENCE.values()]
    histories += map(made_up, range(1_000 if IS_SOAK else 4))
    for number, steps in enumerate(histories):
        world = _RealWorld(counting, kind, tmp_path_factory.mktemp("world"))
        try:
            world.play(steps)
        except Wrong as problem:
            raise AssertionError(f"history {number}: {problem}") from None
        finally:
            world.open.__exit__(None, None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_who_overdrew_what_it_never_asked_for_and_died_is_counted(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """The account was filled before the worker began: it has no share there, and its rows are all that tells of it."""
    world = _RealWorld(counting, kind, tmp_path)
    account = world.charge(0).account
    try:
        world.admit(world.workers[0], 0, LIMIT - 10)
        world.begin()
        late = world.workers[-1]
        for _ in range(9):
            for each in world.workers:
                world.tick(each)
        late.link.lost = "questions"
        world.admit(late, 0, OVERDRAFT // 3)
        assert late.used(account) == OVERDRAFT // 3
        world.die(late)
        world.deliver(late)
        world.sweep()
        assert world.counters.totals([account]) == {account: LIMIT - 10 + OVERDRAFT // 3}
        world.end()
    finally:
        world.open.__exit__(None, None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_attempt_that_goes_on_for_long_keeps_what_is_set_apart(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """Its lease is no more than it needs, so its worker had nothing to tell, seemed silent, and others were given it:
    no row says yet what a first request costs."""
    world = _RealWorld(counting, kind, tmp_path)
    account = world.charge(0).account
    try:
        first, other = world.workers
        world.admit(first, 0, LIMIT - 10)
        for _ in range(3):
            for second in range(int(SILENT_SECONDS) + 1):
                world.tick(first)
                if second % LOOK_EVERY == 0:
                    world.sweep()
            world.admit(other, 0, 20)
            assert other.used(account) == 0
        world.end()
    finally:
        world.open.__exit__(None, None, None)


@pytest.mark.parametrize("kind", REMOTE)
def test_a_shipper_that_stood_still_takes_nothing_that_was_leased_since(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """It saw somebody silent, and writes what that one used when it asked again meanwhile, and is silent once more."""
    clock = [1_000.0]
    seed = Seed()
    with counting.open(kind, tmp_path, lambda account: seed, lambda: {"a"}, lambda: clock[0]) as counters:
        assert isinstance(counters, RemoteCounters)
        epoch = counters.greet("a")
        for number, used in enumerate((10, 50), 1):
            since = clock[0] - SILENT_SECONDS
            assert counters.take(Claim(4, "a", number, Facts(used), 0, 0, 100, 1, epoch)).outcome == "granted"
            clock[0] += 2 * SILENT_SECONDS
        counters._place.expire(4, "a", 10, since)
        assert counters.totals([4]) == {4: 50}
        counters._place.expire(4, "a", 40, clock[0] - SILENT_SECONDS)
        assert counters.totals([4]) == {4: 40}


class _Tidied:
    """A `Place`; something happens after it was tidied."""

    def __init__(self, place: Any, then: Callable[[], None]) -> None:
        self._place, self._then = place, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)

    def tidy(self) -> None:
        self._place.tidy()
        self._then()


@pytest.mark.parametrize("kind", REMOTE)
def test_who_ended_is_counted_once_when_two_shippers_look_after_some_days(
    tmp_path: Path, counting: CountingEngines, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One forgets the share of who ended, and another one looks before the holder is forgotten, too: it looked like one
    who used the account and never asked."""
    clock, ended = [1_000.0], {"gone"}
    seed = Seed(0, {"a": 0})
    rows = {4: {"a": 10, "gone": 30}}
    opened = counting.open(
        kind, tmp_path, lambda account: seed, lambda: {"a"}, lambda: clock[0], ended=lambda: set(ended)
    )
    with opened as counters:
        assert isinstance(counters, RemoteCounters)
        place, roster = counters._place, counters._roster
        other = RemoteCounters(place, roster)
        monkeypatch.setattr(roster, "release", ended.difference_update, raising=False)
        epoch = counters.greet("a")
        assert counters.take(Claim(4, "a", 1, Facts(10), 0, 0, 100, 1, epoch)).outcome == "granted"
        counters.sweep(lambda accounts: rows)
        assert counters.totals([4]) == {4: 40}
        ended.add("gone")
        clock[0] += 3 * 86_400.0
        counters._place = _Tidied(place, lambda: other.sweep(lambda accounts: rows))  # type: ignore[assignment]
        counters.sweep(lambda accounts: rows)
        assert counters.totals([4]) == {4: 40}


@pytest.mark.parametrize("kind", REMOTE)
def test_who_ended_before_an_account_was_filled_is_remembered_from_then(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """It told what it used at the beginning of a life, and nobody asked for the account until two days later."""
    clock, ended = [1_000.0], {"gone"}
    seed = Seed(30, {"a": 0}, frozenset(ended))
    rows = {4: {"gone": 30}}
    opened = counting.open(kind, tmp_path, lambda account: seed, lambda: {"a"}, lambda: clock[0], ended=lambda: ended)
    with opened as counters:
        assert isinstance(counters, RemoteCounters)
        epoch = counters.greet("gone", [Claim(4, "gone", 1, Facts(30), 0, 0, 100, 1, "")])
        clock[0] += 1.9 * 86_400.0
        assert counters.take(Claim(4, "a", 1, Facts(), 0, 0, 100, 1, epoch)).outcome == "granted"
        clock[0] += 0.2 * 86_400.0  # the holder has ended less than a day ago
        for _ in range(3):
            counters.sweep(lambda accounts: rows)
            assert counters.totals([4]) == {4: 30}


@pytest.mark.parametrize("fault", OVERDRAFT_FAULTS)
def test_each_fault_that_was_put_back_is_found(fault: OverdraftFault) -> None:
    for number in (FOUND_AT.get(fault, 0), *range(PLAYED)):
        try:
            OverdraftWorld(fault).play(made_up(number))
        except Wrong:
            return
    raise AssertionError(f"{PLAYED} histories, and nobody noticed: {fault}")
