"""Whole answers that pass take the shortest way; what is not plain goes on by the usual one, asked once."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.running import Running, gateway
from scripted import whole

TABLES = '[models."openai-chat/model-1"]\nclean = true\n[models."openai-chat/model-2"]\nclean = true\n'
TWO = '[routes.two]\ntargets = ["openai-chat/model-1", "openai-chat/model-2"]\n'
PATH = "/v1/chat/completions"


@pytest.fixture
def straight(tmp_path: Path) -> Iterator[Running]:
    """A gateway whose provider is declared clean."""
    with gateway(tmp_path, TABLES + TWO) as found:
        yield found


def ask(running: Running, model: str = "via-openai-chat") -> tuple[int, dict[str, str], bytes]:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()
    return running.request("POST", PATH, body, {"content-type": "application/json"})


def body_of(text: str = "Hello", **message: Any) -> bytes:
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if message else "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": usage}).encode()


def metrics(running: Running) -> dict[str, float]:
    text = running.request("GET", "/metrics")[2].decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_its_bytes_headers_and_counts(straight: Running) -> None:
    straight.answer(whole(body_of(), 200, "application/json", "x-request-id: req_7", "x-ratelimit-remaining-tokens: 9"))
    status, headers, body = ask(straight)
    assert (status, body) == (200, body_of())
    assert headers["x-ratelimit-remaining-tokens"] == headers["x-dragoman-remaining-tokens"] == "9"
    found = metrics(straight)
    assert found['dragoman_tokens_total{provider="openai-chat",kind="input"}'] == 3
    assert found['dragoman_attempts_total{provider="openai-chat",outcome="done",reason=""}'] == 1
    labels = 'client="openai-chat",route="via-openai-chat",provider="openai-chat",outcome="done"'
    assert found[f"dragoman_requests_total{{{labels}}}"] == 1


BUSY = whole(b'{"error": {"message": "busy"}}', 503)


@pytest.mark.parametrize("first", [BUSY, ["close"], [*whole(body_of())[0:1], "close"]], ids=["503", "gone", "whole"])
def test_the_second_target_is_asked_when_the_first_fails(straight: Running, first: list[Any]) -> None:
    cut = [first[0][:-9], "close"] if first[0] != "close" and first is not BUSY else first
    straight.answer(cut, whole(body_of("second")))
    status, _, body = ask(straight, "two")
    assert (status, body) == (200, body_of("second"))
    assert [seen.json["model"] for seen in straight.provider.requests] == ["model-1", "model-2"]
    found = metrics(straight)
    failed = sum(value for name, value in found.items() if "attempts_total" in name and 'outcome="failed"' in name)
    assert failed == 1


def test_another_target_first_passes_nothing_by_its_neighbours_leave(tmp_path: Path) -> None:
    """The one that is declared first is clean; the cheaper one, which is asked first, is not."""
    clean = '[models."openai-chat/model-1"]\nclean = true\n'
    prices = "".join(
        f'[prices."openai-chat/model-{number}"]\ninput = {price}\noutput = {price}\n'
        for number, price in ((1, 2.0), (2, 1.0))
    )
    with gateway(tmp_path, clean + prices + TWO + 'order = "price"\n') as running:
        running.answer(whole(body_of(), 200, "application/json"))
        status, _, body = ask(running, "two")
        assert running.provider.requests[0].json["model"] == "model-2"
    assert status == 200 and body != body_of()
    assert json.loads(body)["choices"][0]["message"]["content"] == "Hello"


def test_a_target_whose_circuit_breaker_is_open_is_passed_over(straight: Running) -> None:
    breaker = straight.gateway._client.target_states.health_table.of("openai-chat/model-1").breaker
    assert breaker.told_open(time.monotonic(), age=0.0)
    straight.answer(whole(body_of("second")))
    status, _, body = ask(straight, "two")
    assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, "second")
    assert [seen.json["model"] for seen in straight.provider.requests] == ["model-2"]


def test_a_target_that_is_asked_in_another_way_passes_nothing(straight: Running) -> None:
    straight.gateway._client.target_states.refused_tools("openai-chat/model-1")
    straight.answer(whole(body_of(), 200, "application/json"))
    status, _, body = ask(straight)
    assert status == 200 and body != body_of()


def test_a_request_that_was_mended_is_not_sent_as_it_came(tmp_path: Path) -> None:
    """Messages are sent as they came where nothing of them changes; a number in quotes is mended."""
    with gateway(tmp_path) as running:
        for temperature, is_kept in (("0.5", True), ('"0.5"', False)):
            part = '{"type":  "text", "text": "hi", "cache_control": {"type": "ephemeral"}}'
            message = f'{{"role": "user", "content": [{part}]}}'
            settings = f'"max_tokens": 9, "temperature": {temperature}'
            body = f'{{"model": "anthropic-messages/model-1", {settings}, "messages": [{message}]}}'
            running.answer(whole(b'{"type": "error"}', 400))
            running.request("POST", "/v1/messages", body.encode(), {"content-type": "application/json"})
            assert (part.encode() in running.provider.requests[0].body) == is_kept


def test_one_target_is_asked_again_within_its_tries(tmp_path: Path) -> None:
    with gateway(tmp_path, TABLES + "[http]\nretries = 1\n") as running:
        running.answer(BUSY, whole(body_of()))
        assert ask(running)[::2] == (200, body_of())
        assert len(running.provider.requests) == 2


def test_what_is_odd_is_mended_without_asking_again(straight: Running) -> None:
    call = {"id": "call_1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    straight.answer(whole(body_of(tool_calls=[call])))
    status, _, body = ask(straight)
    assert status == 200
    assert json.loads(body)["choices"][0]["message"]["tool_calls"][0]["type"] == "function"
    assert len(straight.provider.requests) == 1
    assert metrics(straight)['dragoman_deviations_total{provider="openai-chat",code="missing-type"}'] == 1


def test_a_large_answer_passes_too(straight: Running) -> None:
    large = body_of("x" * 3_000_000)
    straight.answer(whole(large))
    assert ask(straight)[::2] == (200, large)
    assert len(straight.provider.requests) == 1


def test_a_clock_that_runs_out_is_504(tmp_path: Path) -> None:
    with gateway(tmp_path, TABLES + "[http]\nretries = 0\ntotal_seconds = 0.2\n") as running:
        running.answer(["hold"])
        status, _, body = ask(running)
        assert status == 504, body
        assert running.provider.client_gone.wait(10)
        assert len(running.provider.requests) == 1


def test_a_client_that_goes_takes_the_request_with_it(straight: Running) -> None:
    straight.answer(["hold"])
    connection = http.client.HTTPConnection("127.0.0.1", straight.gateway.port, timeout=20)
    connection.request("POST", PATH, json.dumps({"model": "two", "messages": []}), {"content-type": "application/json"})
    while not straight.provider.requests:
        time.sleep(0.01)
    connection.close()
    assert straight.provider.client_gone.wait(10)
    cancelled = 'dragoman_attempts_total{provider="openai-chat",outcome="cancelled",reason=""}'
    while cancelled not in metrics(straight):
        time.sleep(0.01)
    assert len(straight.provider.requests) == 1


def test_at_the_end_of_the_gateway_it_is_told(tmp_path: Path) -> None:
    with gateway(tmp_path, TABLES) as running:
        running.answer(["hold"])
        answers: list[tuple[int, dict[str, str], bytes]] = []
        asking = threading.Thread(target=lambda: answers.append(ask(running)))
        asking.start()
        while not running.provider.requests:
            time.sleep(0.01)
        running.run(running.gateway.drain(0.1))
        asking.join(10)
        [(status, headers, body)] = answers
        assert (status, headers["retry-after"]) == (503, "1")
        assert "shut down" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_clients_protocol_cannot_say_of_an_answer_is_counted(running: Running, stream: bool) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop", "odd": {"a": 1}}
    body = json.dumps({"id": "c", "model": "m", "choices": [choice], "system_fingerprint": "fp"}).encode()
    running.answer(whole(body, 200, "application/json"))
    name = 'dragoman_deviations_total{provider="openai-chat",code="untranslated"}'
    before = metrics(running).get(name, 0)
    asked = {"model": "via-openai-chat", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    status, _, _ = running.request(
        "POST", "/v1/messages", json.dumps({**asked, "stream": stream}).encode(), {"content-type": "application/json"}
    )
    assert status == 200
    assert metrics(running)[name] - before == 2
