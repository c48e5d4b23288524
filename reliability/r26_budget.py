"""R26 and L7: a budget is never overspent, and nothing that was set apart stays so, whoever is killed.

The provider bills each request that reaches it by what its answer says, and adds it up itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from dragoman.config.quotas import Quota
from dragoman.ledger.counting import open_counters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.limits.accounts import charge_of
from dragoman.ledger.limits.quotas import QuotaBook
from dragoman.ledger.limits.seeding import read_seeds
from dragoman.ledger.reports.checking import check
from reliability.network import Here, dial
from reliability.process import Gateway
from reliability.r25_ledger import count_open, is_shipper
from reliability.request_bodies import RequestBodies
from reliability.row import Result, Scale

_WORKERS = 8
_CALLS = 50
_AT_ONCE = 100
#: Output tokens: of an answer in the drill with `bound`, and what a request says at most in the one with `expected`.
TOKENS = 100
_LONG = 4_000
NANO_PER_TOKEN = 10_000
_EXPECTED = 1_024  # tokens that are set apart where the usual answer is expected
CONFIG = """
[server]
state = "{state}"
log = "off"
[http]
retries = 0
[providers.lab]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
clean = true
[prices."lab/m"]
input = 0
output = 10
"""


class Billing(asyncio.Protocol):
    """A provider that bills all that a request allows. `tokens`: of each."""

    tokens: ClassVar[list[int]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._bodies = RequestBodies(transport)

    def data_received(self, data: bytes) -> None:
        body = self._bodies.take(data)
        if body is None:
            return
        most = int(json.loads(body)["max_tokens"])
        Billing.tokens.append(most)
        asyncio.get_running_loop().call_later(random.choice((0.0, 0.01, 0.2)), self._reply, most)

    def _reply(self, most: int) -> None:
        message = {"role": "assistant", "content": "Hello."}
        answer = json.dumps(
            {
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": most, "total_tokens": most + 5},
            }
        ).encode()  # fmt: skip
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
        self._bodies.transport.write(head + answer)


async def ask(port: int, tokens: int, machine: Here | None = None) -> int:
    """One request on a machine, this one unless it is named; gives the status, 0 when the gateway's worker died over
    it."""
    body = json.dumps(
        {"model": "lab/m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": tokens}
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(30):
            socket = dial(machine or Here())
            await asyncio.get_running_loop().sock_connect(socket, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=socket)
            writer.write(head.encode() + body)
            return int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return 0
    finally:
        if writer is not None:
            writer.close()


def kill_one(gateway: Gateway, killed: Counter[str]) -> None:
    """End a worker or the shipper; another takes its place."""
    children = gateway.family()[1:]
    if children:
        victim = random.choice(children)
        killed["shipper" if is_shipper(victim) else "worker"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)


async def until_ended(folder: LedgerFolder) -> None:
    """All rows have an end; then two seconds in which nothing happens."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with contextlib.suppress(sqlite3.OperationalError):  # a file is just being made
            if not await asyncio.to_thread(count_open, folder):
                break
        await asyncio.sleep(0.1)
    await asyncio.sleep(2.0)


async def storm(tokens: int, reserve: str, kills: int) -> Result:
    """All workers are asked at once, on a budget for some calls."""
    provider = await asyncio.get_running_loop().create_server(Billing, "127.0.0.1", 0)
    Billing.tokens.clear()
    port = provider.sockets[0].getsockname()[1]
    each = tokens if reserve == "bound" else _EXPECTED
    limit = _CALLS * each * NANO_PER_TOKEN
    quota = Quota("all", "", "usd", limit // 1_000, "month", reserve=reserve)  # type: ignore[arg-type]
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state:
        folder = LedgerFolder.of(Path(state))
        set_quota(folder, quota)
        with Gateway(CONFIG.format(state=state, port=port), "--workers", str(_WORKERS)) as gateway:
            asking = [asyncio.create_task(ask(gateway.port, tokens)) for _ in range(_WORKERS * _AT_ONCE)]
            for _ in range(kills):
                await asyncio.sleep(0.05)
                kill_one(gateway, killed)
            statuses = Counter(await asyncio.gather(*asking))
            await until_ended(folder)
            # What was left is had by whoever asks next; what a worker holds ahead is back after two seconds of rest.
            answered = 1
            while answered:
                answered = 0
                while (status := await ask(gateway.port, tokens)) == 200:
                    answered += 1
                statuses[status] += 1
                statuses[200] += answered
                await until_ended(folder)
            found = await asyncio.to_thread(check, folder)
            leased, spent = standing(folder, quota)
    provider.close()
    billed = sum(Billing.tokens) * NANO_PER_TOKEN
    over = max(0, billed - limit)
    # All that fits may be set apart before the first of it ends.
    allowed = 0 if reserve == "bound" else _CALLS * (tokens - each) * NANO_PER_TOKEN
    words = (
        f"{sum(statuses.values())} requests, {len(Billing.tokens)} reached the provider, which billed "
        f"{billed / 1e9:.4f} of {limit / 1e9:.4f} US dollars: overspent {over / 1e9:.4f}"
        f"{'' if reserve == 'bound' else f' (in flight beyond what is set apart: {allowed / 1e9:.4f})'}; "
        f"leases {leased}, spend {spent}, rows {found.nano}; {_WORKERS} workers, "
        f"SIGKILL of {', '.join(f'{count} {who}s' for who, count in sorted(killed.items())) or 'nobody'}"
    )
    # With `bound` each call costs the same, so all of it can be had, by who died or by who was answered.
    is_whole = reserve != "bound" or spent == limit
    passed = over <= allowed and leased == spent == found.nano and is_whole and not found.differences
    goal = "overspend 0, Σ leases = Σ spend = the limit" if reserve == "bound" else "overspend ≤ Σ (actual − reserved)"
    return Result("R26", f"8 × 100 on a budget for 50 calls, {reserve}: {goal}", words, passed)


def set_quota(folder: LedgerFolder, quota: Quota) -> None:
    """As `dragoman budget set` does."""
    book = QuotaBook(folder, actor="drill")
    book.set(quota)
    book.close()


def standing(folder: LedgerFolder, quota: Quota) -> tuple[int, int]:
    """What the counters say is leased and spent, and what the ledger says was spent."""
    account = charge_of(quota, quota.value, time.time()).account
    counters = open_counters(folder)
    try:
        leased = counters.totals([account]).get(account, 0)
    except CountersAway:
        leased = -1
    finally:
        counters.close()
    seed = read_seeds(folder, [account])[account]
    return leased, seed.closed + sum(seed.by_holder.values())


async def chaos(seconds: float) -> Result:
    """Callers, kills, limits that are lowered and raised; then rest."""
    provider = await asyncio.get_running_loop().create_server(Billing, "127.0.0.1", 0)
    Billing.tokens.clear()
    port = provider.sockets[0].getsockname()[1]
    each = TOKENS * NANO_PER_TOKEN
    killed: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state:
        folder = LedgerFolder.of(Path(state))
        calls = 200
        most = calls * each
        set_quota(folder, Quota("all", "", "usd", most // 1_000, "month"))
        with Gateway(CONFIG.format(state=state, port=port), "--workers", "4") as gateway:
            end = time.monotonic() + seconds

            async def caller() -> None:
                while time.monotonic() < end:
                    statuses[await ask(gateway.port, random.choice((TOKENS, TOKENS // 4, 1)))] += 1
                    await asyncio.sleep(random.uniform(0, 0.1))

            callers = [asyncio.create_task(caller()) for _ in range(24)]
            while time.monotonic() < end:
                await asyncio.sleep(min(1.0, seconds / 20))
                if random.random() < 0.3:
                    kill_one(gateway, killed)
                _, spent = await asyncio.to_thread(standing, folder, Quota("all", "", "usd", 0, "month"))
                limit = max(1, spent + random.randint(-3, 40) * each)
                most = max(most, limit)
                set_quota(folder, Quota("all", "", "usd", limit // 1_000, "month"))
            await asyncio.gather(*callers)
            await until_ended(folder)
            leased, spent = standing(folder, Quota("all", "", "usd", 0, "month"))
            over = max(0, sum(Billing.tokens) * NANO_PER_TOKEN - most)
            # Room for exactly five more: all of them are to be had, and no sixth.
            set_quota(folder, Quota("all", "", "usd", -(-(spent + 5 * each) // 1_000), "month"))
            await asyncio.sleep(1.5)
            last = [await ask(gateway.port, TOKENS) for _ in range(6)]
    provider.close()
    words = (
        f"{seconds:.0f} s, {sum(statuses.values())} requests ({statuses[200]} answered, {statuses[429]} refused, "
        f"{statuses[0]} cut), {sum(killed.values())} SIGKILL of 4 workers and the shipper; then leases {leased}, spend "
        f"{spent}, overspent {over}; of room for five: {last.count(200)} answered, then {last[-1]}"
    )
    passed = leased == spent and not over and last == [200] * 5 + [429]
    return Result("L7", "after chaos and 2 s: Σ leases = Σ spend, 0 false refusals, overspend 0", words, passed)


def measure(scale: Scale) -> Iterator[Result]:
    """The storm with both reserves and without kills, then chaos."""
    yield asyncio.run(storm(TOKENS, "bound", 0))
    yield asyncio.run(storm(TOKENS, "bound", scale.pick(30, 6)))
    yield asyncio.run(storm(_LONG, "expected", 0))
    yield asyncio.run(chaos(scale.pick(600, 20)))
