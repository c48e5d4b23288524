"""Tab in bash, zsh and fish: what is offered, and that the shells really offer it, in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

from dragoman.cli.complete import complete
from dragoman.cli.main import COMMANDS, load_command, main, make_parser

#: bash is everywhere where these tests run; the others are tried where they are installed.
SHELLS = ["bash", *(name for name in ("zsh",) if shutil.which(name))]
FISH = [found for found in (shutil.which("fish"),) if found]


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(
        '[routes.coder]\ntargets = ["ollama/granite4:latest"]\n[models."ollama/granite4:latest"]\ntools = "native"\n'
    )
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(file))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ca"], {"call"}),
        (["help", "mod"], {"models"}),
        (["nosuch", ""], set()),
        (["env", "claude"], {"claude-code", "claude-desktop"}),
        (["serve", "--app", "ze"], {"zed"}),
        (["serve", "--prov"], {"--provider"}),
        (["serve", "--provider", "zhi"], {"zhipu"}),
        (["serve", "--provider=zhi"], {"--provider=zhipu"}),
        (["serve", "--protocols", "ge"], {"gemini"}),
        (["decode", "--protocol", "res"], {"responses"}),
        (["decode", ""], set()),
        (["decode", "--tools", ""], set()),
        (["call", "co"], {"coder", "cohere/"}),
        (["call", "ollama/"], {"ollama/granite4:latest", "ollama/"}),
        (["call", "--json", "anthropic/claude-sonnet-4-5-"], {"anthropic/claude-sonnet-4-5-20250929"}),
        (["models", "in"], {"info", "inclusionai"} & {"info"}),
        (["models", "info", "embedded"], {"embedded/smollm2", "embedded/"}),
        (["validate", "embedded/smollm2", "--suite", "f"], {"full"}),
        (["validate", "embedded/smollm2", "code"], {"coder"}),
        (["record", "lmst"], {"lmstudio"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["completion", "bash", ""], set()),
        (["tail", "--fai"], {"--failed"}),
    ],
)  # fmt: skip
def test_what_may_stand_there(words: list[str], offered: set[str]) -> None:
    assert {word for word, _ in complete(words)} == offered


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_offered(name: str) -> None:
    parser = make_parser(name, load_command(name))
    offered = {word for word, _ in complete([name, "-"])}
    shown = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*(?=[ ,\n])", parser.format_help().partition("options:")[2]))
    assert {word for word in shown if word.startswith("--")} & {
        option for action in parser._actions for option in action.option_strings
    } <= offered
    assert "--help" in offered


def test_a_configuration_that_cannot_be_read_offers_nothing_and_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dragoman.toml").write_text("not = [toml")
    assert main(["completion", "--candidates", "call", ""]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_shell_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    assert capsys.readouterr().err == "dragoman: expected a shell: bash, zsh, fish\n"


def install(folder: Path) -> Path:
    """The program under its name, in a folder of its own."""
    program = folder / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    program.chmod(0o755)
    return program


class Shell:
    """A shell that somebody sits at."""

    START: ClassVar = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
    SET_UP: ClassVar = {
        "bash": 'PS1="> "; eval "$(dragoman completion bash)"\n',
        "zsh": 'autoload -U compinit; compinit -u -D; eval "$(dragoman completion zsh)"\n',
    }

    def __init__(self, name: str, folder: Path) -> None:
        program = install(folder)
        self._ours, theirs = pty.openpty()
        environment = {
            "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "xterm", "LANG": "C.UTF-8",
            "DRAGOMAN_CONFIG": os.environ["DRAGOMAN_CONFIG"], "COLUMNS": "120",
        }  # fmt: skip
        self._process = subprocess.Popen(
            self.START[name], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.screen = ""
        self.type(self.SET_UP[name] + "echo rea''dy\n", until="\nready")

    def type(self, keys: str, *, until: str) -> str:
        """Press keys; gives what came until these words stood on the screen."""
        begin = len(self.screen)
        os.write(self._ours, keys.encode())
        deadline = time.monotonic() + 30
        while until not in self.screen[begin:]:
            ready, _, _ = select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"{until!r} did not come: {self.screen!r}"
            data = os.read(self._ours, 65536).decode(errors="replace")
            self.screen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][B0]?|\r", "", data)
        return self.screen[begin:]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_with_tab(name: str, tmp_path: Path) -> None:
    shell = Shell(name, tmp_path)
    try:
        shell.type("echo; dragoman translat\t", until="translate ")
        shell.type("\x15dragoman env claude-c\t", until="claude-code ")
        shell.type("\x15dragoman serve --provider zhip\t", until="zhipu ")
        shell.type("\x15dragoman models info ollama/granite4:la\t", until="latest ")
        (tmp_path / "a-body.sse").write_text("")
        shell.type("\x15dragoman decode a-bod\t", until="a-body.sse")
    finally:
        shell.end()


@pytest.mark.parametrize("fish", FISH)
def test_fish_completes(fish: str, tmp_path: Path) -> None:
    path = f"{install(tmp_path).parent}:{os.environ['PATH']}"
    (tmp_path / "a-body.sse").write_text("")
    for line, word in (("env claude-c", "claude-code"), ("decode a-bod", "a-body.sse"), ("models info oll", "ollama/")):
        script = f"dragoman completion fish | source; complete -C 'dragoman {line}'"
        run = subprocess.run(
            [fish, "--no-config", "-c", script], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
            env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        )  # fmt: skip
        assert word in [found.split("\t")[0] for found in run.stdout.splitlines()], run.stdout + run.stderr
