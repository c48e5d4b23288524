"""A process that asks a gateway for next to nothing every 10 ms and prints how long each answer took, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from reliability.caller import Caller, rendered

_STEP = 0.01


async def look(port: int, seconds: float) -> list[float]:
    """One question at a time on one connection; those that wait behind a slow one count as waiting since their turn."""
    caller = await Caller.connect(port)
    data = rendered("/livez", method="GET")
    found = []
    began = time.monotonic()
    for number in range(int(seconds / _STEP)):
        turn = began + number * _STEP
        await asyncio.sleep(turn - time.monotonic())
        await caller.send(data)
        await caller.answer()
        found.append(time.monotonic() - turn)
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(look(int(sys.argv[1]), float(sys.argv[2])))))
