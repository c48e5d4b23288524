"""The front door: every route stands behind the guard, and bodies are bounded before anybody is asked."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import reply
from dragoman.codec.framing.outline import is_deeper, outlines, room_left
from dragoman.errors import WireError
from dragoman.gateway import request_bodies
from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Limits
from dragoman.gateway.pages.health import HEALTH
from dragoman.gateway.request_bodies import USUAL_BOUNDS, BodyBounds, check_shape, unpacked, whole_characters
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from gateway.running import Running, gateway, whole_of
from gateway.server.test_connection import PATHS

LIMIT = 32 * 1024 * 1024
DEEPEST, MOST_TOOLS, LARGEST_MEDIA = USUAL_BOUNDS.depth, USUAL_BOUNDS.tools, USUAL_BOUNDS.media


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "key").write_text("a key of this gateway", encoding="utf-8")
    with gateway(folder, '[server]\nkeys = ["file:key"]\n') as found:
        yield found


def open_routes(running: Running, headers: dict[str, str]) -> list[str]:
    """The routes that let such a request in."""
    found = []
    for method, pattern in running.gateway.routes:
        path = pattern.replace("{model}", "via-openai-chat")
        with closing(http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)) as connection:
            connection.request(method, path, b"{}" if method == "POST" else None, headers)
            status = connection.getresponse().status  # one of them streams without end
        if status not in (401, 403):
            found.append(f"{method} {pattern}")
    return found


def test_every_route_is_behind_the_guard(guarded: Running) -> None:
    guarded.provider.requests.clear()
    assert len(guarded.gateway.routes) > 60
    assert {path.removeprefix("GET ") for path in open_routes(guarded, {})} == HEALTH
    key = {"authorization": "Bearer a key of this gateway"}
    assert open_routes(guarded, key | {"host": "evil.example"}) == []
    assert open_routes(guarded, key | {"origin": "https://evil.example"}) == []
    assert guarded.provider.requests == []


def test_the_test_sees_a_missing_guard(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "judge", lambda self, head, *, needs_key=True: None)
    found = set(open_routes(guarded, {"host": "evil.example"}))
    assert found == {f"{method} {path}" for method, path in guarded.gateway.routes} - {"GET /metrics"}  # for admins


# ---------------------------------------------------------------- shape


def nested(levels: int, kind: str) -> str:
    return "[" * levels + "]" * levels if kind == "list" else '{"a":' * levels + "1" + "}" * levels


def body_with(client: str, value: str) -> bytes:
    """A request in a client's protocol with such a value in it, one level down."""
    fields: dict[str, Any] = {"model": "via-openai-chat", "metadata": "VALUE"}
    name, message = "messages", {"role": "user", "content": "Hi"}
    if client == "openai-responses":
        fields["input"] = "Hi"
    elif client == "gemini-generate":
        name, message = "contents", {"role": "user", "parts": [{"text": "Hi"}]}
    if client == "anthropic-messages":
        fields["max_tokens"] = 10
    if "input" not in fields:
        fields[name] = [message]
    return json.dumps(fields).replace('"VALUE"', value).encode()


def path_of(client: str) -> str:
    return PATHS[client].replace("/models/m:", "/models/via-openai-chat:")


@for_each("kind", ["list", "object"])
@for_each("client", PROTOCOLS)
def test_json_that_is_too_deep_is_400_in_the_clients_form(running: Running, client: str, kind: str) -> None:
    running.answer(whole_of("openai-chat", reply("text")))
    for levels, expected in ((DEEPEST - 2, 200), (DEEPEST - 1, 200), (DEEPEST, 400), (700, 400), (50_000, 400)):
        running.provider.requests.clear()
        body = body_with(client, nested(levels, kind))
        code, _, answer = running.request("POST", path_of(client), body)
        assert code == expected, (levels, answer[:200])
        assert bool(running.provider.requests) == (expected == 200)
        if expected == 400:
            assert f"at most {DEEPEST} levels" in PROTOCOLS[client].parse_error(code, answer).message


def tools_of(client: str, count: int) -> list[Any]:
    schema = {"type": "object", "properties": {}}
    named = [{"name": f"tool_{number}", "description": "", "parameters": schema} for number in range(count)]
    match client:
        case "gemini-generate":
            return [{"functionDeclarations": named[:5]}, {"functionDeclarations": named[5:]}]
        case "anthropic-messages":
            return [{"name": tool["name"], "input_schema": schema} for tool in named]
        case "openai-responses":
            return [{"type": "function", **tool} for tool in named]
        case _:
            return [{"type": "function", "function": tool} for tool in named]


@for_each("client", PROTOCOLS)
def test_too_many_tools_are_400_in_the_clients_form(running: Running, client: str) -> None:
    running.answer(whole_of("openai-chat", reply("text")))
    for count, expected in ((MOST_TOOLS - 1, 200), (MOST_TOOLS, 200), (MOST_TOOLS + 1, 400)):
        running.provider.requests.clear()
        body = json.loads(body_with(client, "{}")) | {"tools": tools_of(client, count)}
        code, _, answer = running.request("POST", path_of(client), json.dumps(body).encode())
        assert (code, bool(running.provider.requests)) == (expected, expected == 200), answer[:200]
        if expected == 400:
            assert f"at most {MOST_TOOLS} tools" in PROTOCOLS[client].parse_error(code, answer).message


@for_each("more", [-3, 0, 3])
def test_files_are_bounded(more: int) -> None:
    data = b"A" * (LARGEST_MEDIA // 3 * 4 + more)
    body = b'{"a":"b","image":"%b","c":"d"}' % data
    if more <= 0:
        check_shape(body)
        return
    with pytest.raises(WireError) as problem:
        check_shape(body)
    assert problem.value.status == 413


def test_brackets_in_text_do_not_count() -> None:
    check_shape(json.dumps({"messages": [{"content": "[{" * 5_000 + '\\"' * 40 + "]" * 300}] * 3}).encode())


@for_each("body", [b"", b"[", b"nonsense", b'{"a":' * 90, b"\xff" * 300])
def test_what_is_no_json_is_left_to_the_parser(body: bytes) -> None:
    check_shape(body)


def test_deep_json_that_only_a_lenient_reader_takes_is_too_deep_too() -> None:
    with pytest.raises(WireError, match="levels"):
        check_shape(b'{"a":"\x01","b":' + nested(DEEPEST, "list").encode() + b"}")


def outline_of(body: bytes) -> bytes:
    """Brackets and commas outside strings, byte by byte."""
    found, in_string, escaped = bytearray(), False, False
    for byte in body:
        if in_string:
            in_string, escaped = escaped or byte != ord('"'), not escaped and byte == ord("\\")
        elif byte == ord('"'):
            in_string, escaped = True, False
        elif byte in b",[]{}":
            found.append(byte)
    return bytes(found)


@given(st.text('"\\[]{},a', max_size=40).map(str.encode), st.integers(1, 9))
def test_strings_are_told_apart_in_pieces_of_any_size(body: bytes, piece: int) -> None:
    assert b"".join(outlines(body, piece=piece)) == outline_of(body)


@given(st.text('"\\[]{},a', max_size=40).map(str.encode), st.integers(1, 6))
def test_levels_are_counted_as_they_are(body: bytes, most: int) -> None:
    depth, deepest = 0, 0
    for byte in outline_of(body):
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    assert is_deeper(body, most) is (deepest > most)


@given(st.recursive(st.none() | st.text('",[]{}\\', max_size=5), lambda inner: st.lists(inner) | st.dictionaries(
    st.text('",[]{}\\', max_size=3), inner), max_leaves=30), st.integers(1, 40))  # fmt: skip
def test_values_are_counted_as_they_are(value: Any, most: int) -> None:
    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(count, inner)) + (isinstance(value, dict | list) and not value)  # an empty one counts as two

    body = json.dumps(value).encode()
    if count(value) <= most:
        check_shape(body, BodyBounds(values=most))
    elif len(body) > 2 * most:
        with pytest.raises(WireError, match=f"at most {most} values"):
            check_shape(body, BodyBounds(values=most))


RUNS = st.tuples(st.sampled_from((b"{", b"[", b",", b"text ")), st.sampled_from((1, 9, 3_000, 20_000)))


@given(st.lists(RUNS, max_size=6), st.integers(0, 30_000))
def test_bytes_are_counted_as_they_are(runs: list[tuple[bytes, int]], most: int) -> None:
    text = b"".join(run * times for run, times in runs)
    marks = (b",", b"{", b"[")
    left = most - sum(map(text.count, marks))
    found = room_left(text, marks, most)
    assert found == left if left >= 0 else found < 0


@for_each("gathered", ["functionDeclarations", "function_declarations"])
def test_tools_are_counted_within_what_gathers_them(gathered: str) -> None:
    def body(*tools: object) -> bytes:
        return json.dumps({"tools": tools}).encode()

    inner = {gathered: [{"name": "a"}] * 7}
    for others in ([{"name": "b"}], ["no object"]):  # one of which is read with the others, and one apart
        check_shape(body(inner, *others), BodyBounds(tools=8))
        with pytest.raises(WireError, match="at most 7 tools"):
            check_shape(body(inner, *others), BodyBounds(tools=7))


def test_each_bound_counts_alone() -> None:
    """The quick look at the brackets goes by the lowest of them."""
    messages = json.dumps({"messages": [{"content": "a"}] * 3}).encode()
    deep = json.dumps({"a": [[[0]]]}).encode()
    for bounds, body, wanted in (
        (BodyBounds(messages=2), messages, "at most 2 messages"),
        (BodyBounds(tools=2), json.dumps({"tools": [{"name": "a"}] * 3}).encode(), "at most 2 tools"),
        (BodyBounds(depth=3), deep, "at most 3 levels"),
    ):
        check_shape(body)
        with pytest.raises(WireError, match=wanted):
            check_shape(body, bounds)


def test_half_characters_are_replaced_and_nothing_else() -> None:
    for text, wanted in (
        (r"a\ud83d", r"a\ufffd"), (r"\ude00\ud83d\ude00", r"\ufffd\ud83d\ude00"), (r"\\ud83d", None),
        (r"\ud83d\ude00", None), (r"\n", None), ("ud83d", None),
    ):  # fmt: skip
        body = b'{"a":"%b"}' % text.encode()
        found = whole_characters(body)
        assert found is body if wanted is None else found == body.replace(text.encode(), wanted.encode()), text


def test_half_characters_are_found_wherever_the_search_is_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "_STEP", 4)
    for size in range(9):
        assert whole_characters(b'"%b\\ud83d"' % (b"a" * size)) == b'"%b\\ufffd"' % (b"a" * size), size


def test_values_of_arguments_in_a_text_count_too() -> None:
    """They are read as JSON where a call is checked, or given to a provider that takes objects."""
    few = BodyBounds(values=100)
    for values, escaped in ((80, "b"), (160, "b"), (160, '\\" \\\\')):
        arguments = json.dumps({"a": [{}] * (values // 2), "b": escaped})
        calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}]
        for body in (
            {"messages": [{"role": "assistant", "tool_calls": calls}]},
            {"input": [{"type": "function_call", "name": "f", "arguments": arguments}] * 2, "arguments": None},
        ):
            data = json.dumps(body).encode()
            if values > 100 or "input" in body:
                with pytest.raises(WireError, match="at most 100 values"):
                    check_shape(data, few)
            else:
                check_shape(data, few)
    check_shape(json.dumps({"messages": [{"content": '"arguments": "' + "[" * 200}]}).encode(), few)  # words


def test_too_many_values_are_413_in_the_clients_form(tmp_path: Path) -> None:
    with gateway(tmp_path, limits=Limits(shape=BodyBounds(values=1_000))) as running:
        for client in PROTOCOLS:
            body = body_with(client, "[" + "1," * 2_000 + "1]")
            code, _, answer = running.request("POST", path_of(client), body)
            assert (code, running.provider.requests) == (413, [])
            assert "at most 1000 values" in PROTOCOLS[client].parse_error(code, answer).message


# ---------------------------------------------------------------- names

ODD_NAMES = ["../../v1/evil", "..", ".", "a/../b", "a//b", "./a", "a/.", "a/", "%2e%2e/x", "models/../../x"]


@for_each("provider", PROTOCOLS)
@for_each("name", ODD_NAMES)
def test_a_name_never_changes_the_providers_path(running: Running, provider: str, name: str) -> None:
    """Clients choose a name, never a URL: with the operator's key any path of the provider would be theirs."""
    running.answer(whole_of(provider, reply("text")))
    for client in PROTOCOLS:
        body = json.loads(body_with(client, "{}")) | {"model": f"{provider}/{name}"}
        path = PATHS[client].replace("/models/m:", f"/models/{provider}/{name}:")
        for taken in (path, PATHS[client].replace("/models/m:", f"/models/{provider}%2F{quote(name, safe='')}:")):
            code, _, answer = running.request("POST", taken, json.dumps(body).encode())
            seen = [request.path for request in running.provider.requests]
            assert not any(segment in (".", "..", "") for path in seen for segment in unquote(path).split("/")[1:])
            assert code in (400, 404) or "%" in name, answer[:200]
    for path in ("/v1/embeddings", "/api/embed", f"/v1beta/models/{provider}/{name}:embedContent"):
        body = {"model": f"{provider}/{name}", "input": "x", "content": {"parts": [{"text": "x"}]}}
        running.request("POST", path, json.dumps(body).encode())
    seen = [request.path for request in running.provider.requests]
    assert not any(segment in (".", "..", "") for path in seen for segment in unquote(path).split("/")[1:])


def test_dots_within_a_name_are_none(running: Running) -> None:
    running.answer(whole_of("gemini-generate", reply("text")))
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}).encode()
    path = "/v1beta/models/gemini-generate/gemini-2.5-pro..x:generateContent"
    assert running.request("POST", path, body)[0] == 200
    assert running.provider.requests[0].path == "/v1beta/models/gemini-2.5-pro..x:generateContent"


# ---------------------------------------------------------------- packed bodies


def test_a_bomb_is_refused_at_once() -> None:
    machine = zlib.compressobj(9, wbits=31)
    packed = b"".join(machine.compress(b" " * 1_000_000) for _ in range(300)) + machine.flush()
    begun = time.process_time()
    with pytest.raises(WireError, match="times its packed size") as problem:
        unpacked(packed, "gzip", LIMIT)
    assert problem.value.status == 413
    assert len(packed) < 1_000_000
    assert time.process_time() - begun < 5


def test_a_small_body_may_be_packed_well() -> None:
    """Growth counts only once the body is large."""
    assert unpacked(gzip.compress(b" " * 500_000), "gzip", LIMIT) == b" " * 500_000


def test_one_layer_and_nothing_behind_it() -> None:
    inner = gzip.compress(b"{}")
    assert unpacked(gzip.compress(inner), "gzip", LIMIT) == inner
    for body, encoding, status in (
        (gzip.compress(inner), "gzip, gzip", 415),
        (b"x", "br", 415),
        (inner + b"more", "gzip", 400),
        (inner + inner, "gzip", 400),
        (inner[:-4], "gzip", 400),
        (b"", "gzip", 400),
        (b"nonsense", "deflate", 400),
    ):
        with pytest.raises(WireError) as problem:
            unpacked(body, encoding, LIMIT)
        assert problem.value.status == status, body


def test_zstd_is_read_where_python_can() -> None:
    """Python has it since 3.14; before that it is refused by its name."""
    try:
        from compression import zstd
    except ModuleNotFoundError:
        with pytest.raises(WireError, match="gzip, deflate or none, got 'zstd'"):
            unpacked(b"(\xb5/\xfd", "zstd", LIMIT)
        return
    assert unpacked(zstd.compress(b"{}" * 1_000), "zstd", LIMIT) == b"{}" * 1_000
    with pytest.raises(WireError) as problem:
        unpacked(zstd.compress(b" " * 64_000_000), "zstd", LIMIT)
    assert problem.value.status == 413


# ---------------------------------------------------------------- what is written of it


def test_every_route_is_in_the_reference(guarded: Running) -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "gateway-paths.md").read_text(encoding="utf-8")
    written = set(re.findall(r"`(GET|POST|DELETE) (/[^`]*)`", text))
    served = {
        (method, pattern)
        for method, pattern in guarded.gateway.routes
        if method != "HEAD"
        and not pattern.startswith(("/v1/models/{model}:", "/v1/tunedModels", "/v1beta/tunedModels", "/v1beta1/"))
    }
    assert served == written
