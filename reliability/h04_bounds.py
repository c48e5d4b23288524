"""H4 to H6: what is hostile costs a bounded amount of memory, and of the event loop next to nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from reliability.caller import Caller, ask, rendered, spoken
from reliability.h06_linear import bodies
from reliability.process import Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head, whole
from reliability.r10_sizes import peak, reset_peak
from reliability.r13_reload import _ANSWER
from reliability.r18_loop import HOLDING, lags
from reliability.row import Result, Scale, milliseconds
from test_linear_time import TOKENS

_MIB = 1024 * 1024
_CHAT = "/v1/chat/completions"
_SSE = "text/event-stream"
#: How much longer the loop may be away than the loop of an idle gateway that was asked in the same time.
_MOST_AWAY = 0.05
#: Whether the client streams, and what makes the n-th event.
Kind: TypeAlias = tuple[bool, Callable[[int], object]]


def measure(scale: Scale) -> Iterator[Result]:
    """A real gateway; another process asks it for next to nothing every 10 ms."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    results = []
    with tempfile.NamedTemporaryFile() as file, Provider(whole(_ANSWER)) as provider:
        settings, held = providers(provider.url), Path(file.name)
        with Gateway(settings, command=(*HOLDING, file.name)) as gateway, Gateway(settings) as idle:
            pair = Pair(gateway, idle, held)
            results += await loop_of_bodies(pair, scale)
            results += await loop_of_arguments(pair, provider, scale)
            results += await calls_of_one_id(pair, scale)
            results += await large_delta(pair, provider)
    with Provider(whole(_ANSWER)) as provider, Gateway(providers(provider.url)) as gateway:
        results += [await endless(gateway, provider, what, kind) for what, kind in ENDLESS.items()]
    for size in (1, 18):
        results += [await small_values(size)]
    return results


# ---------------------------------------------------------------- the loop


class Pair(NamedTuple):
    """A gateway that works, an idle one beside it, and the file of `holding.py` for the first."""

    gateway: Gateway
    idle: Gateway
    held: Path


class Away(NamedTuple):
    """While work was done again and again, in seconds, each the longest: how long the loop was away, that of the idle
    gateway, and the interpreter held. `times`: how often the work was done."""

    loop: float
    idle: float
    held: float
    times: int

    def results(self, id: str, what: str, more: str = "") -> list[Result]:
        """What decides is how long the interpreter was held, by processor time: a loaded machine does not count there.
        The wall time is judged beside what an idle gateway suffered in the same time, since the system stops both."""
        wall = f"{milliseconds(self.loop)} at most, an idle gateway's {milliseconds(self.idle)}; {self.times} {more}"
        return [
            Result(id, f"{what}: the interpreter is held ≤ 50 ms at once, by processor time",
                   f"{milliseconds(self.held)} at most", self.held <= _MOST_AWAY),
            Result(id, f"{what}: the loop is away ≤ 50 ms beside an idle gateway's, wall time",
                   wall.strip(), self.loop <= self.idle + _MOST_AWAY),
        ]  # fmt: skip


async def beside(pair: Pair, seconds: float, work: Callable[[], Awaitable[None]]) -> Away:
    """Ask both gateways for next to nothing while the first one works."""
    pair.held.write_text("0", encoding="ascii")
    probing = asyncio.gather(lags(pair.gateway.port, seconds), lags(pair.idle.port, seconds))
    await asyncio.sleep(1)
    count = 0
    while not probing.done():
        await work()
        count += 1
    loop, idle = await probing
    return Away(max(loop), max(idle), float(pair.held.read_text(encoding="ascii") or "0"), count)


async def loop_of_bodies(pair: Pair, scale: Scale) -> list[Result]:
    """Each kind of repetition as a body of 1 MiB."""
    kinds = list(bodies())
    random.Random(1).shuffle(kinds)
    waiting = itertools.cycle(kinds)

    async def one() -> None:
        await ask(pair.gateway.port, _CHAT, next(waiting)[1])

    return (await beside(pair, scale.pick(30, 8), one)).results("C1", "bodies of 1 MiB", "bodies")


def arguments(text: str) -> list[Step]:
    """A call with these arguments, in events of 64 characters."""

    def said(delta: object, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"

    def piece(text: str) -> bytes:
        return said({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})

    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": ""}}
    data = b"".join(piece(text[place : place + 64]) for place in range(0, len(text), 64))
    first, last = said({"role": "assistant", "tool_calls": [call]}), said({}, "tool_calls")
    return [head(200, _SSE), chunk(first), chunk(data), chunk(last + b"data: [DONE]\n\n"), END]


async def loop_of_arguments(pair: Pair, provider: Provider, scale: Scale) -> list[Result]:
    """Each kind of repetition as arguments of 1 MiB, through all stages into another protocol."""
    kinds = [
        first + token * (_MIB // len(token)) for first in ('{"a":"', "```json\n{", "{", "{'a':'") for token in TOKENS
    ]
    random.Random(2).shuffle(kinds)
    waiting = itertools.cycle(kinds)

    async def one() -> None:
        provider.forget()
        script = provider.script(arguments(next(waiting)))
        await ask(pair.gateway.port, *spoken("anthropic-messages", f"openai-chat/{script}"))

    away = await beside(pair, scale.pick(90, 12), one)
    return away.results("C2", "arguments of 1 MiB", f"answers of {len(kinds)} kinds")


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def calls_of_one_id(pair: Pair, scale: Scale) -> list[Result]:
    """20,000 calls of one id and as many results, to a provider of another protocol."""
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": "a", "type": "function", "function": function}] * 20_000
    results = [{"role": "tool", "tool_call_id": "a", "content": "x"}] * 20_000
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls}, *results]
    body = json.dumps({"model": "anthropic-messages/m", "messages": messages}).encode()
    times: list[float] = []

    async def one() -> None:
        began = processor_seconds(pair.gateway.pid)
        answer = await ask(pair.gateway.port, _CHAT, body)
        times.append(processor_seconds(pair.gateway.pid) - began)
        assert answer.status in (200, 502), answer.body[:300]  # what the provider says is no Messages answer

    what = "20,000 calls of one id"
    away = await beside(pair, scale.pick(10, 5), one)
    goal, measured = f"{what}: ≤ 1 s of processor", f"{min(times):.2f} s, the best of {len(times)}"
    return [Result("H6", goal, measured, min(times) <= 1), *away.results("H6", what, "times")]


# ---------------------------------------------------------------- memory


def _events(make: Callable[[int], object]) -> Callable[[], Iterator[Step]]:
    def script() -> Iterator[Step]:
        yield head(200, _SSE)
        number = 0
        while True:
            lines = []
            for _ in range(100):
                number += 1
                data = json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": make(number)}]})
                lines.append(f"data: {data}\n\n")
            yield chunk("".join(lines).encode())

    return script


def _call(number: int) -> object:
    function = {"name": "write_file", "arguments": '{"n":1}'}
    return {"tool_calls": [{"index": number, "id": f"call_{number}", "type": "function", "function": function}]}


def _grown(number: int) -> object:
    begin = {"id": "call_1", "type": "function"} if number == 1 else {}
    name = {"name": "write_file"} if number == 1 else {}
    text = '{"a": "' if number == 1 else "word " * 100
    return {"tool_calls": [{"index": 0, **begin, "function": {**name, "arguments": text}}]}


#: What never ends → whether its client streams, and what makes its n-th event.
ENDLESS: dict[str, Kind] = {
    "calls, streamed": (True, _call),
    "calls, whole": (False, _call),
    "text, streamed": (True, lambda number: {"content": "word " * 100}),
    "text, whole": (False, lambda number: {"content": "word " * 100}),
    "one call's arguments, streamed": (True, _grown),
    "one call's arguments that must be read whole": (True, lambda number: _held(number)),
    "words, whole": (False, lambda number: {"content": "w"}),
}


def _held(number: int) -> object:
    made: dict[str, object] = json.loads(json.dumps(_grown(number)).replace('{\\"a\\": \\"', "{'a': '"))
    return made


async def endless(gateway: Gateway, provider: Provider, what: str, kind: Kind) -> Result:
    """An answer that never ends, until it is ended."""
    is_stream, make = kind
    script = provider.script(_events(make))
    before = reset_peak(gateway.pid)
    began = time.monotonic()
    path, body = spoken("openai-chat", f"openai-chat/{script}", stream=is_stream)
    last = b""
    caller = await Caller.connect(gateway.port)
    await caller.send(rendered(path, body, headers={"connection": "close"}))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(120):
            while data := await caller.reader.read(_MIB):
                last = (last + data)[-2000:]
    caller.close()
    seconds, extra = time.monotonic() - began, peak(gateway.pid) - before
    is_ended = b"server.limits." in last
    measured = f"{what}: {'ended' if is_ended else 'NOT ended'} after {seconds:.1f} s, peak {extra / _MIB:+.0f} MiB"
    return Result(
        "H5", "an endless answer ends at its bound, peak + ≤ 64 MiB", measured, is_ended and extra <= 64 * _MIB
    )


async def large_delta(pair: Pair, provider: Provider) -> list[Result]:
    """One event of 30 MB."""
    text = json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "x" * 30_000_000}}]})
    steps: list[Step] = [head(200, _SSE), chunk(b"data: " + text.encode() + b"\n\n"), END]
    refused: list[bool] = []
    before = reset_peak(pair.gateway.pid)

    async def one() -> None:
        provider.forget()
        script = provider.script(steps)
        answer = await ask(pair.gateway.port, *spoken("anthropic-messages", f"openai-chat/{script}"))
        refused.append(b"server.limits.frame_mib" in answer.body and len(answer.body) < 10_000)

    away = await beside(pair, 4, one)
    extra = peak(pair.gateway.pid) - before
    measured = f"{sum(refused)} of {len(refused)} refused, peak {extra / _MIB:+.0f} MiB"
    goal = "a delta of 30 MB is refused, peak + ≤ 64 MiB"
    return [
        Result("M6", goal, measured, all(refused) and extra <= 64 * _MIB),
        *away.results("M6", "a delta of 30 MB", "times"),
    ]


#: JSON values beside a request that stay under the bound of 250,000.
_UNDER = 240_000
#: Fields behind the messages, repeated up to the size.
_SMALL = {
    "empty lists": b"[],",
    "empty objects": b"{},",
    "numbers": b"1,",
    "texts": b'"",',
    "nested": b"[" * 100 + b"]" * 100 + b",",
}


async def small_values(size: int) -> Result:
    """A body of many small values, in a process that is new for each size."""
    worst, which, statuses = 0, "", set()
    with Provider(whole(_ANSWER)) as provider, Gateway(providers(provider.url)) as gateway:
        await ask(gateway.port, *spoken("openai-chat", "openai-chat/m", stream=False))
        for name, unit in _SMALL.items():
            first = b'{"model":"anthropic-messages/m","messages":[{"role":"user","content":"x"}],"x":['
            most = size * 1_000_000 // len(unit)
            under = min(most, _UNDER // (unit.count(b",") + unit.count(b"[")))
            body, less = (first + unit * count + b"1]}" for count in (most, under))
            padded = less.replace(b"[{", b'[{"y":"' + b"y" * max(size * 1_000_000 - len(less), 1) + b'",', 1)
            for text in (body, body.replace(b'],"x":[', b",", 1), less, less.replace(b'],"x":[', b",", 1), padded):
                before = reset_peak(gateway.pid)
                answer = await ask(gateway.port, _CHAT, text)
                statuses.add(answer.status)
                if (extra := peak(gateway.pid) - before) > worst:
                    worst, which = extra, name
        alive = gateway.is_running
    goal = f"small values, {size} MB: peak ≤ 2 × the body + 32 MiB"
    measured = f"{worst / _MIB:+.0f} MiB at most ({which}), answers {sorted(statuses)}"
    return Result("H4", goal, measured, alive and worst <= 2 * size * 1_000_000 + 32 * _MIB)
