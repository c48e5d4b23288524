"""L1, L3, L8: one PostgreSQL behind two gateways: killed with them, frozen, down.

Each request has one row; while PostgreSQL alone is away none fails.

    .venv/bin/python -m reliability.r31_store_away [--kills 100] [--frozen 30] [--down 60]

Each gateway has a state folder of its own, as on a machine of its own. The provider notes the id in each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.journal.records import Intent, Settlement
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.reports.checking import Checked, check, list_journals
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.opening import open_reading, open_store
from dragoman.secret import Secret
from reliability.engines import MISSING, PostgreSQL
from reliability.network import Here, dial, serve
from reliability.ports import free_port
from reliability.process import Gateway
from reliability.r25_ledger import _CONFIG, Counting, kill
from reliability.row import Result, Scale, percentile, run_alone

_CALLERS = 24
_PACE = 0.04  # seconds that each waits between two requests, on the average
_ROWS_A_SECOND = 10_000  # of a prepared journal
_PATIENCE = 10.0  # seconds after which a request has failed
_STORE = "DRAGOMAN_DRILL_STORE"


class Fleet:
    """Gateways, one PostgreSQL, a provider, and callers."""

    def __init__(
        self, server: PostgreSQL, port: int, stack: contextlib.ExitStack, places: Sequence[tuple[Here, str]] = ()
    ) -> None:
        """`places`: for each gateway its machine, and the address by which that reaches the PostgreSQL; two of this
        machine unless they are named."""
        Counting.asked = Counter()
        self.server = server
        places = places or ((Here(), server.address),) * 2
        self.machines = [machine for machine, _ in places]
        #: Who starts the server stays: it ends with the thread that began it.
        self.hands = stack.enter_context(ThreadPoolExecutor(1))
        states = [stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-")) for _ in places]
        self.folders = [LedgerFolder.of(Path(state), Secret(server.address)) for state in states]
        self.gateways = []
        for state, (machine, address) in zip(states, places, strict=True):
            config = _CONFIG.format(state=state, port=port) + f'[ledger]\nstore = "env:{_STORE}"\n'
            gateway = Gateway(config, "--workers", "1", environ={_STORE: address}, prefix=machine.prefix)
            gateway._command[-1] = str(free_port())
            self.gateways.append(gateway)
        self.outcomes: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.stop = asyncio.Event()

    async def start(self) -> None:
        """The server again."""
        await asyncio.get_running_loop().run_in_executor(self.hands, self.server.start)

    def rows(self) -> Counter[bytes]:
        """How many rows each request has."""
        with open_reading(self.folders[0]) as reading:
            return Counter(
                target.removeprefix("lab/").encode()
                for month in reading.months()
                for (target,) in reading.select(month, "SELECT target FROM :attempt")
            )

    async def delivered(self, wanted: set[bytes], most: float) -> float:
        """Seconds until all of these have rows."""
        began = time.monotonic()
        while time.monotonic() - began < most:
            with contextlib.suppress(StoreAway):
                if wanted <= (await asyncio.to_thread(self.rows)).keys():
                    break
            await asyncio.sleep(0.2)
        return time.monotonic() - began

    def settled(self, most: float = 60.0) -> tuple[Checked, float]:
        """The check once nothing is open, and after how many seconds that was."""
        began = time.monotonic()
        while time.monotonic() - began < most and self._open():
            time.sleep(0.1)
        return check(self.folders[0]), time.monotonic() - began

    def _open(self) -> int:
        count = sum(journal.waiting for folder in self.folders for journal in list_journals(folder))
        with open_reading(self.folders[0]) as reading:
            for month in reading.months():
                for (open_rows,) in reading.select(month, "SELECT count(*) FROM :attempt WHERE state = 'reserved'"):
                    count += open_rows
        return count

    async def call(self, place: int) -> None:
        """A request after the other of one gateway, on one connection while it lasts; its number begins their names."""
        gateway, machine = self.gateways[place], self.machines[place]
        writer: asyncio.StreamWriter | None = None
        while not self.stop.is_set():
            name = f"m-{place}" + "".join(random.choices("0123456789abcdefghijklmnopqrstuvwxyz", k=11))
            body = json.dumps({"model": f"lab/{name}", "messages": [{"role": "user", "content": "Hi"}]}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
            began = time.monotonic()
            try:
                if writer is None:
                    socket = dial(machine)
                    await asyncio.get_running_loop().sock_connect(socket, ("127.0.0.1", gateway.port))
                    reader, writer = await asyncio.open_connection(sock=socket)
                writer.write(head.encode() + body)
                answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE)
                size = int(re.search(rb"content-length: *(\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]
                await reader.readexactly(size)
                self.outcomes["answered" if answer.startswith(b"HTTP/1.1 200") else "refused"] += 1
                self.seconds.append(time.monotonic() - began)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                self.outcomes["broken"] += 1
                if writer is not None:
                    writer.close()
                writer = None
            await asyncio.sleep(random.random() * 2 * _PACE)
        if writer is not None:
            writer.close()


@contextlib.asynccontextmanager
async def fleet(  # type: ignore[misc]
    server: PostgreSQL, places: Sequence[tuple[Here, str]] = (), *, callers: int = _CALLERS
) -> Iterator[Fleet]:
    """One that serves; its callers are at it. `places`: see `Fleet`."""
    port, providers = await serve([machine for machine, _ in places], Counting)
    with contextlib.ExitStack() as stack:
        found = Fleet(server, port, stack, places)
        for gateway in found.gateways:
            await asyncio.to_thread(stack.enter_context, gateway)
        count = len(found.gateways)
        calling = [asyncio.create_task(found.call(number % count)) for number in range(callers)]
        try:
            yield found
        finally:
            found.stop.set()
            await asyncio.gather(*calling)
            for provider in providers:
                provider.close()


async def kills(server: PostgreSQL, count: int) -> Result:
    """SIGKILL of workers, shippers, whole gateways and PostgreSQL."""
    killed: Counter[str] = Counter()
    async with fleet(server) as each:
        began = time.monotonic()
        for _ in range(count):
            await asyncio.sleep(random.uniform(0.1, 0.5))
            if random.random() < 0.25:
                killed["PostgreSQL"] += 1
                server.kill()
                await asyncio.sleep(random.uniform(0.0, 0.5))
                await each.start()
            else:
                await kill(random.choice(each.gateways), killed)
        await asyncio.sleep(0.5)
        rate = sum(Counting.asked.values()) / (time.monotonic() - began)
        each.stop.set()
        await asyncio.sleep(1.0)
        found, seconds = await asyncio.to_thread(each.settled)
        return told_of(
            "L1", each, found, await asyncio.to_thread(each.rows), seconds, f"{rate:.0f} attempts/s, {_told(killed)}"
        )


async def away(server: PostgreSQL, frozen: float, down: float) -> Result:
    """PostgreSQL stands still, then is gone; callers go on."""
    words = []
    late = 0.0
    async with fleet(server) as each:
        await asyncio.sleep(3.0)
        began, asked = time.monotonic(), len(Counting.asked)
        for name, seconds, leave, back in (
            ("frozen", frozen, server.freeze, None), ("down", down, server.kill, each.start),
        ):  # fmt: skip
            leave()
            await asyncio.sleep(seconds)
            if back is None:
                server.thaw()
            else:
                await back()
            after = await each.delivered(set(Counting.asked), 120.0)
            late = max(late, after)
            words.append(f"{name} {seconds:.0f} s: delivered {after:.1f} s after")
        rate = (len(Counting.asked) - asked) / (time.monotonic() - began)
        each.stop.set()
        await asyncio.sleep(1.0)
        found, seconds = await asyncio.to_thread(each.settled)
        rows = await asyncio.to_thread(each.rows)
        failed = each.outcomes["refused"] + each.outcomes["broken"]
        p99 = percentile(each.seconds, 0.99)
        told = f"{rate:.0f} requests/s, {failed} failed, p99 {p99 * 1000:.0f} ms, {', '.join(words)}"
        result = told_of("L8", each, found, rows, seconds, told)
        return result._replace(passed=result.passed and not failed and late <= 30)


def _told(killed: Counter[str]) -> str:
    return f"{sum(killed.values())} SIGKILL ({', '.join(f'{count} {who}' for who, count in sorted(killed.items()))})"


def told_of(id: str, each: Fleet, found: Checked, rows: Counter[bytes], seconds: float, more: str) -> Result:
    """What came of all requests. `more` stands behind the figures."""
    missing = len(Counting.asked.keys() - rows.keys())
    double = sum(count > 1 for count in rows.values())
    waiting = found.going_on + sum(journal.waiting for folder in each.folders for journal in list_journals(folder))
    words = (
        f"{sum(Counting.asked.values())} requests at the provider, {found.attempts} rows: missing {missing}, "
        f"double {double}, open {waiting} after {seconds:.1f} s, differences {len(found.differences)}, "
        f"set aside {len(found.set_aside)}; {more}"
    )
    passed = not (missing or double or waiting or found.differences or found.set_aside)
    return Result(id, "missing 0, double 0, open 0, difference 0", words, passed and found.attempts > 0)


def deliver_prepared(server: PostgreSQL, count: int) -> Result:
    """A journal of so many attempts that ended, by one shipper, on the cores that PostgreSQL has too."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as name:
        folder = LedgerFolder(Path(name), Secret(server.address))
        journal = Journal(folder.journals)
        for number in range(count):
            started = time.time_ns() // 1_000
            id = journal.ids.next(started)
            key, target = f"key-{number % 50}", f"lab/model-{number % 20}"
            journal.intend(Intent(id, f"request-{number}", 0, started, key, "", "", "coder", target, 2_000))
            journal.settle(Settlement(id, started, "settled", 12_345, None, 500, 80, None, None, None, True, "", 200))
        journal.close()
        store = open_store(folder, ships=True)
        began, cpu = time.perf_counter(), time.process_time()
        Shipper(folder, store, batch=2_048).round()
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        store.close()
        found = check(folder)
    words = (
        f"{count} attempts in {seconds:.1f} s: {count / seconds:,.0f}/s by the clock, {used / count * 1e6:.1f} µs CPU "
        f"each in the shipper; {found.attempts} rows, sound: {found.is_sound}; load {os.getloadavg()[0]:.0f}"
    )
    passed = found.is_sound and found.attempts == count and count / seconds >= _ROWS_A_SECOND
    return Result("L8", f"a prepared journal: {_ROWS_A_SECOND} rows/s", words, passed)


def measure(
    scale: Scale, count: int | None = None, frozen: float | None = None, down: float | None = None
) -> Iterator[Result]:
    """The kills, then the absences, each on a server of its own."""
    if MISSING:
        yield Result("L8", "PostgreSQL away", f"not tried: {MISSING}", False)
        return
    with PostgreSQL(is_durable=True) as server:
        yield deliver_prepared(server, scale.pick(100_000, 10_000))
    with PostgreSQL(is_durable=True) as server:
        yield asyncio.run(kills(server, count or scale.pick(100, 6)))
    with PostgreSQL(is_durable=True) as server:
        yield asyncio.run(away(server, frozen or scale.pick(30, 5), down or scale.pick(60, 5)))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"kills": 100, "frozen": 30.0, "down": 60.0}))
