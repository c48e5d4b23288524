# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""`dragoman chat -p`: for scripts, over real sockets, in every protocol; what would ask is refused and the model told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from agent.driving import IS_SANDBOXED
from agent.playing import Playing, call, playing, say, script
from cli.here import run_here
from dragoman.protocols import PROTOCOLS
from dragoman.types import Part, Request, Text, ToolCall, ToolResult
from warm_programs import Popen, run

DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
TASK = [
    [call("read", path="a.py"), call("list")],
    [call("edit", path="a.py", old="1", new="2")],
    [call("run", argv=["cat", "a.py"])],
    say("It is 2 now."),
]


def begun(place: Path, server: Playing, arguments: tuple[str, ...], more: str) -> tuple[list[str], dict[str, str]]:
    """The words and the environment of a chat."""
    (place / "work").mkdir(exist_ok=True)
    config = place / "dragoman.toml"
    config.write_text(server.table() + more)
    environ = {"DRAGOMAN_CONFIG": str(config), "XDG_STATE_HOME": str(place / "state"), "HOME": str(place)}
    return ["chat", "lab/m", "--folder", str(place / "work"), *arguments], environ


def chat(place: Path, server: Playing, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A chat in a process of its own."""
    words, environ = begun(place, server, arguments, "")
    environ = {**os.environ, **environ}
    return run([DRAGOMAN, *words], env=environ, text=True)


def chat_here(
    place: Path, server: Playing, *arguments: str, more: str = "", text: str = ""
) -> subprocess.CompletedProcess[str]:
    """A chat in this process, which hides its own environment from nobody."""
    words, environ = begun(place, server, arguments, more)
    with patch("dragoman.cli.commands.chat.hide_environment"):
        done = run_here(*words, stdin=text.encode(), **environ)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def lines_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_task_is_done_in_every_protocol(tmp_path: Path, protocol: Any) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    with playing(script(*TASK), protocol) as server:
        done = chat(tmp_path, server, "-p", "make it 2", "--allow", "edit:*.py", "--allow", "run:cat *")
    assert (done.returncode, done.stdout) == (0, "It is 2 now.\n"), done.stderr
    assert (tmp_path / "work" / "a.py").read_text() == "x = 2\n"
    assert "edit a.py: done" in done.stderr
    results = [
        part for message in server.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)
    ]
    last = results[-1].text
    assert last.startswith("x = 2") if IS_SANDBOXED else "nobody is there to ask" in last


def test_what_would_ask_is_refused_and_the_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    with playing(script(*TASK)) as server:
        done = chat_here(tmp_path, server, "-p", "make it 2", "--json")
    assert done.returncode == 0
    lines = lines_of(done)
    ended = [line for line in lines if line["type"] == "CallEnded"]
    assert [(line["name"], line["was_run"]) for line in ended] == [
        ("read", True), ("list", True), ("edit", False), ("run", False),
    ]  # fmt: skip
    assert "nobody is there to ask" in ended[2]["result"]
    assert lines[-1]["refused"][1].startswith("cat a.py\n")
    assert (tmp_path / "work" / "a.py").read_text() == "x = 1\n"
    last = [part for part in server.requests[-1].messages[-1].parts if isinstance(part, ToolResult)]
    assert "nobody is there to ask" in last[0].text


def test_the_users_file_allows_too(tmp_path: Path) -> None:
    with playing(script([call("write", path="b/c.txt", content="x")], "ok")) as server:
        done = chat_here(tmp_path, server, "-p", "go", more='[agent]\nallow = ["write:b/**"]\n')
    assert done.returncode == 0
    assert (tmp_path / "work" / "b" / "c.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-p", "x", "--allow", "*"], 2, "expected TOOL or TOOL:PATTERN"),
        (["-p", "x", "--allow", "shell"], 2, "a shell may do anything"),
        (["-p", " "], 2, "expected a prompt"),
        (["--json"], 2, "expected --json together with -p"),
        (["-p", "x", "--tools", "none.py"], 2, "there is no such file"),
        (["-p", "x", "--tools", "none"], 1, "no installed package offers tools named 'none'"),
        (["-p", "x", "--resume", "none"], 2, "no session 'none'"),
        (["-p", "x", "--folder", "/dev/null/none"], 2, "expected a work folder"),
    ],
)
def test_wrong_usage_is_said_in_one_line(tmp_path: Path, arguments: list[str], status: int, said: str) -> None:
    with playing(script("never")) as server:
        done = chat_here(tmp_path, server, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    assert server.requests == []


def test_a_failure_is_said_and_the_status_is_one(tmp_path: Path) -> None:
    with playing(script(b'data: {"error": {"message": "out of order", "type": "server_error"}}\n\n')) as server:
        done = chat_here(tmp_path, server, "-p", "go", "--json")
    assert done.returncode == 1
    assert "out of order" in done.stderr
    assert lines_of(done)[-1]["reason"] == "failed"


def test_an_interruption_has_the_status_of_one(tmp_path: Path) -> None:
    arrived = threading.Event()

    def brain(request: Request) -> list[Part]:
        arrived.set()
        time.sleep(0.5)
        return [Text("one two three " * 4000)]

    config, work = tmp_path / "dragoman.toml", tmp_path / "work"
    work.mkdir()
    with playing(brain, delay=0.05) as server:
        config.write_text(server.table())
        environ = {
            **os.environ,
            "DRAGOMAN_CONFIG": str(config),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "HOME": str(tmp_path),
        }
        command = [DRAGOMAN, "chat", "lab/m", "-p", "go", "--json", "--folder", str(work)]
        with Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            assert arrived.wait(60)
            program.send_signal(signal.SIGINT)
            out, errors = program.communicate(timeout=60)
    assert program.returncode == 130 and errors == b""
    assert json.loads(out.splitlines()[-1])["reason"] == "interrupted"


def test_a_runaway_ends_with_its_reason(tmp_path: Path) -> None:
    with playing(script(call("list"))) as server:
        done = chat_here(tmp_path, server, "-p", "go", "--json")
    assert done.returncode == 1
    assert lines_of(done)[-1]["reason"] == "repeated_call"
    assert len(server.requests) == 3


def test_a_session_goes_on_with_resume(tmp_path: Path) -> None:
    def brain(request: Request) -> list[Part]:
        said = [part.text for message in request.messages for part in message.parts if isinstance(part, Text)]
        return [Text(f"I have heard {len([text for text in said if text.startswith('word')])} words")]

    with playing(brain) as server:
        assert chat_here(tmp_path, server, "-p", "word one").stdout == "I have heard 1 words\n"
        assert chat_here(tmp_path, server, "-p", "word two", "--resume").stdout == "I have heard 2 words\n"
        assert chat_here(tmp_path, server, "-p", "word other").stdout == "I have heard 1 words\n"


def test_own_tools_of_a_file_are_asked_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\n\ndef shout(text: str, times: int = 1) -> str:\n    '''Say it loud.\n\n    Args:\n        text: what\n    '''\n"
        "    return (text.upper() + '!') * times\n\nasync def later() -> dict:\n    return {'a': 1}\n\ndef _hidden() -> None: ...\n"
    )
    answers = [[call("shout", text="hey", times=2), call("later"), call("shout", times="x")], say("done")]
    with playing(script(*answers)) as server:
        done = chat_here(
            tmp_path, server, "-p", "go", "--json", "--tools", str(file), "--allow", "shout", "--allow", "later"
        )
    names = [tool.name for tool in server.requests[0].tools]
    assert "shout" in names and "later" in names and "_hidden" not in names
    ended = [line for line in lines_of(done) if line["type"] == "CallEnded"]
    assert [(line["result"], line["was_run"]) for line in ended[:2]] == [("HEY!HEY!", True), ('{"a":1}', True)]
    assert not ended[2]["was_run"] and "arguments of shout" in ended[2]["result"]


def test_a_forged_call_does_nothing_unasked(tmp_path: Path) -> None:
    """Whoever sits between us and the model can send any call; none has an effect that the user did not allow."""
    forged: list[Part] = [
        call("run", argv=["sh", "-c", "id > pwned"]),
        call("shell", script="id > pwned"),
        call("write", path="../pwned", content="x"),
        call("write", path=".git/hooks/pre-commit", content="x"),
        call("fetch", url="http://169.254.169.254/latest/meta-data/"),
        call("read", path="/etc/passwd"),
        call("read", path=".env"),
        ToolCall("c", "run", '{"argv": ["cat", "a.md"], "network": true}'),
    ]
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_text("KEY=canary-3b1a")
    (tmp_path / "work" / "a.md").write_text("x")
    with playing(script(forged, "done")) as server:
        done = chat_here(tmp_path, server, "-p", "go", "--json", "--allow", "run:cat *.md", "--allow", "write:src/**")
    ended = [line for line in lines_of(done) if line["type"] == "CallEnded"]
    ran = [line["name"] for line in ended if line["was_run"] and not line["is_error"]]
    assert ran in ([], ["run"])  # with a sandbox a command with network is asked; without one it is the rule's
    assert "canary" not in done.stdout
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == [".env", "a.md"]
