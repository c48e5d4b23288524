"""A TCP relay on loopback that spoils what passes: latency, bandwidth, slices, a limit, a reset, a stall.

It stands between the gateway and a provider, or between a client and the gateway.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple


class Toxics(NamedTuple):
    """What is done to the bytes that come back. `limit`: after so many bytes `then` happens: "close", "reset" or
    "stall". `latency` in seconds for each piece, `bandwidth` in bytes a second, `slice` in bytes a write."""

    latency: float = 0.0
    bandwidth: float | None = None
    slice: int | None = None
    limit: int | None = None
    then: str = "close"


class Shim:
    """The relay, in a thread of its own; use it with `with`. `toxics` holds for connections that are made later."""

    def __init__(self, port: int, toxics: Toxics = Toxics()) -> None:  # noqa: B008
        self.toxics = toxics
        self.connections = 0
        self._to = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Shim:
        self._thread.start()
        serving = asyncio.start_server(self._serve, sock=self._listener)
        asyncio.run_coroutine_threadsafe(serving, self._loop).result(5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def stop() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        toxics = self.toxics
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        up = asyncio.create_task(_pump(reader, back))
        down = asyncio.create_task(_spoil(there, writer, toxics))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (up, down):
                task.cancel()
            for end in (writer, back):
                with suppress(OSError, RuntimeError):
                    end.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def _spoil(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, toxics: Toxics) -> None:
    passed = 0
    with suppress(OSError):
        while data := await reader.read(65536):
            if toxics.latency:
                await asyncio.sleep(toxics.latency)
            ends = toxics.limit is not None and passed + len(data) >= toxics.limit
            data = data[: toxics.limit - passed] if ends and toxics.limit is not None else data
            size = toxics.slice or len(data) or 1
            for place in range(0, len(data), size):
                piece = data[place : place + size]
                writer.write(piece)
                await writer.drain()
                if toxics.bandwidth is not None:
                    await asyncio.sleep(len(piece) / toxics.bandwidth)
                elif toxics.slice is not None:
                    await asyncio.sleep(0)
            passed += len(data)
            if ends:
                await _end(writer, toxics.then)
                return


async def _end(writer: asyncio.StreamWriter, then: str) -> None:
    if then == "stall":
        await asyncio.Event().wait()
    if then == "reset":
        plain: Any = writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
