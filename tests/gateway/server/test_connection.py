"""The HTTP server on sockets: limits, framing, keep-alive, and who may come in."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import itertools
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conversations import reply
from dragoman.gateway.messages import Limits
from dragoman.gateway.process.gateway import new_event_loop
from dragoman.gateway.server.connection import READ_AT_ONCE, Connection
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from gateway.running import Running, gateway, stream_of

LIMITS = Limits(body=200_000, head_seconds=0.4, body_seconds=0.4, idle_seconds=0.4)
BODY = json.dumps({"model": "via-openai-chat", "messages": [{"role": "user", "content": "Hi"}]}).encode()
PATHS = {
    "ollama-chat": "/api/chat",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages?beta=true",
    "gemini-generate": "/v1beta/models/m:generateContent",
}


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway in each event loop: their transports differ."""
    loop = asyncio.new_event_loop if request.param == "asyncio" else new_event_loop
    with gateway(tmp_path_factory.mktemp("gateway"), loop=loop) as found:
        assert ("uvloop" in type(found.loop).__module__) == (request.param == "uvloop")
        yield found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway with small limits."""
    with gateway(tmp_path_factory.mktemp("gateway"), limits=LIMITS) as found:
        yield found


def talk(running: Running, *pieces: bytes) -> bytes:
    """All that comes back for these bytes, until the server closes."""
    with closing(socket.create_connection(("127.0.0.1", running.gateway.port), timeout=10)) as connection:
        found = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            while data := connection.recv(65536):
                found += data
        except ConnectionError:
            pass
        return found


def post(body: bytes, *fields: str, path: str = "/v1/chat/completions") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: localhost", *fields]
    return "\r\n".join([*lines, "", ""]).encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def payload(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_body_that_is_too_large_is_413_in_the_clients_form(small: Running, client: str) -> None:
    answer = talk(small, post(b"x" * 1000, "content-length: 200001", path=PATHS[client]))
    assert status(answer) == 413
    assert PROTOCOLS[client].parse_error(413, payload(answer)).kind == "too_large"
    assert b"connection: close" in answer


def test_a_chunked_body_that_grows_too_large_is_413(small: Running) -> None:
    piece = b"%x\r\n%b\r\n" % (50_000, b"x" * 50_000)
    answer = talk(small, post(b"", "transfer-encoding: chunked"), *[piece] * 6)
    assert status(answer) == 413


@pytest.mark.parametrize(
    "fields",
    [
        [f"x-{number}: 1" for number in range(101)],
        ["x: " + "y" * 70_000],
        [f"x-{number}: " + "y" * 2_000 for number in range(40)],
    ],
    ids=["fields", "one field", "bytes"],
)
def test_a_head_that_is_too_large_is_431(small: Running, fields: list[str]) -> None:
    answer = talk(small, post(b"", *fields, path="/v1/messages"))
    assert status(answer) == 431
    assert json.loads(payload(answer))["type"] == "error"


def test_a_head_without_end_is_431(small: Running) -> None:
    answer = talk(small, b"POST /v1/messages HTTP/1.1\r\nx: ", *[b"y" * 1000] * 80)
    assert status(answer) == 431


def test_a_bomb_is_413_and_a_gzip_body_is_read(small: Running) -> None:
    small.answer(stream_of("openai-chat", reply("text")))
    bomb = gzip.compress(b" " * 10_000_000)
    fields = ("content-encoding: gzip", "connection: close")
    assert status(talk(small, post(bomb, *fields, f"content-length: {len(bomb)}"))) == 413
    packed = gzip.compress(BODY)
    assert status(talk(small, post(packed, *fields, f"content-length: {len(packed)}"))) == 200
    assert status(talk(small, post(packed[:-9], *fields, f"content-length: {len(packed) - 9}"))) == 400
    assert status(talk(small, post(b"x", "content-encoding: br", "connection: close", "content-length: 1"))) == 415


@pytest.mark.parametrize(
    "data",
    [
        b"not http at all\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        b"POST / HTTP/1.1\r\nhost : localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: a\r\n b\r\n\r\n",
    ],
)
def test_what_is_not_http_is_400_and_closed(small: Running, data: bytes) -> None:
    assert status(talk(small, data)) == 400


def test_a_slow_client_is_told_and_closed(small: Running) -> None:
    assert status(talk(small, b"POST /v1/messages HTTP/1.1\r\n")) == 408
    assert status(talk(small, post(b"x", "content-length: 10"))) == 408


def test_a_body_that_drips_is_refused_and_one_that_flows_is_taken(small: Running) -> None:
    """A byte now and then keeps no connection open; what comes at a fair pace may take longer than the limit."""
    with socket.create_connection(("127.0.0.1", small.gateway.port), timeout=10) as connection:
        connection.sendall(post(b"x", "content-length: 150000"))
        began = time.monotonic()
        connection.settimeout(0.05)
        answer = b""
        while not answer and time.monotonic() - began < 8:
            connection.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(1000)
        assert status(answer) == 408
    with socket.create_connection(("127.0.0.1", small.gateway.port), timeout=10) as connection:
        connection.sendall(post(b"", "content-length: 150000"))
        for _ in range(15):
            connection.sendall(b"x" * 10_000)
            time.sleep(0.08)
        assert status(connection.recv(1000)) == 400  # it was read, and is no JSON
    assert talk(small) == b""


# ---------------------------------------------------------------- framing


def test_a_chunked_body_in_any_pieces(running: Running) -> None:
    running.answer(stream_of("openai-chat", reply("text")))
    head = post(b"", "transfer-encoding: chunked", "connection: close")
    pieces = [b"%x\r\n%c\r\n" % (1, byte) for byte in BODY]
    answer = talk(running, head[:20], head[20:], *pieces, b"0\r\n\r\n")
    assert status(answer) == 200
    assert json.loads(payload(answer))["choices"][0]["message"]["content"] == "Hello, wörld. "


def test_expect_is_answered_before_the_body(running: Running) -> None:
    running.answer(stream_of("openai-chat", reply("text")))
    with closing(socket.create_connection(("127.0.0.1", running.gateway.port), timeout=10)) as connection:
        length = f"content-length: {len(BODY)}"
        connection.sendall(post(b"", "expect: 100-continue", length, "connection: close"))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        found = b""
        while data := connection.recv(65536):
            found += data
    assert status(found) == 200


def test_http_1_0_expects_no_answer_before_the_answer(running: Running) -> None:
    """RFC 9110 section 10.1.1: such a client takes 100 for the answer."""
    running.answer(stream_of("openai-chat", reply("text")))
    request = post(BODY, "expect: 100-continue", f"content-length: {len(BODY)}").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert status(talk(running, request)) == 200


@pytest.mark.parametrize(
    ("target", "host", "expected"),
    [
        ("http://localhost/api/version", "localhost", 200),
        ("HTTP://127.0.0.1:80/api/version?a=b", "localhost", 200),
        ("https://[::1]/api/version", "evil.example", 200),
        ("http://localhost/api/version", None, 400),
        ("http://evil.example/api/version", "localhost", 403),
        ("http://localhost@evil.example/api/version", "localhost", 400),
        ("http:///api/version", "localhost", 400),
        ("http://localhost", "localhost", 200),
        ("http://localhost?a", "localhost", 200),
    ],
)
def test_a_target_with_a_host_names_it_in_place_of_the_header(
    running: Running, target: str, host: str | None, expected: int
) -> None:
    """RFC 9112 section 3.2.2: who routes by the header and who routes by the target would take it for two requests."""
    lines = [f"GET {target} HTTP/1.1", *([f"host: {host}"] if host else []), "connection: close", "", ""]
    assert status(talk(running, "\r\n".join(lines).encode())) == expected


def test_others_have_their_turn_however_small_the_chunks_are(running: Running) -> None:
    """What one turn of the loop reads is bounded in bytes of the wire: of chunks of one byte, one is six of them."""
    reads: list[int] = []
    read = Connection.data_received
    paused: list[int] = []

    def noted(connection: Connection, data: bytes) -> None:
        reads.append(len(data))
        transport = connection._transport
        read(connection, data)
        if not getattr(transport, "is_reading", lambda: True)():
            paused.append(len(reads))

    body = BODY[:-1] + b',"metadata":{"a":"' + b"a" * 200_000 + b'"}}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    running.answer(stream_of("openai-chat", reply("text")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "data_received", noted)
        answer = talk(running, post(b"", "transfer-encoding: chunked", "connection: close") + chunks)
    assert status(answer) == 200
    assert sum(reads) > 4 * READ_AT_ONCE
    assert len(paused) >= sum(reads) // (2 * READ_AT_ONCE)
    for before, after in itertools.pairwise([0, *paused]):
        assert sum(reads[before : after - 1]) < READ_AT_ONCE


def test_small_chunks_take_no_more_memory_than_their_bytes(running: Running) -> None:
    """Each piece that is kept for itself takes some forty bytes beside its own."""
    most: list[int] = []
    keep = Connection.on_body

    def noted(connection: Connection, body: bytes) -> None:
        keep(connection, body)
        most.append(len(connection._body))

    body = BODY[:-1] + b',"metadata":{"a":"' + b"a" * 20_000 + b'"}}'
    pieces = [body[place : place + 2] for place in range(0, len(body), 2)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    running.answer(stream_of("openai-chat", reply("text")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "on_body", noted)
        answer = talk(running, post(b"", "transfer-encoding: chunked", "connection: close") + chunks)
    assert status(answer) == 200
    assert len(most) == len(pieces)
    assert max(most) < 100


def test_fields_of_one_name_are_counted_each(small: Running) -> None:
    assert status(talk(small, post(b"", *["a: b"] * 101, path="/v1/messages"))) == 431
    assert status(talk(small, post(b"", *["a: b"] * 90, "connection: close", path="/v1/messages"))) == 400


def test_a_connection_is_kept_and_requests_may_come_at_once(running: Running) -> None:
    running.answer(stream_of("openai-chat", reply("text")))
    one = post(BODY, f"content-length: {len(BODY)}")
    last = b"GET /api/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = talk(running, one + one + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.endswith(b'{"version":"0.14.0"}')


def test_an_upgrade_is_not_taken(running: Running) -> None:
    """Java's client asks for HTTP/2 with every request and goes on without it."""
    running.answer(stream_of("openai-chat", reply("text")))
    upgrade = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk")
    last = b"GET /api/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = talk(running, post(BODY, *upgrade, f"content-length: {len(BODY)}") + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    websocket = "GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    assert status(talk(running, websocket.encode() + last)) == 405


@pytest.mark.parametrize(
    ("version", "fields", "expected"),
    [
        # an HTTP/1.0 request stays one: chunks end nothing there, and its connection closes
        ("1.0", ["connection: upgrade", "transfer-encoding: chunked"], 400),
        ("1.0", ["connection: upgrade", "content-length: 2"], 200),
        ("1.1", ["connection: close, upgrade", "content-length: 2"], 200),
        ("1.1", ["connection: upgrade, CLOSE", "content-length: 2"], 200),
    ],
)
def test_an_upgrade_changes_neither_version_nor_close(
    running: Running, version: str, fields: list[str], expected: int
) -> None:
    body = b"0\r\n\r\n" if "transfer-encoding: chunked" in fields else b"{}"
    first = post(body, *fields, "upgrade: x", path="/api/show").replace(b"HTTP/1.1", f"HTTP/{version}".encode(), 1)
    second = b"GET /api/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = talk(running, first + second)
    assert len(re.findall(rb"HTTP/1.1 \d", answer)) == 1
    assert (status(answer) == 400 and b"transfer-encoding" in answer) == (expected == 400)


def test_a_trailer_is_no_header(running: Running) -> None:
    """`content-encoding` behind the body would unpack it after it was let in; a request id would name it anew."""
    trailers = ["content-encoding: gzip", "x-client-request-id: forged", "host: evil.example", "authorization: x"]
    body = b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(BODY), BODY, "\r\n".join(trailers).encode())
    running.answer(stream_of("openai-chat", reply("text")))
    last = b"GET /api/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = talk(running, post(body, "transfer-encoding: chunked") + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b"forged" not in answer


def test_trailers_without_end_are_refused(small: Running) -> None:
    begun = post(b"1\r\nx\r\n0\r\n", "transfer-encoding: chunked")
    assert status(talk(small, begun, *[b"x-%d: %b\r\n" % (number, b"y" * 1000) for number in range(80)])) == 431


@pytest.mark.parametrize(
    "hosts",
    [
        ["localhost", "evil.example"],
        ["127.0.0.1:4141", "evil.example"],
        ["localhost", "localhost"],
        ["[::1]evil.example"],
        ["127.0.0.1:80@evil.example"],
        ["user@localhost"],
        ["localhost/x"],
        ["localhost:80:80"],
        ["localhost:port"],
        ["local host"],
        ["localhost,evil.example"],
        [],
        [""],
    ],
)
def test_a_host_that_is_none_or_two_is_400(running: Running, hosts: list[str]) -> None:
    lines = ["GET /api/version HTTP/1.1", *(f"host: {host}" for host in hosts), "connection: close", "", ""]
    assert status(talk(running, "\r\n".join(lines).encode())) == 400


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:80@evil.example", "http://[::1]evil.example", "http://localhost/evil", "localhost"]
)
def test_an_origin_that_only_begins_like_ours_is_foreign(running: Running, origin: str) -> None:
    assert running.request("GET", "/api/tags", headers={"origin": origin})[0] == 403


def test_connect_is_refused(running: Running) -> None:
    fields = "host: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n"
    assert status(talk(running, f"CONNECT localhost:80 HTTP/1.1\r\n{fields}\r\n".encode())) == 405
    assert status(talk(running, b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n")) == 405


def test_http_1_0_gets_a_body_that_ends_with_the_connection(running: Running) -> None:
    running.answer(stream_of("openai-chat", reply("text")))
    body = BODY[:-1] + b',"stream":true}'
    answer = talk(running, post(body, f"content-length: {len(body)}").replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert b"transfer-encoding" not in answer
    assert answer.endswith(b"data: [DONE]\n\n")


def test_head_has_no_body(running: Running) -> None:
    code, headers, body = running.request("HEAD", "/")
    assert (code, headers["content-length"], body) == (200, str(len("Ollama is running")), b"")


# ---------------------------------------------------------------- who may come in


@for_each("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
@for_each(
    ("host", "origin", "expected"),
    [
        ("localhost:4141", None, True),
        ("127.0.0.1", None, True),
        ("[::1]:4141", None, True),
        ("my-box.lan", None, True),
        ("localhost", "http://127.0.0.1:3000", True),
        ("evil.example", None, False),
        ("0.0.0.0:4141", None, False),
        ("localhost.evil.example", None, False),
        ("localhost", "https://evil.example", False),
        ("localhost", "null", False),
    ],
)
def test_host_and_origin_on_every_method(
    guarded: Running, method: str, host: str, origin: str | None, expected: bool
) -> None:
    headers = {"host": host, "authorization": "Bearer first"} | ({"origin": origin} if origin else {})
    for path in ("/", "/api/tags", "/v1/chat/completions", "/nowhere"):
        code, seen, _ = guarded.request(method, path, b"", headers)
        assert (code == 403) is not expected
        assert not any(name.startswith("access-control") for name in seen)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway with client keys."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "key").write_text("first\n", encoding="utf-8")
    digest = hashlib.sha256(b"second").hexdigest()
    more = f'[server]\nkeys = ["file:key", "sha256:{digest}"]\nallowed_hosts = ["my-box.lan"]\n'
    with gateway(folder, more) as found:
        yield found


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic first"}, {"x-api-key": "firs"}]
)
def test_without_a_client_key_is_401_in_the_clients_form(
    guarded: Running, client: str, headers: dict[str, str]
) -> None:
    code, _, answer = guarded.request("POST", PATHS[client], BODY, headers)
    assert code == 401
    assert PROTOCOLS[client].parse_error(code, answer).kind == "auth"
    assert b"wrong" not in answer


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer first"}, ""),
        ({"authorization": "bearer second"}, ""),
        ({"x-api-key": "second"}, ""),
        ({"x-goog-api-key": "first"}, ""),
        ({}, "?key=first"),
    ],
)
def test_a_client_key_is_taken_where_any_client_puts_it(guarded: Running, headers: dict[str, str], query: str) -> None:
    assert guarded.request("GET", f"/v1/models{query}", b"", headers)[0] == 200


def test_a_body_without_a_key_is_not_waited_for(guarded: Running) -> None:
    assert status(talk(guarded, post(b"", "content-length: 1000000"))) == 401


def test_paths_that_are_not_served_are_said_in_the_clients_form(running: Running) -> None:
    found: dict[str, Any] = {}
    for path in ("/api/nothing", "/v1/nothing", "/v1beta/models/m:fly", "/v1/messages/batches"):
        code, _, answer = running.request("POST", path, b"{}")
        assert code == 404
        found[path] = json.loads(answer)
    assert isinstance(found["/api/nothing"]["error"], str)
    assert found["/v1/nothing"]["error"]["type"]
    assert found["/v1beta/models/m:fly"]["error"]["status"] == "NOT_FOUND"
    assert found["/v1/messages/batches"]["type"] == "error"
    expected = {
        ("GET", "/api/chat"): "POST",
        ("OPTIONS", "/v1/chat/completions"): "POST",
        ("PUT", "/v1/messages"): "POST",
        ("OPTIONS", "/v1beta/models/m:generateContent"): "POST",
        ("DELETE", "/v1/models"): "GET, HEAD",
        ("DELETE", "/v1/responses/resp_1/input_items"): "GET",
        **{
            (method, f"{base}/m:{verb}"): "POST"
            for method in ("GET", "DELETE")
            for base in ("/v1/models", "/v1beta/models", "/v1/tunedModels")
            for verb in ("generateContent", "streamGenerateContent", "countTokens")
        },
    }
    for (method, path), allowed in expected.items():
        code, headers, answer = running.request(method, path)
        assert (code, headers.get("allow")) == (405, allowed), (method, path)
        assert b"expected " + allowed.replace(", ", " or ").encode() in answer
        assert (b'"status"' in answer) == ("m:" in path), (method, path)  # Google's form


def test_a_large_body_comes_whole_in_whatever_pieces(tmp_path: Path) -> None:
    text = "".join(f"{number} " for number in range(500_000))
    body = json.dumps({"model": "via-openai-chat", "messages": [{"role": "user", "content": text}]}).encode()
    with gateway(tmp_path) as running, socket.create_connection(("127.0.0.1", running.gateway.port), 20) as connection:
        running.answer(stream_of("openai-chat", reply("text")))
        for fields in (("content-length: %d" % len(body),), ("transfer-encoding: chunked",)):
            head, _, _ = post(b"", *fields).partition(b"\r\n\r\n")
            whole = body if "length" in fields[0] else b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            connection.sendall(head + b"\r\n\r\n" + whole)
            answer = b""
            while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
                answer += connection.recv(65536)
            assert status(answer) == 200
            assert running.provider.requests[-1].json["messages"][0]["content"] == text


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("1.0", ["transfer-encoding: chunked"]),
        ("1.1", ["transfer-encoding: gzip, chunked"]),
        ("1.1", ["transfer-encoding: identity, chunked"]),
        ("1.1", ["transfer-encoding: ,chunked"]),
        ("1.1", ["transfer-encoding: x", "transfer-encoding: chunked"]),
        ("1.1", ["transfer-encoding: chunked", "transfer-encoding: chunked"]),
        ("1.1", ["transfer-encoding: chunked", "content-length: 5"]),
        ("0.9", ["content-length: 5"]),
        ("2.0", ["content-length: 5"]),
    ],
)
def test_a_doubtful_end_of_a_request_is_400_and_the_connection_is_closed(
    running: Running, version: str, fields: list[str]
) -> None:
    body = b"0\r\n\r\n" if "transfer" in fields[0] else b"12345"
    data = post(body, *fields).replace(b"HTTP/1.1", f"HTTP/{version}".encode(), 1)
    answer = talk(running, data + post(BODY, f"content-length: {len(BODY)}"))
    assert status(answer) == 400
    assert len(re.findall(rb"HTTP/1.1 \d", answer)) == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:3000"}, 200),
        ({"sec-fetch-site": "same-site"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({}, 200),
    ],
)
def test_a_picture_of_another_sites_page_is_not_served(running: Running, fields: dict[str, str], expected: int) -> None:
    assert running.request("GET", "/api/tags", headers=fields)[0] == expected
