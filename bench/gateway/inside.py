"""Where a request's CPU goes: provider, gateway and client in one process, so that a profile sees nothing else.

    .venv/bin/python bench/gateway/inside.py [--profile tottime] [--lines 30]

Prints microseconds of CPU, the least of several samples, those of the provider and the client alone taken off.
"""

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar, cast

import uvloop

from dragoman.config import load_config
from dragoman.events import Failure
from dragoman.gateway.messages import Answer, Head, Limits, ResponseWriter
from dragoman.gateway.process.gateway import Gateway
from dragoman.gateway.server.body_memory import BodyMemory
from dragoman.gateway.server.client_addresses import ClientAddresses
from dragoman.gateway.server.connection import Connection, Shared
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport
from dragoman.providers.endpoint import Outgoing

SAMPLES = 5
EVENTS = 204
_CONFIG = """
[server]
log = "off"
[providers.clean]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
clean = true
[providers.full]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
"""
_PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}
_TEXT = json.dumps({"path": "a.py", "text": "word " * EVENTS * 3})
#: Name → path and model.
WAYS = {
    "OpenAI → OpenAI, bytes pass": ("/v1/chat/completions", "clean/m"),
    "OpenAI → OpenAI, all stages": ("/v1/chat/completions", "full/m"),
    "Anthropic → OpenAI, all stages": ("/v1/messages", "full/m"),
}


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def call(arguments: str, **more: object) -> dict[str, object]:
    return {"index": 0, **more, "function": {"name": "edit_file", "arguments": arguments} if more else
            {"arguments": arguments}}  # fmt: skip


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + compact({**head, "choices": [choice]}) + b"\n\n"


def events(times: int = 1) -> list[bytes]:
    """A stream: one call whose arguments come in many pieces, or so many times as many."""
    text = json.dumps({"path": "a.py", "text": "word " * EVENTS * 3 * times})
    size = -(-len(_TEXT) // (EVENTS - 4))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    first = chunk({"role": "assistant", "content": None, "tool_calls": [call("", id="call_1", type="function")]})
    usage = compact({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
                     "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}})  # fmt: skip
    grown = [chunk({"tool_calls": [call(piece)]}) for piece in pieces]
    return [first, *grown, chunk({}, "tool_calls"), b"data: " + usage + b"\n\n", b"data: [DONE]\n\n"]


def whole() -> bytes:
    message = {"role": "assistant", "content": None, "tool_calls": [call(_TEXT, id="call_1", type="function")]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    return compact({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
                    "usage": usage})  # fmt: skip


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: "


def streamed(times: int = 1) -> bytes:
    """A stream whose pieces of arguments come so many times over."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events(times))
    return _HEAD + b"text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


STREAMED = streamed()
WHOLE = _HEAD + b"application/json\r\ncontent-length: %d\r\n\r\n" % len(whole()) + whole()


def request(path: str, model: str, *, stream: bool, size: int) -> bytes:
    """A request, as it goes over the wire; `size`: bytes of its prompt."""
    function = {"name": "edit_file", "description": "edits"}
    tool = {**function, "input_schema": _PARAMETERS} if path == "/v1/messages" else {
        "type": "function", "function": {**function, "parameters": _PARAMETERS}}  # fmt: skip
    prompt = ("lorem ipsum " * (size // 12 + 1))[:size]
    body = compact({"model": model, "max_tokens": 100, "stream": stream, "tools": [tool],
                    "messages": [{"role": "user", "content": prompt}]})  # fmt: skip
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class Bare:
    """What is left of a gateway that looks at nothing: one body after the other, between our edge and our pool."""

    is_draining = False

    def __init__(self, port: int) -> None:
        self._transport = Transport(timeouts=Timeouts())
        self._url = f"http://127.0.0.1:{port}/v1/chat/completions"

    def admit(self, head: Head) -> Answer | None:
        return None

    def refuse(self, head: Head, failure: Failure) -> Answer:
        return Answer(400, failure.message.encode())

    async def respond(self, head: Head, body: bytes, response_writer: ResponseWriter) -> None:
        response = await self._transport.open(Outgoing("POST", self._url, {"content-type": "application/json"}, body))
        pieces = []
        while piece := await response.read():
            pieces.append(piece)
        response_writer.send(Answer(200, b"".join(pieces)))


class Provider(asyncio.Protocol):
    """Answers every request at once."""

    streamed: ClassVar[bytes] = STREAMED

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._came: list[bytes] = []
        self._left = 0

    def data_received(self, data: bytes) -> None:
        if not self._came:
            head, _, body = data.partition(b"\r\n\r\n")
            self._left = int(head.split(b"content-length: ")[1].split(b"\r")[0]) - len(body)
        else:
            self._left -= len(data)
        self._came.append(data)
        if self._left <= 0:
            streams = any(b'"stream":true' in piece for piece in self._came)
            self._came = []
            self._transport.write(self.streamed if streams else WHOLE)


async def client(port: int) -> Callable[[bytes], Awaitable[bytes]]:
    """Something that asks on one connection, and gives the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)

    async def ask(asked: bytes) -> bytes:
        writer.write(asked)
        head = await reader.readuntil(b"\r\n\r\n")
        place = head.find(b"content-length: ")
        if place < 0:
            return await reader.readuntil(b"\r\n0\r\n\r\n")
        return await reader.readexactly(int(head[place + 16 : head.index(b"\r", place)]))

    return ask


async def microseconds(ask: Callable[[bytes], Awaitable[bytes]], asked: bytes, count: int) -> float:
    """CPU of one request."""
    samples = []
    for _ in range(SAMPLES):
        before = time.process_time()
        for _ in range(count):
            await ask(asked)
        samples.append((time.process_time() - before) / count * 1e6)
    return min(samples)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Where a request's CPU goes.")
    parser.add_argument("--profile", default="", help="how to sort a profile: tottime, cumtime")
    parser.add_argument("--lines", type=int, default=30)
    options = parser.parse_args()
    loop = asyncio.get_running_loop()
    provider = await loop.create_server(Provider, "127.0.0.1", 0)
    port = provider.sockets[0].getsockname()[1]
    shared = Shared(Limits(), set(), ClientAddresses(most=0), BodyMemory(1 << 30))
    bare = await loop.create_server(lambda: Connection(Bare(port), shared), "127.0.0.1", 0)
    asked = request("/v1/chat/completions", "m", stream=False, size=400)
    direct, through = await client(port), await client(bare.sockets[0].getsockname()[1])
    await microseconds(through, asked, 200)
    cost = await microseconds(through, asked, 500) - await microseconds(direct, asked, 500)
    print(f"request, nothing but the edge and the pool: {cost:.0f} µs")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(_CONFIG.format(port=port))
        gateway = await Gateway.open(load_config(file, environ=os.environ, home=Path(folder)), host="127.0.0.1", port=0)
        through = await client(gateway.port)
        for what, stream, size, count in (("request", False, 400, 500), ("request of 128 KiB", False, 131_072, 200),
                                          (f"stream of {len(events())} events", True, 400, 200)):  # fmt: skip
            for way, (path, model) in WAYS.items():
                asked = request(path, model, stream=stream, size=size)
                await microseconds(through, asked, count // 4)
                cost = await microseconds(through, asked, count) - await microseconds(direct, asked, count)
                each = f", {cost / len(events()):.2f} an event" if stream else ""
                print(f"{what}, {way}: {cost:.0f} µs{each}")
                if options.profile:
                    profile = cProfile.Profile()
                    profile.enable()
                    for _ in range(count):
                        await through(asked)
                    profile.disable()
                    pstats.Stats(profile).sort_stats(options.profile).print_stats(options.lines)
        await gateway.drain(0)
    provider.close()


if __name__ == "__main__":
    uvloop.run(main())
