"""`dragoman chat` at a pseudo-terminal: the scenes that a person plays, and nothing of a model steers the terminal."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from agent import scenes
from agent.driving import PROMPT, QUESTION, PseudoTerminal, allow_the_command, at_prompt, chatting, enter, wait_for
from agent.playing import call, numbered, playing, script
from agent.test_hostile_repositories import REPOSITORIES, plant, trap
from agent.test_safe_text import SEQUENCES
from dragoman.agent.interface import CallBegins, CallEnded
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.ui import terminal
from dragoman.agent.ui.drawing import Screen
from dragoman.types import Message, Part, ProtocolName, Request, Text, Thinking, ToolCall, ToolResult


@pytest.mark.parametrize("protocol", ["anthropic-messages", "ollama-chat"])  # the others: make agent-screens
def test_reads_edits_runs_and_answers(tmp_path: Path, protocol: ProtocolName) -> None:
    text = scenes.task(PseudoTerminal, tmp_path, protocol)
    for line in ("▸ read shape.py", "+import math", "-    return 3 * radius ** 2", "python3 try.py", "3.14", "Done"):
        assert line in text
    assert "thought for" in text


def test_one_conversation_over_all_protocols(tmp_path: Path) -> None:
    scenes.switching(PseudoTerminal, tmp_path)


def test_the_commands(tmp_path: Path) -> None:
    text = scenes.commands(PseudoTerminal, tmp_path)
    assert "refused: the user said: not now" in text


def test_ctrl_c_stops_the_turn_and_keeps_the_conversation(tmp_path: Path) -> None:
    scenes.stopping(PseudoTerminal, tmp_path)


def test_killed_and_resumed(tmp_path: Path) -> None:
    scenes.killed(PseudoTerminal, tmp_path)


def test_three_hundred_escape_sequences_reach_the_terminal_from_nowhere(tmp_path: Path) -> None:
    """In text, thinking, a call's arguments, a file, a command's output and a model's name."""
    lines = [f"{sequence}MARK{number}" for number, sequence in enumerate(SEQUENCES) if "\n" not in sequence]
    everything = "\n".join(lines)

    def brain(request: Request) -> list[Part]:
        if request.messages[-1].role == "tool":
            return [Text(everything)]
        asks = [call("read", path="evil.txt"), call("run", argv=["cat", "evil.txt"]), call("fly", to=everything[:2000])]
        return numbered(
            [Thinking(everything), Text(everything), *asks, call("write", path="new.txt", content=everything)], 1
        )

    work = tmp_path / "work"
    work.mkdir()
    (work / "evil.txt").write_text(everything, encoding="utf-8")
    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        rules = ("--allow", "run:cat evil.txt", "--allow", "write:*.txt")
        with chatting(PseudoTerminal, tmp_path, config, "lab/m", *rules) as terminal:
            assert isinstance(terminal, PseudoTerminal)
            wait_for(terminal, PROMPT)
            enter(terminal, "go")
            allow_the_command(terminal)
            at_prompt(terminal, "2 steps · ")
            enter(terminal, "/wire")
            wait_for(terminal, "Finish stop")
            raw = terminal.raw.decode("utf-8", "replace")
    for line in lines:
        sequence = line.partition("MARK")[0]
        if sequence.strip("\t"):
            assert line not in raw, repr(line)
    assert (
        re.search(r"\x1b[\]PX^_]|[\x80-\x9f]|[\u202a-\u202e\u2066-\u2069\u200b\ufeff]|[\U000e0000-\U000e007f]", raw)
        is None
    )
    assert "\x07" not in raw


def test_a_folder_full_of_traps_sends_nothing_and_starts_nothing(tmp_path: Path) -> None:
    """All hostile repositories in one, with a person at the terminal who looks around and says no."""
    work, home, proof = tmp_path / "work", tmp_path / "home", tmp_path / "proof"
    work.mkdir()
    home.mkdir()
    reads = [call("list"), call("search", pattern="touch"), call("read", path="README.md")]
    asks = [call("run", argv=["git", "status"])]
    config = home / "mine.toml"
    with trap() as (url, seen), playing(script(list(reads), list(asks), "seen it all")) as server:
        for files in REPOSITORIES.values():
            plant(files, work, url, proof)
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m", home=home) as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "look around")
            at_prompt(terminal, "git status", prompt=QUESTION)
            enter(terminal, "n")
            at_prompt(terminal, "3 steps · ")
            enter(terminal, "/tools")
            at_prompt(terminal, "needs no asking: nothing but reading")
        assert seen == []
    assert not proof.exists()


def test_what_is_typed_over_several_lines_is_one_prompt(tmp_path: Path) -> None:
    seen: list[str] = []

    def brain(request: Request) -> list[Part]:
        seen.append(request.messages[-1].text)
        return [Text("read")]

    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            terminal.type("first\\\rsecond")
            terminal.type("\n")  # Ctrl-J
            enter(terminal, "third")
            at_prompt(terminal, "1 step · ")
            terminal.type("\x1b[A")  # the line before, from the history
            terminal.type("\r")
            wait_for(terminal, "1 step · ", count=2)
    assert seen == ["first\nsecond\nthird", "first\nsecond\nthird"]


def test_commands_and_files_are_completed(tmp_path: Path) -> None:
    seen: list[str] = []

    def brain(request: Request) -> list[Part]:
        seen.append(request.messages[-1].text)
        return [Text("read")]

    work = tmp_path / "work"
    work.mkdir()
    (work / "a-long-name.txt").write_text("x")
    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            terminal.type("read a-l\t")
            wait_for(terminal, "ong-name.txt")
            terminal.type("\r")
            at_prompt(terminal, "1 step · ")
            terminal.type("/hel\t")
            wait_for(terminal, "/help", count=2)
            terminal.type("\r")
            wait_for(terminal, "go on with another model")
    assert seen == ["read a-long-name.txt"]


def test_what_was_typed_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    def brain(request: Request) -> list[Part]:
        if request.messages[-1].role == "tool":
            return [Text("done")]
        return numbered([Text("word " * 60), call("write", path="new.txt", content="x")], 1)

    config = tmp_path / "dragoman.toml"
    with playing(brain, delay=0.02) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "go")
            wait_for(terminal, "word word")
            terminal.type("y\ry\n")
            at_prompt(terminal, "+x", prompt=QUESTION)
            terminal.type("no thanks\r")
            wait_for(terminal, "2 steps · ")
    assert "no thanks" in server.requests[-1].messages[-1].parts[0].text  # type: ignore[union-attr]
    assert not (tmp_path / "work" / "new.txt").exists()


def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    import subprocess

    from agent.driving import DRAGOMAN

    done = subprocess.run(
        [DRAGOMAN, "chat", "lab/m"], capture_output=True, text=True, cwd=tmp_path, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert "dragoman chat -p PROMPT" in done.stderr


def test_the_greeting_breaks_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    session: Any = SimpleNamespace(target="embedded/smollm2", messages=())
    holding = SimpleNamespace(summary="commands run in a sandbox", gaps=["no filter of system calls is known. " * 3])
    bench: Any = SimpleNamespace(holding=holding, folder=SimpleNamespace(path=Path("/srv/work")))
    lines = terminal._greeting(session, "", bench).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) > 5
    said = " ".join(lines)
    assert "its answers mean little. It only shows that everything works." in said and said.endswith("the commands.")


def test_a_conversation_that_goes_on_shows_its_calls_in_their_usual_line() -> None:
    calls = ToolCall("c1", "read", '{"path":"a.py"}'), ToolCall("c2", "search", '{"pattern":"\\u202ex"}')
    results = tuple(ToolResult(each.id, each.name, (Text("1 line"),)) for each in calls)
    history = [Message.user("Look."), Message("assistant", calls), Message("tool", results)]
    shown = io.StringIO()
    Screen(Console(file=shown, width=80)).show_history(history, {"c1": "read a.py"})
    assert shown.getvalue().splitlines() == [
        "› Look.", "▸ read a.py", '▸ search(pattern="<U+202E>x")', "  1 line", "  1 line",
    ]  # fmt: skip


def test_results_of_calls_that_run_at_once_stand_under_their_calls() -> None:
    async def do() -> Outcome:
        raise AssertionError

    calls = [ToolCall(f"c{number}", "read", "{}") for number in range(4)]
    plans = [Plan("read", "read", (), f"read {call.id}", call.id, do) for call in calls]
    for order in itertools.permutations(range(4)):
        shown = io.StringIO()
        screen = Screen(Console(file=shown, width=80))
        for call_, plan in zip(calls, plans, strict=True):
            screen.tell(CallBegins(call_, plan))
        for place in order:
            screen.tell(CallEnded(calls[place], plans[place], Outcome(f"result {place}"), was_run=True))
        lines = [line for place in range(4) for line in (f"▸ read c{place}", f"  result {place}")]
        assert shown.getvalue().splitlines() == lines
