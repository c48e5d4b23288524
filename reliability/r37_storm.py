"""A fleet in a storm: three machines, one PostgreSQL and one Valkey, and faults one upon the other, at random. Then
nothing is missing, double, overspent or held back, and the ledger has what the provider has counted.

    .venv/bin/python -m reliability.r37_storm [--storms 6] [--seconds 60] [--seed 1]

Each machine has a network of its own and links to both engines that lose packets, both ways or one; its clock jumps
where there is gcc. Whoever is killed is begun again; who is frozen goes on. A seed gives the same faults
again, not the same moments.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from dragoman.config.quotas import Quota
from dragoman.ledger.counting import read_totals
from dragoman.ledger.limits.accounts import charge_of
from dragoman.ledger.reports.checking import check, list_journals
from dragoman.ledger.stores.opening import open_reading
from reliability import engine_valkey, engines, jumping_clock, network
from reliability.jumping_clock import JumpingClock
from reliability.network import Machine, serve
from reliability.ports import free_port
from reliability.r26_budget import NANO_PER_TOKEN, TOKENS, Billing, ask
from reliability.r32_shared_budget import Fleet, standing, until_settled
from reliability.row import Result, Scale, run_alone

_MACHINES: Final = 3
_WORKERS: Final = 2
_CALLERS: Final = 18
_PACE: Final = 0.15
_AT_ONCE: Final = 40
#: Seconds for which a fault lasts at most, mostly and now and then: longer than a lease.
_SHORT, _LONG = 8.0, 75.0
_PATIENCE: Final = 300.0
#: How often whoever looks after a gateway begins it.
_STARTS: Final = 4


class Storm:
    """A fleet and what befalls it.

    Attributes:
        faults: how often each came.
    """

    def __init__(self, fleet: Fleet, clocks: list[JumpingClock], dice: random.Random) -> None:
        self.fleet = fleet
        self.faults: Counter[str] = Counter()
        self._clocks = clocks
        self._dice = dice
        self._busy: set[str] = set()
        self._hands = ThreadPoolExecutor(1)  # an engine ends with the thread that began it
        self._tasks: set[asyncio.Task[None]] = set()

    async def rage(self, seconds: float) -> None:
        """A fault after the other, each on what is whole; returns when all are over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.sleep(self._dice.uniform(0.3, 2.0))
            what, victim, fault = self._dice.choice(self._possible())
            lasts = self._dice.uniform(0.2, _LONG if self._dice.random() < 0.08 else _SHORT)
            if victim in self._busy:
                continue
            self._busy.add(victim)
            self.faults[what] += 1
            task = asyncio.create_task(self._befall(victim, fault, lasts))
            self._tasks.add(task)
        await asyncio.gather(*self._tasks)

    def close(self) -> None:
        """The engines may end."""
        self._hands.shutdown()

    async def _befall(self, victim: str, fault: Callable[[float], Any], lasts: float) -> None:
        try:
            await fault(lasts)
        finally:
            self._busy.discard(victim)

    def _possible(self) -> list[tuple[str, str, Callable[[float], Any]]]:
        """What, on whom, and how."""
        found: list[tuple[str, str, Callable[[float], Any]]] = []
        for name in ("frozen", "killed"):
            found += [(f"PostgreSQL {name}", "PostgreSQL", self._engine("PostgreSQL", name))] * 2
        of_valkey = ("frozen", "killed", "emptied", "back with a snapshot", "its replica promoted")
        for name in of_valkey if self.fleet.valkey is not None else ():
            found += [(f"Valkey {name}", "Valkey", self._engine("Valkey", name))] * 2
        for place in range(_MACHINES):
            for name, links in (("PostgreSQL", self.fleet.store_links), ("Valkey", self.fleet.counter_links)):
                if links:
                    found.append((f"cut off from {name}", f"{name} {place}", self._cut(links[place])))
            found.append(("gateway killed", f"gateway {place}", self._killed(place)))
            found += [("one process killed", f"child {place}", self._child(place, signal.SIGKILL))] * 2
            found.append(("one process frozen", f"child {place}", self._child(place, signal.SIGSTOP)))
            found.append(("machine frozen", f"gateway {place}", self._frozen(place)))
            if self._clocks:
                found.append(("clock jumped", f"clock {place}", self._jumped(place)))
        return found

    def _engine(self, which: str, how: str) -> Callable[[float], Any]:
        engine: Any = self.fleet.server if which == "PostgreSQL" else self.fleet.valkey

        async def befall(lasts: float) -> None:
            if how == "frozen":
                engine.freeze()
                await asyncio.sleep(lasts)
                engine.thaw()
            elif how == "its replica promoted":
                await self._do(lambda: self.fleet.lose("Valkey, a replica promoted"))
            else:
                if how == "back with a snapshot":
                    await self._do(engine.save)
                    await asyncio.sleep(self._dice.uniform(0.1, 1.0))
                engine.kill()
                await asyncio.sleep(lasts)
                await self._do(engine.start if how != "emptied" else lambda: engine.start(is_empty=True))

        return befall

    async def _do(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._hands, work)

    def _cut(self, link: network.Link) -> Callable[[float], Any]:
        async def befall(lasts: float) -> None:
            queries, answers = self._dice.choice(((True, True), (True, False), (False, True)))
            link.cut(queries=queries, answers=answers)
            await asyncio.sleep(lasts)
            link.heal()

        return befall

    def _killed(self, place: int) -> Callable[[float], Any]:
        gateway = self.fleet.gateways[place]

        async def befall(lasts: float) -> None:
            _tell(gateway.family(), signal.SIGKILL)
            await asyncio.to_thread(gateway.stop)
            await asyncio.sleep(lasts)
            for _ in range(_STARTS - 1):  # one of whose processes is killed while it begins ends, and is begun again
                with contextlib.suppress(RuntimeError):
                    return await asyncio.to_thread(gateway.start)
            await asyncio.to_thread(gateway.start)

        return befall

    def _frozen(self, place: int) -> Callable[[float], Any]:
        gateway = self.fleet.gateways[place]

        async def befall(lasts: float) -> None:
            family = gateway.family()
            _tell(family, signal.SIGSTOP)
            await asyncio.sleep(lasts)
            _tell(family, signal.SIGCONT)

        return befall

    def _child(self, place: int, number: int) -> Callable[[float], Any]:
        gateway = self.fleet.gateways[place]

        async def befall(lasts: float) -> None:
            children = gateway.family()[1:]
            if not children:
                return
            victim = self._dice.choice(children)
            _tell([victim], number)
            await asyncio.sleep(lasts)
            if number == signal.SIGSTOP:
                _tell([victim], signal.SIGCONT)

        return befall

    def _jumped(self, place: int) -> Callable[[float], Any]:
        async def befall(lasts: float) -> None:
            self._clocks[place].jump(self._dice.choice((-3_600, -90, -2, 2, 90, 3_600)))
            await asyncio.sleep(lasts)
            self._clocks[place].jump(0)

        return befall


def _tell(processes: list[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _clocks(stack: ExitStack) -> list[JumpingClock]:
    """Of each machine; none where they cannot be had."""
    if jumping_clock.MISSING:
        return []
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-")))
    library = jumping_clock.build(folder)
    return [JumpingClock(library, folder / f"clock-{place}") for place in range(_MACHINES)]


async def drill(seconds: float, seed: int, kind: str = "valkey") -> Result:
    """One storm, then rest, then all that is left of the budget is asked for."""
    dice = random.Random(seed)
    Billing.tokens.clear()
    cost = TOKENS * NANO_PER_TOKEN
    calls = int(seconds * 12)
    limit = calls * cost
    more = f'[[quotas]]\nscope = "all"\nconcurrent = {_AT_ONCE}\n'
    quotas = Quota("all", "", "usd", limit // 1_000, "month"), Quota("all", "", "concurrent", _AT_ONCE, "total")
    accounts = [charge_of(quota, "", time.time()).account for quota in quotas]
    statuses: Counter[int] = Counter()
    with ExitStack() as stack:
        machines = [stack.enter_context(Machine()) for _ in range(_MACHINES)]
        fleet = await asyncio.to_thread(Fleet, kind, stack, machines)
        port, providers = await serve(machines, Billing)
        clocks = _clocks(stack)
        environ = [clock.environ for clock in clocks]
        await asyncio.to_thread(fleet.start, port, limit / 1e9, more, workers=_WORKERS, environ=environ)
        for gateway in fleet.gateways:
            gateway._command[-1] = str(free_port())  # where it is begun again
        stop = asyncio.Event()
        callers = [asyncio.create_task(_call(fleet, statuses, stop)) for _ in range(_CALLERS)]
        storm = Storm(fleet, clocks, dice)
        stack.callback(storm.close)
        await storm.rage(seconds)
        stormed = len(Billing.tokens)
        stop.set()
        await asyncio.gather(*callers)
        calm = time.monotonic()
        last = await _spend_the_rest(fleet, statuses)
        had_after = time.monotonic() - calm
        await asyncio.to_thread(until_settled, fleet.folders, accounts[0])
        words, is_sound = await asyncio.to_thread(_judged, fleet, accounts, limit, cost)
    for provider in providers:
        provider.close()
    told = (
        f"counters in {kind}, seed {seed}, {seconds:.0f} s: {sum(storm.faults.values())} faults "
        f"({_counted(storm.faults)}); {sum(statuses.values())} requests ({_counted(statuses)}), "
        f"{stormed} calls meanwhile; the rest was had {had_after:.0f} s after, then {last}; {words}"
    )
    return Result(
        "R37", "after a storm: missing, double, overspent, held back 0", told, is_sound and set(last) == {429}
    )


async def _call(fleet: Fleet, statuses: Counter[int], stop: asyncio.Event) -> None:
    while not stop.is_set():
        statuses[await fleet.ask()] += 1
        await asyncio.sleep(random.uniform(0, 2 * _PACE))


async def _spend_the_rest(fleet: Fleet, statuses: Counter[int]) -> list[int]:
    """Ask until each gateway has refused for a while; what they said last."""
    until = time.monotonic() + _PATIENCE
    refused = 0
    last: list[int] = []
    while refused < 8 and time.monotonic() < until:
        pairs = zip(fleet.gateways, fleet.machines, strict=True)
        last = list(await asyncio.gather(*(ask(gateway.port, TOKENS, machine) for gateway, machine in pairs)))
        statuses.update(last)
        refused = refused + 1 if set(last) == {429} else 0
        await asyncio.sleep(0.05 if 200 in last else 2.0)
    return last


def _judged(fleet: Fleet, accounts: list[int], limit: int, cost: int) -> tuple[str, bool]:
    leased, spent, found = standing(fleet.folders[0], accounts[0])
    until = time.monotonic() + 60
    while (at_once := read_totals(fleet.folders[0], [accounts[1]]).get(accounts[1], 0)) and time.monotonic() < until:
        time.sleep(1.0)
    checked = check(fleet.folders[0])
    waiting = sum(journal.waiting for folder in fleet.folders for journal in list_journals(folder))
    states: Counter[str] = Counter()
    with open_reading(fleet.folders[0]) as reading:
        for month in reading.months():
            for state, count in reading.select(month, "SELECT state, count(*) FROM :attempt GROUP BY state"):
                states[state] += count
    billed = len(Billing.tokens)
    rows = states.total() - states["void"]
    missing, double = max(0, billed - rows), max(0, rows - states["interrupted"] - billed)
    over = max(0, billed * cost - limit)
    words = (
        f"{billed} calls at the provider, rows {_counted(states)}: missing {missing}, double {double}, overspent "
        f"{over // cost} calls of {limit // cost}; leases {leased / cost:g}, spend {spent / cost:g}, rows "
        f"{found / cost:g} calls, at once {at_once}; open {checked.going_on + waiting}, differences "
        f"{len(checked.differences)}, set aside {len(checked.set_aside)} {jumping_clock.MISSING}"
    )
    is_whole = leased == spent == found == limit and not at_once
    is_open = checked.going_on + waiting or checked.differences or checked.set_aside
    return words, is_whole and not (missing or double or over or is_open)


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items(), key=str))


def measure(
    scale: Scale, storms: int | None = None, seconds: float | None = None, seed: int | None = None
) -> Iterator[Result]:
    """Some storms, each with a seed of its own, which its line says."""
    missing = engines.MISSING or engine_valkey.MISSING or network.MISSING
    if missing:
        yield Result("R37", "after a storm", f"not tried: {missing}", False)
        return
    first = seed if seed is not None else random.randrange(1_000_000)
    for number in range(storms or scale.pick(6, 1)):
        kind = "postgresql" if number % 3 == 2 else "valkey"
        yield asyncio.run(drill(seconds or scale.pick(60, 20), first + number, kind))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"storms": 6, "seconds": 60.0, "seed": 1}))
