"""L9: the Valkey that counts a budget of two machines is away: with `on_outage = "refuse"` nothing is overspent, with
`serve` the overdraft at most.

    .venv/bin/python -m reliability.r34_counters_away [--away 60]

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
from dragoman.ledger.accounts import charge_of
from reliability import engine_valkey, engines
from reliability.r26_budget import NANO_PER_TOKEN, TOKENS, Billing, ask
from reliability.r32_shared_budget import Fleet, standing, until_settled
from reliability.row import Result, Scale, run_alone

_CALLS = 400
_OVERDRAFT = 80
_CALLERS = 12
_PACE = 0.2
_WORKERS = 2


async def drill(policy: str, away: float, *, calls: int = _CALLS, overdraft: int = _OVERDRAFT) -> Result:
    """Callers ask on a budget for so many calls, while its counters go and come back, empty."""
    provider = await asyncio.get_running_loop().create_server(Billing, "127.0.0.1", 0)
    Billing.tokens.clear()
    cost = TOKENS * NANO_PER_TOKEN
    limit = calls * cost
    account = charge_of(Quota("all", "", "usd", limit // 1_000, "month"), "", time.time()).account
    more = f'on_outage = "{policy}"\n' + (f"overdraft = {overdraft * cost / 1e9}\n" if policy == "serve" else "")
    statuses: Counter[int] = Counter()
    with ExitStack() as stack:
        fleet = await asyncio.to_thread(Fleet, "valkey", stack)
        valkey = fleet.valkey
        assert valkey is not None
        await asyncio.to_thread(fleet.start, provider.sockets[0].getsockname()[1], limit / 1e9, more, workers=_WORKERS)
        stop = asyncio.Event()
        callers = [asyncio.create_task(_call(fleet, statuses, stop)) for _ in range(_CALLERS)]
        served = []
        for share in (0.5, 1.0):
            await _until_spent(int(calls * share))
            before = len(Billing.tokens)
            await asyncio.to_thread(valkey.kill)
            await asyncio.sleep(away)
            served.append(len(Billing.tokens) - before)
            await asyncio.to_thread(valkey.start, is_empty=True)
        await asyncio.sleep(8.0)  # who found it away asks again within four seconds
        stop.set()
        await asyncio.gather(*callers)
        await asyncio.to_thread(until_settled, fleet.folders, account)
        leased, spent, found = await asyncio.to_thread(standing, fleet.folders[0], account)
    provider.close()
    billed = len(Billing.tokens)
    over = billed - calls
    words = (
        f"{sum(statuses.values())} requests ({statuses[200]} answered, {statuses[429]} refused, {statuses[503]} of "
        f"503), {billed} calls billed of {calls}: overspent {over} calls; while Valkey was away for {away:g} s "
        f"{served[0]} calls were served with half of the budget spent, {served[1]} with all of it; then leases "
        f"{leased // cost}, spend {spent // cost}, rows {found // cost} calls; 2 machines of {_WORKERS} workers"
    )
    most = overdraft if policy == "serve" else 0
    passed = over <= most and served[1] <= most and leased == spent == found == billed * cost
    passed = passed and (policy == "refuse" or served[1] > 0)
    goal = f"overspend ≤ {most} calls, the overdraft" if most else "overspend 0"
    return Result("L9", f"Valkey away, {policy}: {goal}", words, passed)


async def _call(fleet: Fleet, statuses: Counter[int], stop: asyncio.Event) -> None:
    while not stop.is_set():
        statuses[await ask(random.choice(fleet.gateways).port, TOKENS)] += 1
        await asyncio.sleep(random.uniform(0, 2 * _PACE))


async def _until_spent(calls: int) -> None:
    until = time.monotonic() + 120
    while len(Billing.tokens) < calls and time.monotonic() < until:
        await asyncio.sleep(0.02)


def measure(scale: Scale, away: float | None = None) -> Iterator[Result]:
    """Both words of the quota."""
    if engines.MISSING or engine_valkey.MISSING:
        yield Result("L9", "Valkey away", f"not tried: {engines.MISSING or engine_valkey.MISSING}", False)
        return
    for policy in ("refuse", "serve"):
        yield asyncio.run(drill(policy, away or scale.pick(60, 6)))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"away": 60.0}))
