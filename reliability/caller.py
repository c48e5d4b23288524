"""A client without any SDK: it sends exactly the bytes it is told to, and notes when each piece of an answer came."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from typing import Any

from dragoman import _json
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Params, Request, Text, Tool

TOOLS = tuple(
    Tool(name, "", _json.raw({"type": "object", "properties": {}})) for name in ("get_weather", "write_file", "ping")
)
_PREFIX = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}


def spoken(client: str, model: str, *, stream: bool = True, text: str = "Weather in Paris?") -> tuple[str, bytes]:
    """Path and body of a request in a client's protocol."""
    question = Message("user", (Text(text),))
    request = Request(model, (question,), TOOLS, params=Params(max_tokens=1000), stream=stream)
    sent = PROTOCOLS[client].render_request(request).http
    return (sent.path if sent.path.startswith("/v1/") else _PREFIX.get(client, "") + sent.path), sent.body


def rendered(path: str, body: bytes = b"", *, method: str = "POST", headers: dict[str, str] | None = None) -> bytes:
    """A request as bytes."""
    fields = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(body))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (fields | (headers or {})).items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Answer:
    """A response while it comes. `whole`: its own end was seen. Times are of `time.monotonic`."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.whole = False
        self.pieces: list[tuple[float, int]] = []  # when, and how much of the body there was then
        self.head_at: float | None = None
        self.ended_at: float | None = None
        self.problem: str | None = None


class Caller:
    """One connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(
        cls, port: int, *, host: str = "127.0.0.1", buffer: int | None = None, source: str | None = None
    ) -> Caller:
        """`buffer`: bytes that the kernel may hold for us unread. `source`: the address that it comes from."""
        plain = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        plain.setblocking(False)
        if buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        if source is not None:
            plain.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(plain, (host, port))
        reader, writer = await asyncio.open_connection(sock=plain, limit=buffer or 2**16)
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def close(self) -> None:
        """Leave as a program does that ends: FIN, and RST for what comes after it."""
        self.writer.close()

    def reset(self) -> None:
        """Leave with an RST."""
        plain: Any = self.writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def head(self, answer: Answer) -> None:
        """Read status and headers."""
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.rstrip().split("\r\n")
        answer.status = int(first.split(" ")[1])
        answer.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        answer.head_at = time.monotonic()

    async def answer(self, *, has_body: bool = True) -> Answer:
        """Read one response to its end, however it ends; what broke is in `problem`."""
        answer = Answer()
        try:
            await self.head(answer)
            if not has_body:
                answer.whole = True
            elif answer.headers.get("transfer-encoding") == "chunked":
                while not answer.whole:
                    await self.piece(answer)
            elif "content-length" in answer.headers:
                self._keep(answer, await self.reader.readexactly(int(answer.headers["content-length"])))
                answer.whole = True
            else:
                self._keep(answer, await self.reader.read(-1))
                answer.whole = True
        except (OSError, EOFError, ValueError, IndexError) as problem:
            answer.problem = type(problem).__name__
        answer.ended_at = time.monotonic()
        return answer

    async def piece(self, answer: Answer) -> bytes:
        """Read one chunk of a body; b"" is its end."""
        size = int((await self.reader.readline()).strip() or b"x", 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        self._keep(answer, data)
        answer.whole = not size
        return data

    def _keep(self, answer: Answer, data: bytes) -> None:
        answer.body += data
        answer.pieces.append((time.monotonic(), len(answer.body)))


async def ask(
    port: int, path: str, body: bytes = b"", *, method: str = "POST", headers: dict[str, str] | None = None
) -> Answer:
    """One request on a connection of its own."""
    caller = await Caller.connect(port)
    try:
        await caller.send(rendered(path, body, method=method, headers=headers))
        return await caller.answer(has_body=method != "HEAD")
    finally:
        caller.close()
