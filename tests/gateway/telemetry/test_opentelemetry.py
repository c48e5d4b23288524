"""Spans and metrics of the GenAI conventions: their names, what they hold, what they never hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics, trace

from conversations import reply
from dragoman.gateway.telemetry.opentelemetry import OpenTelemetry
from dragoman.gateway.telemetry.record import Observer
from dragoman.protocols import PROTOCOLS
from dragoman.types import Params, Request
from gateway.running import Running, gateway, stream_of
from gateway.sdk import Meter, Tracer
from gateway.test_matrix import QUESTION
from scripted import whole


@contextmanager
def traced(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> Iterator[tuple[Running, Tracer, Meter]]:
    tracer, meter = Tracer(), Meter()
    monkeypatch.setattr(trace, "get_tracer", lambda name: tracer)
    monkeypatch.setattr(metrics, "get_meter", lambda name: meter)
    observer = Observer(telemetry=OpenTelemetry(address="127.0.0.1", port=4141))
    with gateway(folder, more, observer=observer) as running:
        yield running, tracer, meter


def ask(running: Running, model: str, **headers: str) -> int:
    body = {
        "model": model, "stream": True, "max_tokens": 77,
        "messages": [{"role": "user", "content": "canary-of-a-prompt"}],
    }  # fmt: skip
    return running.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)[0]


def test_a_span_and_metrics_of_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with traced(tmp_path, monkeypatch) as (running, tracer, meter):
        running.answer(stream_of("anthropic-messages", reply("single")))
        parent = f"00-{'a' * 32}-{'b' * 16}-01"
        assert ask(running, "via-anthropic-messages", traceparent=parent) == 200
        (span,) = tracer.spans
        sent = running.provider.requests[0].headers["traceparent"]
    assert (span.name, span.kind, span.is_ended) == ("chat model-1", trace.SpanKind.CLIENT, True)
    assert span.parent is not None and f"{span.parent.trace_id:032x}" == "a" * 32
    assert sent == f"00-{'a' * 32}-{1:016x}-01"
    wanted: dict[str, Any] = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic-messages",
        "gen_ai.request.model": "model-1", "gen_ai.request.stream": True, "gen_ai.request.max_tokens": 77,
        "gen_ai.response.finish_reasons": ("tool_use",), "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 34, "server.address": "127.0.0.1", "server.port": 4141,
        "dragoman.outcome": "done", "dragoman.attempts": 1, "dragoman.route": "via-anthropic-messages",
    }  # fmt: skip
    assert {name: span.attributes[name] for name in wanted} == wanted
    assert "error.type" not in span.attributes
    told = json.dumps([span.attributes, [one.values for one in meter.histograms.values()]])
    assert "canary" not in told and "Paris" not in told
    tokens = meter.histograms["gen_ai.client.token.usage"]
    assert [(amount, labels["gen_ai.token.type"]) for amount, labels in tokens.values] == [
        (120, "input"),
        (34, "output"),
    ]
    assert (tokens.bounds[0], tokens.bounds[-1]) == (1, 67_108_864)
    names = {"gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk"}
    names |= {"gen_ai.server.request.duration", "gen_ai.server.time_to_first_token"}
    assert all(len(meter.histograms[name].values) == 1 for name in names)


@pytest.mark.parametrize("protocol", ["ollama-chat", "openai-chat", "openai-responses", "anthropic-messages"])
def test_the_limit_of_an_answer_is_told_when_its_bytes_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Not in Gemini's: of a request whose model stands in the path nothing is looked at."""
    asked = Request(f"via-{protocol}", (QUESTION,), params=Params(max_tokens=77))
    table = f'[models."{protocol}/model-1"]\nclean = true\n'
    with traced(tmp_path, monkeypatch, table) as (running, tracer, _):
        running.answer(stream_of(protocol, reply("text")))
        rendered = PROTOCOLS[protocol].render_request(asked).http
        body = json.loads(rendered.body) | ({"store": False} if protocol == "openai-responses" else {})
        body["lab_field"] = 1.0
        path = rendered.path if rendered.path.startswith(("/v1", "/api")) else f"/v1{rendered.path}"
        assert running.request("POST", path, json.dumps(body).encode())[0] == 200
        assert running.provider.requests[0].json["lab_field"] == 1.0
        (span,) = tracer.spans
    assert span.attributes["gen_ai.request.max_tokens"] == 77


def test_a_failure_has_its_kind_and_a_made_up_name_is_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with traced(tmp_path, monkeypatch) as (running, tracer, meter):
        running.answer(whole(b'{"error":{"message":"canary"}}', 401))
        assert ask(running, "openai-chat/made-up-by-a-client") == 401
        assert ask(running, "no-such-model") == 404
    asked, unasked = tracer.spans
    assert asked.attributes["error.type"] == "auth"
    assert asked.attributes["gen_ai.request.model"] == "made-up-by-a-client"
    assert unasked.is_ended and not unasked.attributes
    (labels,) = [labels for _, labels in meter.histograms["gen_ai.client.operation.duration"].values]
    assert "made-up" not in json.dumps(labels)


def test_without_an_sdk_nothing_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys, dragoman.gateway.process.main\n"
        "from dragoman.gateway.telemetry.opentelemetry import load_telemetry\n"
        "assert load_telemetry(address='127.0.0.1', port=1) is None\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "import opentelemetry.trace\n"
        "assert load_telemetry(address='127.0.0.1', port=1) is None\n"
        "class Provider(opentelemetry.trace.NoOpTracerProvider): pass\n"
        "opentelemetry.trace.set_tracer_provider(Provider())\n"
        "assert load_telemetry(address='127.0.0.1', port=1) is not None\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")
