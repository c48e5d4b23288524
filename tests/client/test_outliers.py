"""One of three targets goes bad under load: what its callers see, by a simulated clock."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from dragoman.events import Failure
from dragoman.routing.circuit_breaker import OPEN_SECONDS
from dragoman.routing.retry import MOST_ATTEMPTS, WINDOW
from dragoman.routing.target import Chain
from simulated import Behave, make_chain, simulate

RATE = 200
SECONDS = 60
BAD, HEALS = 10.0, 40.0
LATENCY = 0.05


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return make_chain(tmp_path_factory.mktemp("outliers"), "abc")


def is_bad(target: str, now: float) -> bool:
    return target == "a/m" and BAD <= now < HEALS


def killed(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
    return (Failure("connection", "refused"), 0.001) if is_bad(target, now) else (None, LATENCY)


def flaky(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
    fails = is_bad(target, now) and dice.random() < 0.2
    return (Failure("internal", "oops", 500) if fails else None), LATENCY


def slow(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
    return None, LATENCY * (10 if is_bad(target, now) else 1)


@pytest.mark.parametrize("behave", [killed, flaky, slow])
def test_no_caller_sees_that_one_of_three_went_bad(behave: Behave, chain: Chain) -> None:
    assert simulate(chain, behave, seconds=SECONDS).errors == []


@pytest.mark.parametrize("behave", [killed, flaky])
def test_a_bad_target_is_asked_by_a_probe_only_and_comes_back_soon(behave: Behave, chain: Chain) -> None:
    sent = simulate(chain, behave, seconds=SECONDS).by_second()
    assert sent["a/m", int(BAD) - 1] == RATE
    while_bad = sum(sent["a/m", second] for second in range(int(BAD) + 2, int(HEALS)))
    if behave is killed:
        assert while_bad <= (HEALS - BAD) / OPEN_SECONDS + 1, "one probe at a time"
    else:
        assert while_bad < 0.6 * RATE * (HEALS - BAD), "four probes of five find it well"
    assert sent["a/m", int(HEALS) + 10] == RATE, "back within ten seconds"


def test_wrong_requests_of_clients_eject_nobody(chain: Chain) -> None:
    def wrong(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
        return (Failure("bad_request", "no such option", 400) if dice.random() < 0.5 else None), LATENCY

    assert {target for _, _, target in simulate(chain, wrong, seconds=10).sent} == {"a/m"}


def test_the_last_target_is_never_ejected(chain: Chain) -> None:
    def dead(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
        return Failure("connection", "refused"), 0.001

    seen = simulate(chain, dead, seconds=10)
    assert len(seen.errors) == 10 * RATE
    assert sum(target == "c/m" for _, _, target in seen.sent) >= 10 * RATE
    assert len(seen.sent) <= 1.35 * 10 * RATE, "retries within the budget, and the probes of the others"


@pytest.mark.parametrize(("share", "waits"), [(0.5, None), (0.5, 1.0), (0.5, 30.0), (1.0, None), (0.05, None)])
def test_a_provider_in_trouble_is_not_buried(
    share: float, waits: float | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two minutes at 200 requests a second against a lone provider that fails a share of them."""

    def failing(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
        return (Failure("overloaded", "busy", 503, waits) if dice.random() < share else None), 0.001

    seen = simulate(make_chain(tmp_path_factory.mktemp("lone"), "a"), failing, seconds=120)
    assert max(Counter(number for _, number, _ in seen.sent).values()) <= MOST_ATTEMPTS
    assert seen.most_within(WINDOW, until=120.0) <= 1.2 * RATE * WINDOW
    if share == 0.05:  # of a healthy share every failure is tried again
        assert len(seen.errors) < 0.001 * 120 * RATE
