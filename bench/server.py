"""A model server on loopback that answers every POST with a stream of `streams.py`, written beforehand.

`/s/<protocol>.<kind>.<count>/…` sends it in large writes, `/s/<protocol>.<kind>.<count>.packets/…` one packet per
event, as model servers do.
"""

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import streams

PACE_SECONDS = 0.0002
HEAD = "HTTP/1.1 200 OK\r\ncontent-type: {}\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n"
#: Longer than any request of the bench.
LIMIT = 4 * 1024 * 1024


@contextmanager
def serving() -> Iterator[str]:
    """Serve in a process of its own until the block ends; gives the URL."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.kill()
        process.join()


def serve(ready: Connection) -> None:
    asyncio.run(serve_forever(ready))


async def serve_forever(ready: Connection) -> None:
    server = await asyncio.start_server(answer_all, "127.0.0.1", 0, limit=LIMIT)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            await read_body(reader, head.lower())
            path = head.split(" ", 2)[1].replace("%3A", ":")
            await answer(writer, path.split("/")[2])
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def read_body(reader: asyncio.StreamReader, head: str) -> None:
    if "transfer-encoding: chunked" in head:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
    else:
        await reader.readexactly(int(head.partition("content-length:")[2].partition("\r\n")[0] or 0))


async def answer(writer: asyncio.StreamWriter, name: str) -> None:
    protocol, kind, count, *packets = name.split(".")
    written = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in streams.frames(protocol, kind, int(count))]
    writer.write(HEAD.format("application/x-ndjson" if protocol == "ollama-chat" else "text/event-stream").encode())
    for piece in written if packets else streams.blocks(written):
        writer.write(piece)
        await writer.drain()
        if packets:
            time.sleep(PACE_SECONDS)  # the loop's own clock has a grain of a millisecond; one client reads at a time
    writer.write(b"0\r\n\r\n")
    await writer.drain()
