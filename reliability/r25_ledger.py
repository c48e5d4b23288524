"""L1: each request that reached a provider has one row in the ledger, whoever is killed meanwhile.

    .venv/bin/python -m reliability.r25_ledger [--kills 100]      (make ledger)

The provider notes the id in each request. Workers, the shipper and whole gateways get SIGKILL under load; whole ones
are started again. Then: missing (at the provider, without a row), double (two rows), open (rows without an end).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.reports.checking import Checked, check, list_journals
from dragoman.ledger.stores.files import month_file, months_in
from reliability.ports import free_port
from reliability.process import Gateway
from reliability.request_bodies import RequestBodies
from reliability.row import Result, Scale, run_alone

_ID = re.compile(rb"m-[0-9a-z]{12}")
_ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }
).encode()
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_ANSWER) + _ANSWER
#: Callers of each worker, and seconds that each waits between two requests.
_CALLERS = 16
_PACE = 0.02
_CONFIG = """
[server]
state = "{state}"
log = "off"
[http]
retries = 0
[providers.lab]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
clean = true
"""


class Counting(asyncio.Protocol):
    """A provider that notes who asked."""

    asked: ClassVar[Counter[bytes]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._bodies = RequestBodies(transport)

    def data_received(self, data: bytes) -> None:
        body = self._bodies.take(data)
        if body is None:
            return
        found = _ID.search(body)
        assert found is not None
        Counting.asked[found[0]] += 1
        # Some are under way for a while, so that a kill meets them.
        wait = random.choice((0.0, 0.0, 0.002, 0.02))
        asyncio.get_running_loop().call_later(wait, self._bodies.transport.write, _REPLY)


async def call(port: int, stop: asyncio.Event, sent: Counter[str]) -> None:
    """One caller: a request after the other, on one connection while it lasts."""
    writer: asyncio.StreamWriter | None = None
    while not stop.is_set():
        name = "m-" + "".join(random.choices("0123456789abcdefghijklmnopqrstuvwxyz", k=12))
        body = json.dumps({"model": f"lab/{name}", "messages": [{"role": "user", "content": "Hi"}]}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode() + body)
            sent["asked"] += 1
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            size = int(re.search(rb"content-length: *(\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]
            await reader.readexactly(size)
            sent["answered"] += 1
            await asyncio.sleep(random.random() * 2 * _PACE)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            sent["broken"] += 1
            if writer is not None:
                writer.close()
            writer = None
            await asyncio.sleep(0.05)
    if writer is not None:
        writer.close()


def is_shipper(pid: int) -> bool:
    """Whether a process holds the shipper's lock."""
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(link.endswith("shipper.lock") for link in links)


async def kill(gateway: Gateway, killed: Counter[str]) -> None:
    """End somebody: all of a gateway, which is started again, or one of its children."""
    children = gateway.family()[1:]
    victim = random.choice([0, *children]) if children else 0
    if victim:
        killed["shipper" if is_shipper(victim) else "worker"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        return
    killed["all"] += 1
    for pid in (gateway.pid, *children):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(gateway.stop)
    await asyncio.to_thread(gateway.start)


def targets(folder: LedgerFolder) -> Counter[bytes]:
    """How many rows each request has."""
    found: Counter[bytes] = Counter()
    for month in months_in(folder.root):
        connection = sqlite3.connect(month_file(folder.root, month))
        for (target,) in connection.execute("SELECT target FROM attempt"):
            found[target.removeprefix("lab/").encode()] += 1
        connection.close()
    return found


async def drill(kills: int, *, workers: int, gateways: int) -> tuple[str, bool]:
    """So many kills under load; what came of it, and whether that is enough."""
    Counting.asked = Counter()
    sent: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    provider = await asyncio.get_running_loop().create_server(Counting, "127.0.0.1", 0)
    port = provider.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state, contextlib.ExitStack() as stack:
        folder = LedgerFolder.of(Path(state))
        config = _CONFIG.format(state=state, port=port)
        running = []
        for _ in range(gateways):
            gateway = Gateway(config, "--workers", str(workers))
            gateway._command[-1] = str(free_port())
            running.append(await asyncio.to_thread(stack.enter_context, gateway))
        stop = asyncio.Event()
        count = _CALLERS * workers
        callers = [asyncio.create_task(call(each.port, stop, sent)) for each in running for _ in range(count)]
        began, down = time.monotonic(), 0.0
        for _ in range(kills):
            await asyncio.sleep(random.uniform(0.1, 0.5))
            fell = time.monotonic()
            await kill(random.choice(running), killed)
            down += time.monotonic() - fell  # until a whole gateway that was killed listens again
        await asyncio.sleep(0.5)
        rate = sum(Counting.asked.values()) / ((time.monotonic() - began) * gateways - down) / workers
        stop.set()
        await asyncio.gather(*callers)
        found, seconds = await asyncio.to_thread(settled, folder)
        rows = targets(folder)
    provider.close()
    missing = len(Counting.asked.keys() - rows.keys())
    double = sum(count > 1 for count in rows.values())
    more = sum(count > 1 for count in Counting.asked.values())
    words = (
        f"{sum(Counting.asked.values())} requests at the provider, {found.attempts} rows: "
        f"missing {missing}, double {double}, "
        f"open {found.going_on + found.waiting} after {seconds:.1f} s, differences {len(found.differences)}; "
        f"{sum(killed.values())} SIGKILL ({', '.join(f'{count} {who}' for who, count in sorted(killed.items()))}), "
        f"{rate:.0f} attempts/s a worker, workers: {workers}, gateways: {gateways}"
    )
    passed = not (missing or double or more or found.going_on or found.waiting or found.differences or found.set_aside)
    return words, passed and found.attempts >= len(Counting.asked) and seconds <= 2


def settled(folder: LedgerFolder) -> tuple[Checked, float]:
    """The check once nothing is open, and after how many seconds that was; ten are waited. The check itself, which
    takes seconds where there are many rows, is not in them."""
    began = time.monotonic()
    while count_open(folder) and time.monotonic() - began < 10:
        time.sleep(0.05)
    seconds = time.monotonic() - began
    while True:
        with contextlib.suppress(StoreAway):  # a file is just being put in its place
            return check(folder), seconds
        time.sleep(0.05)


def count_open(folder: LedgerFolder) -> int:
    """Attempts that wait in journals, or stand in the store without an end."""
    count = sum(journal.waiting for journal in list_journals(folder))
    for month in months_in(folder.root):
        with (
            closing(sqlite3.connect(month_file(folder.root, month))) as connection,
            contextlib.suppress(sqlite3.OperationalError),  # it is just being made
        ):
            count += connection.execute("SELECT count(*) FROM attempt WHERE state = 'reserved'").fetchone()[0]
    return count


def measure(scale: Scale, kills: int | None = None) -> Iterator[Result]:
    """One worker, two workers, two gateways on one folder."""
    goal = "missing 0, double 0, open 0 in ≤ 2 s, difference 0 nano-dollars"
    count = kills or scale.pick(100, 6)
    for workers, gateways in ((1, 1), (2, 1), (1, 2)):
        words, passed = asyncio.run(drill(count, workers=workers, gateways=gateways))
        yield Result("L1", goal, words, passed)


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"kills": 100}))
