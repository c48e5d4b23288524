"""What whoever runs the gateway sees of it: health, numbers, lines live, ids, traces, rate limits."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conversations import reply
from dragoman.gateway.pages.health import _MOST_LISTENERS
from dragoman.gateway.telemetry.log import Log
from dragoman.gateway.telemetry.record import Observer
from gateway.running import Running, gateway, stream_of, whole_of, wire
from gateway.telemetry.test_metrics import samples
from scripted import chunk, head, streamed, whole

KEY = "dragoman-a-key-of-a-client-that-nobody-guesses"


@contextmanager
def watched(folder: Path, more: str = "", **options: Any) -> Iterator[tuple[Running, list[dict[str, Any]]]]:
    """A gateway and the entries of its log."""
    log = Log(None)
    lines: list[dict[str, Any]] = []
    log.listeners.add(lambda line: lines.append(json.loads(line)))
    with gateway(folder, more, observer=Observer(None, log), **options) as running:
        yield running, lines


def ask(running: Running, model: str = "via-openai-chat", **headers: str) -> tuple[int, dict[str, str], bytes]:
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "canary-of-a-prompt"}]}
    return running.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)


def numbers(running: Running) -> dict[str, float]:
    status, headers, body = running.request("GET", "/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return samples(body)


def test_one_line_and_its_numbers_for_each_request(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, lines):
        running.answer(stream_of("openai-chat", reply("single")))
        assert ask(running, **{"x-request-id": "client-7"})[0] == 200
        found = numbers(running)
    (line,) = lines
    assert (line["kind"], line["outcome"], line["status"], line["stop"]) == ("request", "done", 200, "tool_use")
    assert (line["client"], line["route"], line["target"]) == ("openai-chat", "via-openai-chat", "openai-chat/model-1")
    assert [attempt["outcome"] for attempt in line["attempts"]] == ["done"]
    assert line["client_id"] == "client-7" and line["total_ms"] >= line["first_ms"] > 0
    labels = 'client="openai-chat",route="via-openai-chat",provider="openai-chat",outcome="done"'
    assert found[f"dragoman_requests_total{{{labels}}}"] == 1
    assert found['dragoman_attempts_total{provider="openai-chat",outcome="done",reason=""}'] == 1
    assert found['dragoman_first_event_seconds_count{client="openai-chat"}'] == 1
    assert found["dragoman_requests_under_way"] == 0
    assert found["dragoman_ready_workers"] == 1


def test_neither_prompt_nor_key_nor_arguments_are_told(tmp_path: Path) -> None:
    digest = __import__("hashlib").sha256(KEY.encode()).hexdigest()
    with watched(tmp_path, f'[server]\nkeys = ["sha256:{digest}"]') as (running, lines):
        running.answer(stream_of("openai-chat", reply("single")), whole(b'{"error":"canary-of-an-error"}', 500))
        bearer = {"authorization": f"Bearer {KEY}"}
        ask(running, **bearer)
        ask(running, **bearer)
        ask(running)
        _, _, text = running.request("GET", "/metrics", headers=bearer)
        assert running.request("GET", "/metrics")[0] == 401
        assert running.request("GET", "/tail")[0] == 401
        assert running.request("GET", "/livez")[0] == 200
    told = json.dumps(lines) + text.decode()
    assert [line["outcome"] for line in lines if line["kind"] == "request"] == ["done", "failed"]
    assert all(line["key"] == digest[:8] for line in lines if line["kind"] == "request")
    assert sum(line["kind"] == "refused" for line in lines) == 3
    for canary in (KEY, "canary", "Paris"):
        assert canary not in told


def test_connections_and_breakers_are_shown(tmp_path: Path) -> None:
    """Once a second they are looked at."""
    opened = 'dragoman_breaker_open{target="openai-chat/model-1"}'

    def wait_for(wanted: tuple[float, float]) -> None:
        until = time.monotonic() + 20
        while (numbers(running).get(opened), numbers(running).get("dragoman_upstream_connections")) != wanted:
            assert time.monotonic() < until
            time.sleep(0.02)

    with watched(tmp_path, "[http]\nretries = 0\n") as (running, _):
        running.answer(stream_of("openai-chat", reply("text")))
        assert ask(running)[0] == 200
        wait_for((0, 1))
        running.answer(["reset"])
        for _ in range(5):
            assert ask(running)[0] == 502
        wait_for((1, 0))


def test_thousands_of_made_up_names_are_few_series(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, lines):
        before = len(numbers(running))
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        for number in range(3_000):
            connection.request("POST", "/v1/chat/completions", json.dumps({"model": f"m-{number}", "messages": []}))
            connection.getresponse().read()
        connection.close()
        after = numbers(running)
    assert len(after) - before <= 50
    assert sum(value for name, value in after.items() if name.startswith("dragoman_requests_total")) == 3_000
    assert sum(line["kind"] == "request" for line in lines) < 1_000


def test_the_ids_of_client_and_provider_are_kept_and_the_trace_goes_on(tmp_path: Path) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    with watched(tmp_path) as (running, lines):
        data = wire("openai-chat", reply("text"))
        running.answer([head(200, "text/event-stream", "x-request-id: req-of-the-provider"), chunk(data), b"0\r\n\r\n"])
        _, headers, _ = ask(running, **{"x-request-id": "client-7", "traceparent": parent})
        assert running.provider.requests[0].headers["traceparent"] == parent
        ask(running, traceparent="made up")
        assert "traceparent" not in running.provider.requests[1].headers
    assert headers["x-client-request-id"] == "client-7"
    assert headers["x-request-id"] == lines[0]["id"] != "client-7"
    assert (lines[0]["provider_id"], lines[0]["trace"]) == ("req-of-the-provider", "a" * 32)


def test_health_says_yes_and_takes_no_other_method(running: Running) -> None:
    for path in ("/livez", "/readyz", "/startupz"):
        assert running.request("GET", path)[::2] == (200, b"ok\n")
        assert running.request("POST", path)[0] == 405
        assert running.request("GET", path, headers={"host": "evil.example"})[0] == 403


def test_a_listener_gets_the_lines_as_they_come(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, lines):
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        connection.request("GET", "/tail")
        response = connection.getresponse()
        assert response.getheader("content-type") == "application/x-ndjson"
        running.answer(stream_of("openai-chat", reply("text")))
        for _ in range(3):
            ask(running)
            line = json.loads(response.readline())
            assert line == lines[-1]
        running.run(running.gateway.drain(5))
        assert response.read() == b"\n"
        connection.close()


def test_a_listener_that_goes_is_forgotten(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, _):
        listeners = running.gateway.observer.log.listeners
        usual = len(listeners)
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        connection.request("GET", "/tail")
        connection.getresponse().close()
        connection.close()
        until = time.monotonic() + 10
        while len(listeners) > usual:
            assert time.monotonic() < until
            time.sleep(0.005)


def test_listeners_are_few(tmp_path: Path) -> None:
    def listen() -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        connection.request("GET", "/tail")
        return connection, connection.getresponse()

    with watched(tmp_path) as (running, _):
        usual = len(running.gateway.observer.log.listeners)
        opened = [listen() for _ in range(_MOST_LISTENERS)]
        assert [response.status for _, response in opened] == [200] * _MOST_LISTENERS
        connection, refused = listen()
        assert refused.status == 503 and refused.getheader("retry-after") == "15"
        assert b"expected at most" in refused.read()
        connection.close()
        assert len(running.gateway.observer.log.listeners) == usual + _MOST_LISTENERS
        for connection, response in opened:
            response.close()
            connection.close()
        until = time.monotonic() + 10
        while True:
            connection, response = listen()
            response.close()
            connection.close()
            if response.status == 200:
                break
            assert time.monotonic() < until
            time.sleep(0.005)


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat"])
def test_when_to_try_again_is_always_said(tmp_path: Path, status: int, path: str) -> None:
    with watched(tmp_path, "[http]\nretries = 0\n") as (running, _):
        running.answer(whole(b'{"error":{"message":"later"}}', status))
        body = {"model": "via-openai-chat", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
        _, headers, _ = running.request("POST", path, json.dumps(body).encode())
        assert int(headers["retry-after"]) >= 1
        running.answer(whole(b'{"error":{"message":"later"}}', status, "application/json", "retry-after: 17"))
        assert running.request("POST", path, json.dumps(body).encode())[1]["retry-after"] == "17"


def test_rate_limits_go_on_to_the_client_in_both_forms(tmp_path: Path) -> None:
    said = ("x-ratelimit-remaining-tokens: 149", "x-ratelimit-reset-tokens: 6m0s", "x-internal: no", "set-cookie: a=b")
    with watched(tmp_path) as (running, _):
        data = wire("openai-chat", reply("text"))
        running.answer([head(200, "text/event-stream", *said), chunk(data), b"0\r\n\r\n"])
        _, headers, _ = ask(running)
        answer = whole_of("openai-chat", reply("text"))[0]
        assert isinstance(answer, bytes)
        running.answer([answer.replace(b"\r\n\r\n", "".join(f"\r\n{line}" for line in said).encode() + b"\r\n\r\n", 1)])
        body = {"model": "via-openai-chat", "messages": [{"role": "user", "content": "Hi"}]}
        _, of_whole, _ = running.request("POST", "/v1/chat/completions", json.dumps(body).encode())
    for found in (headers, of_whole):
        assert (found["x-ratelimit-remaining-tokens"], found["x-ratelimit-reset-tokens"]) == ("149", "6m0s")
        assert (found["x-dragoman-remaining-tokens"], found["x-dragoman-reset-tokens"]) == ("149", "360")
        assert "x-internal" not in found and "set-cookie" not in found


def test_a_client_that_goes_is_cancelled(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, lines):
        running.answer([head(200), chunk(wire("openai-chat", reply("text"))[:430]), "hold"])
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        body = {"model": "via-openai-chat", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        response.close()
        connection.close()
        assert running.provider.client_gone.wait(20)
        until = time.monotonic() + 10
        while not lines:
            assert time.monotonic() < until
            time.sleep(0.005)
    assert [(line["outcome"], [one["outcome"] for one in line["attempts"]]) for line in lines] == [
        ("cancelled", ["cancelled"])
    ]


def test_streams_without_an_end_are_failures(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, lines):
        running.answer(streamed(wire("openai-chat", reply("text"))[:430]))
        ask(running)
    assert [(line["outcome"], line["error"], line["status"]) for line in lines] == [("failed", "connection", 200)]
