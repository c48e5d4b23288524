"""What a person types beside prompts: single keys, `@file`, `!command`, keys between two prompts; and signs of life."""

from __future__ import annotations

import threading
from pathlib import Path

from agent.driving import PROMPT, QUESTION, PseudoTerminal, allow_the_command, at_prompt, chatting, enter, wait_for
from agent.playing import call, numbered, playing
from dragoman.types import Part, Request, Text, ToolResult


def test_one_key_answers_and_a_word_that_begins_with_it_is_a_reason(tmp_path: Path) -> None:
    """`y`, `s` and `n` need no Enter; "stop that" and "you must not" are refusals, whatever they begin with."""
    names = ["once.txt", "stop.txt", "you.txt", "no.txt"]

    def brain(request: Request) -> list[Part]:
        done = sum(isinstance(part, ToolResult) for message in request.messages for part in message.parts)
        if done == len(names):
            return [Text("done")]
        return numbered([call("write", path=names[done], content=f"content of {names[done]}")], done)

    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "go")
            for name, keys in zip(names, ("y", "stop that\r", "you must not\r", "n"), strict=True):
                at_prompt(terminal, f"+content of {name}", prompt=QUESTION)
                terminal.type(keys)
            wait_for(terminal, "5 steps · ")
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["once.txt"]
    results = [
        part.text for message in server.requests[-1].messages for part in message.parts if type(part) is ToolResult
    ]
    assert "stop that" in results[1] and "you must not" in results[2] and "refused" in results[3]


def test_an_answer_of_another_target_says_which_one_failed(tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    with playing(lambda _: [Text("here I am")]) as server:
        gone = '[providers.gone]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        config.write_text(f'{server.table()}\n{gone}[routes.fast]\ntargets = ["gone/m", "lab/m"]\n')
        with chatting(PseudoTerminal, tmp_path, config, "fast") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "hello")
            wait_for(terminal, "gone/m failed (connection); lab/m answered")


def test_ctrl_c_at_an_empty_prompt_says_how_to_end(tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    with playing(lambda _: [Text("never asked")]) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            terminal.type("half a thought")
            wait_for(terminal, "half a thought")
            terminal.type("\x03")
            wait_for(terminal, PROMPT, count=2)
            terminal.type("\x03")
            wait_for(terminal, "Ctrl-D or /quit ends the chat")
        assert server.requests == []


def test_keys_between_prompts_wait_for_the_next_one(tmp_path: Path) -> None:
    """What is typed while it works is not shown, answers no question, and stands at the next prompt, unsent."""
    seen: list[str] = []
    may_answer = threading.Event()

    def brain(request: Request) -> list[Part]:
        if request.messages[-1].role == "tool":
            return [Text("written")]
        seen.append(request.messages[-1].text)
        if len(seen) > 1:
            return [Text("read")]
        assert may_answer.wait(60)
        return numbered([call("write", path="new.txt", content="x")], 1)

    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "go")
            text = wait_for(terminal, "waiting for the model")
            terminal.type("y\rand then")
            wait_for(terminal, "waiting for the model", count=text.count("waiting for the model") + 3)
            assert "and then" not in terminal.text()
            may_answer.set()
            at_prompt(terminal, "+x", prompt=QUESTION)
            terminal.type("n")
            at_prompt(terminal, "› y", prompt="and then")
            enter(terminal, " this")
            at_prompt(terminal, "1 step · ")
    assert seen == ["go", "y\nand then this"]
    assert not (tmp_path / "work" / "new.txt").exists()


def test_files_and_commands_of_the_user_go_with_the_prompt(tmp_path: Path) -> None:
    def brain(request: Request) -> list[Part]:
        return [Text("read")]

    work = tmp_path / "work"
    work.mkdir()
    (work / "shape.py").write_text("def area(): ...\n")
    (work / ".env").write_text("KEY=not-for-you\n")
    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "!seq 1 30 | tail -n 12; pwd")
            text = at_prompt(terminal, "the model gets this with your next prompt")
            assert "19\n20\n" in text and QUESTION not in text
            enter(terminal, "explain @shape.py and @.env for @nobody, please")
            at_prompt(terminal, "By its name it holds keys", prompt="[y/n]")
            terminal.type("n")
            text = at_prompt(terminal, "1 step · ")
            assert "attached shape.py: 1 line" in text and "@.env is not attached" in text
            assert "@nobody is sent as typed" in text
            enter(terminal, "and now?")
            wait_for(terminal, "1 step · ", count=2)
            wait_for(terminal, "out · context")
    first, second = (request.messages for request in server.requests)
    prompt, output, file = (part.text for part in first[-1].parts if isinstance(part, Text))
    assert prompt == "explain @shape.py and @.env for @nobody, please"
    assert "seq 1 30 | tail -n 12; pwd" in output and "19\n20" in output and "data, whoever wrote it" in output
    assert "shape.py" in file and "def area(): ..." in file and "data, whoever wrote it" in file
    assert [part.text for part in second[-1].parts if isinstance(part, Text)] == ["and now?"]
    assert all("not-for-you" not in str(body) for body in server.bodies)


def test_results_unfold_and_a_resumed_conversation_is_shown(tmp_path: Path) -> None:
    seen: list[str] = []

    def brain(request: Request) -> list[Part]:
        if request.messages[-1].role == "tool":
            return [Text("**counted**")]
        seen.append(request.messages[-1].text)
        if len(seen) > 1:
            return [Text("read")]
        return numbered([call("run", argv=["seq", "701", "720"]), call("read", path="one.txt")], 1)

    work = tmp_path / "work"
    work.mkdir()
    (work / "one.txt").write_text("only line\n")
    config = tmp_path / "dragoman.toml"
    with playing(brain) as server:
        config.write_text(server.table())
        with chatting(PseudoTerminal, tmp_path, config, "lab/m", "--allow", "run:seq **") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "count")
            allow_the_command(terminal)
            text = at_prompt(terminal, "2 steps · ")
            assert "15 lines before (Ctrl-O shows all)" in text and "701" not in text.replace('"701"', "").replace(
                "seq 701", ""
            )
            terminal.type("a draft")
            terminal.type("\x0f")
            at_prompt(terminal, "only line")
            terminal.type("\x0f")
            at_prompt(terminal, "702\n")
            terminal.type("\r")
            at_prompt(terminal, "1 step · ")
            enter(terminal, "/unfold 3")
            at_prompt(terminal, "there are 2 results")
            terminal.type("\x04")
            wait_for(terminal, "/unfold 3")
        assert seen == ["count", "a draft"]
        with chatting(PseudoTerminal, tmp_path, config, "--resume") as terminal:
            text = at_prompt(terminal, "› a draft")
    for line in (
        "› count",
        "▸ seq 701 720",
        "15 lines before",
        "counted",
        "▸ read one.txt",
        "  only line",
        "› a draft",
    ):
        assert line in text
