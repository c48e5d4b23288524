"""L9: the Valkey that counts a budget of two machines is away: with `on_outage = "refuse"` nothing is overspent, with
`serve` the overdraft at most. So it is where it is ended and comes back empty, and where the network between it and the
machines loses packets, both ways or one.

    .venv/bin/python -m reliability.r34_counters_away [--away 60] [--cut 30]

It is away twice: while half of the budget is spent, and when all of it is, so that what is served then is overspent.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

from dragoman.config.quotas import Quota
from dragoman.ledger.limits.accounts import charge_of
from reliability import engine_valkey, engines, network
from reliability.network import Machine, serve
from reliability.r26_budget import NANO_PER_TOKEN, TOKENS, Billing
from reliability.r32_shared_budget import Fleet, standing, until_settled
from reliability.row import Result, Scale, run_alone

_CALLS = 400
_OVERDRAFT = 80
_CALLERS = 12
_PACE = 0.2
_WORKERS = 2


async def drill(
    policy: str, away: float, *, lost: str = "", calls: int = _CALLS, overdraft: int = _OVERDRAFT
) -> Result:
    """Callers ask on a budget for so many calls, while its counters go and come back, empty. `lost`: they stay, and
    these packets vanish (`queries`, `answers`, `both`)."""
    Billing.tokens.clear()
    cost = TOKENS * NANO_PER_TOKEN
    limit = calls * cost
    account = charge_of(Quota("all", "", "usd", limit // 1_000, "month"), "", time.time()).account
    more = f'on_outage = "{policy}"\n' + (f"overdraft = {overdraft * cost / 1e9}\n" if policy == "serve" else "")
    statuses: Counter[int] = Counter()
    with ExitStack() as stack:
        machines = [stack.enter_context(Machine()) for _ in "12"] if lost else []
        fleet = await asyncio.to_thread(Fleet, "valkey", stack, machines)
        port, providers = await serve(fleet.machines, Billing)
        await asyncio.to_thread(fleet.start, port, limit / 1e9, more, workers=_WORKERS)
        stop = asyncio.Event()
        callers = [asyncio.create_task(_call(fleet, statuses, stop)) for _ in range(_CALLERS)]
        served = []
        for share in (0.5, 1.0):
            await _until_spent(int(calls * share))
            before = len(Billing.tokens)
            await asyncio.to_thread(_leave, fleet, lost)
            await asyncio.sleep(away)
            served.append(len(Billing.tokens) - before)
            await asyncio.to_thread(_return, fleet, lost)
        await asyncio.sleep(8.0)  # who found it away asks again within four seconds
        stop.set()
        await asyncio.gather(*callers)
        await asyncio.to_thread(until_settled, fleet.folders, account)
        leased, spent, found = await asyncio.to_thread(standing, fleet.folders[0], account)
    for provider in providers:
        provider.close()
    billed = len(Billing.tokens)
    over = billed - calls
    words = (
        f"{sum(statuses.values())} requests ({statuses[200]} answered, {statuses[429]} refused, {statuses[503]} of "
        f"503, {statuses[0]} cut), {billed} calls billed of {calls}: overspent {over} calls; in the {away:g} s "
        f"{served[0]} calls were served with half of the budget spent, {served[1]} with all of it; then leases "
        f"{leased // cost}, spend {spent // cost}, rows {found // cost} calls; 2 machines of {_WORKERS} workers"
    )
    most = overdraft if policy == "serve" else 0
    passed = over <= most and served[1] <= most and leased == spent == found == billed * cost
    passed = passed and (policy == "refuse" or served[1] > 0)
    goal = f"overspend ≤ {most} calls, the overdraft" if most else "overspend 0"
    what = {"": "ended", "both": "cut off"}.get(lost, f"its {lost} cut off")
    return Result("L9", f"Valkey {what}, {policy}: {goal}", words, passed)


def _leave(fleet: Fleet, lost: str) -> None:
    assert fleet.valkey is not None
    if not lost:
        fleet.valkey.kill()
    for link in fleet.counter_links:
        link.cut(queries=lost != "answers", answers=lost != "queries")


def _return(fleet: Fleet, lost: str) -> None:
    assert fleet.valkey is not None
    if not lost:
        fleet.valkey.start(is_empty=True)
    for link in fleet.counter_links:
        link.heal()


async def _call(fleet: Fleet, statuses: Counter[int], stop: asyncio.Event) -> None:
    while not stop.is_set():
        statuses[await fleet.ask()] += 1
        await asyncio.sleep(random.uniform(0, 2 * _PACE))


async def _until_spent(calls: int) -> None:
    until = time.monotonic() + 120
    while len(Billing.tokens) < calls and time.monotonic() < until:
        await asyncio.sleep(0.02)


def measure(scale: Scale, away: float | None = None, cut: float | None = None) -> Iterator[Result]:
    """Both words of the quota."""
    if engines.MISSING or engine_valkey.MISSING:
        yield Result("L9", "Valkey away", f"not tried: {engines.MISSING or engine_valkey.MISSING}", False)
        return
    for policy in ("refuse", "serve"):
        yield asyncio.run(drill(policy, away or scale.pick(60, 6)))
    if network.MISSING:
        yield Result("L9", "Valkey cut off", f"not tried: {network.MISSING}", False)
        return
    for policy, lost in (("refuse", "both"), ("serve", "both"), ("refuse", "answers"), ("refuse", "queries")):
        yield asyncio.run(drill(policy, cut or scale.pick(30, 6), lost=lost))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"away": 60.0, "cut": 30.0}))
