"""R30: thousands of streams whose provider vanishes at once do not flood the log."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import Iterator

from reliability.caller import Caller, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider
from reliability.r13_reload import running
from reliability.row import Result, Scale

#: What had not begun would be asked for again, and go on.
_SETTINGS = "[http]\nretries = 0\n"


def measure(scale: Scale) -> Iterator[Result]:
    """As many streams as file descriptors allow, up to 4,000."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield asyncio.run(_measure(min(scale.pick(4000, 500), hard // 5)))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _measure(count: int) -> Result:
    with Provider() as provider, Gateway(providers(provider.url, _SETTINGS)) as gateway:
        script = provider.script(running)
        data = rendered(*spoken("openai-chat", f"openai-chat/{script}"))
        before = gateway.log_text().count("\n")
        callers = []
        for _ in range(count):
            caller = await Caller.connect(gateway.port)
            await caller.send(data)
            callers.append(caller)
        reading = [asyncio.create_task(caller.answer()) for caller in callers]
        until = time.monotonic() + 30
        while (opened := len(provider.open_connections)) < count and time.monotonic() < until:
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        provider.drop()
        done, late = await asyncio.wait(reading, timeout=60)
        answers = [task.result() for task in done]
        for task in late:
            task.cancel()
        await asyncio.sleep(2)
        log = gateway.log_text().splitlines()
        lines = len(log) - before
        told = sum(b"error" in answer.body for answer in answers)
        entries = [json.loads(line) for line in log if line.startswith("{")]
        dropped = sum(entry["count"] for entry in entries if entry.get("kind") == "left-out")
        measured = (
            f"{lines} lines for {opened} failed streams, {dropped} more counted in them; {told} of {count} clients got "
            f"an error; the gateway {'runs' if gateway.is_running else 'DIED'}"
        )
        for caller in callers:
            caller.close()
    passed = 0 < lines <= opened and lines <= 100 and told == count and lines + dropped >= count
    return Result("R30", "≤ 1 line a failure, ≤ 10 a second of a kind with a count", measured, passed)
