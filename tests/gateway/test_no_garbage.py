"""What a request leaves behind is freed when it ends: no circle of objects waits for somebody to look for garbage.

Such circles stay for an hour or more in a process that looks for old garbage seldom, and look like a leak until then.
"""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from dragoman.events import Reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import NO_USAGE, Text, ToolCall
from gateway.recording import recording
from gateway.running import Running, gateway, wire
from gateway.test_door import body_with, path_of
from scripted import Step, chunk, head

_OURS = ("dragoman", "httptools")
_QUOTA = '[[quotas]]\nscope = "all"\ntokens = 1_000_000_000\nper = "day"\n'


def answer(protocol: str, way: str) -> list[Step]:
    """What the provider does."""
    parts = (Text("word " * 300), ToolCall("call_1", "note", '{"n": 1}'))
    data = wire(protocol, Reply("r", "m", 1, parts, "tool_use", None, NO_USAGE, None, None, (), ()))
    begin = head(200, content_type=PROTOCOLS[protocol].stream_type)
    half = len(data) // 2
    return {
        "whole": [begin, chunk(data), b"0\r\n\r\n"],
        "pieces": [begin, *(chunk(data[at : at + 700]) for at in range(0, len(data), 700)), b"0\r\n\r\n"],
        "nonsense": [begin, chunk(b"nonsense\n" + data[:half] + b"\nnonsense\n\n" + data[half:]), b"0\r\n\r\n"],
        "cut": [begin, chunk(data[:half]), "reset"],
        "gone": [begin, chunk(data[:half]), 0.3, chunk(data[half:]), b"0\r\n\r\n"],
        "refused": [head(400, content_type="application/json"), chunk(b'{"error":{"message":"no"}}'), b"0\r\n\r\n"],
    }[way]


def ask(running: Running, client: str, provider: str, way: str) -> None:
    name = f"via-{provider}"
    path = path_of(client).replace("via-openai-chat", name)
    body = json.loads(body_with(client, "{}")) | {"stream": True}
    if "model" in body:
        body["model"] = name
    running.answer(answer(provider, way))
    if way != "gone":
        running.request("POST", path, json.dumps(body).encode())
        return
    data = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", running.gateway.port)) as plain:
        plain.sendall(b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(data)))
        plain.sendall(data)
        plain.recv(1000)


def garbage_of(objects: list[object]) -> Counter[str]:
    """Our objects among them, by type."""
    return Counter(
        type(each).__qualname__ for each in objects if (type(each).__module__ or "").partition(".")[0] in _OURS
    )


@pytest.mark.parametrize("way", ["whole", "pieces", "nonsense", "cut", "gone", "refused"])
@pytest.mark.parametrize("provider", PROTOCOLS)
def test_a_request_leaves_no_circle(tmp_path: Path, provider: str, way: str) -> None:
    with recording(tmp_path, _QUOTA) as (running, _, _):
        for client in PROTOCOLS:
            ask(running, client, provider, "whole")
        gc.collect()
        gc.disable()
        try:
            for client in PROTOCOLS:
                ask(running, client, provider, way)
            time.sleep(0.1)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            found = garbage_of(gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert not found


@pytest.mark.parametrize("begin", ["", "GET /api/version HTTP/1.1\r\nhost: localhost\r\n\r\n"])
@pytest.mark.parametrize(
    "broken",
    [
        "\x00", "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999999\r\n\r\n", "GET /" + "a" * 70_000,
        "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + "a: b\r\n" * 20_000,
        "GET / HTTP/1.1\r\n" + "a: b\r\n" * 101 + "\r\n", "GET / HTTP/1.1\r\na: " + "b" * 70_000,
        "GET / HTTP/9.9\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "GET /api/version HTTP/1.1\r\nhost: localhost\r\n\r\n" * 40,
    ],
)  # fmt: skip
def test_a_refused_head_leaves_no_circle(tmp_path: Path, begin: str, broken: str) -> None:
    """The parser kept what was raised, and with it a connection for each that anybody sent."""
    with gateway(tmp_path) as running:
        running.request("GET", "/api/version")
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", running.gateway.port), timeout=0.3) as plain:
                    plain.sendall((begin + broken).encode())
                    with contextlib.suppress(TimeoutError):  # behind another one it may be waited for, or more of it
                        while plain.recv(65536):
                            pass
            time.sleep(0.1)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            found = garbage_of(gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert not found
