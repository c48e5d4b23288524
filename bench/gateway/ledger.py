"""What the ledger costs a request and a chunk: gateways in one process, off, on, and with three quotas, asked in turns.

    .venv/bin/python bench/gateway/ledger.py [--rounds 15]

Prints microseconds of CPU of the whole process (client, provider, gateway, and the shipper's thread), medians of the
rounds, and the median of the differences within a round. Then how fast a prepared journal is delivered.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop
from inside import EVENTS, Provider, client, request

from dragoman.config import load_config
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.process.gateway import Gateway
from dragoman.gateway.telemetry.record import Observer
from dragoman.ledger.checking import check
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal import Journal
from dragoman.ledger.records import Intent, Settlement
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.sqlite import SqliteStore

_CONFIG = """
[server]
log = "off"
[providers.clean]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
clean = true
[providers.full]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
[prices."clean/m"]
input = 2.5
output = 10
[prices."full/m"]
input = 2.5
output = 10
"""
#: Name → path, model, whether the answer is streamed, requests of a sample.
_ROWS = {
    "request, bytes pass": ("/v1/chat/completions", "clean/m", False, 300),
    "request, all stages": ("/v1/chat/completions", "full/m", False, 150),
    "stream of 204 chunks, bytes pass": ("/v1/chat/completions", "clean/m", True, 60),
    "stream of 204 chunks, all stages": ("/v1/messages", "full/m", True, 40),
}
#: Three accounts of each request, far from their limits.
_QUOTAS = """
[[quotas]]
scope = "all"
usd = 1_000_000
per = "month"
[[quotas]]
scope = "all"
tokens = 1_000_000_000_000
per = "day"
[[quotas]]
scope = "all"
requests = 1_000_000_000
per = "minute"
"""
_ATTEMPTS = 200_000


async def cost(ask: Callable[[bytes], Awaitable[bytes]], asked: bytes, count: int) -> float:
    """Microseconds of CPU of one request."""
    before = time.process_time()
    for _ in range(count):
        await ask(asked)
    return (time.process_time() - before) / count * 1e6


async def compare(rounds: int) -> None:
    loop = asyncio.get_running_loop()
    provider = await loop.create_server(Provider, "127.0.0.1", 0)
    port = provider.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(_CONFIG.format(port=port))
        config = load_config(file, environ={}, home=Path(folder))
        observer = Observer()
        ledger = LedgerFolder.of(Path(folder) / "state")
        off = await Gateway.open(config, host="127.0.0.1")
        on = await Gateway.open(config, host="127.0.0.1", observer=observer, ledger=Ledger(ledger, observer))
        file.write_text(_CONFIG.format(port=port) + _QUOTAS)
        limited = load_config(file, environ={}, home=Path(folder))
        other = Ledger(LedgerFolder.of(Path(folder) / "limited"), observer)
        limits = await Gateway.open(limited, host="127.0.0.1", observer=observer, ledger=other)
        asks = [await client(gateway.port) for gateway in (off, on, limits)]
        print("| what | off | on | more a request | a chunk | with three quotas, more than off |")
        print("|---|--:|--:|--:|--:|--:|")
        for name, (path, model, stream, count) in _ROWS.items():
            asked = request(path, model, stream=stream, size=400)
            samples: list[list[float]] = []
            for ask in asks:
                await cost(ask, asked, count)
            for number in range(rounds):
                order = [(number + place) % len(asks) for place in range(len(asks))]
                found = {place: await cost(asks[place], asked, count) for place in order}
                samples.append([found[place] for place in range(len(asks))])
            medians = [statistics.median(side) for side in zip(*samples, strict=True)]
            more, most = (statistics.median(each[place] - each[0] for each in samples) for place in (1, 2))
            chunk = f"{more / EVENTS:.2f} µs" if stream else "–"
            print(
                f"| {name} | {medians[0]:.0f} µs | {medians[1]:.0f} µs | {more:+.1f} µs | {chunk} | {most:+.1f} µs |",
                flush=True,
            )
        for gateway in (off, on, limits):
            await gateway.close()
        print(f"rows: {check(ledger).attempts}, differences: {len(check(ledger).differences)}")
    provider.close()


def deliver() -> None:
    """A prepared journal."""
    with tempfile.TemporaryDirectory() as name:
        folder = LedgerFolder(Path(name))
        journal = Journal(folder.journals)
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(_ATTEMPTS):
            started = time.time_ns() // 1_000
            id = journal.ids.next(started)
            key, target = f"key-{number % 50}", f"lab/model-{number % 20}"
            journal.intend(Intent(id, f"request-{number}", 0, started, key, "", "", "coder", target, 2_000))
            end = time.time_ns() // 1_000
            journal.settle(Settlement(id, end, "settled", 12_345, None, 500, 80, None, None, None, True, "", 200))
        used = time.process_time() - cpu
        print(f"{_ATTEMPTS} attempts written: {used / _ATTEMPTS * 1e6:.1f} µs CPU each, both records")
        journal.close()
        shipper = Shipper(folder, SqliteStore(folder.root), batch=2_048)
        began, cpu = time.perf_counter(), time.process_time()
        shipper.round()
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        found = check(folder)
        print(
            f"delivered: {_ATTEMPTS / seconds:,.0f}/s by the clock, {_ATTEMPTS / used:,.0f}/s of CPU "
            f"({used / _ATTEMPTS * 1e6:.1f} µs each); {found.attempts} rows, sound: {found.is_sound}; "
            f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    uvloop.run(compare(parser.parse_args().rounds))
    deliver()


if __name__ == "__main__":
    main()
