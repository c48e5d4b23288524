"""What the ledger costs a request and a chunk: gateways in one process, off, on, and with three quotas, asked in turns.

    .venv/bin/python bench/gateway/ledger.py [--rounds 15]

Prints microseconds of CPU of the whole process (client, provider, gateway, and the shipper's thread), medians of the
rounds, the median of the differences within a round, and the differences of the least, which say most on a busy
machine. What a chunk costs is what four times the pieces cost more. Then the same in bytecodes of the event loop's
thread, which no load changes, and what the event loop alone does. Then how fast a prepared journal is delivered.
Between them the same requests in short slices, by the clocks of the threads (`whole`): it says what belongs to whom.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop
from inside import EVENTS, Provider, client, request, streamed

from dragoman.config import load_config
from dragoman.events import Finish
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.messages import Head
from dragoman.gateway.process.gateway import Gateway
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.record import Observer, begin_record
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.records import Intent, Settlement
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.reports.checking import check
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.ledger.waking import Sleeper
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.resolve import resolve
from dragoman.types import Usage

_PROVIDER = """
[providers.{name}]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
clean = {clean}
[prices."{name}/m"]
input = 2.5
output = 10
"""
#: A long stream has so many times the pieces.
_TIMES = 4
_MORE_PIECES = (EVENTS - 4) * (_TIMES - 1)
#: Name → path, model, whether the answer is streamed, requests of a sample.
_ROWS = {
    "request, bytes pass": ("/v1/chat/completions", "clean/m", False, 300),
    "request, all stages": ("/v1/chat/completions", "full/m", False, 150),
    "stream of 204 chunks, bytes pass": ("/v1/chat/completions", "clean/m", True, 60),
    "stream of 204 chunks, all stages": ("/v1/messages", "full/m", True, 40),
    "stream of 804 chunks, bytes pass": ("/v1/chat/completions", "clean-long/m", True, 20),
    "stream of 804 chunks, all stages": ("/v1/messages", "full-long/m", True, 15),
}
#: Long stream → the short one.
_SHORTER = {name: name.replace("804", "204") for name in _ROWS if "804" in name}
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
#: Requests of a slice, and seconds until all rows are delivered.
_SLICE = 6
_UNTIL_DELIVERED = 2.2


class Long(Provider):
    """Its streams have more pieces."""

    streamed = streamed(_TIMES)


Ask = Callable[[bytes], Awaitable[bytes]]


async def cost(ask: Ask, asked: bytes, count: int) -> float:
    """Microseconds of CPU of one request."""
    before = time.process_time()
    for _ in range(count):
        await ask(asked)
    return (time.process_time() - before) / count * 1e6


async def bytecodes(ask: Ask, asked: bytes) -> int:
    """Of one request, in this thread: the least of some."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    found = []
    for _ in range(5):
        count = 0
        sys.settrace(trace)
        try:
            await ask(asked)
        finally:
            sys.settrace(None)
        found.append(count)
    return min(found)


@asynccontextmanager
async def gateways() -> AsyncIterator[list[Ask]]:
    """Clients of three: without a ledger, with one, and with three quotas."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        config = '[server]\nlog = "off"\n'
        for suffix, kind in (("", Provider), ("-long", Long)):
            provider = await loop.create_server(kind, "127.0.0.1", 0)
            stack.callback(provider.close)
            port = provider.sockets[0].getsockname()[1]
            for name, clean in (("clean", "true"), ("full", "false")):
                config += _PROVIDER.format(name=name + suffix, port=port, clean=clean)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "dragoman.toml"
        asks = []
        for name, quotas in (("off", ""), ("on", ""), ("limited", _QUOTAS)):
            file.write_text(config + quotas)
            loaded = load_config(file, environ={}, home=folder)
            observer = Observer()
            ledger = None if name == "off" else Ledger(LedgerFolder.of(folder / name), observer)
            gateway = await Gateway.open(loaded, host="127.0.0.1", observer=observer, ledger=ledger)
            stack.push_async_callback(gateway.close)
            asks.append(await client(gateway.port))
        yield asks
        for name in ("on", "limited"):
            found = check(LedgerFolder.of(folder / name))
            print(f"rows: {found.attempts}, differences: {len(found.differences)}")


async def compare(rounds: int) -> None:
    async with gateways() as asks:
        print("| what | off | on | more a request | more a chunk | with three quotas, more than off | of the least |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        known: dict[str, list[list[float]]] = {}
        for name, (path, model, stream, count) in _ROWS.items():
            asked = request(path, model, stream=stream, size=400)
            samples = known[name] = []
            for ask in asks:
                await cost(ask, asked, count)
            for number in range(rounds):
                order = [(number + place) % len(asks) for place in range(len(asks))]
                found = {place: await cost(asks[place], asked, count) for place in order}
                samples.append([found[place] for place in range(len(asks))])
            least = [min(side) for side in zip(*samples, strict=True)]
            medians = [statistics.median(side) for side in zip(*samples, strict=True)]
            more, most = (statistics.median(each[place] - each[0] for each in samples) for place in (1, 2))
            chunk = "–"
            if name in _SHORTER:
                short = known[_SHORTER[name]]
                long = statistics.median(each[1] - each[0] for each in samples)
                chunk = f"{(long - statistics.median(each[1] - each[0] for each in short)) / _MORE_PIECES:+.3f} µs"
            print(
                f"| {name} | {medians[0]:.0f} µs | {medians[1]:.0f} µs | {more:+.1f} µs | {chunk} | {most:+.1f} µs "
                f"| {least[1] - least[0]:+.1f}, {least[2] - least[0]:+.1f} µs |",
                flush=True,
            )


async def whole(rounds: int) -> None:
    """A request whole, in short slices of each gateway in turns: the event loop's thread by its own clock, and each
    shipper's thread by its, for each row that it delivered meanwhile. Slices are short, so that nobody else takes the
    processor within most of them: the hundredth, a tenth and the median say how much else the machine had to do."""
    async with gateways() as asks:
        shippers = [thread for thread in threading.enumerate() if thread.name == "dragoman-shipper"]
        clocks = [time.pthread_getcpuclockid(thread.ident or 0) for thread in shippers]
        for name in ("request, bytes pass", "request, all stages"):
            path, model, stream, _ = _ROWS[name]
            asked = request(path, model, stream=stream, size=400)
            for ask in asks:
                await cost(ask, asked, 200)
            await asyncio.sleep(_UNTIL_DELIVERED)
            before = [time.clock_gettime(clock) for clock in clocks]
            slices: list[list[float]] = [[] for _ in asks]
            for number in range(rounds):
                for step in range(len(asks)):
                    place = (number + step) % len(asks)
                    began = time.thread_time()
                    for _ in range(_SLICE):
                        await asks[place](asked)
                    slices[place].append((time.thread_time() - began) / _SLICE * 1e6)
            await asyncio.sleep(_UNTIL_DELIVERED)
            used = [time.clock_gettime(clock) - first for clock, first in zip(clocks, before, strict=True)]
            rows = [seconds / (rounds * _SLICE) * 1e6 for seconds in used]
            for share in (0.01, 0.1, 0.5):
                off, on, limited = [sorted(found)[int(len(found) * share)] for found in slices]
                words = f"loop {off:.1f} µs, on {on - off:+.1f}, with three quotas {limited - off:+.1f}"
                print(f"{name}, slices of {share:.0%}: {words}")
            words = f"shipper {rows[0]:.1f} µs a row, {rows[1]:.1f} with three quotas"
            print(f"{name}: {words}; load {os.getloadavg()[0]:.0f}")


async def count_bytecodes() -> None:
    async with gateways() as asks:
        print("| what | off | on | more a request | more a chunk | with three quotas, more than off |")
        print("|---|--:|--:|--:|--:|--:|")
        known: dict[str, int] = {}
        for name, (path, model, stream, _) in _ROWS.items():
            asked = request(path, model, stream=stream, size=400)
            for ask in asks:
                await cost(ask, asked, 4)
            off, on, limited = [await bytecodes(ask, asked) for ask in asks]
            known[name] = on - off
            chunk = f"{(on - off - known[_SHORTER[name]]) / _MORE_PIECES:+.3f}" if name in _SHORTER else "–"
            print(f"| {name} | {off:,} | {on:,} | {on - off:+,} | {chunk} | {limited - off:+,} |", flush=True)


def parts(count: int = 3_000, rounds: int = 15) -> None:
    """What the event loop alone does for a request: its meter, both records and the ring; and three quotas beside."""
    body = b'{"model":"m","messages":[{"role":"user","content":"%b"}],"max_tokens":256}' % (b"x" * 400)
    outgoing = Outgoing("POST", "http://127.0.0.1:9/v1/chat/completions", {}, body)
    told = Finish("stop", usage=Usage(120, 200))
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        ledgers = []
        for kind, quotas in (("on", ""), ("limited", _QUOTAS)):
            file = Path(name) / "dragoman.toml"
            file.write_text(_PROVIDER.format(name="clean", port=9, clean="true") + quotas)
            config = load_config(file, environ={}, home=Path(name))
            ledger = Ledger(LedgerFolder.of(Path(name) / kind), Observer(), ships=False)
            ledger.pricing = Pricing(config)
            ledger.limit(config.quotas)
            stack.callback(ledger.close)
            ledgers.append((ledger, resolve("clean/m", config)))
            stack.callback(Sleeper(ledger.folder).close)  # a shipper that is awake
        record = begin_record(Head("POST", "/v1/chat/completions", {}))
        least = [float("inf"), float("inf")]
        for _ in range(rounds):
            for place, (ledger, target) in enumerate(ledgers):
                began = time.process_time()
                for _ in range(count):
                    meter = ledger.meter(record, has_keys=False)
                    meter.begin(target)
                    meter.admit(outgoing)
                    meter.send(outgoing)
                    meter.end("answered", told)
                    meter.close()
                least[place] = min(least[place], (time.process_time() - began) / count * 1e6)
        print(f"in the event loop alone, the least: {least[0]:.1f} µs a request, {least[1]:.1f} with three quotas")


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
    rounds = parser.parse_args().rounds
    uvloop.run(compare(rounds))
    uvloop.run(whole(60 * rounds))
    uvloop.run(count_bytecodes())
    parts()
    deliver()


if __name__ == "__main__":
    main()
