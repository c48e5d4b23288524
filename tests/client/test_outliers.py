"""One of three targets goes bad under load: what its callers see, by a simulated clock."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import pytest

from dragoman.client.breaker import OPEN_SECONDS
from dragoman.client.course import Course
from dragoman.client.resolver import resolve_chain
from dragoman.client.standings import Standings
from dragoman.client.target import Chain
from dragoman.config import load_config
from dragoman.events import Failure, Finish

RATE = 200
SECONDS = 60
BAD, HEALS = 10.0, 40.0
LATENCY = 0.05
ANSWER = Finish("stop")

#: (target, time, dice) → the failure of a request that is sent to it then, None for an answer, and how long it takes.
Behave = Callable[[str, float, random.Random], tuple[Failure | None, float]]


class Seen(NamedTuple):
    """Requests to each target by second, and the times at which callers were told of a failure."""

    sent: Counter[tuple[str, int]]
    errors: list[float]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    file = tmp_path_factory.mktemp("outliers") / "dragoman.toml"
    providers = "".join(
        f'[providers.{name}]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n' for name in "abc"
    )
    file.write_text(f'{providers}[routes.r]\ntargets = ["a/m", "b/m", "c/m"]\n')
    return resolve_chain("r", load_config(file, environ={}, home=file.parent))


def simulate(chain: Chain, behave: Behave, *, seconds: int = SECONDS) -> Seen:
    """RATE requests a second along the chain."""
    dice = random.Random(11)
    standings = Standings()
    seen = Seen(Counter(), [])
    queue: list[tuple[float, int, str, Course]] = []
    for number in range(seconds * RATE):
        course = Course(chain, standings, log=lambda line: None)
        heapq.heappush(queue, (number / RATE, number, "begin", course))
    ends: dict[int, Failure | None] = {}
    while queue:
        now, number, step, course = heapq.heappop(queue)
        if step == "begin":
            course.begin(now)
            step = "send"
        if step == "send":
            course.sent(now)
            seen.sent[course.target.name, int(now)] += 1
            ends[number], takes = behave(course.target.name, now, dice)
            heapq.heappush(queue, (now + takes, number, "end", course))
            continue
        failure = ends[number]
        if failure is None:
            course.ended(ANSWER, now)
            continue
        delay = course.failed(failure, now=now, random=dice.random(), most_wait=3_600.0)
        if delay is None:
            seen.errors.append(now)
        else:
            heapq.heappush(queue, (now + delay, number, "send", course))
    return seen


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
    assert simulate(chain, behave).errors == []


@pytest.mark.parametrize("behave", [killed, flaky])
def test_a_bad_target_is_asked_by_a_probe_only_and_comes_back_soon(behave: Behave, chain: Chain) -> None:
    sent = simulate(chain, behave).sent
    before = sent["a/m", int(BAD) - 1]
    assert before == RATE
    while_bad = sum(sent["a/m", second] for second in range(int(BAD) + 2, int(HEALS)))
    if behave is killed:
        assert while_bad <= (HEALS - BAD) / OPEN_SECONDS + 1, "one probe at a time"
    else:
        assert while_bad < 0.6 * RATE * (HEALS - BAD), "four probes of five find it well"
    assert sent["a/m", int(HEALS) + 10] == RATE, "back within ten seconds"


def test_wrong_requests_of_clients_eject_nobody(chain: Chain) -> None:
    def wrong(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
        return (Failure("bad_request", "no such option", 400) if dice.random() < 0.5 else None), LATENCY

    sent = simulate(chain, wrong, seconds=10).sent
    assert {target for target, _ in sent} == {"a/m"}


def test_the_last_target_is_never_ejected(chain: Chain) -> None:
    def dead(target: str, now: float, dice: random.Random) -> tuple[Failure | None, float]:
        return Failure("connection", "refused"), 0.001

    seen = simulate(chain, dead, seconds=10)
    assert len(seen.errors) == 10 * RATE
    assert sum(count for (target, _), count in seen.sent.items() if target == "c/m") >= 10 * RATE
    assert sum(seen.sent.values()) <= 1.35 * 10 * RATE, "retries within the budget, and the probes of the others"
