"""A process that asks a gateway good questions, with a provider of its own, so that nothing of the test's delays it.

Prints its provider's port, reads the gateway's from stdin, and asks every 0.1 s. Each line that it reads then ends a
stretch, for which it prints an object: `times` that answers took and `late`, by how much the system itself woke it too
late (seconds both), and `failed`, answers that were none. It ends with stdin.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from reliability.caller import ask, spoken
from reliability.provider import Provider, whole
from reliability.r13_reload import _ANSWER

_STEP = 0.1


async def main() -> None:
    """Ask until stdin ends."""
    with Provider(whole(_ANSWER)) as provider:
        print(provider.port, flush=True)
        path, body = spoken("openai-chat", "good/m", stream=False)
        port = int(await asyncio.to_thread(sys.stdin.readline))
        while True:
            stretch = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
            times, late, failed = [], [], 0
            while not stretch.done():
                due = time.monotonic() + _STEP
                await asyncio.sleep(_STEP)
                late.append(time.monotonic() - due)
                began = time.monotonic()
                try:
                    async with asyncio.timeout(20):
                        failed += (await ask(port, path, body)).status != 200
                except (OSError, TimeoutError):
                    failed += 1
                times.append(time.monotonic() - began)
            if not stretch.result():
                return
            provider.asked.clear()
            print(json.dumps({"times": times, "late": late, "failed": failed}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
