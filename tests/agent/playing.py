"""A model of one's own making, for the agent: it gets the request as any of the five protocols, a function answers.

`Playing` is a server on loopback; `InProcess` stands in for the client, with the same bytes and no socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.client.exchange import Exchange
from dragoman.config import Config, load_config
from dragoman.events import Event, Finish, Fold, Reply, unfold
from dragoman.protocols import PROTOCOLS
from dragoman.routing.resolve import resolve, with_defaults
from dragoman.types import Cost, Message, Part, ProtocolName, Request, Text, Thinking, ToolCall, ToolResult, Usage

#: A request → the parts of the answer, or bytes that are sent as they are.
Brain = Callable[[Request], "list[Part] | bytes"]

BASES: dict[ProtocolName, str] = {
    "ollama-chat": "",
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "anthropic-messages": "",
    "gemini-generate": "/v1beta",
}


def say(text: str) -> list[Part]:
    return [Text(text)]


def call(name: str, /, id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(id, name, json.dumps(arguments))


def numbered(parts: list[Part], turn: int) -> list[Part]:
    """Calls without an id get one that no other turn has."""
    return [
        ToolCall(f"call_t{turn:03}c{place:03}abcdefghijklmnop", part.name, part.arguments)
        if isinstance(part, ToolCall) and not part.id
        else part
        for place, part in enumerate(parts)
    ]


def script(*answers: list[Part] | Part | str | bytes) -> Brain:
    """One answer after the other; the last one serves all that follow."""
    left = [[Text(each)] if isinstance(each, str) else each for each in answers]
    count = 0

    def brain(request: Request) -> list[Part] | bytes:
        nonlocal count
        count += 1
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, bytes):
            return answer
        return numbered(answer if isinstance(answer, list) else [answer], count)

    return brain


def body(protocol: ProtocolName, parts: list[Part], request: Request) -> list[bytes]:
    """An answer in a protocol's words, in pieces."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    sent = sum(len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text))
    reply = Reply(
        "msg_1",
        "m",
        1,
        tuple(parts),
        "tool_use" if calls else "stop",
        None,
        Usage(sent // 4 + 1, 7),
        None,
        None,
        (),
        (),
    )
    numbers = iter(range(10_000))
    encoder = PROTOCOLS[protocol].encoder(new_id=lambda: f"{next(numbers):024}", model="m", created=1)
    pieces = []
    for event in unfold(reply):
        pieces += [encoder.encode([each]) for each in _in_pieces(event)]
    return [piece for piece in pieces if piece]


def _in_pieces(event: Event) -> Iterator[Event]:
    """Deltas as a model sends them: a few characters each."""
    text = getattr(event, "text", None)
    if not isinstance(text, str) or len(text) < 12:
        yield event
        return
    for start in range(0, len(text), 9):
        yield type(event)(event.index, text[start : start + 9])  # type: ignore[union-attr,call-arg]


# ---------------------------------------------------------------- over a socket


@dataclass
class Playing:
    """The running server. `requests` as they were read, `bodies` as they came."""

    url: str
    protocol: ProtocolName
    brain: Brain
    requests: list[Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    connections: int = 0

    def table(self, name: str = "lab", more: str = "") -> str:
        """The provider's table for a configuration."""
        return (
            f'[providers.{name}]\nprotocol = "{self.protocol}"\nbase_url = "{self.url}{BASES[self.protocol]}"\n{more}\n'
        )


@contextmanager
def playing(brain: Brain, protocol: ProtocolName = "openai-chat", *, delay: float = 0.0) -> Iterator[Playing]:
    """Serve until the block ends. `delay`: seconds between two pieces of an answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            rows = [{"id": "m", "name": "m", "model": "m", "context_length": 128_000}, {"id": "other", "name": "other"}]
            self._send(json.dumps({"data": rows, "models": rows}).encode())

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            if self.path.endswith("/api/show"):
                self._send(json.dumps({"capabilities": ["completion", "tools"], "model_info": {}}).encode())
                return
            request = PROTOCOLS[protocol].parse_request(data, path=self.path).request
            server.requests.append(request)
            server.bodies.append(json.loads(data))
            answer = server.brain(request)
            pieces = [answer] if isinstance(answer, bytes) else body(protocol, answer, request)
            self.send_response(200)
            self.send_header("content-type", PROTOCOLS[protocol].stream_type)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
                if delay:
                    threading.Event().wait(delay)
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle(self) -> None:
            server.connections += 1
            with contextlib.suppress(OSError):  # the client has gone
                super().handle()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    server = Playing(f"http://127.0.0.1:{listener.server_port}", protocol, brain)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(5)


def config_of(folder: Path, *tables: str) -> Config:
    """A configuration of these tables, in its own file outside of the work folder."""
    file = folder / "dragoman.toml"
    file.write_text("\n".join(tables), encoding="utf-8")
    return load_config(file, environ={}, home=folder)


# ---------------------------------------------------------------- without a socket


class InProcess:
    """What the loop uses of `AsyncClient`, answered by a brain; bytes go through the real decoders and stages."""

    def __init__(self, config: Config, brain: Brain) -> None:
        self.config = config
        self.brain = brain
        self.requests: list[Request] = []
        self.price_of: Any = None
        self._count = 0

    def ask(self, target: str, request: Request) -> InProcessStream:
        self.requests.append(request)
        return InProcessStream(self, target, request)

    def new_id(self) -> str:
        self._count += 1
        return f"{self._count:024}"


class InProcessStream:
    attempts = ()  # there is one target, and it answers

    def __init__(self, client: InProcess, name: str, request: Request) -> None:
        target = resolve(name, client.config)
        asked = with_defaults(request, target)
        self._exchange = Exchange(target, asked, new_id=client.new_id, price_of=client.price_of)
        answer = client.brain(request)
        protocol = target.protocol.name
        self._left = [answer] if isinstance(answer, bytes) else body(protocol, answer, request)
        self._fold = Fold()
        self._is_closed = False

    async def __aenter__(self) -> InProcessStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def next_batch(self) -> list[Event]:
        await asyncio.sleep(0)  # a network would wait here too, and this is where a cancelled task ends
        while not self._is_closed:
            if self._left:
                events = self._exchange.feed(self._left.pop(0))
            else:
                events, self._is_closed = self._exchange.close(), True
            for event in events:
                self._fold.add(event)
            if events:
                return events
        return []

    @property
    def reply(self) -> Reply:
        return self._fold.reply()


__all__ = [
    "BASES", "Brain", "Cost", "Finish", "InProcess", "Message", "Part", "Playing", "Text", "Thinking", "ToolCall",
    "ToolResult", "body", "call", "config_of", "playing", "say", "script",
]  # fmt: skip
