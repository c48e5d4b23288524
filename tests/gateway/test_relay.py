"""One request through the gateway: statuses, keep-alive, cuts, clients that go, names."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cases import counter
from conversations import reply
from dragoman.events import Failure, Start, TextDelta, TextStart, ToolCallDelta, ToolCallStart, fold, unfold
from dragoman.gateway.messages import Limits
from dragoman.protocols import PROTOCOLS
from dragoman.types import Request, Text
from for_each import for_each
from gateway.running import Running, gateway, stream_of, whole_of, wire
from gateway.test_matrix import QUESTION, TOOLS, ask, content, read
from scripted import END, Step, chunk, head, whole

CHAT = {"model": "via-openai-chat", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway that sends its keep-alives fast."""
    with gateway(tmp_path_factory.mktemp("gateway"), keepalive_seconds=0.1) as found:
        yield found


def held(protocol: str, data: bytes = b"") -> list[Step]:
    """A stream that says this and then nothing, until its client goes."""
    return [head(200, PROTOCOLS[protocol].stream_type), *([chunk(data)] if data else []), "hold"]


def send(running: Running, path: str, body: bytes, *, receives: int | None = None) -> socket.socket:
    """A request on a socket of its own; `receives`: bytes that the kernel may hold unread."""
    connection = socket.socket()
    connection.settimeout(10)
    if receives is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    connection.connect(("127.0.0.1", running.gateway.port))
    lines = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{lines}content-length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        data = connection.recv(65536)
        assert data, found
        found += data
    return found


def spoken(client: str, provider: str, *, stream: bool = True) -> tuple[str, bytes]:
    """Path and body of a request in a client's protocol."""
    sent = PROTOCOLS[client].render_request(Request(f"via-{provider}", (QUESTION,), TOOLS, stream=stream)).http
    prefix = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(client, "")
    return prefix + sent.path, sent.body


# ---------------------------------------------------------------- failures


@for_each("client", PROTOCOLS)
@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each(("status", "words"), [(400, "no such option"), (429, "slow down"), (503, "too busy")])
def test_a_providers_status_reaches_the_client(
    running: Running, client: str, stream: bool, status: int, words: str
) -> None:
    error = json.dumps({"error": {"message": words, "type": "x"}}).encode()
    running.answer(whole(error, status, "application/json", "retry-after: 7"))
    path, body = spoken(client, "openai-chat", stream=stream)
    seen, headers, answer = running.request("POST", path, body)
    kind = PROTOCOLS[client].parse_error(seen, answer).kind
    assert (seen, words in answer.decode()) == (529 if seen == 529 else status, True)
    assert kind == {400: "bad_request", 429: "rate", 503: "overloaded"}[status]
    assert headers.get("retry-after") == "7"


@for_each("client", PROTOCOLS)
@for_each("provider", PROTOCOLS)
def test_a_failure_before_the_first_word_is_a_status(running: Running, client: str, provider: str) -> None:
    events = [Start(id="resp_1", model="model-1"), Failure("overloaded", "the provider is busy")]
    running.answer(stream_of(provider, events))
    status, answer = ask(running, client, Request(f"via-{provider}", (QUESTION,), TOOLS))
    assert status >= 500, answer
    assert b"the provider is busy" in answer
    told = read(provider, wire(provider, events)).error  # not every protocol can say what kind it is
    assert isinstance(told, Failure)
    assert PROTOCOLS[client].parse_error(status, answer).kind == told.kind


@for_each("client", PROTOCOLS)
def test_a_failure_after_the_first_word_is_in_the_stream(running: Running, client: str) -> None:
    events = [
        Start(id="resp_1", model="model-1"), TextStart(0), TextDelta(0, "Hel"), Failure("overloaded", "it is busy"),
    ]  # fmt: skip
    first = wire("openai-chat", events[:3])
    rest = wire("openai-chat", events)[len(first) :]
    for pieces in ([chunk(first), 0.05, chunk(rest)], [chunk(first + rest)]):
        running.answer([head(200), *pieces, END])
        status, answer = ask(running, client, Request("via-openai-chat", (QUESTION,), TOOLS))
        found = read(client, answer)
        assert (status, found.text) == (200, "Hel")
        assert isinstance(found.error, Failure) and "it is busy" in found.error.message


def test_no_provider_there_is_said_with_its_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    more = f'[providers.gone]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
    with gateway(tmp_path, more) as found:
        status, _, answer = found.request(
            "POST", "/v1/chat/completions", json.dumps(CHAT | {"model": "gone/m"}).encode()
        )
    assert status == 502
    assert f"no connection to http://127.0.0.1:{port}" in json.loads(answer)["error"]["message"]


@for_each("client", PROTOCOLS)
def test_a_body_that_is_not_the_protocol_is_400(running: Running, client: str) -> None:
    path, _ = spoken(client, "openai-chat")
    status, _, answer = running.request("POST", path, b'{"messages": 3')
    assert status == 400
    assert PROTOCOLS[client].parse_error(status, answer).kind == "bad_request"


# ---------------------------------------------------------------- cuts


@for_each("client", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_a_call_that_is_cut_on_its_way_cuts_the_connection(running: Running, client: str) -> None:
    """Some of the call has left, so the stream must not end as if it were whole."""
    events = [Start(id="r", model="m"), ToolCallStart(0, "call_1", "write_file"), ToolCallDelta(0, '{"path":"a')]
    left = threading.Semaphore(0)
    running.answer([*held("openai-chat", wire("openai-chat", events))[:2], left, "reset"])
    path, body = spoken(client, "openai-chat")
    with send(running, path, body) as connection:
        found = read_until(connection, b"write_file")
        left.release()
        while data := connection.recv(65536):
            found += data
    assert not found.endswith(b"0\r\n\r\n")
    machine = PROTOCOLS[client].decoder(new_id=counter())
    payload = found.partition(b"\r\n\r\n")[2]
    assert fold([*machine.feed(_unchunked(payload)), *machine.close()]).tool_calls == []


def _unchunked(data: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(data):
        begin = data.index(b"\r\n", at) + 2
        end = begin + int(data[at : begin - 2], 16)
        out += data[begin:end]
        at = end + 2
    return bytes(out)


# ---------------------------------------------------------------- silence


@for_each("client", PROTOCOLS)
def test_a_silent_stream_is_kept_alive_and_read_all_the_same(impatient: Running, client: str) -> None:
    data = wire("openai-chat", reply("text-call"))
    half = len(data) // 2
    go_on = threading.Semaphore(0)
    impatient.answer([head(200), go_on, chunk(data[:half]), go_on, chunk(data[half:]), END])
    path, body = spoken(client, "openai-chat")
    with send(impatient, path, body) as connection:
        first = read_until(connection, b"\r\n\r\n").partition(b"\r\n\r\n")[2]
        begun = first or connection.recv(65536)
        go_on.release()
        found = begun + connection.recv(65536)
        found += connection.recv(65536)  # the half that came, or a keep-alive in its middle
        go_on.release()
        while not found.endswith(b"0\r\n\r\n"):
            found += connection.recv(65536)
    assert b"Let me" not in begun, "the keep-alive came before any word"
    assert content(read(client, _unchunked(found.removesuffix(b"0\r\n\r\n")))) == content(reply("text-call"))


def test_a_failure_after_a_keepalive_is_in_the_stream(impatient: Running) -> None:
    error = json.dumps({"error": {"message": "too busy"}}).encode()
    silent = threading.Semaphore(0)
    impatient.answer([silent, *whole(error, 503)])
    path, body = spoken("anthropic-messages", "openai-chat")
    with send(impatient, path, body) as connection:
        answer = read_until(connection, b"event: ping")
        silent.release()
        while not answer.endswith(b"0\r\n\r\n"):
            answer += connection.recv(65536)
    first, _, payload = answer.removesuffix(b"0\r\n\r\n").partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 ")
    found = read("anthropic-messages", _unchunked(payload))
    assert isinstance(found.error, Failure) and found.error.kind == "overloaded"


def test_a_whole_answer_gets_no_keepalive(impatient: Running) -> None:
    error = json.dumps({"error": {"message": "too busy"}}).encode()
    impatient.answer([0.3, *whole(error, 503)])
    asked = Request("via-openai-chat", (QUESTION,), TOOLS, stream=False)
    status, _ = ask(impatient, "openai-chat", asked)
    assert status == 503


# ---------------------------------------------------------------- clients that go

PHASES = {
    "before the head": ["hold"],
    "after the head": held("openai-chat"),
    "in the text": held("openai-chat", wire("openai-chat", unfold(reply("text"))[:3])),
    "in a call": held("openai-chat", wire("openai-chat", [ToolCallStart(0, "c", "ping"), ToolCallDelta(0, '{"a')])),
}


@for_each("phase", PHASES)
@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_the_provider_is_left_when_the_client_goes(running: Running, phase: str, stream: bool) -> None:
    running.answer(PHASES[phase])
    path, body = spoken("openai-chat", "openai-chat", stream=stream)
    connection = send(running, path, body)
    _wait_for(lambda: bool(running.provider.requests))
    if stream and phase.startswith("in"):
        read_until(connection, b"data:")
    connection.close()
    assert running.provider.client_gone.wait(20)


def test_a_client_that_does_not_read_stops_the_provider(running: Running) -> None:
    """What waits is bounded; once the client reads, it gets every byte."""
    piece = wire("openai-chat", [Start(id="r"), TextStart(0), TextDelta(0, "x" * 60_000)])
    end = wire("openai-chat", reply("text"))
    count = 400
    running.answer([head(200), *[chunk(piece)] * count, chunk(end), END])
    path, body = spoken("openai-chat", "openai-chat")
    with send(running, path, body) as connection:
        connection.settimeout(20)
        _wait_for(lambda: running.run(_unsent(running)) > 0)
        time.sleep(0.2)  # more would come now
        waiting = running.run(_unsent(running))
        found = bytearray()
        while not found.endswith(b"0\r\n\r\n"):
            data = connection.recv(1 << 20)
            assert data
            found += data
    assert waiting < 2 * 1024 * 1024
    payload = bytes(found).partition(b"\r\n\r\n")[2].removesuffix(b"0\r\n\r\n")
    assert len(read("openai-chat", _unchunked(payload)).text) >= 60_000 * count


def test_a_client_that_never_reads_is_left(tmp_path: Path) -> None:
    piece = wire("openai-chat", [Start(id="r"), TextStart(0), TextDelta(0, "x" * 60_000)])
    with gateway(tmp_path, limits=Limits(stall_seconds=0.3)) as found:
        found.answer([head(200), *[chunk(piece)] * 400, "hold"])
        path, body = spoken("openai-chat", "openai-chat")
        with send(found, path, body):
            assert found.provider.client_gone.wait(20)
            _wait_for(lambda: not found.gateway._connections)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what the other side has taken")
def test_a_client_that_reads_a_little_is_not_left(tmp_path: Path) -> None:
    """Less than our own buffer shows: it looks full all the while."""
    piece = wire("openai-chat", [Start(id="r"), TextStart(0), TextDelta(0, "x" * 60_000)])
    with gateway(tmp_path, limits=Limits(stall_seconds=1.0)) as found:
        found.answer([head(200), *[chunk(piece)] * 400, "hold"])
        path, body = spoken("openai-chat", "openai-chat")
        with send(found, path, body, receives=4096) as connection:
            until = time.monotonic() + 3
            while time.monotonic() < until:
                assert connection.recv(1024)
                time.sleep(0.1)
            assert not found.provider.client_gone.is_set()


def test_a_slow_client_reads_a_large_answer_to_its_end(tmp_path: Path) -> None:
    """Longer than the connection may linger, as long as it reads on."""
    long = msgspec.structs.replace(reply("text"), parts=(Text("x" * 8_000_000),))
    with gateway(tmp_path, limits=Limits(linger_seconds=1.0, idle_seconds=1.0)) as found:
        found.answer(whole_of("openai-chat", long))
        body = json.dumps(CHAT | {"stream": False}).encode()
        lines = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        seen = 0
        with socket.create_connection(("127.0.0.1", found.gateway.port), timeout=10) as connection:
            connection.sendall(f"{lines}connection: close\r\n\r\n".encode() + body)
            while data := connection.recv(300_000):
                seen += len(data)
                time.sleep(0.03)
    assert seen > 8_000_000


async def _unsent(running: Running) -> int:
    """Bytes that the gateway holds for its clients."""
    transports = [connection._transport for connection in running.gateway._connections]
    return sum(transport.get_write_buffer_size() for transport in transports if transport is not None)


def _wait_for(condition: Any) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


# ---------------------------------------------------------------- styles


@for_each(
    ("agent", "lines", "keys"),
    [
        ("ollama-python/0.6.3", 3, {"id", "function"}),
        ("Zed/0.211.4 (linux)", 3, {"function"}),
        ("Zed/0.213.0 (macos)", 3, {"id", "function"}),
        ("litellm/1.106.2", 1, {"id", "function"}),
    ],
)
def test_calls_are_written_as_the_client_reads_them(running: Running, agent: str, lines: int, keys: set[str]) -> None:
    running.answer(stream_of("openai-chat", reply("parallel")))
    path, body = spoken("ollama-chat", "openai-chat")
    _, _, answer = running.request("POST", path, body, {"user-agent": agent})
    found = [json.loads(line)["message"] for line in answer.splitlines()]
    calls = [message["tool_calls"] for message in found if "tool_calls" in message]
    assert len(calls) == lines
    assert [set(call) for line in calls for call in line] == [keys] * 3
