"""R14: connections to providers are used again, and none is lost when clients give up at any moment."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator

from reliability.caller import Caller, ask, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head, whole
from reliability.r06_slow_clients import delta
from reliability.row import Result, Scale, milliseconds

_ANSWER = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]}).encode()  # fmt: skip
_AT_ONCE = 100


def slowly() -> Iterator[Step]:
    """A stream of a few milliseconds."""
    yield 0.002
    yield head()
    for _ in range(5):
        yield 0.002
        yield chunk(delta("word "))
    yield chunk(b"data: [DONE]\n\n")
    yield END


def measure(scale: Scale) -> Iterator[Result]:
    """Cancels at random moments; requests one after the other; a server that closes what it promised to keep."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    count = scale.pick(20_000, 2_000)
    with Provider() as provider, Gateway(providers(provider.url)) as gateway:
        script = provider.script(slowly)
        path, body = spoken("openai-chat", f"openai-chat/{script}")
        data = rendered(path, body)
        for _ in range(50):
            await ask(gateway.port, path, body)
        await asyncio.sleep(0.2)
        files = gateway.files()
        chance = random.Random(14)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def give_up() -> None:
            async with slots:
                caller = await Caller.connect(gateway.port)
                await caller.send(data)
                await asyncio.sleep(chance.random() * 0.03)
                caller.reset() if chance.random() < 0.5 else caller.close()

        for _ in range(count // 1000):
            await asyncio.gather(*(give_up() for _ in range(1000)))
        # They come faster than they are taken: thousands of connections, most of them closed already, wait in the
        # kernel's queue for the gateway to accept them, and whoever comes now waits behind all of those.
        began = time.monotonic()
        await ask(gateway.port, "/livez", method="GET")
        line = time.monotonic() - began
        await asyncio.sleep(1)
        held = len(provider.open_connections)
        probes = [await probe(gateway, path, body) for _ in range(10)]
        good = sum(whole and seconds <= 0.05 for whole, seconds in probes)
        await asyncio.sleep(0.2)
        busy = sum(connection._task is not None for connection in provider.open_connections)
        before = provider.connections
        answers = [await probe(gateway, path, body) for _ in range(300)]
        reused = 1 - (provider.connections - before) / len(answers)
        promised = await closing(gateway, provider, scale.pick(500, 100))
        more = gateway.files() - files - max(0, len(provider.open_connections) - 1)
        note = " (scaled down from 100,000)"
        return [
            Result("R14", "0 leaked after cancels",
                   f"{busy} busy with nobody's request, {held} kept, {more:+d} file descriptors beside them, "
                   f"of {count} cancels{note}", not busy and more <= 2),
            Result("R14", "10 of 10 probes ≤ 50 ms",
                   f"{good}, most {milliseconds(max(seconds for _, seconds in probes))} (12 ms of it the answer), "
                   f"after the line at the door had passed in {milliseconds(line)}",
                   good == 10),
            Result("R14", "≥ 95 % on a kept connection", f"{reused:.1%} of {len(answers)}", reused >= 0.95),
            Result("R14", "a kept connection that the server closes fails no request", f"{promised} failed",
                   not promised),
        ]  # fmt: skip


async def probe(gateway: Gateway, path: str, body: bytes) -> tuple[bool, float]:
    began = time.monotonic()
    answer = await ask(gateway.port, path, body)
    return answer.whole and answer.status == 200, time.monotonic() - began


async def closing(gateway: Gateway, provider: Provider, count: int) -> int:
    """A server that promises to keep its connection and closes it after each answer, at once or a moment later."""
    failed = 0
    for number in range(count):
        steps: list[Step] = [*whole(_ANSWER), *([0.001 * (number % 5)] if number % 5 else []), "close"]
        path, body = spoken("openai-chat", f"openai-chat/{provider.script(steps)}", stream=False)
        found, _ = await probe(gateway, path, body)
        failed += not found
        if number % 3:
            await asyncio.sleep(0.001 * (number % 4))
    return failed
