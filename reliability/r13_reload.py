"""R13: the configuration changes under load: the next request sees it, no stream is cut, a wrong file does nothing."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator

from reliability.caller import ask, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, Step, chunk, head, whole
from reliability.r06_slow_clients import delta
from reliability.row import Result, Scale, milliseconds, percentile

_ANSWER = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]}).encode()  # fmt: skip
_WRONG = ("[server\n", '[routes.turn]\ntargets = ["nobody/x"]\n', "[nothing]\nx = 1\n", "\x00\x01")
#: One in so many changes is wrong.
_EVERY = 10


def running() -> Iterator[Step]:
    """A stream until its client goes."""
    yield head()
    while True:
        yield chunk(delta("word "))
        yield 0.5


def measure(scale: Scale) -> Iterator[Result]:
    """Changes of a route's target, every tenth file wrong; written in place and by renaming in turn."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    count, streams = scale.pick(1000, 100), scale.pick(200, 50)
    with Provider(whole(_ANSWER)) as provider:
        config = providers(provider.url)
        script = provider.script(running)
        with Gateway(config + turn(0)) as gateway:
            cuts: list[str] = []
            tasks = [asyncio.create_task(listen(gateway, script, cuts)) for _ in range(streams)]
            await asyncio.sleep(1)
            waits: list[float] = []
            wrong_seen, started = 0, 0.0
            memory = files = 0
            for number in range(1, count + 1):
                if number == count // 10:  # warm
                    memory, files = gateway.memory(), gateway.files()
                if number % _EVERY == 0:
                    write(gateway, _WRONG[number // _EVERY % len(_WRONG)], number)
                    await asyncio.sleep(0.12)
                    wrong_seen += await target(gateway, provider) != number - 1
                    continue
                write(gateway, config + turn(number), number)
                started = time.monotonic()
                while await target(gateway, provider) != number and time.monotonic() - started < 2:
                    await asyncio.sleep(0.005)
                waits.append(time.monotonic() - started)
            growth, more = gateway.memory() - memory, gateway.files() - files
            log = gateway.log_text()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    said = log.count("not taken")
    wrong = count // _EVERY
    late = sum(wait > 0.1 for wait in waits)
    note = " (scaled down from 1,000 under 200 streams)" if scale.quick else ""
    return [
        Result("R13", "0 streams dropped", f"{len(cuts)} of {streams} in {count} changes{note}", not cuts),
        Result("R13", "a new request sees the change ≤ 100 ms",
               f"p50 {milliseconds(percentile(waits, 0.5))}, p99 {milliseconds(percentile(waits, 0.99))}, most "
               f"{milliseconds(max(waits))}, {late} over 100 ms of {len(waits)}", percentile(waits, 0.99) <= 0.1),
        Result("R13", "a wrong file leaves the old one in force, one line says why",
               f"{wrong_seen} of {wrong} changed something, {said} lines", not wrong_seen and said > 0),
        Result("R13", "growth ≤ 5 MiB, no file left open",
               f"{growth / 2**20:+.1f} MiB, {more:+d} file descriptors", growth <= 5 * 2**20 and more <= 2),
    ]  # fmt: skip


def turn(number: int) -> str:
    """The part of the configuration that changes."""
    return f'[routes.turn]\ntargets = ["openai-chat/turn-{number}"]\n'


def write(gateway: Gateway, text: str, number: int) -> None:
    """Change the file: in place in two writes, or by renaming."""
    if number % 2:
        with gateway.file.open("w", encoding="utf-8") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            file.write(text[len(text) // 2 :])
    else:
        fresh = gateway.file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, gateway.file)


async def target(gateway: Gateway, provider: Provider) -> int:
    """Which turn answers now; -1 when none does."""
    answer = await ask(gateway.port, *spoken("openai-chat", "turn", stream=False))
    if answer.status != 200:
        return -1
    asked = next(found for found in reversed(provider.asked) if b"turn-" in found.body)
    return int(json.loads(asked.body)["model"].removeprefix("turn-"))


async def listen(gateway: Gateway, script: str, cuts: list[str]) -> None:
    answer = await ask(gateway.port, *spoken("openai-chat", f"openai-chat/{script}"))
    cuts.append(f"{answer.status} {answer.problem}")
