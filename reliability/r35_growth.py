"""L16: three gateways, whose ledgers stand in files that an earlier dragoman made, go over to one PostgreSQL and back,
one after the other, while they are asked: no request is refused, each has its row, and both hold the same.

    .venv/bin/python -m reliability.r35_growth [--seconds 8]

A caller does what a balancer in front of them does: it asks each ten times a second whether it is ready, and passes
over who is not, or does not take a connection. Everything else that is no answer counts as refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.reports.checking import Checked, check, list_journals
from dragoman.ledger.stores.files import MAIN_FILE, month_file, months_in
from dragoman.ledger.stores.migrating import migrate
from dragoman.ledger.stores.opening import open_reading
from dragoman.ledger.stores.schema import COLUMNS, GROUPS, SUMS
from dragoman.secret import Secret
from reliability.engines import MISSING, PostgreSQL
from reliability.ports import free_port
from reliability.process import Gateway
from reliability.r25_ledger import _CONFIG, Counting
from reliability.row import Result, Scale, percentile, run_alone

_INSTANCES = 3
_CALLERS = 9
_PACE = 0.03  # seconds that each waits between two requests, on the average
_PATIENCE = 20.0
_NOTICE = 1.5  # seconds for which a gateway that is told to end takes connections
_STORE = "DRAGOMAN_DRILL_STORE"
_MORE = """
[keys.drill]
digests = ["sha256:{digest}"]
[[quotas]]
scope = "all"
tokens = 1_000_000_000
per = "month"
"""
_TABLES = (
    ("attempt", COLUMNS), ("adjustment", ("id", "attempt", "nano", "prices", "reason", "actor", "at")),
    ("usage_hour", (*GROUPS, *SUMS)), ("spend", ("account", "holder", "nano", "tokens")),
)  # fmt: skip
_MANAGED = {
    **dict.fromkeys(("virtual_key", "key_digest", "quota", "price", "set_aside"), "*"),
    "audit": "at, actor, action, subject, change",  # three chains became one: its numbers are its own
}


class Growing:
    """The gateways, their folders, and what became of the requests."""

    def __init__(self, server: PostgreSQL, port: int, stack: ExitStack) -> None:
        Counting.asked = Counter()
        self.server = server
        self.shared = LedgerFolder(Path(stack.enter_context(tempfile.TemporaryDirectory())), Secret(server.address))
        self.folders = []
        self.gateways = []
        self.secret = "a-key-of-the-drill-0123456789"
        for number in range(_INSTANCES):
            state = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-"))
            folder = LedgerFolder.of(Path(state))
            with closing(KeyBook(folder, actor="drill")) as book:
                book.add(VirtualKey(name=f"key-{number}", owner="anna"), bytes([number]) * 32)
            make_older(folder)
            self.folders.append(folder)
            gateway = Gateway(_CONFIG.format(state=state, port=port), "--workers", "1",
                              environ={_STORE: server.address})  # fmt: skip
            gateway._command[-1] = str(free_port())
            self.gateways.append(gateway)
        self.outcomes: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.stop = asyncio.Event()
        self.ready: set[int] = set()

    async def look(self, gateway: Gateway) -> None:
        """Whether it may be asked, as a balancer sees it."""
        head = b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        while not self.stop.is_set():
            answer = b""
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                    writer.write(head)
                    answer = await reader.read()
                    writer.close()
            (self.ready.add if answer.startswith(b"HTTP/1.1 200") else self.ready.discard)(gateway.port)
            await asyncio.sleep(0.1)

    async def call(self) -> None:
        """A request after the other, each on a connection of its own, to whichever instance takes it."""
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                async with asyncio.timeout(_PATIENCE):
                    answer = await self._ask()
                why = re.search(rb'"message": ?"([^"]{0,60})', answer)
                told = f"refused: {answer[9:12]!r} {why[1] if why else b''!r}"
                self.outcomes["answered" if answer.startswith(b"HTTP/1.1 200") else told] += 1
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as problem:
                self.outcomes[f"broken: {type(problem).__name__}"] += 1
            self.seconds.append(time.monotonic() - began)
            await asyncio.sleep(random.uniform(0, 2 * _PACE))

    async def _ask(self) -> bytes:
        name = "m-" + "".join(random.choices("0123456789abcdefghijklmnopqrstuvwxyz", k=12))
        body = json.dumps({"model": f"lab/{name}", "messages": [{"role": "user", "content": "Hi"}]}).encode()
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
            f"content-length: {len(body)}\r\nauthorization: Bearer {self.secret}\r\n\r\n"
        )
        while True:
            if not self.ready:
                await asyncio.sleep(0.01)
                continue
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", random.choice(tuple(self.ready)))
                break
            except ConnectionRefusedError:
                self.outcomes["passed over"] += 1
                await asyncio.sleep(0.005)
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        return answer

    def copy(self, number: int, source: str, to: str) -> None:
        """`dragoman ledger copy`, as somebody runs it on that machine."""
        gateway = self.gateways[number]
        words = [sys.executable, "-m", "dragoman", "ledger", "copy", "--store", source, "--to", to]
        done = subprocess.run(
            [*words, "--config", str(gateway.file)], env=gateway._environ, cwd=gateway.home, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    async def roll(self, *, is_shared: bool) -> float:
        """Each gateway in turn: told to end, and begun with the other store; the longest drain, in seconds."""
        longest = 0.0
        for gateway in self.gateways:
            text = gateway.file.read_text().partition("[ledger]")[0]
            gateway.file.write_text(text + (f'[ledger]\nstore = "env:{_STORE}"\n' if is_shared else ""))
            began = time.monotonic()
            gateway.signal(signal.SIGTERM)
            await asyncio.to_thread(gateway.process.wait, 60)
            longest = max(longest, time.monotonic() - began)
            await asyncio.to_thread(gateway.stop)
            await asyncio.to_thread(gateway.start)
            await asyncio.sleep(0.5)
        return longest

    def settled(self, folders: list[LedgerFolder], most: float = 60.0) -> None:
        """Until nothing waits in the journals."""
        until = time.monotonic() + most
        while any(journal.waiting for each in folders for journal in list_journals(each)) and time.monotonic() < until:
            time.sleep(0.2)


def make_older(folder: LedgerFolder) -> None:
    """The folder's files as version 3 has left them."""
    migrate(folder)
    files = [folder.root / MAIN_FILE, *(month_file(folder.root, month) for month in months_in(folder.root))]
    for file in files:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            for table in ("dropped_usage", "dropped_spend"):
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute("PRAGMA user_version = 3")


def dump(folder: LedgerFolder) -> dict[str, list[tuple[Any, ...]]]:
    """All that stands in a store, in one order."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with open_reading(folder) as reading:
        for month in reading.months():
            for table, names in _TABLES:
                rows = sorted(reading.select(month, f"SELECT {', '.join(names)} FROM :{table}"), key=repr)
                if rows:
                    found[f"{table} {month}"] = rows
        for table, columns in _MANAGED.items():
            found[table] = sorted(reading.select(None, f"SELECT {columns} FROM {table}"), key=repr)
    return found


def rows_of(folder: LedgerFolder) -> Counter[bytes]:
    """How many rows each request has."""
    with open_reading(folder) as reading:
        return Counter(
            target.removeprefix("lab/").encode()
            for month in reading.months()
            for (target,) in reading.select(month, "SELECT target FROM :attempt")
        )


async def drill(server: PostgreSQL, seconds: float) -> Result:
    """To the PostgreSQL and back, under way."""
    provider = await asyncio.get_running_loop().create_server(Counting, "127.0.0.1", 0)
    with ExitStack() as stack:
        each = Growing(server, provider.sockets[0].getsockname()[1], stack)
        digest = hashlib.sha256(each.secret.encode()).hexdigest()
        for gateway in each.gateways:
            text = gateway.file.read_text().replace("[server]\n", f"[server]\nnotice_seconds = {_NOTICE}\n")
            gateway.file.write_text(text + _MORE.format(digest=digest))
            await asyncio.to_thread(stack.enter_context, gateway)
        callers = [asyncio.create_task(each.call()) for _ in range(_CALLERS)]
        callers += [asyncio.create_task(each.look(gateway)) for gateway in each.gateways]
        began = time.monotonic()
        await asyncio.sleep(seconds)
        for number in range(_INSTANCES):
            await asyncio.to_thread(each.copy, number, "sqlite", f"env:{_STORE}")
        drained = await each.roll(is_shared=True)
        await asyncio.sleep(seconds)
        for number in range(_INSTANCES):
            await asyncio.to_thread(each.copy, number, "sqlite", f"env:{_STORE}")
        await asyncio.to_thread(each.copy, 0, f"env:{_STORE}", "sqlite")
        drained = max(drained, await each.roll(is_shared=False))
        await asyncio.sleep(seconds)
        took = time.monotonic() - began
        each.stop.set()
        await asyncio.gather(*callers)
        await asyncio.to_thread(each.settled, each.folders)
        for gateway in each.gateways:  # what their shippers have is in the stores
            await asyncio.to_thread(gateway.stop)
        for number in range(_INSTANCES):
            await asyncio.to_thread(each.copy, number, "sqlite", f"env:{_STORE}")
        for number in range(_INSTANCES):
            await asyncio.to_thread(each.copy, number, f"env:{_STORE}", "sqlite")
        provider.close()
        return await asyncio.to_thread(judged, each, took, drained)


def judged(each: Growing, took: float, drained: float) -> Result:
    """What came of it."""
    rows = rows_of(each.shared)
    missing = len(Counting.asked.keys() - rows.keys())
    double = sum(count > 1 for count in rows.values())
    ours = dump(each.shared)
    equal = sum(dump(folder) == ours for folder in each.folders)
    checks: list[Checked] = [check(folder) for folder in (each.shared, *each.folders)]
    differences = sum(len(found.differences) + len(found.set_aside) + found.going_on for found in checks)
    answered, passed_over = each.outcomes.pop("answered", 0), each.outcomes.pop("passed over", 0)
    refused = sum(each.outcomes.values())
    p99 = percentile(each.seconds, 0.99) * 1000
    why = f" {dict(each.outcomes)}" if refused else ""
    words = (
        f"{answered} requests answered in {took:.0f} s ({answered / took:.0f}/s, p99 {p99:.0f} ms), {refused} "
        f"refused{why}, {passed_over} connections passed over; {_INSTANCES} instances "
        f"restarted twice each, drained in {drained:.1f} s at most; {sum(Counting.asked.values())} at the provider, "
        f"{checks[0].attempts} rows: missing {missing}, double {double}; {equal} of {_INSTANCES} folders hold what the "
        f"PostgreSQL holds; differences {differences}"
    )
    passed = not (refused or missing or double or differences) and equal == _INSTANCES and answered > 0
    return Result("L16", "0 refused, missing 0, double 0, dumps equal", words, passed)


def measure(scale: Scale, seconds: float | None = None) -> Iterator[Result]:
    """The whole way."""
    if MISSING:
        yield Result("L16", "SQLite to PostgreSQL and back", f"not tried: {MISSING}", False)
        return
    with PostgreSQL() as server:
        yield asyncio.run(drill(server, seconds or scale.pick(8, 2)))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"seconds": 8.0}))
