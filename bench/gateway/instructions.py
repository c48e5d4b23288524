"""What a request of the gateway takes in instructions, beside an older checkout, whatever the load of the machine.

    .venv/bin/python bench/gateway/instructions.py ../older-checkout [--count 10]

Needs valgrind: callgrind counts. What the kernel does is not counted; garbage collection is off. The provider and the
client of `inside.py` are taken off. Each checkout takes some minutes.
"""

import argparse
import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
_WARM = 4
_SUMMARY = re.compile(r"^summary: (\d+)$", re.MULTILINE)
_KINDS = (("request", False, 400), ("request of 128 KiB", False, 131_072), ("stream", True, 400))


async def serve(count: int) -> None:
    """Ask for each row, first the provider itself. `getloadavg` before and after is where callgrind dumps."""
    import inside  # of the checkout that is measured

    loop = asyncio.get_running_loop()
    provider = await loop.create_server(inside.Provider, "127.0.0.1", 0)
    port = provider.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(inside._CONFIG.format(port=port))
        config = inside.load_config(file, environ=os.environ, home=Path(folder))
        gateway = await inside.Gateway.open(config, host="127.0.0.1", port=0)
        gc.collect()
        gc.disable()
        for what, stream, size in _KINDS:
            for way, (path, model) in inside.WAYS.items():
                asked = inside.request(path, model, stream=stream, size=size)
                for to in (port, gateway.port):
                    ask = await inside.client(to)
                    for _ in range(_WARM):
                        await ask(asked)
                    os.getloadavg()
                    for _ in range(count):
                        await ask(asked)
                    os.getloadavg()
                print(f"{what}, {way}", flush=True)
    os._exit(0)


def counted(checkout: Path, count: int) -> dict[str, float]:
    """Instructions of one request, by row."""
    paths = [checkout / "src", checkout / "bench", checkout / "bench/gateway"]
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--dump-before=getloadavg", f"--callgrind-out-file={folder}/out",
             sys.executable, __file__, "--serve", "--count", str(count)],
            env=environ, stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip
        rows = told.splitlines()
        dumps = [_SUMMARY.search((Path(folder) / f"out.{number + 1}").read_text()) for number in range(4 * len(rows))]
    sums = [int(dump[1]) for dump in dumps if dump is not None]
    return {row: (sums[4 * place + 3] - sums[4 * place + 1]) / count for place, row in enumerate(rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of a request, beside an older checkout.")
    parser.add_argument("older", nargs="?", type=Path, help="a checkout")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        uvloop.run(serve(options.count))
    elif options.older is None:
        parser.error("name a checkout to compare with")
    else:
        old, new = counted(options.older.resolve(), options.count), counted(HERE, options.count)
        print("| row | older | this | this / older |\n|---|--:|--:|--:|")
        for row in new:
            print(f"| {row} | {old[row]:,.0f} | {new[row]:,.0f} | {new[row] / old[row]:.3f} |")


if __name__ == "__main__":
    main()
