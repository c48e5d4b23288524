"""What a request leaves behind is freed when it ends: no circle of objects waits for somebody to look for garbage.

Such circles stay for an hour or more in a process that looks for old garbage seldom, and look like a leak until then.
"""

from __future__ import annotations

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
from gateway.running import Running, gateway, wire
from gateway.test_door import body_with, path_of
from scripted import Step, chunk, head

_OURS = ("dragoman", "httptools")


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
    with gateway(tmp_path) as running:
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
