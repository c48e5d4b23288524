"""Lines: bounded a second and a kind, never in the way, in a file that may be moved."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman import _json
from dragoman.events import Deviation, Failure, Finish
from dragoman.gateway.messages import Head
from dragoman.gateway.telemetry.log import LINES_A_SECOND, Log, Sink
from dragoman.gateway.telemetry.metrics import FAMILIES, Metrics
from dragoman.gateway.telemetry.record import Entry, Observer, Record, begin_record, entry_of
from dragoman.types import Usage
from gateway.telemetry.test_metrics import samples


def heard(log: Log) -> list[dict[str, Any]]:
    """The entries that a log writes from now on."""
    lines: list[dict[str, Any]] = []
    log.listeners.add(lambda line: lines.append(json.loads(line)))
    return lines


def record(**headers: str) -> Record:
    return begin_record(Head("POST", "/v1/chat/completions", headers), bytes_in=20, owner="ab" * 32)


def test_a_storm_of_failures_is_ten_lines_and_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [100.0]
    monkeypatch.setattr("dragoman.gateway.telemetry.log.time.monotonic", lambda: seconds[0])
    log = Log(None)
    lines = heard(log)
    observer = Observer(Metrics(), log)
    for _ in range(4_000):
        one = record()
        one.end(Failure("connection", "the provider went"), 502)
        observer.finish(one)
    for _ in range(50):
        one = record()
        one.end(Finish("stop"))
        observer.finish(one)
    observer.settle(0.0)
    assert [line["kind"] for line in lines].count("request") == LINES_A_SECOND + 50
    assert [(line["of"], line["count"]) for line in lines if line["kind"] == "left-out"] == [
        ("failed connection", 4_000 - LINES_A_SECOND)
    ]
    assert samples(observer.metrics.render())['dragoman_log_dropped_total{reason="too-many"}'] == 3_990
    seconds[0] += 1
    one = record()
    one.end(Failure("connection", "the provider went"), 502)
    observer.finish(one)
    assert lines[-1]["error"] == "connection"


def test_a_line_says_what_became_of_a_request() -> None:
    one = record(**{"x-request-id": "client-7", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"})
    one.client, one.route, one.stream = "openai-chat", "coder", True
    one.attempt("zhipu/glm-4.6", "failed", "overloaded", 503)
    one.attempt("ollama/granite4", "done")
    one.deviate("ollama/granite4", Deviation("missing-id", "x", "secret words"))
    one.deviate("ollama/granite4", Deviation("missing-id", "x", "secret words"))
    one.begin()
    one.end(Finish("tool_use", usage=Usage(input=12, output=5)))
    entry = json.loads(_json.encode(entry_of(one, "done", 1.5, time="2026-11-22T02:10:20.328Z")))
    assert entry["attempts"] == [
        {"target": "zhipu/glm-4.6", "outcome": "failed", "reason": "overloaded", "status": 503},
        {"target": "ollama/granite4", "outcome": "done"},
    ]
    wanted = {
        "id": one.request_id, "client_id": "client-7", "trace": "1" * 32, "key": "abababab", "client": "openai-chat",
        "route": "coder", "target": "ollama/granite4", "outcome": "done", "status": 200, "stop": "tool_use",
        "stream": True, "usage": {"input": 12, "output": 5}, "total_ms": 1500.0, "bytes_in": 20,
        "deviations": {"missing-id": 2},
    }  # fmt: skip
    assert {name: entry[name] for name in wanted} == wanted
    assert "secret words" not in json.dumps(entry)


@pytest.mark.parametrize("hostile", ["a b", "x" * 129, "id\x1b[31m", 'id"', ""])
def test_a_clients_id_is_taken_only_when_it_is_one(hostile: str) -> None:
    assert record(**{"x-request-id": hostile}).client_request_id == ""
    assert record(traceparent=hostile).trace_parent == ""


def test_a_full_pipe_stops_nobody(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    sink = Sink(pipe)
    line = b"x" * 1023 + b"\n"
    taken = sum(sink.put(line) for _ in range(5_000))
    assert 1_024 <= taken < 5_000
    os.close(reader)
    sink.close(5)


def test_lines_go_on_in_a_new_file_when_theirs_was_moved(tmp_path: Path) -> None:
    file = tmp_path / "requests.log"
    before = threading.active_count()
    sink = Sink(file)
    sink.put(b"one\n")
    _until(lambda: file.read_bytes() == b"one\n")
    file.rename(tmp_path / "old.log")
    sink.put(b"two\n")
    sink.close(5)
    assert (tmp_path / "old.log").read_bytes() == b"one\n"
    assert file.read_bytes() == b"two\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert threading.active_count() == before


def _until(holds: Any) -> None:
    from time import monotonic, sleep

    until = monotonic() + 10
    while not holds():
        assert monotonic() < until
        sleep(0.005)


def test_the_reference_names_every_field_and_every_metric() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "observability.md").read_text(encoding="utf-8")
    fields = set(Entry.__struct_fields__) - {"kind"}
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `dragoman_")}
    assert set(rows) == {family.name for family in FAMILIES}
    for family in FAMILIES:
        assert rows[family.name].split("|")[2].strip() == ", ".join(family.labels)


def test_a_line_tells_where_something_was_lost_and_no_word_of_it() -> None:
    one = record()
    for where in ("params.top_k", "metadata.customer Bob", "x" * 300, "Größe", "", "params.top_k"):
        one.deviate("lab/m", Deviation("untranslated", where, "secret words"))
    one.deviate("lab/m", Deviation("missing-id", "calls[0]"))
    one.deviate("lab/m", Deviation("lone-surrogate", "body"))
    entry = json.loads(_json.encode(entry_of(one, "done", 1.5, time="2026-11-22T02:10:20.328Z")))
    kept = [f"untranslated {where}" for where in ("params.top_k", "metadata.customer", "x" * 40, "Gr")]
    assert entry["lost"] == [*kept, "untranslated", "lone-surrogate body"]
    for number in range(100):
        one.deviate("lab/m", Deviation("dropped", f"tools[{number}]"))
    assert len(one.lost) == 32
    assert one.deviations == {"untranslated": 6, "missing-id": 1, "lone-surrogate": 1, "dropped": 100}


def test_a_request_that_loses_nothing_has_no_word_of_losses() -> None:
    assert b"lost" not in _json.encode(entry_of(record(), "done", 1.5, time="2026-11-22T02:10:20.328Z"))
