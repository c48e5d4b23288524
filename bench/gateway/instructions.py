"""What a request of the gateway takes in instructions, beside an older checkout, whatever the load of the machine.

    .venv/bin/python bench/gateway/instructions.py ../older-checkout [--count 10] [--only stream]
    .venv/bin/python bench/gateway/instructions.py ../older-checkout --library [--only gemini]

Needs valgrind: callgrind counts. What the kernel does is not counted; garbage collection is off, and the clock by
which an answer's bytes are read in parts stands still. The provider and the client of `inside.py` are taken off. Each
checkout takes some minutes. `--library`: the library's rows of `bench/against.py`.
"""

import argparse
import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
_WARM = 10  # Python makes its code quick in the first eight
_SUMMARY = re.compile(r"^summary: (\d+)$", re.MULTILINE)
#: What is asked for: its name, whether it is streamed, bytes of its prompt.
_KINDS = (("request", False, 400), ("request of 128 KiB", False, 131_072), ("stream", True, 400))


def serve_library(count: int, only: list[str]) -> None:
    """Decode for each row. `getloadavg` before and after is where callgrind dumps."""
    from library_rows import library_rows

    for name, work in library_rows():
        if not is_asked(name, only):
            continue
        for _ in range(_WARM):
            work()
        gc.collect()
        gc.disable()
        watch(is_on=True)
        os.getloadavg()
        for _ in range(count):
            work()
        os.getloadavg()
        watch(is_on=False)
        gc.enable()
        print(name, flush=True)
    os._exit(0)


def watch(*, is_on: bool) -> None:
    """Let callgrind look at each instruction, or not: then a run takes a tenth of the time."""
    asked = subprocess.Popen(
        ["callgrind_control", f"--instr={'on' if is_on else 'off'}", str(os.getpid())], stdout=subprocess.DEVNULL
    )
    while asked.poll() is None:  # it listens while it runs, not while it waits
        sum(range(1000))


async def serve(count: int, only: list[str]) -> None:
    """Ask for each row, first the provider itself."""
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
                if not is_asked(f"{what}, {way}", only):
                    continue
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


def is_asked(row: str, only: list[str]) -> bool:
    return not only or any(word in row for word in only)


def counted(checkout: Path, options: argparse.Namespace) -> dict[str, float]:
    """Instructions of one request or one answer, by row."""
    paths = [checkout / "src", checkout / "bench", checkout / "bench/gateway", HERE / "bench"]
    words = [*(["--library"] if options.library else []), "--only", options.only, "--count", str(options.count)]
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", *(["--instr-atstart=no"] if options.library else []),
             "--dump-before=getloadavg", f"--callgrind-out-file={folder}/out",
             sys.executable, __file__, "--serve", *words],
            env=environ, stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip
        rows = told.splitlines()
        each = 2 if options.library else 4
        dumps = [
            _SUMMARY.search((Path(folder) / f"out.{number + 1}").read_text()) for number in range(each * len(rows))
        ]
    sums = [int(dump[1]) for dump in dumps if dump is not None]
    if options.library:
        return {row: sums[2 * place + 1] / options.count for place, row in enumerate(rows)}
    return {row: (sums[4 * place + 3] - sums[4 * place + 1]) / options.count for place, row in enumerate(rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of a request, beside an older checkout.")
    parser.add_argument("older", nargs="?", type=Path, help="a checkout")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--only", default="", help="words, of which a row's name has one: stream,128")
    parser.add_argument("--library", action="store_true", help="the library's rows, without a gateway")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    only = list(filter(None, options.only.split(",")))
    if options.serve:
        time.thread_time = lambda: 0.0
        if options.library:
            serve_library(options.count, only)
        import uvloop

        uvloop.run(serve(options.count, only))
    elif options.older is None:
        parser.error("name a checkout to compare with")
    else:
        old, new = counted(options.older.resolve(), options), counted(HERE, options)
        print("| row | older | this | this / older |\n|---|--:|--:|--:|")
        for row in new:
            print(f"| {row} | {old[row]:,.0f} | {new[row]:,.0f} | {new[row] / old[row]:.3f} |")


if __name__ == "__main__":
    main()
