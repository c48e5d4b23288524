"""Numbers for Prometheus: counted, kept over a worker's death, added up, bounded."""

from __future__ import annotations

from pathlib import Path

from dragoman.gateway.messages import Head
from dragoman.gateway.telemetry.metrics import (
    ATTEMPTS,
    BREAKERS,
    DURATION,
    LAG,
    REPLICA_AGE,
    REQUESTS,
    SERIES,
    UNDER_WAY,
    Metrics,
)
from dragoman.gateway.telemetry.record import Observer, Outcome

DONE = ("openai-chat", "coder", "zhipu", "done")


def samples(text: bytes) -> dict[str, float]:
    """Each sample's name with its labels → its value."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_counts_are_written_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.add(REQUESTS, DONE)
    metrics.add(REQUESTS, DONE)
    metrics.add(ATTEMPTS, ('we"ird\\', "done", "line\nbreak"), 2.5)
    metrics.set(LAG, 0.25)
    text = metrics.render()
    assert text.endswith(b"\n")
    assert b"# TYPE dragoman_requests_total counter\n" in text
    assert samples(text) == {
        'dragoman_requests_total{client="openai-chat",route="coder",provider="zhipu",outcome="done"}': 2.0,
        'dragoman_attempts_total{provider="we\\"ird\\\\",outcome="done",reason="line\\nbreak"}': 2.5,
        "dragoman_loop_lag_seconds": 0.25,
    }


def test_a_histogram_is_cumulative_and_ends_with_all() -> None:
    metrics = Metrics()
    for seconds in (0.004, 0.005, 0.3, 1_000.0):
        metrics.observe_at(metrics.position(DURATION, ("openai-chat",)), DURATION.over, seconds)
    found = samples(metrics.render())
    buckets = [value for name, value in found.items() if "_bucket" in name]
    assert buckets == sorted(buckets)
    assert found['dragoman_request_seconds_bucket{client="openai-chat",le="0.005"}'] == 2
    assert found['dragoman_request_seconds_bucket{client="openai-chat",le="0.5"}'] == 3
    assert found['dragoman_request_seconds_bucket{client="openai-chat",le="+Inf"}'] == 4
    assert found['dragoman_request_seconds_count{client="openai-chat"}'] == 4
    assert found['dragoman_request_seconds_sum{client="openai-chat"}'] == 1_000.309


def test_gauges_of_a_process_that_was_here_before_are_zero(tmp_path: Path) -> None:
    first = Metrics(tmp_path / "0")
    first.set(BREAKERS, 1.0, ("lab/m",))
    first.add(REQUESTS, DONE)
    again = Metrics(tmp_path / "0")
    again.reset_gauges()
    found = samples(again.render())
    assert found['dragoman_breaker_open{target="lab/m"}'] == 0
    assert sum(found.values()) == 1


def test_a_family_stays_bounded() -> None:
    metrics = Metrics()
    for number in range(10_000):
        metrics.add(REQUESTS, ("openai-chat", f"route-{number}", "zhipu", "done"))
    found = samples(metrics.render())
    assert len(found) == SERIES + 1
    assert sum(found.values()) == 10_000


def test_what_has_no_room_is_not_counted_and_harms_nothing() -> None:
    metrics = Metrics()
    metrics.add(REQUESTS, DONE)
    for number in range(SERIES):
        metrics.add(ATTEMPTS, ("x" * 10_000 + str(number), "done", ""))
    assert (
        samples(metrics.render())[
            'dragoman_requests_total{client="openai-chat",route="coder",provider="zhipu",outcome="done"}'
        ]
        == 1
    )


def test_workers_add_up_and_one_that_died_is_not_forgotten(tmp_path: Path) -> None:
    files = [tmp_path / "metrics-0", tmp_path / "metrics-1"]
    first, second = Metrics(files[0]), Metrics(files[1])
    first.add(REQUESTS, DONE)
    second.add(REQUESTS, DONE, 2)
    second.add(UNDER_WAY)
    first.set(LAG, 0.5)
    second.set(LAG, 0.75)
    name = 'dragoman_requests_total{client="openai-chat",route="coder",provider="zhipu",outcome="done"}'
    assert samples(first.render([files[1], tmp_path / "metrics-9"])) == {
        name: 3.0, "dragoman_requests_under_way": 1.0, "dragoman_loop_lag_seconds": 0.75
    }  # fmt: skip
    again = Metrics(files[1])  # the worker that takes the second one's place
    again.reset_gauges()
    again.add(REQUESTS, DONE)
    found = samples(first.render([files[1]]))
    assert (found[name], found["dragoman_requests_under_way"]) == (4.0, 0.0)


def test_the_age_of_a_copy_that_never_was_is_infinite() -> None:
    metrics = Metrics()
    metrics.set(REPLICA_AGE, float("inf"))
    assert b"\ndragoman_ledger_replica_age_seconds +Inf\n" in metrics.render(())


def test_requests_that_end_alike_count_where_others_do_not() -> None:
    observer = Observer()
    ends: list[tuple[Outcome, str]] = [("done", "a/m"), ("done", "a/m"), ("failed", "a/m"), ("done", "b/m")]
    for outcome, target in ends:
        record = observer.start(Head("POST", "/v1/chat/completions", {}), bytes_in=1, owner="")
        record.client, record.route, record.outcome = "openai-chat", "r", outcome
        if outcome == "failed":
            record.error = "rate"
            record.attempt(target, "failed", "rate")
        record.attempt(target, "done")
        observer.finish(record)
    lines = observer.metrics.render().decode().splitlines()
    assert 'dragoman_requests_total{client="openai-chat",route="r",provider="a",outcome="done"} 2' in lines
    assert 'dragoman_requests_total{client="openai-chat",route="r",provider="a",outcome="failed"} 1' in lines
    assert 'dragoman_requests_total{client="openai-chat",route="r",provider="b",outcome="done"} 1' in lines
    assert 'dragoman_attempts_total{provider="a",outcome="done",reason=""} 3' in lines
    assert 'dragoman_attempts_total{provider="a",outcome="failed",reason="rate"} 1' in lines
    assert 'dragoman_fallbacks_total{reason="rate"} 1' in lines
    assert 'dragoman_failures_total{client="openai-chat",kind="rate"} 1' in lines
    assert 'dragoman_request_seconds_count{client="openai-chat"} 4' in lines
    assert "dragoman_requests_under_way 0" in lines
