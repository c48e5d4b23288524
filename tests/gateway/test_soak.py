"""1,000 changes of the configuration under 200 streams: none is cut, nothing is left behind. `make soak`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path

import pytest

from gateway.test_serve import serve

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="memory and files are read from /proc"),
]
STREAMS = 200
RELOADS = 1_000
#: A stream outlives about 50 changes; another then takes its place.
PIECES = 40
PAUSE = 0.1
MEMORY = 5 * 1024  # KiB


async def provide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A slow answer of Ollama's, to whatever is asked, until the client goes."""
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(0)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n")
            for number in range(PIECES + 1):
                is_last = number == PIECES
                entry = {"model": "m", "created_at": "2026-11-22T00:00:00Z", "done": is_last,
                         "message": {"role": "assistant", "content": "" if is_last else "word "}}  # fmt: skip
                data = json.dumps(entry | ({"done_reason": "stop"} if is_last else {})).encode() + b"\n"
                writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                await asyncio.sleep(PAUSE)
            writer.write(b"0\r\n\r\n")
            return
    except (OSError, asyncio.IncompleteReadError):
        return
    finally:
        writer.close()


async def ask(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    """A whole response, head included."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    data = await reader.read(-1)
    writer.close()
    return data


def configuration(provider: int, number: int) -> str:
    """The configuration of one change: it differs from all others."""
    return (
        f'[providers.lab]\nprotocol = "ollama-chat"\nbase_url = "http://127.0.0.1:{provider}"\n'
        f'[routes.coder]\ntargets = ["lab/m"]\n[routes.change-{number}]\ntargets = ["lab/m"]\n'
        f'[models."lab/m"]\noptions = {{ temperature = {number / 10_000} }}\n'
    )


def change(file: Path, text: str, number: int) -> bool:
    """Write it, in one of four ways; whether it can be read then."""
    way = number % 10
    if way == 3:
        file.write_text(text[: len(text) // 2] + "[[", encoding="utf-8")
        return False
    if way % 2:
        new = file.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, file)
    else:
        with file.open("w", encoding="utf-8") as opened:  # seen half written
            opened.write(text[:60])
            opened.flush()
            time.sleep(random.random() / 200)
            opened.write(text[60:])
    return True


def memory(process: int) -> int:
    """KiB that are the process's own."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


def files(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


async def drill(port: int, process: int, provider: int, file: Path) -> dict[str, float]:
    """The changes, and what they did."""
    ends = {"whole": 0, "cut": 0}
    body = json.dumps({"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    is_over = False

    async def stream() -> None:
        while not is_over:
            data = await ask(port, "POST", "/v1/chat/completions", body)
            ends["whole" if data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") else "cut"] += 1

    files_before = files(process)
    streams = [asyncio.create_task(stream()) for _ in range(STREAMS)]
    await asyncio.sleep(2 * PIECES * PAUSE)
    waits, memory_before = [], 0
    for number in range(RELOADS):
        if number == RELOADS // 5:  # caches are full
            memory_before = memory(process)
        text = configuration(provider, number)
        if not await asyncio.to_thread(change, file, text, number):
            await asyncio.sleep(0.08)
            assert f"change-{number - 1}".encode() in await ask(port, "GET", "/api/tags")
            continue
        began = time.perf_counter()
        while f"change-{number}".encode() not in await ask(port, "GET", "/api/tags"):
            assert time.perf_counter() - began < 30
        waits.append(time.perf_counter() - began)
    grown = memory(process) - memory_before
    is_over = True
    await asyncio.gather(*streams)
    return {
        **ends,
        "grown_kib": grown,
        "more_files": files(process) - files_before,
        "median_ms": statistics.median(waits) * 1_000,
        "p99_ms": statistics.quantiles(waits, n=100)[98] * 1_000,
    }


def test_a_thousand_changes_cut_no_stream(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"

    async def run() -> dict[str, float]:
        server = await asyncio.start_server(provide, "127.0.0.1", 0, backlog=1_024)
        provider = server.sockets[0].getsockname()[1]
        file.write_text(configuration(provider, -1), encoding="utf-8")
        with serve(tmp_path, "--config", str(file)) as (program, port):
            return await drill(port, program.pid, provider, file)

    found = asyncio.run(run())
    print({name: round(value, 1) for name, value in found.items()})
    assert found["cut"] == 0
    assert found["whole"] >= STREAMS
    assert found["grown_kib"] <= MEMORY
    assert found["more_files"] <= 4  # a connection to the provider may be kept
