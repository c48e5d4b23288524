"""Whether a gateway grows with what it has answered: resident memory after every so many requests.

    .venv/bin/python bench/gateway/growth.py [--requests 100000] [--streams 20000]

Whole answers and streams, of which bytes pass and which take all stages, by turns over kept connections, from one
`dragoman serve`. Printed are the megabytes at every tenth, and the growth a request from the second tenth (the first
warms up) to the last. Needs Linux and gcc.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import peers
from processes import Mock, Running, drive, megabytes

_TURNS = 10


def grow(running: Running, *, requests: int, model: str, stream: bool) -> None:
    """One kind of request, in ten turns; every way takes its share."""
    ways = running.gateway.ways
    each = requests // _TURNS // len(ways)
    sizes = []
    for _ in range(_TURNS):
        for way in ways:
            found = drive(running, way, model, stream=stream, connections=16, requests=each, seconds=300.0)
            assert found["ok"] == each, found
        assert running.pid is not None
        sizes.append(megabytes(running.pid))
    more = (sizes[-1] - sizes[1]) * 1e6 / (each * len(ways) * (_TURNS - 2))
    kind = "streams" if stream else "whole answers"
    print(f"{requests} {kind}: {' '.join(f'{size:.1f}' for size in sizes)} MB, {more:+.1f} bytes a request", flush=True)


def main() -> None:
    """Build the tools, start all, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tool in ("mock", "load"):
            source = Path(__file__).with_name(f"{tool}.c")
            subprocess.run(["gcc", "-O2", "-o", str(folder / tool), str(source)], check=True)
        peers.write_configurations(folder)
        running = Running(peers.gateways(folder, folder)["dragoman"], folder)
        with Mock(folder):
            running.start()
            try:
                grow(running, requests=asked.requests, model="mock-n200d0", stream=False)
                grow(running, requests=asked.streams, model="mock-n20d0", stream=True)
            finally:
                running.stop()


if __name__ == "__main__":
    main()
