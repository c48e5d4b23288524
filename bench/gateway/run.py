"""`make bench-gateway`: the gateway beside nginx and, where they can be installed, other gateways.

    .venv/bin/python bench/gateway/run.py [--repeats 3] [--seconds 3] [--peers rolter,tensorzero,portkey,litellm]
                                          [--only json,burst,paced,big,low,1000,5000]

A scripted provider and a load generator (C, one thread each) share a core, the gateway under test has another. A stream
is one tool call in 204 events of about 320 bytes. Measured is the CPU time of the gateway's whole process tree, the
median of the repeats; nginx passes the same bytes through in the same run. Needs Linux, gcc and nginx. As root it
runs in a network of its own, so that no gateway can be reached from outside.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peers
from peers import Gateway, ToolMode
from processes import Mock, Running, drive

EVENTS = 204
_FEW = 4
SCENARIOS = ("json", "burst", "paced", "big", "low", "1000", "5000")
#: Scenarios that are played once: they take long and tell how many streams live, not what they cost.
ONCE = ("1000", "5000")
_Figures = dict[str, float]
#: Set inside the network of its own.
UNSHARED = "DRAGOMAN_BENCH_UNSHARED"


def play(running: Running, way: ToolMode, scenario: str, seconds: float) -> _Figures:
    """One scenario against one gateway, in the units of the tables."""
    if scenario in ("json", "big"):
        more = 131_072 if scenario == "big" else 0
        connections = 16 if more else 32
        warm = _json(running, way, 4, 100, 3.0, more)
        count = int(max(warm["rps"], 20) * seconds)
        found = _json(running, way, connections, count, seconds * 2, more)
        # requests that the end of the time cut off cost something too: half of one, on average
        return {"ms": found["cpu"] * 1e3 / max(found["ok"] + found["f_timeout"] / 2, 1), "failed": found["failed"]}
    if scenario == "burst":
        warm = _streams(running, way, "mock-n200d0", 4, 20, 5.0)
        count = int(max(warm["rps"], 4) * seconds)
        found = _streams(running, way, "mock-n200d0", 16, count, seconds * 2)
        return _per_event(found)
    if scenario == "paced":
        return _per_event(_streams(running, way, "mock-n200d5", 100, 400, seconds * 4))
    if scenario == "low":
        whole = _json(running, way, 1, 300, seconds * 2)
        first = _streams(running, way, "mock-n20d5", 1, 20, 4.0)
        burst = _streams(running, way, "mock-n200d0", 1, 150, seconds * 2)
        return {"ms": whole["tot_p50_ms"], "first": first["ttfb_p50_ms"], "end": burst["tot_p50_ms"]}
    many, model, wait = (1000, "mock-n100d50", 40.0) if scenario == "1000" else (5000, "mock-n20d500", 60.0)
    found = _streams(running, way, model, many, many, wait, ramp=many // 4)
    each = (found["peak"] - running.cold[1]) * 1000 / many
    return {"ok": found["ok"], "failed": found["failed"], "late": found["f_timeout"], "each": each}


def _json(
    running: Running, way: ToolMode, connections: int, requests: int, seconds: float, more: int = 0
) -> dict[str, Any]:
    return drive(
        running,
        way,
        "mock-n200d0",
        stream=False,
        connections=connections,
        requests=requests,
        seconds=seconds,
        more=more,
    )


def _streams(
    running: Running, way: ToolMode, model: str, connections: int, requests: int, seconds: float, ramp: int = 0
) -> dict[str, Any]:
    return drive(
        running, way, model, stream=True, connections=connections, requests=requests, seconds=seconds, ramp=ramp
    )


def _per_event(found: dict[str, Any]) -> _Figures:
    """Events are counted at the provider: a gateway may write several as one."""
    events = (found["ok"] + found["f_timeout"] / 2) * EVENTS
    if found["ok"] < _FEW:  # so slow that hardly a stream ended: what the client saw is all that is known
        events = found["events"]
    return {"us": found["cpu"] * 1e6 / max(events, 1), "failed": found["failed"]}


class Results:
    """Figures of all repeats, by gateway, way and scenario."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], list[_Figures]] = {}
        self.cold: dict[str, list[tuple[float, float]]] = {}

    def add(self, gateway: str, way: str, scenario: str, figures: _Figures) -> None:
        self._found.setdefault((gateway, way, scenario), []).append(figures)

    def median(self, gateway: str, way: str, scenario: str, figure: str) -> float | None:
        taken = [figures[figure] for figures in self._found.get((gateway, way, scenario), []) if figure in figures]
        return statistics.median(taken) if taken else None

    def start_of(self, gateway: str) -> tuple[float, float] | None:
        cold = self.cold.get(gateway)
        return (statistics.median(one for one, _ in cold), statistics.median(two for _, two in cold)) if cold else None


def rows(results: Results, gateways: list[Gateway]) -> Iterator[str]:
    """The table."""
    yield (
        "| gateway | direction | request, ms | chunk of a burst, µs | chunk alone, µs | 128 KiB request, ms |"
        " one connection: answer / first byte / end of a burst, ms | 1,000 streams: failed / late / MB per 1,000 |"
        " 5,000 streams: the same | start: CPU-s, MB |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for gateway in gateways:
        for way in gateway.ways:
            cells = [
                _told(results, gateway.name, way.name, scenario, figure)
                for scenario, figure in (("json", "ms"), ("burst", "us"), ("paced", "us"), ("big", "ms"))
            ]
            low = [results.median(gateway.name, way.name, "low", figure) for figure in ("ms", "first", "end")]
            cells.append(" / ".join("–" if one is None else f"{one:.2f}" for one in low))
            for scenario in ONCE:
                figures = [
                    results.median(gateway.name, way.name, scenario, name) for name in ("failed", "late", "each")
                ]
                cells.append(" / ".join("–" if one is None else f"{one:.0f}" for one in figures))
            cold = results.start_of(gateway.name)
            cells.append("–" if cold is None else f"{cold[0]:.2f}, {cold[1]:.0f}")
            yield f"| {gateway.name} | {way.name} | {' | '.join(cells)} |"


def _told(results: Results, gateway: str, way: str, scenario: str, figure: str) -> str:
    own = results.median(gateway, way, scenario, figure)
    nginx = results.median("nginx", "OpenAI → OpenAI", scenario, figure)
    if own is None:
        return "–"
    return f"{own:.3g}" + (f" (× {own / nginx:.2g})" if nginx else "")


def measure(options: argparse.Namespace, gateways: list[Gateway]) -> Results:
    """Play all scenarios, the gateways taking turns in each repeat."""
    results = Results()
    scenarios = options.only.split(",")
    for repeat in range(options.repeats):
        for gateway in gateways:
            running = Running(gateway, options.folder)
            try:
                running.start()
                if running.pid is not None:
                    results.cold.setdefault(gateway.name, []).append(running.cold)
                for way in gateway.ways:
                    for scenario in scenarios:
                        if scenario in ONCE:
                            if repeat:
                                continue
                            running.stop()  # memory that was in use once is not given back: a new process tells
                            running.start()
                        figures = play(running, way, scenario, options.seconds)
                        results.add(gateway.name, way.name, scenario, figures)
                        print(gateway.name, way.name, scenario, figures, file=sys.stderr, flush=True)
            except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as problem:
                print(f"{gateway.name} is left out: {problem}"[:400], file=sys.stderr, flush=True)
            finally:
                running.stop()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="The gateway beside nginx and others.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--peers", default=",".join(peers.PEERS), help="beside nginx; empty: none")
    parser.add_argument("--only", default=",".join(SCENARIOS))
    parser.add_argument("--folder", type=Path, default=Path(".venv-bench/gateway").resolve())
    options = parser.parse_args()
    if shutil.which("nginx") is None:
        print("nginx is missing; on Debian and Ubuntu: apt install nginx-light", file=sys.stderr)
        return 1
    if UNSHARED not in os.environ:
        problem = peers.build(options.folder)
        if problem:
            print(problem, file=sys.stderr)
            return 1
        _install(options)
        if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
            inner = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv]
            return subprocess.run(["unshare", "-n", *inner], env=os.environ | {UNSHARED: "1"}, check=False).returncode
    peers.write_configurations(options.folder)
    known = peers.gateways(options.folder, options.folder)
    wanted = ["direct", "nginx", "dragoman", *(name for name in options.peers.split(",") if name)]
    chosen = [
        known[name] for name in wanted if name not in peers.PEERS or (options.folder / name / ".installed").exists()
    ]
    with Mock(options.folder):
        results = measure(options, chosen)
    for row in rows(results, chosen):
        print(row)
    return 0


def _install(options: argparse.Namespace) -> None:
    for name in filter(None, options.peers.split(",")):
        problem = "unknown" if name not in peers.PEERS else peers.install(name, options.folder)
        if problem:
            print(f"{name} is left out: {problem}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
