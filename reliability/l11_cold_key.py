"""L11 in a fleet: the first request of a key on a worker, which has to ask its copy and the counters: the look for the
key, and what its budget of a month costs, where the counters know the account, and where nobody has asked for it yet.
Beside it what the bare drivers take for nothing, asked in turn, each in its usual way.

    .venv/bin/python -m reliability.l11_cold_key [--keys 3000]
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from dragoman.config.quotas import Quota
from dragoman.ledger.counting import open_counters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.limits.accounts import Need, charge_of
from dragoman.ledger.limits.budgets import Budgets
from dragoman.ledger.replica.age import now
from dragoman.ledger.replica.file import Heard, Replica
from dragoman.secret import Secret
from reliability import engine_valkey, engines
from reliability.engine_valkey import Valkey
from reliability.engines import PostgreSQL
from reliability.row import Result, Scale, percentile, run_alone

_CPU_MICROS = 120
_P99_MS = 3.0
#: Keys whose CPU is measured at once: others use the machine too, so the least of many blocks says most.
_BLOCK = 100
#: Leased so much, which is half of a budget.
_NANO = 1_000


class Worker:
    """Of a machine of its own: a journal, a copy of the keys, counters."""

    def __init__(self, folder: LedgerFolder, keys: int, stack: ExitStack) -> None:
        replica = Replica(folder)
        rows = ((f"key-{n}", "anna", "", "{}", '["*"]', '["*"]', None, None, 1) for n in range(keys))
        digests = ((_digest(n), f"key-{n}", None) for n in range(keys))
        replica.write(Heard(1, b"", (), 0.0, now()), since=None, keys=rows, digests=digests, is_whole=True)
        replica.close()
        self.journal = Journal(folder.journals)
        self.counters = open_counters(folder, has_time=True)
        self.ring = KeyRing(folder)
        self.budgets = Budgets(self.counters, self.journal.holder, begin=self._begin)
        for close in (self.journal.close, self.counters.close, self.ring.close):
            stack.callback(close)
        self.budgets.greet()
        self.ring.find(bytes(32))

    def _begin(self) -> None:
        self.journal.say_leasing()
        self.counters.join(self.journal.holder)  # type: ignore[union-attr]

    def first_requests(self, count: int) -> tuple[list[float], list[float]]:
        """One of each key; microseconds of CPU of each in a block of them, and seconds by the clock of all."""
        at = time.time()
        charges = [charge_of(Quota("key", f"key-{n}", "usd", 2, "month"), f"key-{n}", at) for n in range(count)]
        seconds, blocks = [], []
        for first in range(0, count, _BLOCK):
            began = time.process_time()
            for number in range(first, first + _BLOCK):
                begun = time.perf_counter()
                assert self.ring.find(_digest(number)) is not None
                assert self.budgets.admit((Need(charges[number], _NANO),)) is None
                seconds.append(time.perf_counter() - begun)
            blocks.append((time.process_time() - began) / _BLOCK * 1e6)
        return blocks, seconds


def _digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def bare(server: PostgreSQL, valkey: Valkey | None) -> str:
    """Microseconds of CPU of a statement and of a script of the drivers that do nothing, the least of some blocks."""
    import asyncpg
    import valkey as driver

    loop = asyncio.new_event_loop()
    postgresql = loop.run_until_complete(asyncpg.connect(server.address))
    asks: dict[str, Callable[[], object]] = {
        "a statement": lambda: loop.run_until_complete(postgresql.fetch("SELECT 1"))
    }
    if valkey is not None:
        client = driver.Valkey.from_url(valkey.address)
        digest = client.script_load("return 1")
        asks["a script"] = lambda: client.evalsha(digest, 0)
        statement, script = asks["a statement"], asks["a script"]
        asks["both in turn"] = lambda: (statement(), script())
    found: dict[str, list[float]] = {name: [] for name in asks}
    for _ in range(20):
        for name, ask in asks.items():
            began = time.process_time()
            for _ in range(_BLOCK):
                ask()
            found[name].append((time.process_time() - began) / _BLOCK * 1e6)
    loop.run_until_complete(postgresql.close())
    loop.close()
    if valkey is not None:
        client.close()
    return ", ".join(f"{name} {min(micros):.0f} µs" for name, micros in found.items())


def drill(kind: str, keys: int) -> Iterator[Result]:
    """The first worker asks for accounts that nobody has asked for, the second one for the same ones."""
    with ExitStack() as stack:
        server = stack.enter_context(PostgreSQL(is_durable=True))
        valkey = stack.enter_context(Valkey()) if kind == "Valkey" else None
        counters = None if valkey is None else Secret(valkey.address)
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-"))) for _ in "12"]
        workers = [Worker(LedgerFolder(each, Secret(server.address), counters), keys, stack) for each in folders]
        for worker, what in zip(workers, ("nobody has asked for it", "the counters know it"), strict=True):
            blocks, seconds = worker.first_requests(keys)
            cpu = min(blocks)
            p99 = percentile(seconds, 0.99) * 1000
            words = (
                f"{cpu:.0f} µs CPU of the worker (the least of {len(blocks)} blocks, the median "
                f"{percentile(blocks, 0.5):.0f}), by the clock {percentile(seconds, 0.5) * 1000:.2f} ms (median), "
                f"{p99:.2f} ms (p99); {keys} keys"
            )
            words += f"; the bare drivers: {bare(server, valkey)}"
            goal = f"counters in {kind}, {what}: ≤ {_CPU_MICROS} µs CPU, p99 ≤ {_P99_MS:g} ms"
            yield Result("L11", goal, words, cpu <= _CPU_MICROS and p99 <= _P99_MS)


def measure(scale: Scale, keys: int | None = None) -> Iterator[Result]:
    """Both places of the counters."""
    missing = engines.MISSING or engine_valkey.MISSING
    if missing:
        yield Result("L11", "a cold key", f"not tried: {missing}", False)
        return
    for kind in ("Valkey", "PostgreSQL"):
        yield from drill(kind, keys or scale.pick(3_000, 300))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"keys": 3_000}))
