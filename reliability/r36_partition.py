"""L8, partitioned: the network between gateways and their PostgreSQL loses packets, both ways or one, for all
machines or for one of two. No request fails, each has its row once, all is delivered soon after.

    .venv/bin/python -m reliability.r36_partition [--long 60] [--short 30]

Each gateway is a machine with a network of its own (`reliability/network.py`), so nothing is reset or refused: what is
sent vanishes. In the first line a relay stands between them, which takes connections and bytes and passes nothing on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from reliability import engines, network
from reliability.engines import PostgreSQL
from reliability.network import Here, Link, Machine, Swallowing
from reliability.r25_ledger import Counting
from reliability.r31_store_away import Fleet, fleet, told_of
from reliability.row import Result, Scale, percentile, run_alone

_MACHINES: Final = 2
_CALLERS: Final = 24
_LEAST_A_SECOND: Final = 200
_SOON: Final = 30.0
#: For so long a machine that is cut off may hold up another: what it had begun, the server ends after ten seconds.
_OTHERS_SECONDS: Final = 14.0


class Loss(NamedTuple):
    """What vanishes, for how many machines, for how long."""

    words: str
    seconds: float
    machines: int = _MACHINES
    queries: bool = True
    answers: bool = True


def losses(long: float, short: float) -> tuple[Loss, ...]:
    """All that are tried, one after the other."""
    return (
        Loss("both directions", short),
        Loss("both directions", long),
        Loss("what is asked", short, answers=False),
        Loss("what is answered", short, queries=False),
        Loss("both directions of one machine", short, machines=1),
        Loss("what one machine is answered", short, machines=1, queries=False),
    )


async def drill(server: PostgreSQL, places: Sequence[tuple[Here, str]], links: Sequence[Link | Swallowing],
                lost: Loss) -> Result:  # fmt: skip
    """One loss, under load."""
    async with fleet(server, places, callers=_CALLERS) as each:
        await asyncio.sleep(3.0)
        began, asked = time.monotonic(), len(Counting.asked)
        for link in links[: lost.machines]:
            link.cut(queries=lost.queries, answers=lost.answers)
        until = time.monotonic() + lost.seconds
        others = 0
        while time.monotonic() < until:
            await asyncio.sleep(min(2.0, until - time.monotonic()))
            waits = Counter(name[2:3] for name in Counting.asked.keys() - (await asyncio.to_thread(each.rows)).keys())
            others = max(others, sum(waits[b"%d" % place] for place in range(lost.machines, len(links))))
        waiting = waits.total()
        for link in links:
            link.heal()
        after = await each.delivered(set(Counting.asked), 120.0)
        rate = (len(Counting.asked) - asked) / (time.monotonic() - began)
        await asyncio.sleep(2.0)
        each.stop.set()
        await asyncio.sleep(1.0)
        told = f"{waiting} waited at the end of the {lost.seconds:.0f} s, delivered {after:.1f} s after"
        if lost.machines < len(links):
            told += f"; of the machine that was not cut off, {others} waited at most"
        result = await asyncio.to_thread(_judged, each, lost, rate, told)
        is_others = others <= _OTHERS_SECONDS * rate / len(links)
        return result._replace(passed=result.passed and after <= _SOON and waiting > 0 and is_others)


def _judged(each: Fleet, lost: Loss, rate: float, told: str) -> Result:
    found, seconds = each.settled()
    failed = each.outcomes["refused"] + each.outcomes["broken"]
    p99 = percentile(each.seconds, 0.99) * 1000
    words = f"{rate:.0f} requests/s, {failed} failed, p99 {p99:.0f} ms; {told}"
    result = told_of("L8", each, found, each.rows(), seconds, words)
    passed = result.passed and not failed and rate >= _LEAST_A_SECOND
    goal = f"partitioned, {lost.words}: 0 failed at {_LEAST_A_SECOND}/s, delivered in {_SOON:.0f} s, {result.goal}"
    return result._replace(goal=goal, passed=passed)


def with_links(lost: Sequence[Loss]) -> Iterator[Result]:
    """Machines with networks of their own."""
    for loss in lost:
        with ExitStack() as stack:
            machines = [stack.enter_context(Machine()) for _ in range(_MACHINES)]
            links = [Link(machine) for machine in machines]
            server = stack.enter_context(PostgreSQL(is_durable=True, hosts=[link.host for link in links]))
            places = [(machine, server.address_at(link.host)) for machine, link in zip(machines, links, strict=True)]
            yield asyncio.run(drill(server, places, links, loss))


def with_relay(seconds: float) -> Result:
    """Connections are taken and nothing is answered: whoever stands before the PostgreSQL lives."""
    with ExitStack() as stack:
        server = stack.enter_context(PostgreSQL(is_durable=True))
        relays = [stack.enter_context(Swallowing(server.port)) for _ in range(_MACHINES)]
        places = [(Here(), server.address.replace(f":{server.port}/", f":{relay.port}/")) for relay in relays]
        return asyncio.run(drill(server, places, relays, Loss("a relay that takes all and passes nothing on", seconds)))


def measure(scale: Scale, long: float | None = None, short: float | None = None) -> Iterator[Result]:
    """Each loss on engines and machines of its own."""
    if engines.MISSING:
        yield Result("L8", "partitioned", f"not tried: {engines.MISSING}", False)
        return
    long, short = long or scale.pick(60, 8), short or scale.pick(30, 6)
    yield with_relay(short)
    if network.MISSING:
        yield Result("L8", "partitioned: packets vanish", f"not tried: {network.MISSING}", False)
        return
    yield from with_links(losses(long, short))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"long": 60.0, "short": 30.0}))
