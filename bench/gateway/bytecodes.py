"""What a request of the gateway takes in bytecodes and calls, beside an older checkout, whatever the load.

    .venv/bin/python bench/gateway/bytecodes.py ../older-checkout [--only request] [--functions 30]

Counts what Python runs of the gateway and the event loop; the provider and the client of `inside.py` are left out, and
so is what C does. The clock by which an answer's bytes are read in parts stands still. `--functions`: also the
functions of this checkout that take the most.
"""

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parents[2]
_WARM = 20  # Python makes its code quick in the first eight
_COUNT = 4
#: What is asked for: its name, whether it is streamed, bytes of its prompt.
_KINDS = (("request", False, 400), ("request of 128 KiB", False, 131_072), ("stream", True, 400))
_LEFT_OUT = ("bytecodes.py", "inside.py", "asyncio/streams.py")


async def counted(
    ask: Callable[[bytes], Awaitable[bytes]], asked: bytes
) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """Bytecodes and calls of some requests, by function."""
    bytecodes, calls = Counter[CodeType](), Counter[CodeType]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code.co_filename.endswith(_LEFT_OUT):
            return None
        if event == "call":
            calls[code] += 1
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            bytecodes[code] += 1
        return trace

    gc.collect()
    gc.disable()
    sys.settrace(trace)
    for _ in range(_COUNT):
        await ask(asked)
    sys.settrace(None)
    gc.enable()
    return bytecodes, calls


async def serve(only: list[str], functions: int) -> None:
    """Each row's name, bytecodes and calls."""
    import inside  # of the checkout that is measured

    loop = asyncio.get_running_loop()
    provider = await loop.create_server(inside.Provider, "127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(inside._CONFIG.format(port=provider.sockets[0].getsockname()[1]))
        config = inside.load_config(file, environ=os.environ, home=Path(folder))
        gateway = await inside.Gateway.open(config, host="127.0.0.1", port=0)
        for what, stream, size in _KINDS:
            for way, (path, model) in inside.WAYS.items():
                row = f"{what}, {way}"
                if only and not any(word in row for word in only):
                    continue
                asked = inside.request(path, model, stream=stream, size=size)
                ask = await inside.client(gateway.port)
                for _ in range(_WARM):
                    await ask(asked)
                bytecodes, calls = await counted(ask, asked)
                print(f"{row}\t{bytecodes.total() / _COUNT}\t{calls.total() / _COUNT}", flush=True)
                for code, count in bytecodes.most_common(functions):
                    place = f"{code.co_filename.rpartition('/src/')[2]}:{code.co_firstlineno} {code.co_name}"
                    print(f"{count / _COUNT:9.1f}{calls[code] / _COUNT:7.2f}  {place}", file=sys.stderr, flush=True)
    os._exit(0)


def rows_of(checkout: Path, options: argparse.Namespace, functions: int) -> dict[str, tuple[float, float]]:
    """Bytecodes and calls of one request, by row."""
    paths = [checkout / "src", checkout / "bench", checkout / "bench/gateway"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONSAFEPATH": "1"}
    told = subprocess.run(
        [sys.executable, __file__, "--serve", "--only", options.only, "--functions", str(functions)],
        env=environ, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    found = [line.split("\t") for line in told.splitlines()]
    return {row: (float(bytecodes), float(calls)) for row, bytecodes, calls in found}


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytecodes of a request, beside an older checkout.")
    parser.add_argument("older", nargs="?", type=Path, help="a checkout")
    parser.add_argument("--only", default="", help="words, of which a row's name has one: stream,128")
    parser.add_argument("--functions", type=int, default=0, help="how many functions are named")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        time.thread_time = lambda: 0.0
        uvloop.run(serve(list(filter(None, options.only.split(","))), options.functions))
    elif options.older is None:
        parser.error("name a checkout to compare with")
    else:
        old, new = rows_of(options.older.resolve(), options, 0), rows_of(HERE, options, options.functions)
        print("| row | older: bytecodes, calls | this | this / older |\n|---|--:|--:|--:|")
        for row, (bytecodes, calls) in new.items():
            before, its_calls = old[row]
            print(
                f"| {row} | {before:,.0f}, {its_calls:.0f} | {bytecodes:,.0f}, {calls:.0f} | {bytecodes / before:.3f} |"
            )


if __name__ == "__main__":
    main()
