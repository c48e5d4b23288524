"""`dragoman serve` in a pseudo-terminal: what somebody sees who starts it by hand; piped, its log is JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import anthropic
import openai
import pytest

from conversations import reply
from gateway.process.test_gateway import ask, configured
from gateway.running import stream_of
from scripted import serving
from warm_programs import Popen


class AtTerminal:
    """The gateway with its standard error at a terminal, and standard output there or in a pipe."""

    def __init__(self, config: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(config.parent), "DRAGOMAN_CONFIG": str(config), "TERM": "dumb",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip
        command = [sys.executable, "-m", "dragoman", "serve", "--port", "0", *arguments]
        self.process = Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment)
        os.close(theirs)
        self.screen = ""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.fullmatch(r"listening on (http://127\.0\.0\.1:(\d+))\n", line)
        assert found, line + self.screen
        self.url, self.port = found[1], int(found[2])

    def read_until(self, words: str) -> str:
        """What stands on the screen when these words have come."""
        until = time.monotonic() + 20
        while words not in self.screen:
            ready, _, _ = select.select([self._ours], [], [], max(until - time.monotonic(), 0))
            assert ready, f"{words!r} did not come: {self.screen}"
            self.screen += os.read(self._ours, 65536).decode().replace("\r\n", "\n")
        return self.screen

    def end(self) -> int:
        """Ctrl-C; gives the exit status. The last line says that it has ended."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.read_until("the gateway has ended\n")
            return self.process.wait(20)
        finally:
            os.close(self._ours)
            assert self.process.stdout is not None
            assert self.process.stdout.read() == b""
            self.process.stdout.close()


def test_a_terminal_shows_addresses_models_and_requests(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        gateway = AtTerminal(configured(tmp_path, provider.url))
        screen = gateway.read_until("Ctrl-C ends the gateway")
        assert ask(gateway.port, "coder")[0] == 200
        later = gateway.read_until("lab/qwen3  200")[len(screen) :]
        assert gateway.end() == 0
    for line in (
        f"  OpenAI     export OPENAI_BASE_URL={gateway.url}/v1",
        "             export OPENAI_API_KEY=none-needed",
        f"  Anthropic  export ANTHROPIC_BASE_URL={gateway.url}",
        "             export ANTHROPIC_API_KEY=none-needed",
        f"  Ollama     export OLLAMA_HOST={gateway.url}",
        f"  Gemini     export GOOGLE_GEMINI_BASE_URL={gateway.url}",
        "             export GEMINI_API_KEY=none-needed",
    ):
        assert line in screen.splitlines()
    assert [line for line in screen.splitlines() if len(line) > 80] == []
    assert "dragoman env CLIENT" in screen and "models  coder" in screen
    assert not [line for line in (screen + later).splitlines() if line.startswith("{")]


def test_only_the_protocols_that_are_served_are_shown(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        gateway = AtTerminal(configured(tmp_path, provider.url), "--protocols", "anthropic")
        screen = gateway.read_until("Ctrl-C ends the gateway")
        assert gateway.end() == 0
    assert "ANTHROPIC_BASE_URL" in screen and "OPENAI_BASE_URL" not in screen and "OLLAMA_HOST" not in screen


def finish_of_openai() -> str:
    with openai.OpenAI() as client:
        answer = client.chat.completions.create(model="coder", messages=[{"role": "user", "content": "hi"}])
    return answer.choices[0].finish_reason


def finish_of_anthropic() -> str | None:
    with anthropic.Anthropic() as client:
        messages = [{"role": "user", "content": "hi"}]
        return client.messages.create(model="coder", max_tokens=99, messages=messages).stop_reason


@pytest.mark.parametrize(
    ("variable", "finish"), [("OPENAI_BASE_URL", finish_of_openai), ("ANTHROPIC_BASE_URL", finish_of_anthropic)]
)
def test_the_lines_for_a_client_work_as_they_stand(tmp_path: Path, variable: str, finish: Callable[[], str]) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        gateway = AtTerminal(configured(tmp_path, provider.url))
        screen = gateway.read_until("Ctrl-C ends the gateway")
        (address,) = [line.split(None, 1)[1] for line in screen.splitlines() if variable in line]
        (key,) = [line for line in screen.splitlines() if variable.replace("BASE_URL", "API_KEY") in line]
        command = ["bash", "-c", f"{address}\n{key}\nexec env -0"]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={"PATH": os.environ["PATH"]})
        environ = dict(line.split("=", 1) for line in found.stdout.split("\0") if line)
        with patch.dict(os.environ, environ, clear=True):
            assert finish() in ("tool_calls", "tool_use")
        assert gateway.end() == 0


def test_ctrl_c_ends_several_workers_with_the_same_status(tmp_path: Path) -> None:
    gateway = AtTerminal(configured(tmp_path, "http://127.0.0.1:9"), "--workers", "2")
    gateway.read_until("Ctrl-C ends the gateway")
    assert gateway.end() == 0


def test_piped_the_log_is_json(tmp_path: Path) -> None:
    with serving(stream_of("ollama-chat", reply("single"))) as provider:
        command = [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--config"]
        run = Popen(
            [*command, str(configured(tmp_path, provider.url))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert run.stdout is not None
        line = run.stdout.readline()
        assert ask(int(line.rpartition(":")[2]), "coder")[0] == 200
        run.terminate()
        _, errors = run.communicate(timeout=20)
    assert run.returncode == 0
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert [entry["target"] for entry in lines if entry["kind"] == "request"] == ["lab/qwen3"]
    assert "export" not in errors


def begun_at_a_terminal(folder: Path, *command: str) -> tuple[int, int]:
    """A process with a terminal of its own, its output in the file `out`: its id, and our end of the terminal."""
    process, ours = pty.fork()
    if process == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under `nohup` ignore it
        os.chdir(folder)
        os.execvp("sh", ["sh", "-c", 'exec "$@" >out 2>&1', "sh", *command])
    return process, ours


def listening_port(folder: Path) -> int:
    until = time.monotonic() + 60
    while not (found := re.search(r"listening on http://127\.0\.0\.1:(\d+)\n", (folder / "out").read_text())):
        assert time.monotonic() < until, (folder / "out").read_text()
        time.sleep(0.05)
    return int(found[1])


def ends_within(process: int, seconds: float) -> bool:
    """Whether that child ends; it is buried then."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(process, os.WNOHANG)[0] == process:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("start", [[], ["nohup"]], ids=["alone", "nohup"])
def test_a_terminal_that_closes_ends_it(tmp_path: Path, start: list[str], workers: int) -> None:
    """SIGHUP alone has it read its configuration again; with `nohup` it outlives its terminal."""
    config = configured(tmp_path, "http://127.0.0.1:9")
    command = [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--workers", str(workers)]
    (tmp_path / "out").touch()
    process, ours = begun_at_a_terminal(tmp_path, *start, *command, "--config", str(config))
    try:
        port = listening_port(tmp_path)
        os.kill(process, signal.SIGHUP)
        assert ask(port, "coder")[0] == 502
        os.close(ours)
        assert ends_within(process, 0.5 if start else 60) is not bool(start)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
