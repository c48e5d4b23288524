"""R9: connections that send their request slowly are closed, and good clients do not notice them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress

from dragoman.gateway.messages import Limits
from reliability.caller import Caller, ask
from reliability.process import Gateway, providers
from reliability.provider import Provider
from reliability.row import Result, Scale, milliseconds, percentile

_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
_PATIENCE = 40


def measure(scale: Scale) -> Iterator[Result]:
    """Slow heads, slow bodies, and connections that say nothing, while good clients ask once in a while."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    count = scale.pick(1000, 300)
    limits = Limits()
    with Provider() as provider, Gateway(providers(provider.url)) as gateway:
        calm, _ = await good(gateway, 3)
        results = []
        for what, begin, limit in (
            ("heads", _HEAD, limits.head_seconds),
            ("bodies", _HEAD + b"content-length: 100000\r\n\r\n", 2 * limits.body_seconds),
            ("silent connections", b"", limits.head_seconds),
        ):
            slow = [asyncio.create_task(drip(gateway.port, begin, number / count)) for number in range(count)]
            busy, refused = await good(gateway, 8)
            lives = await asyncio.gather(*slow)
            longest = max(lives)
            more = percentile(busy, 0.99) - percentile(calm, 0.99)
            measured = (
                f"{count} slow {what}: closed after {min(lives):.1f} to {longest:.1f} s; good clients' p99 "
                f"{more * 1000:+.1f} ms (from {milliseconds(percentile(calm, 0.99))}), {refused} refused"
            )
            goal = {
                "heads": "slow heads closed ≤ 10 s",
                "bodies": f"< 1 KiB/s for 10 s: closed (looked at every {limits.body_seconds:g} s)",
                "silent connections": "no request: closed ≤ 10 s",
            }[what]
            passed = longest <= max(limit + 1 if what == "bodies" else 0, 10) and more <= 0.01 and not refused
            results.append(Result("R9", f"{goal}; others' p99 + ≤ 10 ms, 0 refused", measured, passed))
        return results


async def drip(port: int, begin: bytes, after: float) -> float:
    """Seconds until the gateway closes a connection on which a byte comes each second. It begins `after` a part of a
    second: many at one moment would hold up the good clients here, in this process."""
    await asyncio.sleep(after)
    caller = await Caller.connect(port)
    began = time.monotonic()
    with suppress(OSError):
        if begin:
            await caller.send(begin)
        closed = asyncio.create_task(caller.reader.read(-1))
        while not closed.done() and time.monotonic() - began < _PATIENCE:
            await asyncio.wait((closed,), timeout=1)
            if begin and not closed.done():
                await caller.send(b"x")
        closed.cancel()
    caller.reset()
    return time.monotonic() - began


async def good(gateway: Gateway, seconds: float) -> tuple[list[float], int]:
    """How long ordinary requests take, each on a connection of its own; how many did not come through."""
    found, refused = [], 0
    deadline = time.monotonic() + seconds
    await asyncio.sleep(1)
    while time.monotonic() < deadline:
        began = time.monotonic()
        try:
            answer = await ask(gateway.port, "/api/version", method="GET")
            refused += answer.status != 200
        except OSError:
            refused += 1
        found.append(time.monotonic() - began)
        await asyncio.sleep(0.01)
    return found, refused
