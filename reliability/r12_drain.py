"""R12: a gateway that is told to end finishes what it began, says that it drains, and leaves its port to the next."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Iterator

from dragoman.events import Failure
from dragoman.protocols import PROTOCOLS
from reliability.caller import Answer, Caller, ask, rendered, spoken
from reliability.ports import free_port
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head
from reliability.r04_client_gone import opening
from reliability.r06_slow_clients import delta
from reliability.row import Result, Scale, milliseconds


def lasting(seconds: float) -> list[Step]:
    """A stream of so many seconds."""
    steps: list[Step] = [head()]
    for _ in range(int(seconds * 2)):
        steps += [chunk(delta("word ")), 0.5]
    return [*steps, chunk(b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
            chunk(b"data: [DONE]\n\n"), END]  # fmt: skip


def measure(scale: Scale) -> Iterator[Result]:
    """A handover under load; a deadline; a second signal."""
    yield from asyncio.run(handover(scale))
    yield asyncio.run(deadline())
    yield asyncio.run(hurried())


async def handover(scale: Scale) -> list[Result]:
    count, seconds = scale.pick(500, 100), scale.pick(20, 5)
    port = free_port()
    with Provider() as provider:
        script = provider.script(lasting(seconds))
        config = providers(provider.url)
        old, new = Gateway(config, "--port", str(port)), Gateway(config, "--port", str(port))
        with old:
            streams = []
            for _ in range(count):
                caller = await Caller.connect(port)
                await caller.send(rendered(*spoken("openai-chat", f"openai-chat/{script}")))
                streams.append(asyncio.create_task(ended(caller)))
            # One goes on until the next instance listens, however long a loaded machine takes to start it: with the
            # last stream the old one ends, and nobody could take a connection.
            keeper = await Caller.connect(port)
            held = provider.script([head(), chunk(delta("word ")), "hold"])
            await keeper.send(rendered(*spoken("openai-chat", f"openai-chat/{held}")))
            await asyncio.sleep(2)
            refused: list[float] = []
            knocking = asyncio.create_task(knock(port, refused))
            old.signal(signal.SIGTERM)
            began = time.monotonic()
            unready = await until_unready(port, began)
            starting = asyncio.create_task(asyncio.to_thread(new.start))
            answers = await asyncio.gather(*streams)
            try:
                await starting
                taken = True
            except RuntimeError:
                taken = False
            keeper.close()
            last = time.monotonic()
            await asyncio.to_thread(old.process.wait, 30)
            gone = time.monotonic() - last
            await asyncio.sleep(0.5)
            knocking.cancel()
            whole = sum(answer.whole and answer.body.endswith(b"data: [DONE]\n\n") for answer in answers)
            rows = old.log_text().count('"kind":"request"') + new.log_text().count('"kind":"request"') * 0
            new.stop()
    note = "" if not scale.quick else " (scaled down from 500 of 20 s)"
    return [
        Result("R12", "all streams under way finish", f"{whole} of {count} of {seconds} s{note}", whole == count),
        Result("R12", "0 connects refused from SIGTERM to the next instance on the port",
               f"{len(refused)} refused; the next one {'took the port' if taken else 'did NOT start'}",
               not refused and taken),
        Result("R12", "/readyz is 503 ≤ 100 ms after SIGTERM",
               "never" if unready is None else milliseconds(unready), unready is not None and unready <= 0.1),
        Result("R12", "a line in the log for each request", f"{rows} for {count} streams", rows >= count),
        Result("R12", "it exits ≤ 1 s after the last response", milliseconds(gone), gone <= 1),
    ]  # fmt: skip


async def ended(caller: Caller) -> Answer:
    answer = await caller.answer()
    caller.close()
    return answer


async def knock(port: int, refused: list[float]) -> None:
    """Connect again and again; note what is refused."""
    while True:
        try:
            caller = await Caller.connect(port)
            await caller.send(rendered("/livez", method="GET"))
            await asyncio.wait_for(caller.answer(), 5)
            caller.close()
        except OSError:
            refused.append(time.monotonic())
        await asyncio.sleep(0.02)


async def until_unready(port: int, began: float) -> float | None:
    while time.monotonic() - began < 3:
        try:
            answer = await ask(port, "/readyz", method="GET")
        except OSError:
            return None
        if answer.status == 503:
            return time.monotonic() - began
        await asyncio.sleep(0.005)
    return None


async def deadline() -> Result:
    """Streams that do not end get an error in their client's form when the time to drain is over."""
    config = "[server]\ndrain_seconds = 2\n"
    with Provider() as provider, Gateway(providers(provider.url, config)) as gateway:
        callers = {}
        for client in BASE:
            script = provider.script([head(200, PROTOCOLS[client].stream_type), chunk(opening(client)), "hold"])
            callers[client] = await Caller.connect(gateway.port)
            await callers[client].send(rendered(*spoken(client, f"{client}/{script}")))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        gateway.signal(signal.SIGTERM)
        answers = {client: await ended(caller) for client, caller in callers.items()}
        took = time.monotonic() - began
        try:
            status: int | None = await asyncio.to_thread(gateway.process.wait, 5)
        except subprocess.TimeoutExpired:
            status = None
    told = []
    for client, answer in answers.items():
        events = PROTOCOLS[client].decoder(new_id=lambda: "id").feed(answer.body)
        told.append(bool(events) and type(events[-1]) is Failure)
    measured = f"{sum(told)} of {len(told)} after {took:.1f} s; exit status {status}"
    return Result("R12", "after the deadline (2 s here) an error in each protocol's form, no bare cut", measured,
                  all(told) and 1.5 <= took <= 4 and status == 0)  # fmt: skip


async def hurried() -> Result:
    with Provider(["hold"]) as provider, Gateway(providers(provider.url)) as gateway:
        caller = await Caller.connect(gateway.port)
        await caller.send(rendered(*spoken("openai-chat", "openai-chat/model-1")))
        await asyncio.sleep(0.3)
        gateway.signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        began = time.monotonic()
        gateway.signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(gateway.process.wait, 5)
            took = time.monotonic() - began
        except subprocess.TimeoutExpired:
            took = 99.0
        caller.close()
    return Result("R12", "a second SIGTERM ends at once", f"after {milliseconds(took)}", took <= 1)
