"""R26 and L7 for two machines: a budget that they share is never overspent, and nothing that was set apart stays so,
whoever is killed: workers, shippers, the PostgreSQL, the Valkey, which comes back empty, with an old snapshot, or as
another server that had been its replica.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.config.quotas import Quota
from dragoman.ledger.counting import read_totals, read_used
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway, StoreAway
from dragoman.ledger.limits.accounts import charge_of
from dragoman.ledger.limits.leases import LEASE_SECONDS
from dragoman.ledger.reports.checking import check
from dragoman.ledger.stores.opening import open_reading
from dragoman.secret import Secret
from reliability import engine_valkey, engines
from reliability.engine_valkey import Valkey
from reliability.engines import PostgreSQL
from reliability.network import Here, Link, Machine
from reliability.process import Gateway
from reliability.r26_budget import CONFIG, NANO_PER_TOKEN, TOKENS, Billing, ask, kill_one
from reliability.row import Result, Scale

_T = TypeVar("_T")
_MACHINES = 2
_WORKERS = 4
_CALLS = 50
_REQUESTS = 800
_SHARED = """
[ledger]
store = "{store}"
counters = "{counters}"
[[quotas]]
scope = "all"
usd = {usd}
per = "month"
"""


class Fleet:
    """Engines and gateways of one drill."""

    def __init__(self, kind: str, stack: ExitStack, machines: Sequence[Machine] = ()) -> None:
        """`machines`: with networks of their own, and links to each engine; two of this machine unless they are
        named."""
        self.machines: Sequence[Here] = machines or (Here(), Here())
        self.store_links = [Link(machine) for machine in machines]
        self.counter_links = [Link(machine) for machine in machines if kind == "valkey"]
        hosts = [link.host for link in self.store_links]
        self.server = stack.enter_context(PostgreSQL(is_durable=True, hosts=hosts))
        hosts = [link.host for link in self.counter_links]
        self.valkey = stack.enter_context(Valkey(hosts=hosts)) if kind == "valkey" else None
        self.counters = "store" if self.valkey is None else self.valkey.address
        self.replica: Valkey | None = None
        self._states = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-"))) for _ in self.machines
        ]
        counters = None if self.valkey is None else Secret(self.counters)
        self.folders = [LedgerFolder.of(state, Secret(self.server.address), counters) for state in self._states]
        self.gateways: list[Gateway] = []
        self._stack = stack

    def start(
        self, port: int, usd: float, more: str = "", *, workers: int = _WORKERS, environ: Sequence[dict[str, str]] = ()
    ) -> None:
        """`more`: lines of the quota. `environ`: of each gateway."""
        for place, (state, machine) in enumerate(zip(self._states, self.machines, strict=True)):
            store, counters = self.server.address, self.counters
            if self.store_links:
                store = self.server.address_at(self.store_links[place].host)
            if self.counter_links and self.valkey is not None:
                counters = self.valkey.address_at(self.counter_links[place].host)
            shared = _SHARED.format(store=store, counters=counters, usd=usd)
            text = CONFIG.format(state=state, port=port) + shared + more
            own = environ[place] if environ else None
            gateway = Gateway(text, "--workers", str(workers), environ=own, prefix=machine.prefix)
            self.gateways.append(self._stack.enter_context(gateway))

    async def ask(self, tokens: int = TOKENS) -> int:
        """One request of any gateway; gives the status."""
        place = random.randrange(len(self.gateways))
        return await ask(self.gateways[place].port, tokens, self.machines[place])

    def lose(self, fault: str) -> None:
        """One engine is killed, and comes back as the fault says."""
        if fault == "PostgreSQL":
            self.server.kill()
            self.server.start()
            return
        assert self.valkey is not None
        if fault == "Valkey, a replica promoted":
            # The replica takes the port: who connects again reaches it.
            with Valkey(of=self.valkey) as replica:
                _until_linked(replica)
                replica.save()
                self.valkey.kill()
                self.valkey.start_as(replica)
            return
        self.valkey.kill()
        if "60 s" in fault:
            time.sleep(60)
        self.valkey.start(is_empty="empty" in fault)


def _until_linked(replica: Valkey) -> None:
    until = time.monotonic() + 30
    while "master_link_status:up" not in replica.ask("INFO", "replication") and time.monotonic() < until:
        time.sleep(0.02)


async def drill(kind: str, fault: str, kills: int) -> Result:
    """All workers of both machines are asked on a budget for some calls; then what is left is asked for."""
    provider = await asyncio.get_running_loop().create_server(Billing, "127.0.0.1", 0)
    Billing.tokens.clear()
    limit = _CALLS * TOKENS * NANO_PER_TOKEN
    account = charge_of(Quota("all", "", "usd", limit // 1_000, "month"), "", time.time()).account
    killed: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    with ExitStack() as stack:
        fleet = await asyncio.to_thread(Fleet, kind, stack)
        fleet.start(provider.sockets[0].getsockname()[1], limit / 1e9)
        callers = [asyncio.create_task(_call(fleet, statuses, _REQUESTS // 100)) for _ in range(100)]
        for turn in range(max(kills, 1)):
            await asyncio.sleep(0.4)
            if fault != "nothing" and turn == kills // 2:
                if fleet.valkey is not None and "snapshot" in fault:
                    fleet.valkey.save()
                    await asyncio.sleep(0.3)
                await asyncio.to_thread(fleet.lose, fault)
            if kills:
                kill_one(random.choice(fleet.gateways), killed)
        await asyncio.gather(*callers)
        rested = time.monotonic()
        while len(Billing.tokens) < _CALLS and time.monotonic() < rested + 200:
            statuses[await ask(random.choice(fleet.gateways).port, TOKENS)] += 1
            await asyncio.sleep(0.1)
        had_after = time.monotonic() - rested
        last = [503]
        while 503 in last and time.monotonic() < rested + 200:  # who was away is asked again every four seconds
            await asyncio.sleep(0.5)
            last = [await ask(gateway.port, TOKENS) for gateway in fleet.gateways]
        await asyncio.to_thread(until_settled, fleet.folders, account)
        leased, spent, found = await asyncio.to_thread(_once_there, partial(standing, fleet.folders[0], account))
    provider.close()
    billed = sum(Billing.tokens) * NANO_PER_TOKEN
    over = max(0, billed - limit)
    words = (
        f"{sum(statuses.values())} requests ({statuses[200]} answered, {statuses[429]} refused, {statuses[503]} of "
        f"503, {statuses[0]} cut), {len(Billing.tokens)} reached the provider, which billed {billed / 1e9:.4f} of "
        f"{limit / 1e9:.4f} US dollars: overspent {over / 1e9:.4f}; all had {had_after:.0f} s after the storm, then "
        f"{last}; leases {leased}, spend {spent}, rows {found}; {_MACHINES} machines of {_WORKERS} workers, killed: "
        f"{', '.join([*(f'{count} {who}s' for who, count in sorted(killed.items())), fault])}"
    )
    passed = not over and leased == spent == found == limit and 200 not in last
    goal = "overspend 0, Σ leases = Σ spend = the limit"
    return Result("R32", f"{kind}, {fault}: {goal}", words, passed)


async def lose_machine(kind: str, *, is_idle: bool) -> Result:
    """One of two machines ends for ever while it has leases ahead: gateway, shipper and disk. What it used and neither
    told nor delivered nobody can know (ADR 42): of an idle one that is nothing, of another one what no row tells."""
    provider = await asyncio.get_running_loop().create_server(Billing, "127.0.0.1", 0)
    Billing.tokens.clear()
    calls = 2_000
    limit = calls * TOKENS * NANO_PER_TOKEN
    account = charge_of(Quota("all", "", "usd", limit // 1_000, "month"), "", time.time()).account
    statuses: Counter[int] = Counter()
    with ExitStack() as stack:
        fleet = await asyncio.to_thread(Fleet, kind, stack)
        fleet.start(provider.sockets[0].getsockname()[1], limit / 1e9)
        callers = asyncio.gather(*[asyncio.create_task(_call(fleet, statuses, 6)) for _ in range(40)])
        while len(Billing.tokens) < 100:
            await asyncio.sleep(0.05)
        if is_idle:
            await callers
            while await asyncio.to_thread(_unknown, fleet, account):
                await asyncio.sleep(0.2)
        lost = fleet.gateways.pop()
        for process in lost.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        began, before = time.monotonic(), len(Billing.tokens)
        shutil.rmtree(fleet.folders.pop().root)
        await callers
        last = began
        had_at_first, freed = 0, 0.0
        while time.monotonic() < began + 240 and len(Billing.tokens) < calls:
            found = await asyncio.gather(*[ask(fleet.gateways[0].port, TOKENS) for _ in range(20)])
            statuses.update(found)
            if 200 in found:
                last = time.monotonic()
                freed = freed or (had_at_first and last - began)
            elif not had_at_first:
                had_at_first = len(Billing.tokens)
            await asyncio.sleep(0.05 if 200 in found else 0.5)
        leased = await asyncio.to_thread(_once_there, partial(read_totals, fleet.folders[0], [account]))
        unknown = await asyncio.to_thread(_unknown, fleet, account)
    provider.close()
    over = max(0, len(Billing.tokens) - calls)
    words = (
        f"{before} calls of {calls} before the loss, {had_at_first or len(Billing.tokens)} until the other machine was "
        f"refused, {len(Billing.tokens)} in all, the next {freed:.0f} s and the last "
        f"{last - began:.0f} s after the loss; overspent {over} calls, without a row {unknown}; leases "
        f"{leased.get(account)} of {limit}; {dict(statuses)}"
    )
    passed = over <= (0 if is_idle else unknown) and len(Billing.tokens) >= calls - 40 and freed <= 2 * LEASE_SECONDS
    goal = (
        "an idle machine that never comes back: overspent 0"
        if is_idle
        else ("a busy machine that never comes back: overspent what no row tells at most")
    )
    return Result("R32", f"{kind}, {goal}, its leases are free within 120 s", words, passed)


def _unknown(fleet: Fleet, account: int) -> int:
    """Calls at the provider of which no row tells."""
    read = _once_there(partial(read_used, fleet.folders[0], [account]))
    return len(Billing.tokens) - read[account] // (TOKENS * NANO_PER_TOKEN)


async def _call(fleet: Fleet, statuses: Counter[int], count: int) -> None:
    for _ in range(count):
        statuses[await ask(random.choice(fleet.gateways).port, TOKENS)] += 1
        await asyncio.sleep(random.uniform(0, 0.5))


def until_settled(folders: list[LedgerFolder], account: int) -> None:
    """All rows have an end, and what nobody needs went back: within a minute once the engines answer."""
    _once_there(partial(standing, folders[0], account))
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(CountersAway, StoreAway):
            leased, spent, rows = standing(folders[0], account)
            if leased == spent == rows:
                return
        time.sleep(0.5)


def _once_there(read: Callable[[], _T]) -> _T:
    """What is read of engines that were killed: on a busy machine they may take minutes until they answer again."""
    until = time.monotonic() + 300
    while True:
        try:
            return read()
        except (CountersAway, StoreAway):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def standing(folder: LedgerFolder, account: int) -> tuple[int, int, int]:
    """What is leased of an account, what the rows charge it, and what they cost."""
    with open_reading(folder) as reading:
        going = sum(
            count
            for month in reading.months()
            for (count,) in reading.select(month, "SELECT count(*) FROM :attempt WHERE state = 'reserved'")
        )
    rows = check(folder).nano - going
    return read_totals(folder, [account]).get(account, -1), read_used(folder, [account])[account], rows


def measure(scale: Scale) -> Iterator[Result]:
    """Each place of the counters, without kills and with each fault."""
    if engines.MISSING or engine_valkey.MISSING:
        yield Result("R32", "a shared budget", f"not tried: {engines.MISSING or engine_valkey.MISSING}", False)
        return
    kills = scale.pick(20, 5)
    for kind, faults in (
        ("postgresql", ("nothing", "PostgreSQL")),
        (
            "valkey",
            (
                "nothing",
                "PostgreSQL",
                "Valkey, empty",
                "Valkey, an old snapshot",
                "Valkey, a replica promoted",
                "Valkey, away 60 s, empty",
            ),
        ),
    ):
        for fault in faults:
            yield asyncio.run(drill(kind, fault, 0 if fault == "nothing" else kills))
        for is_idle in (True, False):
            yield asyncio.run(lose_machine(kind, is_idle=is_idle))
