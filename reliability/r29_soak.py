"""R29: good, broken and hostile traffic of all kinds for half an hour, beside a file that changes: nothing grows."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from dragoman.events import Reply
from dragoman.types import NO_USAGE, Text
from reliability.caller import Caller, ask, rendered, spoken
from reliability.h04_bounds import arguments
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, cut, head, whole, wire
from reliability.r13_reload import _ANSWER
from reliability.r20_fuzz import _NASTY
from reliability.row import Result, Scale, milliseconds, percentile

_MIB = 1024 * 1024
_WEIGHTS = {"stream": 40, "gone": 25, "broken": 12, "nonsense": 12, "hostile": 6, "held": 5}


def measure(scale: Scale) -> Iterator[Result]:
    """A good request each 0.1 s, alone first; then eight others at a time beside it. SOAK_SECONDS sets another time."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    seconds = int(os.environ.get("SOAK_SECONDS", scale.pick(1800, 120)))
    with Provider(whole(_ANSWER)) as provider, Gateway(providers(provider.url)) as gateway:
        good = Good(gateway)
        await good.ask_for(min(20.0, seconds / 6))
        calm, good.times = percentile(good.times, 0.99), []
        until = time.monotonic() + seconds
        counts: Counter[str] = Counter()
        sizes: list[tuple[float, int]] = []
        working = [asyncio.create_task(mixed(gateway, provider, counts, until)) for _ in range(8)]
        working += [asyncio.create_task(change(gateway, until)), asyncio.create_task(weigh(gateway, sizes, until))]
        files = gateway.files()
        await good.ask_for(seconds)
        await asyncio.gather(*working)
        await asyncio.sleep(5)
        more = gateway.files() - files
        alive = gateway.is_running
    warm = [(at, size) for at, size in sizes if at - sizes[0][0] >= seconds / 3]
    slope = slope_of(warm) * 3600 / _MIB
    beside = percentile(good.times, 0.99)
    told = f"{len(good.times):,} of good requests, {sum(counts.values()):,} others in {seconds} s"
    print("   ", dict(counts), f"{sizes[0][1] / _MIB:.1f} → {sizes[-1][1] / _MIB:.1f} MiB, {more:+d} files")
    grown = f"{slope:+.1f} MiB an hour behind the first third of {seconds} s"
    return [
        Result("R29", "memory: slope ≤ 1 MiB an hour", grown, slope <= 1 and alive),
        Result("R29", "0 good requests failed", f"{good.failed} failed; {told}", not good.failed),
        Result("R29", "p99 of good ones beside hostile ones ≤ + 50 ms",
               f"{milliseconds(beside)}, {milliseconds(calm)} alone", beside <= calm + 0.05),
    ]  # fmt: skip


class Good:
    """Asks a good question again and again."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.times: list[float] = []
        self.failed = 0

    async def ask_for(self, seconds: float) -> None:
        """One at a time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                async with asyncio.timeout(20):
                    answer = await ask(self._gateway.port, *spoken("openai-chat", "openai-chat/m", stream=False))
                self.failed += answer.status != 200
                self.times.append(time.monotonic() - began)
            except (OSError, TimeoutError):
                self.failed += 1
            await asyncio.sleep(0.1)


async def mixed(gateway: Gateway, provider: Provider, counts: Counter[str], until: float) -> None:
    """Others, one after the other."""
    chance = random.Random()
    while time.monotonic() < until:
        [kind] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        with suppress(OSError, TimeoutError, EOFError):
            async with asyncio.timeout(20):
                await one(kind, gateway, provider, chance)
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


async def weigh(gateway: Gateway, sizes: list[tuple[float, int]], until: float) -> None:
    """Its memory, each second."""
    while time.monotonic() < until:
        sizes.append((time.monotonic(), gateway.memory()))
        await asyncio.sleep(1)


def slope_of(sizes: list[tuple[float, int]]) -> float:
    """Bytes a second, by least squares."""
    middle = sum(at for at, _ in sizes) / len(sizes)
    mean = sum(size for _, size in sizes) / len(sizes)
    return sum((at - middle) * (size - mean) for at, size in sizes) / sum((at - middle) ** 2 for at, _ in sizes)
