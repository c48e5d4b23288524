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

from gateway.process.test_gateway import serve

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="memory and files are read from /proc"),
]
STREAMS = 200
RELOADS = 1_000
PAUSE = 0.5
MEMORY = 5 * 1024  # KiB


class Provider:
    """Slow answers of Ollama's, to whatever is asked, which end when they are told to."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.ended = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n")
        while not self.is_over.is_set():
            writer.write(line("word "))
            await asyncio.sleep(PAUSE)
        writer.write(line("", done_reason="stop") + b"0\r\n\r\n")
        self.ended += 1
        writer.close()


def line(words: str, **more: str) -> bytes:
    entry = {"model": "m", "created_at": "2026-11-22T00:00:00Z", "done": bool(more), **more}
    data = json.dumps(entry | {"message": {"role": "assistant", "content": words}}).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


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


async def drill(port: int, process: int, provider: Provider, address: int, file: Path) -> dict[str, float]:
    """The changes, and what they did."""
    body = json.dumps({"model": "coder", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    files_before = files(process)
    streams = [asyncio.create_task(ask(port, "POST", "/v1/chat/completions", body)) for _ in range(STREAMS)]
    await asyncio.sleep(3)
    waits, memory_before = [], 0
    for number in range(RELOADS):
        if number == RELOADS // 10:  # caches are full
            memory_before = memory(process)
        text = configuration(address, number)
        if not await asyncio.to_thread(change, file, text, number):
            await asyncio.sleep(0.08)
            assert f"change-{number - 1}".encode() in await ask(port, "GET", "/api/tags")
            continue
        began = time.perf_counter()
        while f"change-{number}".encode() not in await ask(port, "GET", "/api/tags"):
            assert time.perf_counter() - began < 30
        waits.append(time.perf_counter() - began)
    grown = memory(process) - memory_before
    provider.is_over.set()
    answers = await asyncio.gather(*streams)
    return {
        "whole": sum(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for answer in answers),
        "grown_kib": grown,
        "more_files": files(process) - files_before,
        "median_ms": statistics.median(waits) * 1_000,
        "p99_ms": statistics.quantiles(waits, n=100)[98] * 1_000,
    }


def test_a_thousand_changes_cut_no_stream(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"

    async def run() -> dict[str, float]:
        provider = Provider()
        server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, backlog=1_024)
        address = server.sockets[0].getsockname()[1]
        file.write_text(configuration(address, -1), encoding="utf-8")
        with serve(tmp_path, "--config", str(file)) as (program, port):
            found = await drill(port, program.pid, provider, address, file)
        server.close()
        while provider.ended < STREAMS or len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.05)
        return found

    found = asyncio.run(run())
    print({name: round(value, 1) for name, value in found.items()})
    assert found["whole"] == STREAMS
    assert found["grown_kib"] <= MEMORY
    assert found["more_files"] <= 4  # a connection to the provider may be kept
