"""R5: work that a client cancels has exactly one row for each physical request, with what was seen of it.

The seven phases of R4, each with the five protocols, left by FIN and by RST; then the provider's requests are compared
with the ledger's rows, one by one.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.reports.checking import check
from dragoman.protocols import PROTOCOLS
from gateway.recording import rows
from reliability.caller import Caller, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, whole
from reliability.r04_client_gone import PHASES, Hole, arrived, leave, leave_connecting, repeated
from reliability.r25_ledger import count_open
from reliability.row import Result, Scale

_NAME = re.compile(rb"script-\d+")
_GOAL = "one row for each physical request in 100 %, ended, tokens ≥ seen, also where 0 was said, difference 0"
#: The five of R4, a client that leaves while the gateway waits to ask once more, and one that leaves while it connects.
_BACK_OFF = "waiting for the next try"
_COUNT = len(PHASES) + 2


def measure(scale: Scale) -> Iterator[Result]:
    """Seven phases × five protocols × FIN and RST."""
    yield asyncio.run(_measure(scale.pick(20, 2)))


async def _measure(count: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state, Provider() as provider, Hole() as hole:
        more = (
            f'[server]\nstate = "{state}"\nlog = "off"\n'
            f'[providers.hole]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{hole.port}/v1"\n'
        )
        phase_of: dict[str, tuple[str, str]] = {}
        with Gateway(providers(provider.url, more)) as gateway:
            for phase in (*PHASES, _BACK_OFF):
                for client in PROTOCOLS:
                    for way in ("FIN", "RST"):
                        before = provider._count
                        await repeated(count, lambda: _leave(gateway, provider, client, phase, way))  # noqa: B023
                        names = (f"script-{number + 1}" for number in range(before, provider._count))
                        phase_of |= dict.fromkeys(names, (phase, client))
            await repeated(count * 2, lambda: leave_connecting(gateway, hole), at_once=1)
            folder = LedgerFolder.of(Path(state))
            until = time.monotonic() + 20
            while await asyncio.to_thread(count_open, folder) and time.monotonic() < until:
                await asyncio.sleep(0.1)
        return judged(provider, folder, phase_of, count)


async def _leave(gateway: Gateway, provider: Provider, client: str, phase: str, way: str) -> float | None:
    if phase != _BACK_OFF:
        return await leave(gateway, provider, client, phase=phase, way=way)
    name = provider.script(whole(b"{}", 503, "application/json", "retry-after: 3"))
    caller = await Caller.connect(gateway.port)
    await caller.send(rendered(*spoken(client, f"{client}/{name}")))
    await arrived(provider, name)
    await asyncio.sleep(0.02)  # its answer is read, and the next try waits for 3 s
    caller.close() if way == "FIN" else caller.reset()
    return 0.0


def judged(provider: Provider, folder: LedgerFolder, phase_of: dict[str, tuple[str, str]], count: int) -> Result:
    """The provider's requests and the ledger's rows, name by name."""
    asked = Counter(
        found[0].decode()
        for request in provider.asked
        if (found := _NAME.search(request.head.split(b"\r\n", 1)[0]) or _NAME.search(request.body))
    )
    kept = rows(folder)
    written = Counter(row["target"].partition("/")[2] for row in kept)
    missing, double = sum((asked - written).values()), sum((written - asked).values())
    wrong = [
        f"{phase_of[name]}: {row['state']} {row['reason']} {row['input']} {row['output']}"
        for row in kept
        if (name := row["target"].partition("/")[2]) in phase_of and not _is_right(row, phase_of[name][0])
    ]
    for line in wrong[:5]:
        print(f"    {line}")
    found = check(folder)
    words = (
        f"{sum(asked.values())} requests at the provider, {len(kept)} rows: missing {missing}, double {double}, "
        f"not as seen {len(wrong)}, differences {len(found.differences)} "
        f"({_COUNT} phases × {len(PROTOCOLS)} protocols × {count}, FIN and RST)"
    )
    expected = 2 * count * len(PROTOCOLS) * (len(PHASES) - 1 + 1)  # where the body is cut nothing is asked
    return Result("R5", _GOAL, words, not (missing or double or wrong or found.differences) and len(kept) == expected)


def _is_right(row: dict[str, Any], phase: str) -> bool:
    if phase == _BACK_OFF:
        # On a slow machine the client is gone before the refusal was read.
        is_read = (row["status"], row["nano"]) == (503, None)
        return (row["state"], row["reason"]) == ("estimated", "overloaded" if is_read else "cancelled")
    if (row["state"], row["reason"], row["reported"]) != ("estimated", "cancelled", 0):
        return False
    if phase != "mid-stream":
        return row["input"] is not None and row["input"] > 0
    return row["output"] >= 1 and row["input"] > 0  # a server that says 0 of both beside a text counts nothing
