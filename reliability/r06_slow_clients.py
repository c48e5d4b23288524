"""R6: clients that read slowly cost little memory, disturb nobody, and one that reads nothing is left."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

from dragoman.gateway.messages import Limits
from reliability.caller import Caller, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, Step, chunk, head
from reliability.row import Result, Scale, milliseconds, percentile

_KIB = 1024
#: Of a stream whose client is measured: words this far apart.
_TICK = 0.05


def delta(words: str) -> bytes:
    """An event of a chat stream."""
    return b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % words.encode()  # noqa: E501  # fmt: skip


def flood() -> Iterator[Step]:
    """Words without end, as fast as they are taken."""
    yield head()
    data = chunk(delta("word " * 20) * 20)
    while True:
        yield data


def ticking() -> Iterator[Step]:
    """A word every twentieth of a second, without end."""
    yield head()
    while True:
        yield chunk(delta("tick"))
        yield _TICK


def measure(scale: Scale) -> Iterator[Result]:
    """Slow readers of streams without end, beside a few that read as they should."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    slow, seconds = scale.pick(200, 100), scale.pick(60, 10)
    with Provider() as provider, Gateway(providers(provider.url)) as gateway:
        floods, ticks = provider.script(flood), provider.script(ticking)
        await watch(gateway, f"openai-chat/{ticks}", 2)
        calm = await gaps(gateway, f"openai-chat/{ticks}", min(seconds, 10))
        before = gateway.memory()
        readers = [asyncio.create_task(read_slowly(gateway, f"openai-chat/{floods}", seconds)) for _ in range(slow)]
        growing = asyncio.create_task(grown(gateway, before, seconds))
        await filled(provider, floods)
        busy = await gaps(gateway, f"openai-chat/{ticks}", min(seconds, 10))
        most = await growing
        delivered = await asyncio.gather(*readers)
        left = await stalled(gateway, provider, floods) if not scale.quick else None
    more = percentile(busy, 0.99) - percentile(calm, 0.99)
    growth = f"+{most / 2**20:.1f} MiB with {slow} streams ({most / slow / _KIB:.0f} KiB each) in {seconds} s"
    alive = sum(bool(size) for size in delivered)
    results = [
        Result("R6", "process growth ≤ 64 MiB, ≤ 256 KiB a stream", f"{growth}; {alive} still read at the end",
               most <= 64 * 2**20 and most / slow <= 256 * _KIB and alive == slow),
        Result("R6", "others' p99 between chunks + ≤ 5 ms",
               f"+{milliseconds(max(0.0, more))} (p99 {milliseconds(percentile(busy, 0.99))}, before "
               f"{milliseconds(percentile(calm, 0.99))})", more <= 0.005),
    ]  # fmt: skip
    if left is not None:
        limit = Limits().stall_seconds
        results.append(
            Result("R6", "a client that reads nothing is left after 30 s, and its provider closed",
                   f"after {left:.0f} s (the limit is {limit:.0f} s)", left <= 35)
        )  # fmt: skip
    return results


async def filled(provider: Provider, script: str) -> None:
    """Wait until all buffers on the way are full, those of the kernel above all."""
    before = -1
    while (now := sum(asked.sent for asked in provider.asked)) > before * 1.01:
        before = now
        await asyncio.sleep(2)


async def read_slowly(gateway: Gateway, model: str, seconds: float) -> int:
    """Read 1 KiB a second; gives what came in the last 5 seconds."""
    caller = await Caller.connect(gateway.port, buffer=4 * _KIB)
    await caller.send(rendered(*spoken("openai-chat", model)))
    deadline = time.monotonic() + seconds
    recent = 0
    while (now := time.monotonic()) < deadline:
        data = await asyncio.wait_for(caller.reader.read(_KIB), deadline - now + 5)
        recent = recent + len(data) if deadline - now < 5 else 0
        await asyncio.sleep(1)
    caller.reset()
    return recent


async def watch(gateway: Gateway, model: str, seconds: float) -> list[float]:
    """When each chunk of a stream came."""
    caller = await Caller.connect(gateway.port)
    await caller.send(rendered(*spoken("openai-chat", model)))
    deadline = time.monotonic() + seconds
    times = []
    while time.monotonic() < deadline:
        await caller.reader.readuntil(b"\n\n")
        times.append(time.monotonic())
    caller.reset()
    return times


async def gaps(gateway: Gateway, model: str, seconds: float) -> list[float]:
    """Seconds between the chunks of a few streams."""
    found = await asyncio.gather(*(watch(gateway, model, seconds) for _ in range(5)))
    return [later - earlier for times in found for earlier, later in itertools.pairwise(times[2:])]


async def grown(gateway: Gateway, before: int, seconds: float) -> int:
    """The most that the process grew by."""
    most = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        most = max(most, await asyncio.to_thread(gateway.memory) - before)
        await asyncio.sleep(1)
    return most


async def stalled(gateway: Gateway, provider: Provider, script: str) -> float:
    """Seconds until a client that reads nothing is left; 200 when it is not."""
    caller = await Caller.connect(gateway.port, buffer=4 * _KIB)
    await caller.send(rendered(*spoken("openai-chat", f"openai-chat/{script}")))
    began = time.monotonic()
    await asyncio.sleep(1)
    asked = provider.asked[-1]
    while asked.closed is None and time.monotonic() - began < 200:
        await asyncio.sleep(0.1)
    caller.reset()
    return time.monotonic() - began
