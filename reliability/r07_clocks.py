"""R7: four clocks watch a provider, and each goes off when it says."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from dragoman.events import Failure
from dragoman.protocols import PROTOCOLS
from reliability.caller import Caller, rendered, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import Provider, Script, Step, chunk, head
from reliability.r01_truncation import wire
from reliability.r04_client_gone import Hole, opening
from reliability.row import Result, Scale, percentile

#: The clocks of the test, in seconds; the real ones would take an hour.
CLOCKS = {
    "connect_seconds": 1.0, "first_event_seconds": 1.4, "silence_seconds": 1.2, "no_progress_seconds": 2.6,
    "total_seconds": 5.0,
}  # fmt: skip
DEFAULTS = {
    "connect_seconds": 10, "first_event_seconds": 120, "reasoning_first_event_seconds": 300, "silence_seconds": 120,
    "no_progress_seconds": 300, "total_seconds": 3600,
}  # fmt: skip
SETTINGS = "[http]\nretries = 0\n" + "".join(f"{name} = {value}\n" for name, value in CLOCKS.items())
_PING = {
    "ollama-chat": b"\n",
    "openai-chat": b": ping\n\n",
    "openai-responses": b": ping\n\n",
    "anthropic-messages": b'event: ping\ndata: {"type":"ping"}\n\n',
    "gemini-generate": b": ping\n\n",
}


def silent(*said: bytes) -> Any:
    def script(protocol: str) -> Script:
        return [head(200, PROTOCOLS[protocol].stream_type), *map(chunk, said), "hold"]

    return script


def kept_alive(protocol: str) -> Iterator[Step]:
    """First words, then only signs of life."""
    yield head(200, PROTOCOLS[protocol].stream_type)
    yield chunk(opening(protocol))
    while True:
        yield 0.3
        yield chunk(_PING[protocol])


def dripping(protocol: str) -> Iterator[Step]:
    """First words, then an event of which a byte comes now and then and the end never."""
    yield head(200, PROTOCOLS[protocol].stream_type)
    yield chunk(opening(protocol))
    for place in range(10_000):
        yield 0.5
        yield chunk((b'data: {"a":"' if protocol != "ollama-chat" else b'{"a":"')[place : place + 1] or b"x")


def endless(protocol: str) -> Iterator[Step]:
    """Words without end, slowly."""
    yield head(200, PROTOCOLS[protocol].stream_type)
    data = opening(protocol)
    if protocol == "anthropic-messages" or protocol == "openai-responses":
        place = data.rindex(b"event: ", 0, data.rindex(b"Hello"))
        yield chunk(data[:place])
        data = data[place:]
    while True:
        yield chunk(data)
        yield 0.4


def mid_argument(protocol: str) -> Script:
    """A stream that falls silent inside a call's arguments."""
    data = wire(protocol, "text-call")
    return [head(200, PROTOCOLS[protocol].stream_type), chunk(data[: data.index(b"edits") + 3]), "hold"]


#: What the provider does → which clock has to go off.
STALLS: dict[str, tuple[Any, str]] = {
    "no head": (lambda protocol: ["hold"], "first_event_seconds"),
    "no event": (silent(), "first_event_seconds"),
    "only signs of life before the first event": (
        lambda protocol: [head(200, "text/event-stream"), *([chunk(_PING[protocol]), 0.3] * 12), "hold"],
        "first_event_seconds",
    ),
    "silence inside arguments": (mid_argument, "silence_seconds"),
    "only signs of life": (lambda protocol: lambda: kept_alive(protocol), "no_progress_seconds"),
    "a byte now and then": (lambda protocol: lambda: dripping(protocol), "no_progress_seconds"),
    "words without end": (lambda protocol: lambda: endless(protocol), "total_seconds"),
}


def measure(scale: Scale) -> Iterator[Result]:
    """The real clocks are read from the settings in force; how they go off is measured with short ones."""
    yield defaults()
    yield from asyncio.run(_measure(scale))


def defaults() -> Result:
    command = [sys.executable, "-m", "dragoman", "config", "show", "--json"]
    shown = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["http"]
    found = {name: shown.get(name) for name in DEFAULTS}
    measured = ", ".join(f"{name.removesuffix('_seconds')} {value:g} s" for name, value in found.items())
    return Result("R7", "connect 10, first 120 (300 reasoning), silence 120, progress 300, total 3,600 s", measured,
                  found == DEFAULTS)  # fmt: skip


async def _measure(scale: Scale) -> list[Result]:
    count = scale.pick(20, 4)
    with Provider() as provider, Hole() as hole:
        more = f'{SETTINGS}[providers.hole]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{hole.port}/v1"\n'
        with Gateway(providers(provider.url, more)) as gateway:
            results = [result("no connection", "connect_seconds", await side_by_side(
                [late(gateway, "openai-chat", "hole/model") for _ in range(count)]))]  # fmt: skip
            for what, (make, clock) in STALLS.items():
                jobs = []
                for client in BASE:
                    for _ in range(count // 4 or 1):
                        name = provider.script(make(client))
                        jobs.append(late(gateway, client, f"{client}/{name}"))
                results.append(result(what, clock, await side_by_side(jobs)))
            return results


async def side_by_side(jobs: list[Any]) -> list[tuple[float, bool]]:
    return list(await asyncio.gather(*jobs))


def result(what: str, clock: str, found: list[tuple[float, bool]]) -> Result:
    """`found`: seconds to the error, and whether it was a typed one."""
    limit = CLOCKS[clock]
    over = [took - limit for took, _ in found]
    untyped = sum(not typed for _, typed in found)
    measured = (
        f"{what}: p99 {percentile(over, 0.99) * 1000:+.0f} ms around {limit:g} s, least {min(over) * 1000:+.0f} ms, "
        f"{untyped} without a typed error, of {len(found)} (clocks scaled down)"
    )
    goal = f"{clock.removesuffix('_seconds')} goes off within + 100 ms p99"
    return Result("R7", goal, measured, percentile(over, 0.99) <= 0.1 and min(over) >= -0.05 and not untyped)


async def late(gateway: Gateway, client: str, model: str) -> tuple[float, bool]:
    """Seconds to the error, and whether it is one in the client's form."""
    caller = await Caller.connect(gateway.port)
    began = time.monotonic()
    await caller.send(rendered(*spoken(client, model)))
    answer = await asyncio.wait_for(caller.answer(), 30)
    caller.close()
    assert answer.ended_at is not None
    if answer.status >= 400:
        return answer.ended_at - began, answer.status == 504
    decoder = PROTOCOLS[client].decoder(new_id=lambda: "id")
    events = decoder.feed(answer.body)  # without `close`: a missing end is no word of ours
    return answer.ended_at - began, bool(events) and type(events[-1]) is Failure
