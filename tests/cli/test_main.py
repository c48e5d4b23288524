"""The command line as a whole: help, exit statuses, extras, interruptions, colours."""

import argparse
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli.here import run_here
from dragoman import _json
from dragoman.cli.main import COMMANDS, load_command, main
from dragoman.cli.terminal import Paint, clip, harmless, harmless_json, is_colourful, render_table
from for_each import for_each

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def dragoman(*words: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1", **environ},
    )


def test_a_closed_standard_stream_is_no_error() -> None:
    """Each was a traceback."""
    for words, closed, status in (("apps", ">&-", 0), ("apps", "2>&- <&-", 0), ("call ollama/m -", "<&- >&-", 2)):
        script = f"exec '{sys.executable}' -m dragoman {words} {closed}"
        run = subprocess.run(["sh", "-c", script], capture_output=True, check=False, timeout=60)
        told = b"dragoman: a prompt is missing: expected text, got nothing\n" if status else b""
        assert (run.returncode, run.stderr) == (status, told), words


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    words = " ".join(out.split())  # summaries go on in the next line
    assert all(f"  {name} " in out and summary in words for name, summary in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example_within_the_terminal(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"example:\n  dragoman {name}" in out
    assert [line for line in out.splitlines() if len(line) > 80] == []
    described = " ".join((load_command(name).__doc__ or "").split())
    assert described and described in " ".join(out.split())


@for_each(
    "words", [[], ["modles"], ["decode"], ["decode", "--protocol", "soap"], ["--loud"], ["config", "destroy"], ["call"]]
)
def test_wrong_usage_is_2(words: list[str]) -> None:
    run = run_here(*words) if words else dragoman()
    assert run.returncode == 2
    assert run.stdout == b""
    assert run.stderr


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["modles"])
    assert "unknown command 'modles'; nearest: models; dragoman help lists them" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dragoman ")


def test_what_fails_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "nothing").write_bytes(b"")
    (tmp_path / "nothing.toml").write_text("[nothing")
    for words, status in (
        (["decode", "--protocol", "openai-chat", str(tmp_path / "nothing")], 1),
        (["config", "check", "--config", str(tmp_path / "nothing.toml")], 1),
        (["decode", "--protocol", "openai-chat", str(tmp_path / "nothing.sse")], 2),
        (["config", "check", "--config", str(tmp_path / "nothing.sse")], 2),
    ):
        run = run_here(*words)
        assert run.returncode == status
        assert run.stderr.count(b"\n") == 1 and run.stderr.startswith(b"dragoman: ")
        assert b"nothing" in run.stderr or b"an empty body" in run.stderr


def test_decoding_loads_no_network_and_no_event_loop() -> None:
    script = (
        "import sys\nfrom dragoman.cli.main import main\n"
        f"status = main(['decode', '--protocol', 'openai-chat', {str(EXAMPLES / 'glued.sse')!r}])\n"
        "print(*sorted({'aiohttp', 'asyncio', 'ssl', 'socket'} & set(sys.modules)), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert (run.returncode, run.stderr.strip()) == (0, b"")


@for_each(
    ("words", "modules", "extra"),
    [
        (["call", "ollama/granite4", "hi"], ["aiohttp", "httptools"], "proxy"),
        (["models", "list", "--provider", "ollama"], ["aiohttp", "httptools"], "proxy"),
        (["doctor"], ["aiohttp", "httptools"], "proxy"),
        (["demo"], ["xllamacpp"], "embedded"),
    ],
)
def test_a_missing_extra_is_answered_with_its_install_line(words: list[str], modules: list[str], extra: str) -> None:
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\n"
    script = f"{hidden}from dragoman.cli.main import main\nsys.exit(main({words!r}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert run.returncode == 1
    assert f'pip install "dragoman[{extra}]"'.encode() in run.stderr
    assert b"Traceback" not in run.stderr


def test_the_catalogue_needs_no_extra() -> None:
    script = (
        "import sys\nsys.modules.update(dict.fromkeys(['aiohttp', 'httptools']))\nfrom dragoman.cli.main import main\n"
        "sys.exit(main(['models', 'list', '--provider', 'anthropic']))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert run.returncode == 0 and b"anthropic/claude-" in run.stdout


def test_a_reader_that_leaves_is_no_complaint(tmp_path: Path) -> None:
    body = tmp_path / "long.sse"
    frame = b'data: {"choices":[{"index":0,"delta":{"content":"words"}}]}\n\n'
    body.write_bytes(frame * 50_000)
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", "decode", "--protocol", "openai-chat", str(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None and run.stderr is not None
        assert run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interruption_is_quiet() -> None:
    # A shell that runs the tests in the background leaves SIGINT ignored, which children would inherit.
    script = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from dragoman.cli.main import main\nsys.exit(main(['decode', '--protocol', 'openai-chat', '-']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdin is not None and run.stdout is not None and run.stderr is not None
        run.stdin.write(b'data: {"choices":[{"index":0,"delta":{"content":"words"}}]}\n\n')
        run.stdin.flush()
        assert run.stdout.readline()
        run.send_signal(signal.SIGINT)
        assert run.stderr.read() == b""
    assert run.returncode == 130


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@for_each(
    ("module", "words", "status"),
    [
        ("msgspec", ["--version"], -signal.SIGINT),  # the signal itself ends it; a shell gives 130 for that, too
        ("msgspec", ["serve", "--port", "0"], -signal.SIGINT),
        ("uvloop", ["serve", "--port", "0"], 130),
    ],
)
def test_an_interruption_while_modules_are_imported_is_quiet(
    module: str, words: list[str], status: int, tmp_path: Path
) -> None:
    """A module of that name interrupts the process while it is imported."""
    folder = tmp_path / f"{module} {words[0]}"
    folder.mkdir()
    (folder / f"{module}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = dragoman(*words, PYTHONPATH=path, HOME=str(tmp_path))
    assert (run.returncode, run.stdout, b"Traceback" in run.stderr) == (status, b"", False), run.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_unless_the_environment_says_otherwise() -> None:
    assert is_colourful(Terminal(), {"TERM": "xterm"})
    assert not is_colourful(Terminal(), {"NO_COLOR": "1"})
    assert not is_colourful(Terminal(), {"TERM": "dumb"})
    assert not is_colourful(io.StringIO(), {})
    assert is_colourful(io.StringIO(), {"FORCE_COLOR": "1"})
    assert Paint(colourful=False)("red", "word") == "word"
    assert Paint(colourful=True)("red", "word") == "\033[31mword\033[0m"


def test_a_terminal_that_knows_few_characters_is_no_fault() -> None:
    run = dragoman("demo", "--streams", PYTHONIOENCODING="ascii")
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"?" in run.stdout


def test_a_servers_words_cannot_steer_the_terminal_from_an_error() -> None:
    body = b'{"error": {"message": "bad \\u001b[2J request"}}'
    run = run_here("decode", "--protocol", "openai-chat", "--status", "400", stdin=body)
    assert run.returncode == 1
    assert b"bad" in run.stderr and b"\x1b" not in run.stderr + run.stdout


def test_a_models_words_cannot_steer_the_terminal() -> None:
    assert harmless("a\033[2Jb\x07c\x9bd\te\n") == "a�[2Jb�c�d\te\n"
    assert harmless("a\u202eb\u2066c\u200bd\U000e0041e\ud800f") == "abcde�f"
    # A name with a line end makes no further row, and none that turns the text around.
    assert render_table([["name", "price"], ["m\nfree", "1"], ["\u202em\u2028\tx", "2"]]) == (
        "name    price\nm free  1\nm  x    2\n"
    )
    assert clip("a\nb" + "c" * 20, 10) == "a bcccccc…"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
@example("\x7f\x9b31m\u202e\u2066\U000e0041é漢\x1b")
def test_json_on_a_terminal_keeps_its_values_and_does_not_steer(value: object) -> None:
    shown = harmless_json(_json.encode(value))
    assert json.loads(shown) == value
    assert harmless(shown.decode()) == shown.decode()


def test_what_is_no_text_stays_on_a_terminal() -> None:
    assert harmless_json(b"\xff\xc2\x9b") == b"\xff\\u009b"


def test_each_default_is_told_in_the_same_words() -> None:
    said = {}
    for command in COMMANDS:
        parser = argparse.ArgumentParser()
        load_command(command).add_arguments(parser)
        for action in parser._actions:
            if action.default in (None, False, "", "-", argparse.SUPPRESS) or action.default == []:
                continue
            if action.help != argparse.SUPPRESS:
                said[f"{command} {action.dest}"] = action.help or ""
    assert len(said) > 15
    assert not [place for place, words in said.items() if "(default: " not in words]
