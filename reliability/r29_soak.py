"""R29: good, broken and hostile traffic of all kinds for half an hour, beside a file that changes: nothing grows."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.events import Reply
from dragoman.types import NO_USAGE, Text
from reliability import PROJECT
from reliability.caller import Caller, rendered, spoken
from reliability.h04_bounds import arguments
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, cut, head, whole, wire
from reliability.r13_reload import _ANSWER
from reliability.r20_fuzz import _NASTY
from reliability.row import Result, Scale, milliseconds, percentile

_MIB = 1024 * 1024
#: The provider of the good questions, in a process of its own.
_GOOD = '[providers.good]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
_WEIGHTS = {"stream": 40, "gone": 25, "broken": 12, "nonsense": 12, "hostile": 6, "held": 5}


def measure(scale: Scale) -> Iterator[Result]:
    """A good request each 0.1 s, alone first; then eight others at a time beside it. SOAK_SECONDS sets another time.

    An idle gateway is asked in the same way meanwhile: what a loaded machine does to it is no work of the others.
    """
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    seconds = int(os.environ.get("SOAK_SECONDS", scale.pick(1800, 120)))
    with Provider(whole(_ANSWER)) as provider:
        asking, control = await Asking.start(), await Asking.start()
        try:
            settings, others = (providers(provider.url, _GOOD.format(port=each.port)) for each in (asking, control))
            with Gateway(settings) as gateway, Gateway(others) as idle:
                control.tell(str(idle.port))
                return await _soak(gateway, provider, asking, control, seconds)
        finally:
            await asking.end()
            await control.end()


async def _soak(gateway: Gateway, provider: Provider, asking: Asking, control: Asking, seconds: int) -> list[Result]:
    asking.tell(str(gateway.port))
    await asyncio.sleep(min(60.0, seconds / 4))
    calm = await asking.stretch()
    await control.stretch()
    until = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    sizes: list[tuple[float, Memory]] = []
    working = [asyncio.create_task(mixed(gateway, provider, counts, until)) for _ in range(8)]
    working += [asyncio.create_task(change(gateway, until)), asyncio.create_task(weigh(gateway, sizes, until))]
    files = gateway.files()
    await asyncio.gather(*working)
    beside = await asking.stretch()
    idle = await control.stretch()
    await asyncio.sleep(5)
    more, alive = gateway.files() - files, gateway.is_running
    told = f"{len(beside.times):,} of good requests, {sum(counts.values()):,} others in {seconds} s"
    print("   ", dict(counts), f"{more:+d} files; MiB each minute, own and resident:", by_minute(sizes))
    own, error = slope_of([(at, size.own) for at, size in sizes if at - sizes[0][0] >= seconds / 3])
    resident, _ = slope_of([(at, size.resident) for at, size in sizes if at - sizes[0][0] >= seconds / 3])
    grown = f"{own:+.2f} ± {2 * error:.2f} MiB an hour behind the first third of {seconds} s ({resident:+.2f} resident)"
    slow, usual, elsewhere = (percentile(each.times, 0.99) for each in (beside, calm, idle))
    late = f"the system alone {milliseconds(percentile(beside.late, 0.99))}"
    return [
        Result("R29", "memory: slope ≤ 1 MiB an hour", grown, own <= 1 and alive),
        Result("R29", "0 good requests failed", f"{beside.failed} failed; {told}", not beside.failed),
        Result("R29", "p99 of good ones beside hostile ones ≤ + 50 ms to that alone, or of an idle gateway meanwhile",
               f"{milliseconds(slow)} ({late}), {milliseconds(usual)} alone, {milliseconds(elsewhere)} of the idle one",
               slow <= max(usual, elsewhere) + 0.05),
    ]  # fmt: skip


class Stretch(NamedTuple):
    """What the good questions saw for a while; seconds."""

    times: list[float]
    late: list[float]
    failed: int


class Asking:
    """The process of `asking.py`: whatever this one is busy with does not count."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    @classmethod
    async def start(cls) -> Asking:
        command = [sys.executable, "-m", "reliability.asking"]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=PROJECT, limit=64 * _MIB)
        assert process.stdout is not None
        return cls(process, int(await process.stdout.readline()))

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def stretch(self) -> Stretch:
        """End a stretch of questions; gives what it saw."""
        self.tell("next")
        assert self._process.stdout is not None
        return Stretch(**json.loads(await self._process.stdout.readline()))

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def mixed(gateway: Gateway, provider: Provider, counts: Counter[str], until: float) -> None:
    """Others, one after the other."""
    chance = random.Random()
    while time.monotonic() < until:
        [kind] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        try:
            async with asyncio.timeout(20):
                await one(kind, gateway, provider, chance)
        except (OSError, TimeoutError, EOFError):  # it asks for that
            pass
        except Exception as problem:  # an answer that cannot be read ends no half an hour, and is told
            counts[f"{kind}, unread: {type(problem).__name__}"] += 1
        counts[kind] += 1
        await asyncio.sleep(chance.random() * 0.25)


async def one(kind: str, gateway: Gateway, provider: Provider, chance: random.Random) -> None:
    client, protocol = chance.choice(list(BASE)), chance.choice(list(BASE))
    reply = Reply("r", "m", 1, (Text("word " * 50),), "stop", None, NO_USAGE, None, None, (), ())
    data = wire(protocol, reply)
    steps: list[Step] = [head(), chunk(data), END]
    if kind == "broken":
        place = chance.randrange(len(data))
        steps = chance.choice([
            cut(protocol, data[:place], chance.choice(["reset", "close", END])),
            [head(), chunk(data[:place] + chance.choice(_NASTY) + data[place:]), END],
            whole(b'{"error":{"message":"no"}}', chance.choice([400, 429, 500])),
        ])  # fmt: skip
    elif kind == "hostile":
        steps = arguments('{"a":"' + chance.choice(["\n", '""', "“", "\\u"]) * 20_000)
        client, protocol = "anthropic-messages", "openai-chat"
    elif kind in ("gone", "held"):
        steps = [head(), chunk(data[: len(data) // 2]), 1.0, chunk(data[len(data) // 2 :]), END]
    elif kind == "nonsense":
        caller = await Caller.connect(gateway.port)
        await caller.send(
            chance.choice([b"GET / HTTP/1.1\r\n", bytes(300), b"PRI * HTTP/2.0\r\n\r\n", b"\x16\x03\x01"])
        )
        await asyncio.sleep(chance.random() * 0.2)
        caller.close()
        return
    path, body = spoken(client, f"{protocol}/{provider.script(steps)}")
    caller = await Caller.connect(gateway.port)
    try:
        await caller.send(rendered(path, body))
        if kind in ("gone", "held"):
            await asyncio.sleep(chance.random() * (0.3 if kind == "gone" else 1.5))
            if chance.random() < 0.5:
                caller.reset()
        else:
            await caller.answer()
    finally:
        caller.close()


async def change(gateway: Gateway, until: float) -> None:
    """The file changes each five seconds, every fifth time to a wrong one."""
    text = gateway.file.read_text(encoding="utf-8")
    number = 0
    while time.monotonic() < until:
        await asyncio.sleep(5)
        number += 1
        fresh = gateway.file.with_suffix(".new")
        fresh.write_text(("nonsense = [[[\n" if number % 5 == 0 else f"# {number}\n") + text, encoding="utf-8")
        os.replace(fresh, gateway.file)


class Memory(NamedTuple):
    """Bytes. `own`: what the process tree made itself (Pss_Anon), which no other process's coming and going changes;
    `resident`: with the pages of files that are mapped (Pss)."""

    own: int
    resident: int


async def weigh(gateway: Gateway, sizes: list[tuple[float, Memory]], until: float) -> None:
    """Its memory, each second."""
    while time.monotonic() < until:
        sizes.append((time.monotonic(), Memory(gateway.memory("Pss_Anon"), gateway.memory())))
        await asyncio.sleep(1)


def by_minute(sizes: list[tuple[float, Memory]]) -> str:
    """The medians of each minute."""
    began = sizes[0][0]
    minutes: dict[int, list[Memory]] = {}
    for at, size in sizes:
        minutes.setdefault(int(at - began) // 60, []).append(size)
    return ", ".join(
        f"{statistics.median(size.own for size in of) / _MIB:.1f}/"
        f"{statistics.median(size.resident for size in of) / _MIB:.1f}"
        for of in minutes.values()
    )


def slope_of(sizes: list[tuple[float, int]]) -> tuple[float, float]:
    """MiB an hour by least squares through the medians of each minute, and its standard error: what is weighed second
    by second hangs together, so seconds would tell of more certainty than there is."""
    minutes: dict[int, list[int]] = {}
    for at, size in sizes:
        minutes.setdefault(int(at - sizes[0][0]) // 60, []).append(size)
    points = [(minute / 60, statistics.median(of) / _MIB) for minute, of in minutes.items() if len(of) > 10]
    if len(points) < 3:
        return math.nan, math.nan
    middle, mean = (statistics.fmean(column) for column in zip(*points, strict=True))
    spread = sum((at - middle) ** 2 for at, _ in points)
    slope = sum((at - middle) * (size - mean) for at, size in points) / spread
    rest = sum((size - mean - slope * (at - middle)) ** 2 for at, size in points)
    return slope, math.sqrt(rest / (len(points) - 2) / spread)
