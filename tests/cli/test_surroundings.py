"""Each command where its output cannot be written, and with a configuration that is no file or no text: a status of its
own and one line that says why, no traceback, and nothing done that is not told.
"""

from __future__ import annotations

import io
import itertools
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from dragoman.cli.main import COMMANDS, main
from dragoman.config import load_config
from dragoman.errors import ConfigError

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
GLUED = str(EXAMPLES / "glued.sse")
NOWHERE = "http://127.0.0.1:9"
#: What each command is asked, where that is more than its name.
ASKED: dict[str, list[list[str]]] = {
    "call": [["ollama/m", ""]],
    "chat": [["-p", "hi", "nobody/m"]],
    "serve": [["--port", "99999"]],
    "env": [["codex"]],
    "tail": [["--url", NOWHERE]],
    "keys": [["list"], ["new"], ["new", "ci"], ["new", "ci", "--json"]],
    "budget": [["list"], ["set", "all", "5/month"]],
    "spend": [[], ["--json"]],
    "ledger": [["check"]],
    "config": [["show"], ["path"], ["check"]],
    "completion": [["bash"], ["zsh"], ["fish"]],
    "validate": [["nobody/m"]],
    "decode": [[GLUED]],
    "translate": [[GLUED, "--to", "anthropic"]],
    "record": [["nobody"]],
    "explain": [["--from", "openai", "--to", "ollama/m"]],
    "demo": [["--streams"]],
    "models": [["anthropic"]],
    "apps": [[]],
}
LINES = [[name, *words] for name, lines in ASKED.items() for words in lines]
LINES += [["help", name] for name in COMMANDS] + [["--version"], ["--help"], ["help"], [], ["nonsense"]]


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def left_pipe() -> int:
    read, write = os.pipe()
    os.close(read)
    return write


def status_of(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as ended:
        return int(str(ended.code))


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    return tmp_path


def test_an_output_that_takes_nothing_ends_each_command_with_a_status_and_a_line(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ASKED.keys() == COMMANDS.keys() - {"doctor"}, "a line for each command that waits for no server"
    problems = []
    for place, (words, opened) in enumerate(itertools.product(LINES, (full_disk, left_pipe))):
        monkeypatch.setenv("XDG_STATE_HOME", str(own_folders / str(place)))
        told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        asked = io.TextIOWrapper(io.BytesIO(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'))
        with (
            open(opened(), "w", encoding="utf-8") as out,
            patch("sys.stdout", out),
            patch("sys.stderr", told),
            patch("sys.stdin", asked),
        ):
            status = status_of(words)
        told.flush()
        err = told.buffer.getvalue().decode()  # type: ignore[attr-defined]
        is_loud = opened is left_pipe or status != 1 or err.count("dragoman: ") == 1
        if status not in (0, 1, 2) or "Traceback" in err or not is_loud:
            problems.append((words, opened.__name__, status, err))
        if words[:2] == ["keys", "new"] and "ci" in words:
            assert "the key ci was made, and nobody has seen it: dragoman keys rotate ci makes another" in err
    assert problems == []


def test_a_hint_that_nobody_can_read_changes_no_status(own_folders: Path) -> None:
    """Python's own flush at the exit failed, with 120."""
    for words in (["keys", "list"], ["budget", "set", "all", "5/month"], ["spend"]):
        with open(full_disk(), "w", encoding="utf-8") as full, patch("sys.stderr", full):
            assert status_of(words) == 0
            full.flush()


def made(kind: str, file: Path) -> str:
    """Put something at the place of the configuration. Return what is told of it."""
    match kind:
        case "a folder":
            file.mkdir()
        case "a pipe":
            os.mkfifo(file)
        case "a link to nothing":
            file.symlink_to(file.parent / "gone.toml")
            return "expected a configuration file, found none"
        case "a link to itself":
            file.symlink_to(file)
            return "cannot be read: "
        case "Latin-1":
            file.write_bytes(b"[server]\n# caf\xe9\n")
            return "expected UTF-8, got other bytes in line 2"
        case "UTF-16":
            file.write_bytes("[server]\n".encode("utf-16"))
            return "expected UTF-8, got other bytes in line 1"
    return "expected a regular file, found something else"


KINDS = ("a folder", "a pipe", "a link to nothing", "a link to itself", "Latin-1", "UTF-16")


def test_a_configuration_that_is_no_text_is_refused_at_its_usual_place_too(tmp_path: Path) -> None:
    """A folder, a pipe and a link to nothing there were taken for none: a gateway started without its keys."""
    for kind in KINDS:
        environ = {name: str(tmp_path / kind) for name in ("XDG_CONFIG_HOME", "APPDATA")}
        file = tmp_path / kind / "dragoman" / "dragoman.toml"
        file.parent.mkdir(parents=True)
        told = made(kind, file)
        for path in (None, file):
            with pytest.raises(ConfigError) as refused:
                load_config(path, environ=environ, home=tmp_path)
            assert str(refused.value).startswith(f"{file}: {told}"), kind


def test_a_configuration_may_be_written_on_windows(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    for begin, end in ((b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n"), (b"\xef\xbb\xbf", b"\r\n")):
        file.write_bytes(begin + end.join([b"[routes.fast]", b'targets = ["ollama/m"]', b""]))
        assert set(load_config(file, environ={}, home=tmp_path).routes) == {"fast"}
