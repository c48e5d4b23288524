"""`make bench-against BEFORE=COMMIT`: this code beside an older commit, row by row, in one run.

    .venv/bin/python bench/against.py 988e944 [--rounds 7] [--only chat,request]

Three processes take turns: the older code, the older code once more, this code. A row's figure is the median over the
rounds of new / old, in CPU time. The second older process tells what the machine does by itself: a ratio whose distance
from 1 is below the spread of old against old says nothing. Each process measures with the benchmarks of its own
checkout, so only what both have is compared.
"""

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: One sample lasts at least this long, in CPU seconds; of three the least counts.
SAMPLE_SECONDS = 0.02
SAMPLES = 3

Measure = Callable[[], Awaitable[float]]


def timed(work: Callable[[], object]) -> Measure:
    """CPU seconds of one run of something that does not wait."""

    def once(runs: int) -> float:
        before = time.process_time()
        for _ in range(runs):
            work()
        return (time.process_time() - before) / runs

    async def measure() -> float:
        runs = max(1, round(SAMPLE_SECONDS / max(once(1), 1e-6)))
        return min(once(runs) for _ in range(SAMPLES))

    return measure


def library_rows() -> Iterator[tuple[str, Measure]]:
    from library_rows import library_rows as rows

    for name, work in rows():
        yield name, timed(work)


async def gateway_rows(folder: Path) -> dict[str, Measure]:
    """One request through a gateway in this process, less what the scripted provider costs."""
    import inside

    loop = asyncio.get_running_loop()
    provider = await loop.create_server(inside.Provider, "127.0.0.1", 0)
    port = provider.sockets[0].getsockname()[1]
    file = folder / "dragoman.toml"
    file.write_text(inside._CONFIG.format(port=port))
    config = inside.load_config(file, environ=os.environ, home=folder)
    gateway = await inside.Gateway.open(config, host="127.0.0.1", port=0)
    settle_as_served()

    def measured(asked: bytes, count: int) -> Measure:
        async def once(ask: Callable[[bytes], Awaitable[bytes]]) -> float:
            before = time.process_time()
            for _ in range(count):
                await ask(asked)
            return (time.process_time() - before) / count

        async def measure() -> float:
            # Connections of this row: one that waits for its turn is closed as idle.
            direct, through = await inside.client(port), await inside.client(gateway.port)
            whole = min([await once(through) for _ in range(SAMPLES)])
            return whole - min([await once(direct) for _ in range(SAMPLES)])

        return measure

    rows = {}
    for what, stream, size, count in (("request", False, 400, 200), ("request of 128 KiB", False, 131_072, 60),
                                      ("stream", True, 400, 60)):  # fmt: skip
        for way, (path, model) in inside.WAYS.items():
            asked = inside.request(path, model, stream=stream, size=size)
            rows[f"{what}, {way}"] = measured(asked, count)
    return rows


def settle_as_served() -> None:
    """What `dragoman serve` does when all is loaded, and before its first request."""
    try:
        from dragoman.gateway.process.garbage import look_seldom
        from dragoman.gateway.process.heap import settle
    except ImportError:  # an older checkout
        gc.freeze()
        gc.set_threshold(5_000, 20, 50)
        return
    settle(is_alone=True)
    look_seldom()


async def serve(only: list[str]) -> None:
    """The process of one checkout: names its rows, then measures each that it is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        rows = {**dict(library_rows()), **await gateway_rows(Path(folder))}
        rows = {name: row for name, row in rows.items() if not only or any(word in name for word in only)}
        print("\t".join(rows), flush=True)
        loop = asyncio.get_running_loop()
        while name := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            print(await rows[name](), flush=True)


class Side:
    """A process that measures one checkout."""

    def __init__(self, checkout: Path, only: str) -> None:
        paths = [checkout / "src", checkout / "bench", checkout / "bench/gateway", HERE]
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "against.py"), "--serve", "--only", only],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.rows = self._line().split("\t")

    def measure(self, row: str) -> float:
        assert self._process.stdin
        self._process.stdin.write(row + "\n")
        self._process.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        self._process.communicate("\n", timeout=30)

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        if not line:
            sys.exit("a measuring process ended; its error stands above")
        return line


def compare(before: str, rounds: int, only: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "before"
        subprocess.run(["git", "-C", HERE, "worktree", "add", "-q", "--detach", checkout, before], check=True)
        try:
            old, again, new = (Side(place, only) for place in (checkout, checkout, HERE.parent))
            both = [row for row in old.rows if row in new.rows]
            print(f"| row | {before}, µs | new / old | old / old, spread |\n|---|--:|--:|--:|", flush=True)
            for row in both:
                for side in (old, again, new):
                    side.measure(row)
                print_row(row, [(old.measure(row), again.measure(row), new.measure(row)) for _ in range(rounds)])
            for side in (old, again, new):
                side.end()
        finally:
            subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", checkout], check=True)


def print_row(row: str, samples: list[tuple[float, float, float]]) -> None:
    ratio = statistics.median(new / ((old + again) / 2) for old, again, new in samples)
    own = [again / old for old, again, _ in samples]
    low, *_, high = statistics.quantiles(own, n=4)
    micro = statistics.median(old for old, _, _ in samples) * 1e6
    mark = " **" if ratio - 1 > max(0.03, statistics.median(own) - 1, (high - low) / 2) else ""
    spread = f"{statistics.median(own):.3f}, {low:.2f}–{high:.2f}"
    print(f"| {row} | {micro:.1f} | {ratio:.3f}{mark} | {spread} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="This code beside an older commit.")
    parser.add_argument("before", nargs="?", help="a commit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="words, of which a row's name has one: chat,request")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        # As the gateway runs. What a turn of asyncio's own loop costs differs twofold by the order of the sockets.
        uvloop.run(serve(list(filter(None, options.only.split(",")))))
    elif options.before:
        compare(options.before, options.rounds, options.only)
    else:
        parser.error("name the commit to compare with")


if __name__ == "__main__":
    main()
