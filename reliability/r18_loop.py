"""R18: one very large request does not hold up everybody else."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from reliability import PROJECT
from reliability.caller import Caller, ask, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, whole
from reliability.r13_reload import _ANSWER, running
from reliability.row import Result, Scale, milliseconds, percentile

_MIB = 1024 * 1024
_KINDS = ("many messages", "one text", "a picture")
#: The gateway with a thread that sees how long the interpreter is held.
HOLDING = (sys.executable, "-P", str(PROJECT / "reliability" / "holding.py"))


def measure(scale: Scale) -> Iterator[Result]:
    """Every 10 ms somebody asks for next to nothing; how long the answer takes is how long the loop was away."""
    yield from asyncio.run(_measure(scale))
    yield asyncio.run(_held(scale))


async def _held(scale: Scale) -> Result:
    """The same requests, and how long the interpreter was held: a machine that others use does not count there."""
    rounds = scale.pick(12, 3)
    with (
        tempfile.NamedTemporaryFile() as file,
        Provider(whole(_ANSWER)) as provider,
        Gateway(providers(provider.url), command=(*HOLDING, file.name)) as gateway,
    ):
        path, first = spoken("openai-chat", "openai-chat/model-1", stream=False)
        await ask(gateway.port, path, first)  # what is made once
        Path(file.name).write_text("0", encoding="ascii")
        answered = 0
        for number in range(rounds):
            path, body = large(_KINDS[number % len(_KINDS)])
            answered += (await ask(gateway.port, path, body)).status == 200
        held = float(Path(file.name).read_text(encoding="ascii") or "0")
    goal = "20 MiB: the interpreter is held ≤ 50 ms at once, by processor time"
    measured = f"{milliseconds(held)} at most; {answered} of {rounds} answered"
    return Result("R18", goal, measured, held <= 0.05 and answered == rounds)


async def _measure(scale: Scale) -> list[Result]:
    rounds = scale.pick(5, 2)
    with Provider(whole(_ANSWER)) as provider, Gateway(providers(provider.url)) as gateway:
        script = provider.script(running)
        streams = [
            asyncio.create_task(ask(gateway.port, *spoken("openai-chat", f"openai-chat/{script}"))) for _ in range(200)
        ]
        await asyncio.sleep(2)
        calm = await lags(gateway.port, 3)
        found: list[float] = []
        bodies = [large(kind) for kind in _KINDS]
        answered = 0
        for number in range(rounds):
            path, body = bodies[number % len(bodies)]
            probing = asyncio.create_task(lags(gateway.port, 4))
            await asyncio.sleep(1)
            caller = await Caller.connect(gateway.port)
            await caller.send(rendered(path, body))
            answer = await asyncio.wait_for(caller.answer(), 30)
            caller.close()
            answered += answer.status == 200
            found += await probing
        for task in streams:
            task.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
    measured = (
        f"p99.9 {milliseconds(percentile(found, 0.999))}, most {milliseconds(max(found))} over {len(found)} looks; "
        f"without the request p99.9 {milliseconds(percentile(calm, 0.999))}; {answered} of {rounds} answered"
    )
    goal = "20 MiB beside 200 streams: the loop is away ≤ 25 ms p99.9, ≤ 100 ms at most"
    passed = percentile(found, 0.999) <= 0.025 and max(found) <= 0.1 and answered == rounds
    return [Result("R18", goal, measured, passed)]


def large(kind: str) -> tuple[str, bytes]:
    """A request of 20 MiB."""
    path, plain = spoken("openai-chat", "openai-chat/model-1", stream=False)
    fields = json.loads(plain)
    if kind == "many messages":
        text = "word " * 2000
        roles = ("user", "assistant")
        fields["messages"] = [{"role": roles[number % 2], "content": text} for number in range(20 * _MIB // len(text))]
        fields["messages"].append({"role": "user", "content": "And?"})
    elif kind == "one text":
        fields["messages"] = [{"role": "user", "content": "word " * (4 * _MIB)}]
    else:
        picture = "data:image/png;base64," + "A" * (19 * _MIB)
        fields["messages"] = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": picture}}]}]
    return path, json.dumps(fields).encode()


async def lags(port: int, seconds: float) -> list[float]:
    """Seconds that each of many small questions took; they are asked by a process of its own."""
    command = [sys.executable, "-m", "reliability.looking", str(port), str(seconds)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=PROJECT)
    said, _ = await process.communicate()
    found: list[float] = json.loads(said)
    return found
