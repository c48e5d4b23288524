"""How a gateway ends: what is under way goes on to its end, and nobody is cut without a word."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from conversations import reply
from gateway.running import Running, gateway, wire
from scripted import chunk, head

BODY = {"stream": True, "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
#: Where a stream stands between its first word and its end.
CUT = {"openai-chat": 430, "anthropic-messages": 500, "ollama-chat": 200}
PATHS = {"openai-chat": "/v1/chat/completions", "anthropic-messages": "/v1/messages", "ollama-chat": "/api/chat"}


def begin(running: Running, protocol: str = "openai-chat", **more: Any) -> http.client.HTTPConnection:
    """A request that is under way."""
    connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
    connection.request("POST", PATHS[protocol], json.dumps({"model": f"via-{protocol}", **BODY, **more}))
    return connection


def drain(running: Running, seconds: float) -> Any:
    return asyncio.run_coroutine_threadsafe(running.gateway.drain(seconds), running.loop)


def test_a_balancer_has_time_to_notice(tmp_path: Path) -> None:
    """Nothing is under way: without a notice the port would close at once, and reset who waits to be let in."""
    with gateway(tmp_path) as running:
        running.answer([head(200), chunk(wire("openai-chat", reply("text"))), b"0\r\n\r\n"])
        work = running.gateway.drain(60, notice=0.5)
        drained = asyncio.run_coroutine_threadsafe(work, running.loop)
        asked = 0
        with suppress(ConnectionRefusedError):  # at its end
            while not drained.done():
                assert running.request("GET", "/readyz")[::2] == (503, b"draining\n")
                answer = begin(running)
                assert answer.getresponse().read().endswith(b"data: [DONE]\n\n")
                answer.close()
                asked += 1
        drained.result(20)
        assert asked


def test_all_streams_end_whole_while_new_ones_are_still_taken(tmp_path: Path) -> None:
    data = wire("openai-chat", reply("text"))
    rest = threading.Semaphore(0)  # of each answer; it leaves when all was looked at
    with gateway(tmp_path) as running:
        running.answer([head(200), chunk(data[:430]), rest, chunk(data[430:]), b"0\r\n\r\n"])
        streams = [begin(running) for _ in range(30)]
        responses = [stream.getresponse() for stream in streams]
        drained = drain(running, 60)
        until = time.monotonic() + 20
        while running.request("GET", "/readyz")[::2] != (503, b"draining\n"):
            assert time.monotonic() < until
        assert running.request("GET", "/livez")[0] == 200
        late = begin(running)
        answer = late.getresponse()
        assert answer.getheader("connection") == "close"
        assert not drained.done()
        rest.release(len(streams) + 1)
        assert all(response.read().endswith(b"data: [DONE]\n\n") for response in (*responses, answer))
        drained.result(20)
        for stream in (*streams, late):
            stream.close()
        with pytest.raises(ConnectionRefusedError):
            running.request("GET", "/livez")


def test_a_request_that_has_begun_to_arrive_is_answered(tmp_path: Path) -> None:
    """With and without a request before on its connection; one that never says anything holds nobody up."""
    asked = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with gateway(tmp_path) as running, ExitStack() as stack:
        address = ("127.0.0.1", running.gateway.port)
        fresh, used, silent = (stack.enter_context(socket.create_connection(address, 20)) for _ in range(3))
        used.sendall(asked)
        assert b"200 OK" in used.recv(4096)
        for half in (fresh, used):
            half.sendall(asked[:20])
        running.request("GET", "/livez")  # what was sent before was read before
        drained = drain(running, 60)
        while running.request("GET", "/readyz")[0] != 503:
            pass
        for half in (fresh, used):
            half.sendall(asked[20:])
            answer = b"".join(iter(lambda half=half: half.recv(4096), b""))
            assert b"200 OK" in answer
            assert b"connection: close" in answer
        drained.result(20)
        with suppress(ConnectionResetError):
            assert silent.recv(1) == b""


def test_the_next_gateway_takes_the_port_of_one_that_ends(tmp_path: Path) -> None:
    data = wire("openai-chat", reply("text"))
    folders = [tmp_path / name for name in ("old", "new")]
    for folder in folders:
        folder.mkdir()
    rest = threading.Semaphore(0)
    with gateway(folders[0]) as old:
        old.answer([head(200), chunk(data[:430]), rest, chunk(data[430:]), b"0\r\n\r\n"])
        stream = begin(old)
        response = stream.getresponse()
        with pytest.raises(OSError, match="in use"), gateway(folders[1], port=old.gateway.port):
            pass  # it does not end
        drained = drain(old, 60)
        while old.request("GET", "/readyz")[0] != 503:
            assert not drained.done()
        with gateway(folders[1], port=old.gateway.port) as new:
            assert [new.request("GET", "/readyz")[0] for _ in range(20)] == [200] * 20
            rest.release()
            assert response.read().endswith(b"data: [DONE]\n\n")
            drained.result(20)
            assert new.request("GET", "/readyz")[0] == 200
        stream.close()


@pytest.mark.parametrize("protocol", list(PATHS))
def test_at_the_end_of_its_time_a_stream_is_told_so(tmp_path: Path, protocol: str) -> None:
    with gateway(tmp_path) as running:
        running.answer([head(200), chunk(wire(protocol, reply("text"))[: CUT[protocol]]), "hold"])
        stream = begin(running, protocol)
        response = stream.getresponse()
        drain(running, 0.2).result(10)
        data = response.read()
        stream.close()
        assert b"error" in data and b"shut down" in data
        assert running.provider.client_gone.wait(20)


def test_an_answer_that_has_not_begun_keeps_its_status(tmp_path: Path) -> None:
    with gateway(tmp_path) as running:
        running.answer(["hold"])
        for number, stream in enumerate((True, False), 1):
            under_way = begin(running, stream=stream)
            until = time.monotonic() + 10
            while len(running.provider.requests) < number:
                assert time.monotonic() < until
                time.sleep(0.005)
            if not stream:
                drain(running, 0.2).result(10)
                response = under_way.getresponse()
                assert (response.status, int(response.getheader("retry-after", "0")) > 0) == (503, True)
                assert b"shut down" in response.read()
            under_way.close()


def test_idle_connections_end_at_once(tmp_path: Path) -> None:
    with gateway(tmp_path) as running:
        idle = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        idle.request("GET", "/livez")
        idle.getresponse().read()
        began = time.monotonic()
        drain(running, 30).result(10)
        assert time.monotonic() - began < 10
        idle.close()


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    with gateway(tmp_path) as running:
        for _ in range(2):
            running.run(running.gateway.close())
        drain(running, 1).result(10)
