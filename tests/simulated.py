"""Load on targets by a simulated clock: every decision is the real one, only time and network are made up."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dragoman.config import load_config
from dragoman.events import Failure, Finish
from dragoman.routing.attempts import Attempts
from dragoman.routing.resolve import resolve_chain
from dragoman.routing.target import Chain
from dragoman.routing.target_health import HealthTable

ANSWER = Finish("stop")

#: (target, time in seconds, dice) → the failure of a request that is sent to it then, None for an answer, and how many
#: seconds it takes.
Behave = Callable[[str, float, random.Random], tuple[Failure | None, float]]


class Seen(NamedTuple):
    """(time, number of the request, target) of all that was sent, and when callers were told of a failure."""

    sent: list[tuple[float, int, str]]
    errors: list[float]

    def by_second(self) -> Counter[tuple[str, int]]:
        """Requests to each target in each second."""
        return Counter((target, int(now)) for now, _, target in self.sent)

    def most_within(self, seconds: float, *, until: float) -> int:
        """The most requests that were sent within any so many seconds, of those that are full."""
        times = sorted(now for now, _, _ in self.sent)
        most = left = 0
        for right, now in enumerate(times):
            while times[left] <= now - seconds:
                left += 1
            if seconds <= now <= until:
                most = max(most, right - left + 1)
        return most


def make_chain(folder: Path, names: str) -> Chain:
    """A route over a target of each of these letters."""
    file = folder / "dragoman.toml"
    providers = "".join(
        f'[providers.{name}]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n' for name in names
    )
    targets = ", ".join(f'"{name}/m"' for name in names)
    file.write_text(f"{providers}[routes.r]\ntargets = [{targets}]\n")
    return resolve_chain("r", load_config(file, environ={}, home=folder))


def simulate(chain: Chain, behave: Behave, *, seconds: int, rate: int = 200) -> Seen:
    """`rate` requests a second along the chain, for so long."""
    dice = random.Random(11)
    health_table = HealthTable()
    seen = Seen([], [])
    courses = [Attempts(chain, health_table, log=lambda line: None) for _ in range(seconds * rate)]
    ends: dict[int, Failure | None] = {}
    queue = [(number / rate, number, "begin") for number in range(len(courses))]
    while queue:
        now, number, step = heapq.heappop(queue)
        course = courses[number]
        if step == "end":
            failure = ends[number]
            if failure is None:
                course.ended(ANSWER, now)
                continue
            delay = course.failed(failure, now=now, random=dice.random(), most_wait=3_600.0)
            if delay is None:
                seen.errors.append(now)
            else:
                heapq.heappush(queue, (now + delay, number, "send"))
            continue
        if step == "begin":
            course.begin(now)
        course.sent(now)
        seen.sent.append((now, number, course.target.name))
        ends[number], takes = behave(course.target.name, now, dice)
        heapq.heappush(queue, (now + takes, number, "end"))
    return seen
