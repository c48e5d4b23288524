"""A provider on loopback that sends exactly the bytes it is told to, breaks when it is told to, and remembers."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

#: A step of a response: bytes to send, seconds to wait, a semaphore to wait for, or "reset", "close", "hold" (until the
#: client goes).
Step = bytes | float | threading.Semaphore | str
#: Seconds after which a semaphore is waited for no more.
_PATIENCE = 30.0


@dataclass
class Seen:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Scripted:
    """The running server. `replies` are used one after the other; the last one serves all that follow."""

    url: str
    replies: list[Sequence[Step]]
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    client_gone: threading.Event = field(default_factory=threading.Event)

    def next_reply(self) -> Sequence[Step]:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def head(status: int = 200, content_type: str = "text/event-stream", *extra: str) -> bytes:
    """The head of a chunked response."""
    lines = [f"HTTP/1.1 {status} Something", f"content-type: {content_type}", "transfer-encoding: chunked", *extra]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"


def streamed(*pieces: bytes, content_type: str = "text/event-stream") -> list[Step]:
    """A whole response in these pieces."""
    return [head(200, content_type), *map(chunk, pieces), END]


def whole(body: bytes, status: int = 200, content_type: str = "application/json", *extra: str) -> list[Step]:
    """A response with a length."""
    lines = [f"HTTP/1.1 {status} Something", f"content-type: {content_type}", f"content-length: {len(body)}", *extra]
    return ["\r\n".join([*lines, "", ""]).encode() + body]


@contextmanager
def serving(*replies: Sequence[Step]) -> Iterator[Scripted]:
    """Serve on a free loopback port until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Scripted(f"http://127.0.0.1:{listener.getsockname()[1]}", list(replies))
    threads: list[threading.Thread] = []
    open_sockets: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                return
            server.connections += 1
            open_sockets.append(connection)
            thread = threading.Thread(target=_serve, args=(server, connection), daemon=True)
            threads.append(thread)
            thread.start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in open_sockets:
            connection.close()
        accepting.join(5)
        for thread in threads:
            thread.join(5)


def _serve(server: Scripted, connection: socket.socket) -> None:
    try:
        with connection, connection.makefile("rb") as reader:
            while (seen := _read_request(reader)) is not None:
                server.requests.append(seen)
                if not _play(server, connection, server.next_reply()):
                    return
    except (OSError, ValueError):
        server.client_gone.set()


def _read_request(reader: Any) -> Seen | None:
    line = reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ")
    headers = {}
    while (line := reader.readline().decode("latin-1").strip("\r\n")) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip(" ")
    return Seen(method, path, headers, reader.read(int(headers.get("content-length", 0))))


def _play(server: Scripted, connection: socket.socket, steps: Sequence[Step]) -> bool:
    """Whether the connection goes on."""
    for step in steps:
        if isinstance(step, bytes):
            connection.sendall(step)
        elif isinstance(step, float):
            time.sleep(step)
        elif isinstance(step, threading.Semaphore):
            step.acquire(timeout=_PATIENCE)
        elif step == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return False
        elif step == "close":
            return False
        else:
            assert step == "hold", f"not a step: {step!r}"
            while connection.recv(65536):
                pass
            server.client_gone.set()
            return False
    return True
