"""MCP servers that are reached by URL: one message has a bound there too, however it is sent."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import dragoman
from agent.playing import call as wanted
from dragoman.agent.tools.pins import Pins
from dragoman.agent.tools.remote import Remote
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.config import McpServer
from dragoman.errors import McpFailed
from dragoman.testing import FakeModel, call

_MIB = 1024 * 1024
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
#: How an answer without an end is sent: its status, its headers, what it begins with and what follows again and again.
ENDLESS = {
    "a body": (200, {"content-type": "application/json"}, b'{"jsonrpc": "2.0", "x": "', b"a" * 65_536),
    "white space": (200, {"content-type": "application/json"}, b"", b" " * 65_536),
    "an error": (500, {"content-type": "application/json"}, b'{"jsonrpc": "2.0", "x": "', b"a" * 65_536),
    "a page": (200, {"content-type": "text/html"}, b"<p>", b"a" * 65_536),
    "an event": (200, {"content-type": "text/event-stream"}, b"data: ", b"a" * 65_536),
    "lines of an event": (200, {"content-type": "text/event-stream"}, b"", b"data: a\n" * 8_192),
}
bomb = cache(lambda: gzip.compress(bytes(64 * _MIB)))


@contextmanager
def served(method: str, how: str, *, text: str = "", streamed: bool = False) -> Iterator[str]:
    """A server's URL: it answers `method` as `how` says, all others as it should; a tool's result is `text`."""

    class Answers(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            self.send_error(405)

        do_DELETE = do_GET

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if asked.get("method") == method and how:
                return self.misbehave()
            result = {
                "initialize": {"protocolVersion": asked.get("params", {}).get("protocolVersion"),
                               "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
                "tools/list": {"tools": [TOOL]},
                "tools/call": {"content": [{"type": "text", "text": text}]},
            }.get(asked.get("method"))  # fmt: skip
            if result is None:
                self.answer(202, {}, b"")
            else:
                body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
                kind = "text/event-stream" if streamed else "application/json"
                self.answer(200, {"content-type": kind}, b"data: " + body + b"\n\n" if streamed else body)

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def misbehave(self) -> None:
            if how == "packed":
                return self.answer(200, {"content-type": "application/json", "content-encoding": "gzip"}, bomb())
            status, headers, begins, goes_on = ENDLESS[how]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(begins)
                while True:
                    self.wfile.write(goes_on)
            except OSError:  # whoever asked has gone
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()


def memory() -> int:
    """MiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.mark.parametrize("how", [*ENDLESS, "packed"])
def test_an_answer_without_an_end_ends_and_takes_little(how: str) -> None:
    before, began = memory(), time.process_time()
    with (
        served("tools/list", how) as url,
        FakeModel("never said"),
        pytest.raises(McpFailed, match=f"MCP server m at {url} cannot"),
    ):
        dragoman.run("a/m", "go", mcp={"m": {"url": url}})
    assert time.process_time() - began < 20
    assert memory() - before < 120  # the message, what is copied of it, and what the server has here


@pytest.mark.parametrize("how", ["a body", "white space", "an error", "packed"])
def test_a_call_with_such_an_answer_is_told_why(how: str, tmp_path: Path) -> None:
    words = "compressed an answer" if how == "packed" else "sent a message of more than 16 MiB"
    with served("tools/call", how) as url, FakeModel(call("m_t"), "done") as fake:
        dragoman.run("a/m", "go", mcp={"m": {"url": url}})
    [said] = [
        part for message in fake.requests[1].messages for part in message.parts if isinstance(part, dragoman.ToolResult)
    ]
    assert words in "".join(part.text for part in said.parts if isinstance(part, dragoman.Text))

    async def run(url: str) -> str:
        remote = Remote("m", McpServer(url=url), secrets={}, work=tmp_path, pins=Pins(tmp_path / "pins.json"))
        await remote.open()
        try:
            await Toolbox(remote.tools).plan(wanted("m_t", "c1")).do()
        except dragoman.agent.tool_plan.ToolFailed as problem:
            return str(problem)
        finally:
            await remote.close()
        return ""

    with served("tools/call", how) as url:
        assert words in asyncio.run(run(url))


@pytest.mark.parametrize("streamed", [False, True])
def test_messages_up_to_the_bound_pass(streamed: bool) -> None:
    """A picture is one message, and it may come as an event."""
    with served("", "", text="a" * 12 * _MIB, streamed=streamed) as url, FakeModel(call("m_t"), "done") as fake:
        dragoman.run("a/m", "go", mcp={"m": {"url": url}})
    [said] = [
        part for message in fake.requests[1].messages for part in message.parts if isinstance(part, dragoman.ToolResult)
    ]
    assert [len(part.text) for part in said.parts if isinstance(part, dragoman.Text)] == [12 * _MIB]
