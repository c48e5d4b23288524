"""L12, L11: a key that is disabled on one machine lets nobody in on another one, also while the store is out of reach,
and what a look for a key costs where there are many.

    .venv/bin/python -m reliability.r33_replica [--turns 20] [--keys 1000000]

Each gateway has a state folder of its own, as on a machine of its own. Keys are changed from a third one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.replica.age import now
from dragoman.ledger.replica.file import Heard, Replica
from dragoman.ledger.stores.files import REPLICA_FILE
from dragoman.secret import Secret
from reliability.engines import MISSING, PostgreSQL
from reliability.process import Gateway
from reliability.r25_ledger import _CONFIG, Counting
from reliability.row import Result, Scale, percentile, run_alone

_MACHINES = 2
_CALLERS = 8
_PACE = 0.04  # seconds that each waits between two requests, on the average
_SOON = 5.0  # seconds within which a change holds on all machines that the store can reach
_STORE = "DRAGOMAN_DRILL_STORE"
_FILE_KEY = "a-key-of-the-file-0123456789-abcdef"
_MORE = """
[ledger]
store = "env:{store}"
replica_max_age_seconds = {age}
[keys.file]
digests = ["sha256:{digest}"]
"""


class Fleet:
    """Gateways that share a PostgreSQL, a provider, and a machine from which keys are changed."""

    def __init__(
        self, server: PostgreSQL, port: int, stack: ExitStack, *, age: float, workers: int, machines: int, more: str
    ) -> None:
        self.server = server
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-")))
        self._folder = LedgerFolder(root, Secret(server.address))
        self.secrets: dict[str, str] = {}
        self.add("ci")
        self.add("load")
        self.gateways = []
        self.folders = []
        digest = hashlib.sha256(_FILE_KEY.encode()).hexdigest()
        for _ in range(machines):
            state = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-"))
            text = _CONFIG.format(state=state, port=port) + _MORE.format(store=_STORE, age=age, digest=digest) + more
            self.folders.append(LedgerFolder.of(Path(state), Secret(server.address)))
            environ = {_STORE: server.address}
            self.gateways.append(stack.enter_context(Gateway(text, "--workers", str(workers), environ=environ)))

    def add(self, name: str) -> None:
        """A key that lets in everywhere."""
        self.secrets[name] = f"{name}-{os.urandom(16).hex()}"
        digest = hashlib.sha256(self.secrets[name].encode()).digest()
        with closing(KeyBook(self._folder, actor="drill")) as book:
            book.add(VirtualKey(name=name), digest)

    async def disable(self, *, at: int | None) -> None:
        """As the command: the key `ci` is none from then on."""

        def work() -> None:
            with closing(KeyBook(self._folder, actor="drill")) as book:
                book.disable("ci", at=at)

        await asyncio.to_thread(work)

    async def ask(self, gateway: Gateway, key: str) -> tuple[int, bytes]:
        """One request on a connection of its own; its status, 0 where it was cut, and the head of the answer."""
        name = "m-" + "".join(random.choices("0123456789abcdefghijklmnopqrstuvwxyz", k=12))
        body = json.dumps({"model": f"lab/{name}", "messages": [{"role": "user", "content": "Hi"}]}).encode()
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
            f"authorization: Bearer {key}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(head.encode() + body)
                answer = await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            return 0, b""
        found = re.match(rb"HTTP/1.1 (\d+)", answer)
        return (int(found[1]) if found else 0), answer

    async def look(self, gateway: Gateway, path: str) -> bytes:
        """A page of the operator's, as who has a key of the file sees it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nauthorization: Bearer {_FILE_KEY}\r\n"
        writer.write(head.encode() + b"\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    async def until(self, status: int, key: str, most: float, *, last: bool = False) -> float:
        """Seconds until all machines answer so to a key; `last`: until none of some more requests is answered else."""
        began = time.monotonic()
        other = began
        while time.monotonic() < began + most:
            before = other
            for gateway in self.gateways:  # one after the other: a wrong key is answered up to 5 s later
                if (await self.ask(gateway, key))[0] != status:
                    other = time.monotonic()
            if other == before and (not last or time.monotonic() > other + 1.0):
                break
        return other - began

    async def load(self, stop: asyncio.Event, seen: dict[int, int]) -> None:
        """A caller whose key holds."""
        while not stop.is_set():
            status, _ = await self.ask(random.choice(self.gateways), self.secrets["load"])
            seen[status] = seen.get(status, 0) + 1
            await asyncio.sleep(random.uniform(0, 2 * _PACE))


@contextlib.asynccontextmanager
async def fleet(  # type: ignore[misc]
    server: PostgreSQL, *, age: float, workers: int = 2, machines: int = _MACHINES, more: str = ""
) -> Iterator[Fleet]:
    """One that serves."""
    provider = await asyncio.get_running_loop().create_server(Counting, "127.0.0.1", 0)
    with ExitStack() as stack:
        port = provider.sockets[0].getsockname()[1]
        yield await asyncio.to_thread(
            Fleet, server, port, stack, age=age, workers=workers, machines=machines, more=more
        )
    provider.close()


async def revoke(server: PostgreSQL, turns: int, *, callers: int = _CALLERS, workers: int = 2) -> Result:
    """Disabled and enabled in turns, under load; how long it takes until no machine lets the key in."""
    async with fleet(server, age=86_400, workers=workers) as each:
        stop, seen = asyncio.Event(), dict[int, int]()
        loads = [asyncio.create_task(each.load(stop, seen)) for _ in range(callers)]
        began, gone, back = time.monotonic(), [], []
        for _ in range(turns):
            back.append(await each.until(200, each.secrets["ci"], 30))
            await each.disable(at=int(time.time()))
            gone.append(await each.until(401, each.secrets["ci"], 30, last=True))
            await each.disable(at=None)
        rate = sum(seen.values()) / (time.monotonic() - began)
        stop.set()
        await asyncio.gather(*loads)
    words = (
        f"{turns} times disabled: until no machine let it in {percentile(gone, 0.5):.2f} s (median), {max(gone):.2f} s "
        f"(longest); enabled again for all after {max(back):.2f} s at most; {_MACHINES} gateways of {workers} workers "
        f"beside {rate:.0f} requests/s of another key: {seen}"
    )
    return Result("L12", f"a disabled key: ≤ {_SOON:g} s, fleet", words, max(gone) <= _SOON and set(seen) == {200})


async def out_of_reach(server: PostgreSQL, age: float, *, workers: int = 2) -> Result:
    """The store is away when a key should end: its keys go on until they are too old, then get 503; those of the file
    go on. A gateway that begins meanwhile does the same."""
    async with fleet(server, age=age, workers=workers) as each:
        await each.until(200, each.secrets["ci"], 30)
        await asyncio.to_thread(server.kill)
        away = time.monotonic()
        await asyncio.to_thread(each.gateways[1].stop)
        await asyncio.to_thread(each.gateways[1].start)
        started = time.monotonic() - away  # on a busy machine that may be later than the limit
        begun = [(await each.ask(each.gateways[1], key))[0] for key in (each.secrets["ci"], _FILE_KEY)]
        await each.until(503, each.secrets["ci"], age + 30)
        late = time.monotonic() - away
        await asyncio.sleep(max(0.0, age + 2 - late))  # each worker hears of it within these two seconds
        after, heads = set(), set()
        for _ in range(5):
            for gateway in each.gateways:
                status, head = await each.ask(gateway, each.secrets["ci"])
                after.add(status)
                heads.add(b"retry-after: 30" in head.lower())
        file = [(await each.ask(gateway, _FILE_KEY))[0] for gateway in each.gateways]
        await asyncio.to_thread(server.start)
        await each.disable(at=int(time.time()))
        ended = await each.until(401, each.secrets["ci"], 30, last=True)
        other = await each.until(200, each.secrets["load"], 30)
    words = (
        f"PostgreSQL killed, a limit of {age:g} s: a gateway that began {started:.1f} s later answered {begun} to a "
        f"key of the store and of the file, 503 everywhere after {late:.1f} s, then {sorted(after)}, each with "
        f"Retry-After: {heads == {True}}, the file's key {file}; PostgreSQL back: disabled after {ended:.1f} s, "
        f"the other key let in after {other:.1f} s"
    )
    is_old = started > age - 1
    passed = (
        (begun == [200, 200] or (is_old and begun == [503, 200]))
        and late <= max(age, started) + 2
        and after == {503}
        and heads == {True}
        and set(file) == {200}
    )
    return Result("L12", "out of reach: the greatest age at most, then 503", words, passed and ended <= _SOON)


def many_keys(count: int, looks: int) -> Result:
    """A copy with so many keys: CPU and memory of a worker that looks for keys that it never saw."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as name:
        folder = LedgerFolder(Path(name), Secret("postgresql://u@127.0.0.1/d"))
        replica = Replica(folder)
        keys = ((f"key-{n}", "anna", "research", "{}", '["*"]', '["*"]', None, None, 1) for n in range(count))
        digests = ((_digest(n), f"key-{n}", None) for n in range(count))
        replica.write(Heard(1, b"", (), 0.0, now()), since=None, keys=keys, digests=digests, is_whole=True)
        replica.close()
        with closing(sqlite3.connect(folder.root / REPLICA_FILE)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        size = (folder.root / REPLICA_FILE).stat().st_size
        ring = KeyRing(folder)
        ring.find(b"0" * 32)
        wanted = [_digest(random.randrange(count)) for _ in range(looks)]
        before, began = _resident(), time.process_time()
        times = []
        for digest in wanted:
            at = time.perf_counter()
            assert ring.find(digest) is not None
            times.append(time.perf_counter() - at)
        cpu = (time.process_time() - began) / looks * 1e6
        grown = (_resident() - before) / 2**20
        began = time.process_time()
        for _ in range(10):
            for digest in wanted[-500:]:
                ring.find(digest)
        warm = (time.process_time() - began) / 5_000 * 1e6
        ring.close()
    words = (
        f"{count} keys in {size / 2**20:.0f} MB: a key never seen {cpu:.0f} µs CPU (clock: median "
        f"{percentile(times, 0.5) * 1e6:.0f} µs, p99 {percentile(times, 0.99) * 1e6:.0f} µs), a known one {warm:.1f} "
        f"µs; after {looks} looks the process had {grown:.1f} MB more"
    )
    return Result("L11", "cold ≤ 120 µs CPU, p99 ≤ 3 ms, ≤ 20 MB a worker", words, cpu <= 120 and grown <= 20)


def _digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def _resident() -> int:
    """Bytes of memory that this process has to itself."""
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    found = re.search(r"^Pss_Anon: +(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def measure(scale: Scale, turns: int | None = None, keys: int | None = None) -> Iterator[Result]:
    """In reach, out of reach, and many."""
    yield many_keys(keys or scale.pick(1_000_000, 20_000), scale.pick(50_000, 5_000))
    if MISSING:
        yield Result("L12", "a disabled key", f"not tried: {MISSING}", False)
        return
    with PostgreSQL() as server:
        yield asyncio.run(revoke(server, turns or scale.pick(20, 3)))
    with PostgreSQL() as server:
        yield asyncio.run(out_of_reach(server, scale.pick(20, 10)))


if __name__ == "__main__":
    raise SystemExit(run_alone(__doc__, measure, {"turns": 20, "keys": 1_000_000}))
