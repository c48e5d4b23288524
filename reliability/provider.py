"""A model server on loopback that plays scripts: exact bytes, pauses, resets, silence; and remembers who asked.

One server speaks all five protocols, because it says only what its script says. A request names its script by the
word `script-N` anywhere in its path or body, usually as the model's name; without one the `default` is played.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from dragoman.events import Reply, unfold
from dragoman.gateway.process.gateway import new_event_loop
from dragoman.protocols import PROTOCOLS

#: Bytes to send, seconds to wait, or "reset", "close" (with everything sent), "hold" (until the client goes).
Step = bytes | float | str
#: A script, or what makes one for each request: then it may be endless.
Script = Iterable[Step] | Callable[[], Iterable[Step]]

END = b"0\r\n\r\n"
_NAME = re.compile(rb"script-\d+")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CREATED = 1_750_000_000


class Asked:
    """A request that came. Times are of `time.monotonic`; `closed` is None while its connection is open."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.head = head
        self.body = body
        self.began = time.monotonic()
        self.closed: float | None = None
        self.broke: float | None = None  # when the script closed or reset
        self.sent = 0

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode("latin-1")

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}


class Provider:
    """The server, in a thread of its own; use it with `with`."""

    def __init__(self, default: Script = (), *, host: str = "127.0.0.1") -> None:
        self.default = default
        self.asked: list[Asked] = []
        self.watch: Callable[[Asked], None] = lambda asked: None  # called at once with each request that came
        self.connections = 0
        self.open_connections: set[Any] = set()
        self._scripts: dict[bytes, Script] = {}
        self._by_script: dict[bytes, Asked] = {}
        self._count = 0
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listener = socket.create_server((host, 0), backlog=4096)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}"

    def __enter__(self) -> Provider:
        self._thread.start()
        self.run(self._loop.create_server(lambda: _Connection(self), sock=self._listener, backlog=4096))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._listener.close()

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    def script(self, script: Script) -> str:
        """Keep a script; gives the name by which a request asks for it."""
        self._count += 1
        name = f"script-{self._count}"
        self._scripts[name.encode()] = script
        return name

    def of(self, name: str) -> Asked | None:
        """The last request that asked for this script."""
        return self._by_script.get(name.encode())

    def forget(self) -> None:
        """Forget all scripts and requests."""
        self._scripts.clear()
        self._by_script.clear()
        self.asked.clear()

    def drop(self) -> None:
        """Reset every connection."""

        def reset() -> None:
            for connection in tuple(self.open_connections):
                connection.reset()

        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (reset(), done.set()))
        done.wait(10)

    def _script_of(self, asked: Asked) -> Iterable[Step]:
        found = _NAME.search(asked.head.split(b"\r\n", 1)[0]) or _NAME.search(asked.body)
        script: Script = self.default
        if found is not None:
            script = self._scripts.get(found[0], self.default)
            self._by_script[found[0]] = asked
        return script() if callable(script) else script


class _Connection(asyncio.Protocol):
    """One connection of a client, which here is the gateway."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._received = bytearray()
        self._wanted = 0  # bytes of the request that is being received, when its head is there
        self._asked: Asked | None = None
        self._task: asyncio.Task[None] | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._gone = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=16 * 1024)
        # The kernel would take megabytes of a stream that nobody reads.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        self._provider.connections += 1
        self._provider.open_connections.add(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self._provider.open_connections.discard(self)
        if self._asked is not None and self._asked.closed is None:
            self._asked.closed = time.monotonic()
        self._gone.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._flows.clear()

    def resume_writing(self) -> None:
        self._flows.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._task is None and len(self._received) >= self._wanted:
            self._next()

    def _next(self) -> None:
        end = self._received.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        head = bytes(self._received[: end - 4])
        found = _LENGTH.search(head)
        self._wanted = end + (int(found[1]) if found is not None else 0)
        if len(self._received) < self._wanted:
            return
        self._asked = asked = Asked(head, bytes(self._received[end : self._wanted]))
        del self._received[: self._wanted]
        self._wanted = 0
        self._provider.asked.append(asked)
        self._provider.watch(asked)
        self._task = asyncio.get_running_loop().create_task(self._play(asked))

    async def _play(self, asked: Asked) -> None:
        for step in self._provider._script_of(asked):
            if isinstance(step, bytes):
                if self._transport.is_closing():  # nothing would ever wait: the loop would not hear that it is gone
                    return
                self._transport.write(step)
                await self._flows.wait()
                asked.sent += len(step)
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif step == "hold":
                await self._gone.wait()
                return
            else:
                assert step in ("reset", "close"), f"not a step: {step!r}"
                asked.broke = time.monotonic()
                self.reset() if step == "reset" else self._transport.close()
                return
        self._task = None
        self._next()

    def reset(self) -> None:
        """Close with an RST."""
        if self._transport.is_closing():
            return
        plain = self._transport.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


# ---------------------------------------------------------------- what a provider says


def head(status: int = 200, content_type: str = "text/event-stream", *extra: str) -> bytes:
    """The head of a chunked response."""
    lines = [f"HTTP/1.1 {status} Something", f"content-type: {content_type}", "transfer-encoding: chunked", *extra]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(body: bytes, status: int = 200, content_type: str = "application/json", *extra: str) -> list[Step]:
    """A response with a length."""
    lines = [f"HTTP/1.1 {status} Something", f"content-type: {content_type}", f"content-length: {len(body)}", *extra]
    return ["\r\n".join([*lines, "", ""]).encode() + body]


def wire(protocol: str, reply: Reply) -> bytes:
    """A reply as a streamed body."""
    ids = iter(f"id_{number:024d}" for number in range(1_000_000))
    encoder = PROTOCOLS[protocol].encoder(new_id=lambda: next(ids), model="model-1", created=_CREATED)
    return encoder.encode(unfold(reply))


def streamed(protocol: str, data: bytes) -> list[Step]:
    """A whole streamed response, in one chunk."""
    return [head(200, PROTOCOLS[protocol].stream_type), chunk(data), END]


def cut(protocol: str, data: bytes, end: Step) -> list[Step]:
    """A response of which only this was said. `end`: "reset", "close", "hold", or `END`, the lie that it is whole."""
    return [head(200, PROTOCOLS[protocol].stream_type), *([chunk(data)] if data else []), end]
