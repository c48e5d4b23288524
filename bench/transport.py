"""What an HTTP library costs per event of a stream, and what it leaks when streams are cancelled.

    .venv/bin/python bench/transport.py [--events 2000] [--repeats 5] [--cancels 2000]

A server in a process of its own sends the same chat stream two ways: all bytes in large writes, and one packet per
event (what model servers do). Measured is the CPU time of this process, reading and dropping the body: median of the
repeats, variants taking turns. Then every library starts streams and cancels them at a random moment, and ten plain
requests must still get through a pool of ten. Variants whose library is not installed are left out.
"""

import argparse
import asyncio
import contextlib
import http.client
import importlib.util
import multiprocessing
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Protocol

EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"some text "},"finish_reason":null}]}\n\n'
)
POOL = 10
PACE_SECONDS = 0.0002
ENDLESS_PACE_SECONDS = 0.002
PROBE_SECONDS = 5.0
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

Sink = Callable[[bytes], None]


# ---------------------------------------------------------------- the server


def serve(ready: Connection, events: int) -> None:
    """Serve /whole, /packets and /endless until killed; tells its port through `ready`, /open tells its connections."""
    asyncio.run(serve_forever(ready, events))


async def serve_forever(ready: Connection, events: int) -> None:
    chunk = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
    open_connections = 0

    async def answer(path: bytes, writer: asyncio.StreamWriter) -> None:
        if path == b"/open":
            body = b"%d" % open_connections
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            return
        writer.write(HEAD)
        if path == b"/whole":
            writer.write(chunk * events)
        else:
            endless = path == b"/endless"
            for _ in range(10**9 if endless else events):
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(ENDLESS_PACE_SECONDS if endless else PACE_SECONDS)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_connections
        open_connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await answer(head.split(b" ", 2)[1], writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            open_connections -= 1
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


# ---------------------------------------------------------------- the variants: GET a path, give every piece to a sink


class Variant(Protocol):
    async def read(self, path: str, sink: Sink) -> None: ...
    async def close(self) -> None: ...


class BareProtocol(asyncio.Protocol):
    """An asyncio protocol that takes bytes and looks for the last chunk: the floor, no HTTP client at all."""

    def __init__(self, path: str, sink: Sink) -> None:
        self.path, self.sink = path, sink
        self.end = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % self.path.encode())

    def data_received(self, data: bytes) -> None:
        self.sink(data)
        if data.endswith(b"0\r\n\r\n") and not self.end.done():
            self.end.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.end.done():
            self.end.set_result(None)


class ParsedProtocol(BareProtocol):
    """The same with httptools, a C parser: what a protocol of our own would cost."""

    def __init__(self, path: str, sink: Sink) -> None:
        import httptools

        super().__init__(path, sink)
        self.parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        self.sink(body)

    def on_message_complete(self) -> None:
        if not self.end.done():
            self.end.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)


class OwnProtocol:
    def __init__(self, port: int, kind: type[BareProtocol]) -> None:
        self.port, self.kind = port, kind

    async def read(self, path: str, sink: Sink) -> None:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(lambda: self.kind(path, sink), "127.0.0.1", self.port)
        try:
            await protocol.end
        finally:
            transport.abort()

    async def close(self) -> None:
        """Nothing is pooled."""


class Aiohttp:
    def __init__(self, port: int) -> None:
        import aiohttp

        self.url = f"http://127.0.0.1:{port}"
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=POOL), auto_decompress=False)

    async def read(self, path: str, sink: Sink) -> None:
        async with self.session.get(self.url + path) as response:
            async for piece in response.content.iter_any():
                sink(piece)

    async def close(self) -> None:
        await self.session.close()


class Httpx:
    def __init__(self, port: int) -> None:
        import httpx

        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.AsyncClient(trust_env=False, timeout=60, limits=httpx.Limits(max_connections=POOL))

    async def read(self, path: str, sink: Sink) -> None:
        async with self.client.stream("GET", self.url + path) as response:
            async for piece in response.aiter_raw():
                sink(piece)

    async def close(self) -> None:
        await self.client.aclose()


class Blocking:
    """http.client of the standard library, which blocks: the floor of a sync client without an event loop."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def read(self, path: str, sink: Sink) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path)
        response = connection.getresponse()
        while piece := response.read1(65536):
            sink(piece)
        connection.close()

    async def close(self) -> None:
        """Nothing is pooled."""


def make_variants(port: int) -> dict[str, Variant]:
    variants: dict[str, Variant] = {"asyncio.Protocol, bytes dropped": OwnProtocol(port, BareProtocol)}
    if importlib.util.find_spec("httptools"):
        variants["asyncio.Protocol + httptools"] = OwnProtocol(port, ParsedProtocol)
    variants["http.client, blocking"] = Blocking(port)
    variants["aiohttp iter_any"] = Aiohttp(port)
    if importlib.util.find_spec("httpx"):
        variants["httpx aiter_raw"] = Httpx(port)
    return variants


# ---------------------------------------------------------------- what is measured


async def measure_cpu(variants: dict[str, Variant], path: str, *, events: int, repeats: int) -> dict[str, float]:
    """CPU seconds of this process per 100,000 events, median; the first round warms up and does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for repeat in range(repeats + 1):
        for name, variant in variants.items():
            received = 0

            def count(piece: bytes) -> None:
                nonlocal received
                received += len(piece)

            before = time.process_time()
            await variant.read(path, count)
            if repeat:
                seconds[name].append(time.process_time() - before)
            assert received >= events * len(EVENT), f"{name} lost bytes"
    return {name: statistics.median(values) / events * 100_000 for name, values in seconds.items()}


async def cancel_streams(variant: Variant, count: int) -> None:
    """Start streams, ten at a time, and cancel each at a random moment: connecting, before the head, in the body."""
    moments = random.Random(0)

    async def start_and_leave() -> None:
        task = asyncio.create_task(variant.read("/endless", lambda piece: None))
        await asyncio.sleep(moments.random() * 0.02)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    for _ in range(count // POOL):
        await asyncio.gather(*(start_and_leave() for _ in range(POOL)))


async def is_usable(read: Callable[[], Awaitable[None]]) -> bool:
    try:
        await asyncio.wait_for(read(), PROBE_SECONDS)
    except Exception as error:
        if not isinstance(error, TimeoutError):
            print(f"probe failed: {type(error).__name__}: {error}")
        return False
    return True


async def measure_leak(variant: Variant, count: int, *, port: int) -> tuple[int, int]:
    """How many of ten concurrent requests succeed after `count` cancelled streams; connections then still open."""
    await cancel_streams(variant, count)
    probes = [is_usable(lambda: variant.read("/whole", lambda piece: None)) for _ in range(POOL)]
    usable = sum(await asyncio.gather(*probes))
    await variant.close()
    await asyncio.sleep(1)  # the server notices a closed connection when it next writes
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/open")
    still_open = int(connection.getresponse().read()) - 1  # this very question is one
    connection.close()
    return usable, still_open


async def run(port: int, options: argparse.Namespace) -> None:
    variants = make_variants(port)
    columns = {}
    for path in ("/whole", "/packets"):
        columns[path] = await measure_cpu(variants, path, events=options.events, repeats=options.repeats)
    floor = {path: next(iter(column.values())) for path, column in columns.items()}
    print("CPU seconds per 100,000 events (× = of the bare protocol, same run)\n")
    print("| client | large writes | one packet per event |\n|---|--:|--:|")
    for name in variants:
        cells = [f"{column[name]:.2f} (× {column[name] / floor[path]:.1f})" for path, column in columns.items()]
        print(f"| {name} | {' | '.join(cells)} |")
    for variant in variants.values():
        await variant.close()
    print(f"\nAfter {options.cancels} streams cancelled at a random moment, pool of {POOL}\n")
    print(f"| client | of {POOL} requests succeed | connections left open after close |\n|---|--:|--:|")
    for name, variant in make_variants(port).items():
        if isinstance(variant, Aiohttp | Httpx):
            usable, left = await measure_leak(variant, options.cancels, port=port)
            print(f"| {name} | {usable} | {left} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of HTTP libraries per streamed event.")
    parser.add_argument("--events", type=int, default=2000, help="events of a stream")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cancels", type=int, default=2000)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, options.events), daemon=True)
    server.start()
    asyncio.run(run(here.recv(), options))
    server.kill()


if __name__ == "__main__":
    main()
