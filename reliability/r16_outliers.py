"""R16: one of three targets goes bad under load; it is passed over, probed, and taken back."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from conversations import reply
from reliability.caller import Caller, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, Step, streamed, whole, wire
from reliability.row import Result, Scale

RATE = 200
HEALTHY = streamed("openai-chat", wire("openai-chat", reply("text")))
ERROR = whole(b'{"error":{"message":"something broke"}}', 500)
WRONG = whole(b'{"error":{"message":"no such option"}}', 400)


class Seen(NamedTuple):
    """When callers were told of a failure, and when the first target was asked; seconds from the start."""

    errors: list[float]
    asked: list[float]
    sent: int


def measure(scale: Scale) -> Iterator[Result]:
    """Kill, errors of a fifth, slowness, wrong requests: each for some seconds, then health."""
    bad, healed, end = (3.0, 15.0, 30.0) if not scale.quick else (2.0, 8.0, 18.0)
    dice = random.Random(5)
    kinds: dict[str, Callable[[], Iterable[Step]]] = {
        "killed": lambda: ["reset"],
        "20 % errors": lambda: ERROR if dice.random() < 0.2 else HEALTHY,
        "10 × slower": lambda: [0.2, *HEALTHY],
    }
    for name, behaves in kinds.items():
        seen = asyncio.run(loaded(behaves, bad, healed, end))
        first = sum(bad <= at < bad + 2 for at in seen.errors) / (2 * RATE)
        later = sum(at >= bad + 2 for at in seen.errors)
        yield Result("R16", f"{name}: ≤ 0.5 % errors in 2 s, 0 after", f"{first:.2%}, {later} of {seen.sent}",
                     first <= 0.005 and not later)  # fmt: skip
        if name == "killed":
            # A probe over a connection that was kept is sent once more over a new one when that one is dead.
            asked = sorted(at for at in seen.asked if bad + 2 <= at < healed)
            probes = sum(not number or at - asked[number - 1] > 1 for number, at in enumerate(asked))
            most = int((healed - bad) / 5) + 1
            yield Result("R16", "killed: asked by one probe at a time", f"{probes} in {healed - bad - 2:.0f} s",
                         probes <= most)  # fmt: skip
        if name != "10 × slower":
            back = next((at - healed for at in seen.asked if at >= healed and full(seen.asked, at)), None)
            said = "never" if back is None else f"{back:.1f} s"
            yield Result("R16", f"{name}: back ≤ 10 s after it heals", said, back is not None and back <= 10)
    seen = asyncio.run(loaded(lambda: WRONG, 0.0, 3.0, 3.0))
    yield Result("R16", "a client's 4xx never counts", f"{len(seen.asked)} of {seen.sent} asked the first target",
                 len(seen.asked) >= seen.sent)  # fmt: skip


def full(asked: list[float], at: float) -> bool:
    """Whether the first target gets everything again: by half a second's load, to allow for a busy machine."""
    return sum(at <= other < at + 0.5 for other in asked) >= 0.8 * RATE / 2


async def loaded(behaves: Callable[[], Iterable[Step]], bad: float, healed: float, end: float) -> Seen:
    """200 requests a second on a route over three targets, the first of which behaves so between two times."""
    with Provider() as first, Provider(HEALTHY) as second, Provider(HEALTHY) as third:
        began = time.monotonic() + 1.0  # the gateway has started by then, or the load begins a little late

        def script() -> Iterable[Step]:
            return behaves() if bad <= time.monotonic() - began < healed else HEALTHY

        first.default = script
        config = [providers(server.url, suffix=f"-{number}") for number, server in enumerate((first, second, third))]
        targets = ", ".join(f'"openai-chat-{number}/m"' for number in range(3))
        with Gateway("\n".join([*config, f"[routes.r]\ntargets = [{targets}]\n"])) as gateway:
            began = time.monotonic()
            errors = await load(gateway.port, began, end)
        return Seen(errors, [asked.began - began for asked in first.asked], int(end * RATE))


async def load(port: int, began: float, seconds: float) -> list[float]:
    """Send requests at their times, on connections that are kept; gives when errors came."""
    path, body = spoken("openai-chat", "r")
    request = rendered(path, body)
    idle: list[Caller] = []
    errors: list[float] = []

    async def one(at: float) -> None:
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        caller = idle.pop() if idle else await Caller.connect(port)
        await caller.send(request)
        answer = await caller.answer()
        if answer.status != 200 or answer.problem:
            errors.append(time.monotonic() - began)
        if answer.problem:
            caller.close()
        else:
            idle.append(caller)

    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * RATE)):
            group.create_task(one(number / RATE))
    for caller in idle:
        caller.close()
    return errors
