"""What people get wrong in their first hour: each is told what is wrong, where, and what to do."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import COMMANDS, GROUPS, load_command, main, make_parser
from dragoman.cli.terminal import hint
from scripted import serving, streamed

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
GLUED = str(EXAMPLES / "glued.sse")
TOOLS = str(EXAMPLES / "tools.json")
#: Commands that read a configuration, and the words that each needs besides.
CONFIGURED: dict[str, list[str]] = {
    "call": ["hi"], "chat": ["-p", "hi"], "models": [], "serve": [], "env": ["zed"], "tail": [], "keys": ["list"],
    "budget": ["list"], "spend": [], "ledger": ["check"], "doctor": [], "config": ["check"], "validate": ["ollama/m"],
    "record": ["ollama"], "explain": ["--from", "openai", "--to", "ollama/m"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)


def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "dragoman.toml").write_text(text)
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        status = main(list(words))
    except SystemExit as ended:
        status = int(str(ended.code))
    out = capsys.readouterr()
    return status, out.out, out.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["call", "ollama/granite4"], 2, "a prompt is missing; say: dragoman call ollama/granite4 PROMPT"),
        (["call", "ollama/granite4", " "], 2, "a prompt is missing"),
        (["call", "ollama/m", "hi", "--tools", "nosuch.json"], 2, "--tools nosuch.json: there is no such file"),
        (["call", "ollama/m", "hi", "--tools", TOOLS, "--tool-choice", "foo"], 2, "'foo'; --tools has: get_weather"),
        (
            ["call", "ollama/m", "hi", "--tool-choice", "foo"],
            2,
            "auto, none, required or a tool's name, got 'foo'; no tools are offered: say --tools FILE",
        ),
        (["call", "ollama/m", "hi", "--tool-choice", "any"], 2, "no tools are offered"),
        (["call", "ollama/m", "hi", "--image", "nosuch.png"], 2, "--image nosuch.png: there is no such file"),
        (["call", "ollama/m", "hi", "--image", TOOLS], 2, "expected a PNG, JPEG, GIF or WebP file"),
        (["call", "ollama/m", "hi", "--schema", GLUED], 2, "expected a JSON schema"),
        (["call", "ollama/m", "hi", "-c"], 2, "no call has answered yet"),
        (["env", "zed", "--shell"], 1, "Zed takes no variables; say: dragoman env zed"),
        (["chat", "ollama/m", "-p", "hi", "--allow", "everything"], 2, "--allow: there is no tool 'everything'"),
        (["chat", "ollama/m", "-p", "hi", "--allow", "edti:a"], 2, "nearest: edit"),
        (
            ["chat", "ollama/m", "-p", "hi", "--allow", "edit:**"],
            2,
            "would allow everything of edit; name what: edit:src",
        ),
        (["call", "lab/m1"], 2, "a prompt is missing; say: dragoman call lab/m1 PROMPT"),
        (["call", "ollama/m", "hi", "--max-tokens", "abc"], 2, "expected a whole number, at least 1, got 'abc'"),
        (["call", "nope/m", "hi"], 2, "unknown provider 'nope'; `dragoman models --all` lists them"),
        (["keys", "new", "ci", "--label", "x"], 2, "--label: expected NAME=VALUE, got 'x'"),
        (["budget", "set", "key", "ci"], 2, "set: expected an amount and a period, like 500/month, got 'ci'"),
        (["budget", "set", "all", "1/day", "--unit", "concurrent"], 2, "expected a number alone, got '1/day'"),
        (["budget", "show"], 2, "show: expected a scope, like team:research or all"),
        (["explain", "body.json"], 2, "expected --from PROTOCOL and --to TARGET for a body, or --id ID"),
        (["tail", "--url", "foo"], 2, "--url: expected an address like http://127.0.0.1:4141, got 'foo'"),
        (["env", "zed", "--url", "http://[::1"], 2, "--url: expected an address like http://127.0.0.1:4141"),
        (["record", "http://[::1"], 2, "expected a provider or an address like http://127.0.0.1:11434"),
        (["validate", "ollama/m", "--jobs", "x"], 2, "--jobs: expected a whole number, at least 1, got 'x'"),
        (["serve", "--workers", "0"], 2, "--workers: expected a whole number, at least 1, got '0'"),
        (["ledger", "copy", "--to", "foo"], 2, "--to: expected sqlite, or postgresql://"),
        (["ledger", "export", "nowhere/x.csv"], 2, "export nowhere/x.csv: there is no folder nowhere"),
        (["validate", "ollama/m", "--export", "nowhere/x"], 2, "--export nowhere/x: there is no folder nowhere"),
        (["budget", "remove", "key:nope"], 2, "there is none for key:nope; dragoman budget list shows all"),
        (["explain", "--id", "x", "--log", "nosuch.log"], 2, "--log nosuch.log: there is no such file"),
        (["config", "check", "nosuch.toml"], 2, "--config nosuch.toml: there is no such file"),
        (["decode", TOOLS], 2, "cannot tell the protocol of the body"),
        (["decode", "--protocol", "soap", GLUED], 2, "expected one of ollama, openai, responses, anthropic, gemini"),
        (["decode", "--protocol", "anthropic-messages", GLUED], 1, "this looks like openai-chat"),
        (["help", "modles"], 2, "nearest: models"),
        (["help", "--help"], 0, ""),
        (["keys", "new", "ci", "--team", "a b"], 2, "team: expected a name of letters, digits and . _ @ -"),
        (["validate", "ollama/m", "--seed", "\udc80"], 2, "--seed: expected a text in UTF-8"),
        (["ledger", "check", "--since", "7d"], 2, "--since: not for check, only for export"),
        (["ledger", "status", "some.csv"], 2, "FILE|ID: not for status, only for export, adjust"),
        (["budget", "list", "--zone", "UTC"], 2, "--zone: not for list, only for set, remove"),
        (["budget", "list", "team:research"], 2, "SCOPE: not for list, only for set, remove, show"),
        (["keys", "list", "--label", "a=b"], 2, "--label: not for list, only for new"),
        (["keys", "show", "ci", "--keep", "1h"], 2, "--keep: not for show, only for rotate"),
        (["decode", "--status", "abc", GLUED], 2, "--status: expected an HTTP status from 100 to 599, got 'abc'"),
        (["keys", "nwe"], 2, "expected one of new, list, show, disable, enable, rotate, got 'nwe'; nearest: new"),
        (["config", "check", "--json"], 2, "--json: not for check, only for show"),
    ],
)
def test_misuse_is_told(
    words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    more = ["--folder", str(tmp_path / "work")] if words[0] == "chat" else []
    got, _, err = said(capsys, *words, *more)
    assert (got, message in err) == (status, True), err
    assert "Traceback" not in err and "[Errno" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["decode", "FILE"],
        ["decode", "--request", "FILE", "--protocol", "openai", GLUED],
        ["decode", "--tools", "FILE", GLUED],
        ["translate", "--to", "anthropic", "FILE"],
        ["translate", "--from", "openai", "--to", "anthropic", "FILE"],
        ["explain", "--from", "openai", "--to", "anthropic/claude-sonnet-5", "FILE"],
        ["call", "ollama/m", "hi", "--tools", "FILE"],
        ["call", "ollama/m", "hi", "--schema", "FILE"],
        ["call", "ollama/m", "hi", "--image", "FILE"],
        ["chat", "ollama/m", "-p", "hi", "--tools", "FILE"],
        ["validate", "--import", "FILE"],
        *([name, "--config", "FILE", *more] for name, more in CONFIGURED.items()),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = said(capsys, *("nosuch.py" if word == "FILE" else word for word in words))
    assert (status, out) == (2, "") and "nosuch.py: there is no such file\n" in err and err.count("\n") == 1


def test_a_word_of_any_length_is_clipped_and_a_lone_pair_of_dashes_is_no_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--config=--` ended with a traceback before Python 3.13, and an error showed a word of any length whole."""
    for name in COMMANDS:
        for action in make_parser(name, load_command(name))._actions:
            option = (action.option_strings or [""])[-1]
            for word in ("--", "x" * 5_000) if option and action.nargs != 0 and action.choices else ("--",):
                if option and action.nargs != 0:
                    status, _, err = said(capsys, name, f"{option}={word}")
                    assert (status, len(err.splitlines()[-1]) < 700) == (2, True), (name, option, err)
                    assert option in err.splitlines()[-1]
        status, _, err = said(capsys, name, f"--nosuch{'x' * 5_000}\x1b[31m")
        assert status == 2 and len(err.splitlines()[-1]) < 700 and "\x1b" not in err


def test_each_command_with_options_for_a_file_of_settings_is_tried() -> None:
    has_config = {
        name
        for name in COMMANDS
        if any("--config" in action.option_strings for action in make_parser(name, load_command(name))._actions)
    }
    assert has_config == set(CONFIGURED)


def test_a_folder_is_no_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert said(capsys, "decode", str(tmp_path)) == (2, "", f"dragoman: {tmp_path}: Is a directory\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_its_words_names_the_choices(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the first word is one of a few, its absence and a wrong one name them all."""
    positional = [action for action in make_parser(name, load_command(name))._actions if not action.option_strings]
    choices = [str(choice) for choice in (positional[0].choices or ())] if positional else []
    for words in ([], ["frobnicate"]) if choices and positional[0].nargs is None else ():
        status, _, err = said(capsys, name, *words)
        assert status == 2 and all(choice in err.splitlines()[-1] for choice in choices)


def test_a_configuration_may_be_named_without_its_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://[::1"\n')
    status, out, err = said(capsys, "config", "check", str(file))
    assert (status, out) == (1, "")
    assert err == f"dragoman: {file}: providers.lab.base_url: expected http://… or https://…, got 'http://[::1'\n"


def test_a_body_with_nothing_of_its_protocol_is_not_called_empty(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "body").write_bytes(b"{}")
    status, _, err = said(capsys, "decode", "--protocol", "anthropic", str(tmp_path / "body"))
    assert status == 1 and "got a body with nothing of this protocol" in err
    (tmp_path / "body").write_bytes(b"")
    assert "got an empty body" in said(capsys, "decode", "--protocol", "anthropic", str(tmp_path / "body"))[2]


def test_the_protocol_may_be_short_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    results = {
        said(capsys, "decode", *option, "--result", GLUED)[1]
        for option in (["--protocol", "openai-chat"], ["--protocol", "openai"], [])
    }
    assert len(results) == 1 and json.loads(results.pop())["stop_reason"] == "tool_use"
    status, out, _ = said(capsys, "translate", "--to", "anthropic", GLUED)
    assert status == 0 and out.startswith("event: message_start")


def test_a_page_in_place_of_a_response_is_clipped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>It works!</p>\n" * 10_000)
    status, out, err = said(capsys, "decode", "--protocol", "openai", str(page))
    assert status == 1 and "It works!" in out
    assert out.count("\n") == err.count("\n") == 1 and len(out) < 2_000 and len(err) < 700


@pytest.mark.parametrize("words", [("decode", GLUED), ("help", "call"), ("decode", "--help")])
def test_a_write_error_is_one_line(words: tuple[str, ...]) -> None:
    if not Path("/dev/full").exists():
        pytest.fail("this test wants /dev/full")
    for unbuffered in ("", "1"):
        with Path("/dev/full").open("wb") as full:
            run = subprocess.run(
                [sys.executable, "-m", "dragoman", *words], stdout=full, stderr=subprocess.PIPE, check=False,
                timeout=60, env={**os.environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": unbuffered},
            )  # fmt: skip
        assert run.returncode == 1
        assert run.stderr == b"dragoman: cannot write the output: no space is left there\n"


def test_a_hint_that_a_full_disk_keeps_back_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.StringIO):
        number = errno.ENOSPC

        def flush(self) -> None:
            raise OSError(self.number, os.strerror(self.number))

    monkeypatch.setattr("sys.stderr", failing := Failing())
    hint("listening soon\n")
    failing.number = errno.EPIPE  # its reader has left, and so does the command
    with pytest.raises(BrokenPipeError):
        hint("listening soon\n")


def test_a_reader_who_has_left_ends_it_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "dragoman", "decode", GLUED]
    run = subprocess.run(words, stdout=write, stderr=write, check=False, timeout=60)
    os.close(write)
    assert run.returncode == 1  # and not 120, which is Python's own


def test_an_empty_body_is_said_to_be_empty(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (empty := tmp_path / "empty.sse").write_text("\n")
    status, out, err = said(capsys, "decode", str(empty))
    assert (status, out) == (2, "")
    assert err.endswith("empty.sse: expected the body of a response, got nothing\n")


def test_help_and_version_have_every_usual_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "-V") == said(capsys, "--version")
    assert said(capsys, "help") == said(capsys, "--help")
    assert said(capsys, "help", "call") == said(capsys, "call", "--help")
    _, out, _ = said(capsys, "help")
    assert all(f"\n{title}:\n" in out for title in GROUPS)
    assert [name for group in GROUPS.values() for name in group] == list(COMMANDS)
    for word in ("DRAGOMAN_CONFIG", "NO_COLOR", "2    the command line is wrong", "130  interrupted"):
        assert word in out


# ---------------------------------------------------------------- what call sends


def chat(text: str) -> Any:
    chunk = {"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return streamed(b"data: " + json.dumps(chunk).encode() + b"\n\n", b"data: [DONE]\n\n")


def test_call_sends_system_image_and_schema_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.png").write_bytes(b"\x89PNG\r\n\x1a\nrest")
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    with serving(chat("Yes."), chat("No.")) as server:
        configured(tmp_path, monkeypatch, f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{server.url}/v1"\n')
        image, schema = str(tmp_path / "one.png"), str(tmp_path / "schema.json")
        first = said(capsys, "call", "lab/m", "Is it?", "--system", "Be short.", "--image", image, "--schema", schema)
        second = said(capsys, "call", "-c", "And now?")
        asked, again = (seen.json for seen in server.requests)
    assert first[:2] == (0, "Yes.\n") and second[:2] == (0, "No.\n")
    assert asked["messages"][0] == {"role": "system", "content": "Be short."}
    assert asked["messages"][1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert asked["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert [one["role"] for one in again["messages"]] == ["system", "user", "assistant", "user"]
    assert again["messages"][2]["content"] == "Yes." and again["messages"][3]["content"] == "And now?"
    kept = tmp_path / "state" / "dragoman" / "last-call.json"
    assert kept.stat().st_mode & 0o777 == 0o600
