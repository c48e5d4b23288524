"""Fallback through the gateway: 135 failures that no client sees, and what it sees when every target fails."""

from __future__ import annotations

import http.client
import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cases import counter
from chains import CLOCKS, Bench, busy, running_bench, stream_of
from dragoman.client import prepare
from dragoman.events import Failure, Finish, Start, fold
from dragoman.gateway import relay
from dragoman.protocols import PROTOCOLS
from dragoman.types import Request
from failing import BROKEN, PLACES, Broken, steps
from for_each import for_each
from gateway.running import Running, gateway
from gateway.test_matrix import QUESTION, TOOLS
from profiles import one
from scripted import chunk, head


def route_name(broken: Broken) -> str:
    return f"r-{broken}"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running_bench(tmp_path_factory.mktemp("bench")) as found:
        yield found


@contextmanager
def running_with(bench: Bench, folder: Path, **options: str) -> Iterator[Running]:
    """A gateway with a route for each failure: its own first target, so that no circuit breaker helps."""
    routes = []
    for number, broken in enumerate(BROKEN):
        healthy = f"good-{broken.protocol}/model-1"
        routes.append(f'[routes."{route_name(broken)}"]\n'
                      f'targets = ["{broken.server}-{broken.protocol}/m{number}", "{healthy}"]')  # fmt: skip
    routes += [f'[routes."direct-{name}"]\ntargets = ["good-{name}/model-1"]' for name in PROTOCOLS]
    routes.append('[routes.lone]\ntargets = ["plain-openai-chat/lone"]\n[routes.once]\nretries = 0\n'
                  'targets = ["plain-openai-chat/once"]\n[routes.both]\n'
                  'targets = ["plain-openai-chat/one", "good-openai-chat/two"]\nretries = 0\n[routes.deaf]\n'
                  'targets = ["plain-anthropic-messages/deaf"]\n[routes.heard]\n'
                  'targets = ["plain-anthropic-messages/deaf", "good-gemini-generate/two"]\n'
                  '[routes.hears]\ntargets = ["plain-openai-chat/hears", "good-anthropic-messages/deaf"]')  # fmt: skip
    with gateway(folder, config=bench.config("\n".join(routes), **options)) as found:
        yield found


@pytest.fixture(scope="module", params=["mended", "passing"])
def running(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Running]:
    """Of kind "passing" takes all providers for clean, so that bytes pass where both sides speak one protocol."""
    lines = "clean = true" if request.param == "passing" else ""
    with running_with(bench, tmp_path_factory.mktemp("gateway"), lines=lines) as found:
        yield found


@pytest.fixture(scope="module")
def impatient(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_with(bench, tmp_path_factory.mktemp("gateway"), http=CLOCKS) as found:
        yield found


def send(running: Running, client: str, model: str, *, stream: bool = True) -> tuple[int, dict[str, str], bytes]:
    sent = PROTOCOLS[client].render_request(Request(model, (QUESTION,), TOOLS, stream=stream)).http
    prefix = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(client, "")
    path = sent.path if sent.path.startswith(("/v1", "/api")) else prefix + sent.path
    return running.request("POST", path, sent.body, {"content-type": "application/json", **sent.headers})


def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are counted from one and the time stands still, so that answers can be compared byte by byte."""
    monkeypatch.setattr(relay, "new_id", counter())
    monkeypatch.setattr(prepare, "new_id", counter())
    monkeypatch.setattr(relay.time, "time", itertools.repeat(1_750_000_000.0).__next__)


@for_each("broken", [each for each in BROKEN if each.failure != "stall"], ids=str)
def test_a_failure_before_the_first_word_changes_no_byte(
    broken: Broken, running: Running, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in one((True, False), str(broken)):
        compare_with_a_direct_run(running, bench, broken, monkeypatch, stream=stream)


@for_each("broken", [each for each in BROKEN if each.failure == "stall"], ids=str)
def test_a_stall_before_the_first_word_changes_no_byte(
    broken: Broken, impatient: Running, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare_with_a_direct_run(impatient, bench, broken, monkeypatch, stream=True)


def compare_with_a_direct_run(
    found: Running, bench: Bench, broken: Broken, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    client = broken.protocol
    bench.answer("good", stream_of(broken.protocol))
    with monkeypatch.context() as patched:
        fixed(patched)
        direct = send(found, client, f"direct-{broken.protocol}", stream=stream)
    if broken.server in ("plain", "tls"):
        bench.answer(broken.server, steps(broken))
    with monkeypatch.context() as patched:
        fixed(patched)
        answer = send(found, client, route_name(broken), stream=stream)
    assert answer[0] == 200
    assert without_name(answer[2], route_name(broken)) == without_name(direct[2], f"direct-{broken.protocol}")
    assert steady(answer[1]) == steady(direct[1])
    decoder = PROTOCOLS[client].decoder(new_id=counter())
    events = [*decoder.feed(answer[2]), *decoder.close()]
    assert [type(event) for event in events].count(Start) == 1


def steady(headers: dict[str, str]) -> dict[str, str]:
    """The headers that do not differ from request to request."""
    varying = ("request-id", "content-length", "date", "processing-ms")
    return {name: value for name, value in headers.items() if not name.endswith(varying)}


def without_name(body: bytes, name: str) -> bytes:
    """Stored responses have an id of their own, each."""
    return re.sub(rb"\bresp_\w{20,}", b"ID", body.replace(name.encode(), b"NAME"))


# ---------------------------------------------------------------- when nothing is left


@for_each("client", PROTOCOLS)
@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_the_last_failure_reaches_the_client_in_its_form(
    client: str, stream: bool, running: Running, bench: Bench
) -> None:
    reset(running)
    bench.answer("plain", busy(status=500))
    bench.answer("good", busy("retry-after: 9", words="patience, please"))
    status, headers, body = send(running, client, "both", stream=stream)
    failure = PROTOCOLS[client].parse_error(status, body)
    assert (status, failure.kind, headers["retry-after"]) == (429, "rate", "9")
    assert headers["x-should-retry"] == "false", "SDKs would try again what was tried again here"
    assert "patience, please" in failure.message
    assert (len(bench.plain.requests), len(bench.good.requests)) == (1, 1)


def test_tries_do_not_multiply(running: Running, bench: Bench) -> None:
    reset(running)
    bench.answer("plain", busy("retry-after-ms: 5"))
    status, headers, _ = send(running, "openai-chat", "lone")
    assert (status, headers["x-should-retry"], len(bench.plain.requests)) == (429, "false", 3)
    bench.answer("plain", busy("retry-after: 5"))
    status, headers, _ = send(running, "openai-chat", "once")
    assert (status, headers["retry-after"], len(bench.plain.requests)) == (429, "5", 1)
    assert "x-should-retry" not in headers, "nobody tries it here"


def test_a_wait_that_is_too_long_is_passed_on_at_once(running: Running, bench: Bench) -> None:
    reset(running)
    bench.answer("plain", busy("retry-after: 61"))
    status, headers, _ = send(running, "anthropic-messages", "lone")
    assert (status, headers["retry-after"], len(bench.plain.requests)) == (429, "61", 1)


def test_a_client_that_goes_while_the_next_try_is_waited_for(running: Running, bench: Bench) -> None:
    reset(running)
    bench.answer("plain", busy("retry-after: 50"))
    connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=10)
    body = json.dumps({"model": "lone", "messages": [{"role": "user", "content": "Hi"}], "stream": True})
    connection.request("POST", "/v1/chat/completions", body)
    wait_for(lambda: bool(bench.plain.requests))
    connection.close()
    wait_for(lambda: not running.gateway._connections)
    assert len(bench.plain.requests) == 1


@for_each("client", PROTOCOLS)
def test_after_the_first_word_an_error_and_no_splice(client: str, running: Running, bench: Bench) -> None:
    reset(running)
    bench.answer("plain", [*stream_of("openai-chat")[:-2], "close"])
    bench.answer("good", [head(), chunk(b""), "close"])
    status, _, body = send(running, client, "both")
    decoder = PROTOCOLS[client].decoder(new_id=counter())
    events = [*decoder.feed(body), *decoder.close()]
    assert status == 200
    assert isinstance(events[-1], Failure)
    assert not bench.good.requests


@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_a_question_that_a_target_cannot_take_goes_to_the_next(stream: bool, running: Running, bench: Bench) -> None:
    reset(running)
    bench.answer("plain", busy(status=500))
    bench.answer("good", stream_of("gemini-generate"))
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    body = {"messages": [{"role": "user", "content": [sound]}], "stream": stream}
    found = {}
    for route in ("deaf", "heard"):
        asked = json.dumps({**body, "model": route}).encode()
        status, _, answer = running.request("POST", "/v1/chat/completions", asked)
        found[route] = (status, b"can take nothing of what is asked (messages[0].parts[0]" in answer)
    assert found == {"deaf": (400, True), "heard": (200, False)}
    assert (len(bench.plain.requests), len(bench.good.requests)) == (0, 1)


def test_a_target_that_cannot_take_the_question_is_not_the_last(running: Running, bench: Bench) -> None:
    """So the one before it is asked again after a failure, and though its circuit breaker is open."""
    reset(running)
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    body = json.dumps({"model": "hears", "messages": [{"role": "user", "content": [sound]}], "stream": True}).encode()
    bench.answer("plain", busy("retry-after: 0"), stream_of("openai-chat"))
    assert running.request("POST", "/v1/chat/completions", body)[0] == 200
    bench.answer("plain", busy("retry-after: 30"), stream_of("openai-chat"))
    bench.answer("good", stream_of("anthropic-messages"))
    assert send(running, "openai-chat", "hears")[0] == 200
    assert running.request("POST", "/v1/chat/completions", body)[0] == 200
    assert (len(bench.plain.requests), len(bench.good.requests)) == (2, 1)


def reset(running: Running) -> None:
    """Forget what came before of all targets."""
    from dragoman.routing.target_health import HealthTable

    running.gateway._client.target_states.health_table = HealthTable()


def wait_for(condition: Any) -> None:
    import time

    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("works", [True, False], ids=["answers", "fails"])
def test_a_target_may_change_after_a_keepalive_took_the_head_along(
    client: str, works: bool, bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A sign of life says nothing of the answer, so it commits nothing."""
    route = f'[routes.r]\ntargets = ["plain-{client}/one", "good-{client}/two"]\nretries = 0'
    config = bench.config(route, http=CLOCKS)
    bench.answer("plain", steps(Broken("stall", PLACES[1], client)))
    bench.answer("good", stream_of(client) if works else busy(status=500, words="something broke"))
    with gateway(tmp_path_factory.mktemp("gateway"), config=config, keepalive_seconds=0.1) as found:
        status, _, body = send(found, client, "r")
    decoder = PROTOCOLS[client].decoder(new_id=counter())
    events = [*decoder.feed(body), *decoder.close()]
    assert status == 200
    assert isinstance(events[-1], Finish if works else Failure)
    assert ("Let me look." in fold(events).text) is works
