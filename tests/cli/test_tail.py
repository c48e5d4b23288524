"""`dragoman tail` and `serve --verbose`: a line a request, for people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.here import run_here
from conversations import reply
from dragoman.cli.log_lines import render_line
from dragoman.cli.tail_filter import Filter, Totals
from dragoman.cli.terminal import Paint
from gateway.process.test_gateway import ask, configured, serve
from gateway.running import stream_of
from scripted import serving
from warm_programs import Popen

PLAIN = Paint(colourful=False)
ENTRY = {
    "time": "2026-11-22T02:10:20.328Z", "kind": "request", "client": "openai-chat", "target": "zhipu/glm-4.6",
    "outcome": "done", "status": 200, "stop": "tool_use", "usage": {"input": 812, "output": 34}, "cost_usd": "0.0012",
    "first_ms": 310.2, "total_ms": 1204.0, "attempts": [{"target": "a/b"}, {"target": "zhipu/glm-4.6"}],
    "deviations": {"missing-id": 2, "single-newline": 1},
}  # fmt: skip


def test_a_request_as_a_line() -> None:
    assert render_line(ENTRY, PLAIN) == (
        "02:10:20 openai-chat → zhipu/glm-4.6  200 tool_use  812 in 34 out  $0.0012  0.31/1.20 s  2 tries  "
        "mended: missing-id ×2, single-newline\n"
    )
    failed = {"kind": "request", "outcome": "failed", "status": 503, "error": "overloaded", "total_ms": 5}
    assert render_line(failed, PLAIN) == " - → -  failed 503 overloaded  0.01 s\n"
    assert render_line({"kind": "left-out", "of": "failed connection", "count": 3990}, PLAIN).strip() == (
        "3990 more of: failed connection"
    )
    assert render_line({"kind": "config", "text": "is in force"}, PLAIN).strip() == "config: is in force"


def test_filters_pick_requests() -> None:
    failed = {**ENTRY, "outcome": "failed", "status": 503, "deviations": {}, "client": "ollama-chat", "total_ms": 20}
    other = {"kind": "config", "text": "is in force"}

    def taken(**conditions: Any) -> list[int]:
        return [at for at, entry in enumerate((ENTRY, failed, other)) if Filter(**conditions).takes(entry)]

    assert taken() == [0, 1, 2]
    assert taken(model="GLM") == [0, 1] and taken(model="granite") == []
    assert taken(client="openai") == [0] and taken(failed=True) == [1] and taken(mended=True) == [0]
    assert taken(slower=1.2) == [0] and taken(slower=1.3) == [] and taken(failed=True, client="openai") == []


def test_totals_are_sums_of_requests_alone() -> None:
    totals = Totals()
    totals.add({"kind": "config", "text": "is in force"})
    assert totals.render() == ""
    for entry in (ENTRY, {**ENTRY, "outcome": "failed", "usage": None, "cost_usd": "nonsense", "total_ms": None}):
        totals.add(entry)
    assert totals.render() == (
        "total: 2 requests, 1 failed, 812 tokens in, 34 out, $0.0012, 0.60 s on average\n"
        "mended: 2 of them: missing-id ×4, single-newline ×2\n"
    )


def test_a_small_cost_has_no_exponent() -> None:
    costs = ((2.7e-05, "$0.000027"), (1e-09, "$0.000000001"), (12.5, "$12.5"), ("0.0012", "$0.0012"), (3, "$3"))
    for cost, shown in costs:
        assert f"  {shown}  " in render_line({**ENTRY, "cost_usd": cost}, PLAIN)


def test_a_line_cannot_steer_the_terminal() -> None:
    hostile = "evil\x1b[2J\x1b]52;c;aGk=\x07\nsecond line\r"
    for paint in (PLAIN, Paint(colourful=True)):
        line = render_line({**ENTRY, "target": hostile, "client": hostile, "deviations": {hostile: 1}}, paint)
        assert line.count("\n") == 1 and "\r" not in line and "\x07" not in line
        assert "\x1b[2J" not in line and "\x1b]" not in line


def test_tail_hears_the_running_gateway(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        with serve(tmp_path, "--config", str(configured(tmp_path, provider.url))) as (gateway, port):
            environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "NO_COLOR": "1"}
            url = f"http://127.0.0.1:{port}"
            tails = [
                Popen(
                    [sys.executable, "-m", "dragoman", "tail", "--url", url, *words],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
                )
                for words in ((), ("--json",), ("--model", "nobody"), ("--model", "qwen"))
            ]  # fmt: skip
            for tail in tails:
                assert tail.stderr is not None
                assert tail.stderr.readline().startswith(f"watching {url}")
            assert ask(port, "coder", stream=True)[0] == 200
            lines = [tails[at].stdout.readline() for at in (0, 1, 3)]  # type: ignore[union-attr]
            gateway.terminate()
            assert [tail.wait(10) for tail in tails] == [0, 0, 0, 0]
            ends = [tail.communicate() for tail in tails]
    assert [out for out, _ in ends] == ["", "", "", ""]  # one line was read of each; the filter left one out
    assert ends[0][1].startswith("total: 1 request, ") and ends[2][1] == ""
    assert "lab/qwen3" in lines[2]
    assert "openai-chat → lab/qwen3" in lines[0] and "tool_use" in lines[0]
    assert json.loads(lines[1])["route"] == "coder"


@pytest.mark.parametrize("words", [("--url", "http://127.0.0.1:1"), ("--key-env", "NO_SUCH_VARIABLE")])
def test_tail_says_what_is_wrong(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = run_here("tail", *words, XDG_CONFIG_HOME=str(tmp_path))
    assert run.returncode in (1, 2) and run.stderr.startswith(b"dragoman: ") and run.stderr.count(b"\n") == 1
    assert words[0] != "--url" or b"start one: dragoman serve" in run.stderr


def test_verbose_prints_lines_for_people(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        with serve(tmp_path, "--config", str(configured(tmp_path, provider.url)), "--verbose") as (program, port):
            assert ask(port, "coder")[0] == 200
            program.terminate()
            _, said = program.communicate(timeout=10)
    (line,) = [line for line in said.splitlines() if "lab/qwen3" in line]
    assert line.split()[1:4] == ["openai-chat", "→", "lab/qwen3"] and "{" not in line


def test_lines_go_to_standard_error_or_a_file_or_nowhere(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        for log in ("stderr", "off", "requests.log"):
            file = configured(tmp_path, provider.url)
            file.write_text(f'{file.read_text(encoding="utf-8")}\nlog = "{log}"', encoding="utf-8")  # of its server
            with serve(tmp_path, "--config", str(file)) as (program, port):
                assert ask(port, "coder")[0] == 200
                program.terminate()
                _, said = program.communicate(timeout=10)
            lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
            assert [line["target"] for line in lines] == (["lab/qwen3"] if log == "stderr" else [])
    (line,) = (tmp_path / "requests.log").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["outcome"] == "done"
