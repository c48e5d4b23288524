# ruff: noqa: E501 - scenes read best with a line a step
"""What a person does with the agent, step by step; played over a pseudo-terminal in the tests, and in tmux for the
screens that are kept."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from agent.driving import PROMPT, QUESTION, Terminal, at_prompt, chatting, enter, wait_for
from agent.playing import Playing, call, numbered, playing
from dragoman.protocols import PROTOCOLS
from dragoman.types import Part, ProtocolName, Request, Text, Thinking, ToolResult

FILE = "def area(radius):\n    return 3 * radius ** 2\n"
ANSWER = (
    "# Done\n\n`area` uses **math.pi** now:\n\n```python\nprint(area(1))\n```\n\n- changed `shape.py`\n- it prints 3.14"
)
TEST = "from shape import area\n\nprint(round(area(1), 2))\n"


def brain(request: Request) -> list[Part]:
    """Reads, edits, runs, answers; knows what it was told before, whoever was told it."""
    last = request.messages[-1]
    said = next(message.text for message in reversed(request.messages) if message.role == "user")
    turn = len(request.messages)
    if last.role == "user":
        if "remember" in said:
            numbers = [word for message in request.messages for word in message.text.split() if word.startswith("No-")]
            return [Thinking("Which numbers were there? " * 4), Text(f"I remember {', '.join(numbers) or 'nothing'}.")]
        if "look" in said:
            return numbered([Thinking("I should look. " * 12), call("list"), call("read", path="shape.py")], turn)
        if "count" in said:
            return [Text("one two three " * 400)]
        if "wait" in said:
            return numbered([call("run", argv=["sleep", "4711.25"])], turn)
        if "bump" in said:
            return numbered([call("run", argv=["sh", "-c", "echo x >> counter; sleep 60"])], turn)
        return numbered(
            [Thinking("I read it first. " * 12), Text("Let me read it."), call("read", path="shape.py")], turn
        )
    done = last.parts[-1]
    assert isinstance(done, ToolResult)
    if done.name == "read" and "use pi" in said:
        return numbered(
            [
                call("edit", path="shape.py", old="def area", new="import math\n\n\ndef area"),
                call("edit", path="shape.py", old="3 * radius", new="math.pi * radius"),
            ],
            turn,
        )
    if done.name == "edit":
        return numbered([Text("Now I try it."), call("run", argv=["python3", "try.py"])], turn)
    if done.name == "run":
        return [Text(ANSWER)]
    return [Text("I have seen the folder.")]


def prepare(place: Path) -> None:
    work = place / "work"
    work.mkdir(exist_ok=True)
    (work / "shape.py").write_text(FILE)
    (work / "try.py").write_text(TEST)


@contextlib.contextmanager
def five_providers(place: Path, *, delay: float = 0.0) -> Iterator[tuple[Path, dict[ProtocolName, Playing]]]:
    """A provider of each protocol, named after it, and the configuration that has them."""
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(playing(brain, name, delay=delay)) for name in sorted(PROTOCOLS)}
        config = place / "dragoman.toml"
        config.write_text("\n".join(server.table(name) for name, server in servers.items()))
        yield config, servers


def check_pairs(server: Playing) -> None:
    """Every request that the provider got was sound: calls before their results, each with one."""
    for request in server.requests:
        asked = [part.id for message in request.messages for part in message.tool_calls]
        answered = [
            part.call_id for message in request.messages for part in message.parts if isinstance(part, ToolResult)
        ]
        assert sorted(asked) == sorted(answered)


def task(kind: type, place: Path, protocol: ProtocolName) -> str:
    """Read → edit → run → answer, each change and command approved."""
    prepare(place)
    with five_providers(place) as (config, servers), chatting(kind, place, config, f"{protocol}/m") as terminal:
        wait_for(terminal, PROMPT)
        enter(terminal, "please use pi")
        for shown, answer in (("+import math", "y"), ("return math.pi", "y"), ("python3 try.py", "s")):
            at_prompt(terminal, shown, prompt=QUESTION)
            enter(terminal, answer)
        text = finished(terminal, "4 steps")
        check_pairs(servers[protocol])
        assert (place / "work" / "shape.py").read_text() == (
            "import math\n\n\ndef area(radius):\n    return math.pi * radius ** 2\n"
        )
    return text


def finished(terminal: Terminal, steps: str) -> str:
    """Until the turn is over."""
    return at_prompt(terminal, f"{steps} · ")


def switching(kind: type, place: Path) -> str:
    """One conversation over all five protocols, thinking and calls in its history."""
    prepare(place)
    order: list[ProtocolName] = [
        "anthropic-messages", "openai-chat", "gemini-generate", "openai-responses", "ollama-chat", "anthropic-messages",
    ]  # fmt: skip
    with five_providers(place) as (config, servers), chatting(kind, place, config, f"{order[0]}/m") as terminal:
        wait_for(terminal, PROMPT)
        text = ""
        for number, protocol in enumerate(order):
            if number:
                enter(terminal, f"/model {protocol}/m")
                at_prompt(terminal, f"→ {protocol}/m")
            enter(terminal, f"look around, the number is No-{number}")
            wait_for(terminal, "I have seen the folder.", count=number + 1)
            wait_for(terminal, "2 steps · ", count=number + 1)
            at_prompt(terminal, "2 steps · ")
        enter(terminal, "what do you remember?")
        wait_for(terminal, "I remember No-0,")
        text = at_prompt(terminal, "1 step · ")
        for server in servers.values():
            check_pairs(server)
        last = servers[order[-1]].requests[-1]
        assert sum(len(message.tool_calls) for message in last.messages) == 2 * len(order)
    return text


def commands(kind: type, place: Path) -> str:
    """The commands, after a turn that changed a file."""
    prepare(place)
    with (
        five_providers(place) as (config, _),
        chatting(kind, place, config, "openai-chat/m", "--allow", "edit") as terminal,
    ):
        wait_for(terminal, PROMPT)
        enter(terminal, "please use pi")
        at_prompt(terminal, "python3 try.py", prompt=QUESTION)
        enter(terminal, "not now")
        finished(terminal, "4 steps")
        shown = [
            ("/help", "go on with another model"), ("/tools", "needs no asking: edit"), ("/cost", "answers:"),
            ("/models openai-chat", "claims"), ("/model openai-chat/none", "has no model"), ("/undo", "shape.py: as it was"),
            ("/wire", "Finish"), ("/compact undo", "nothing was summarised"), ("/save my work", "kept as my work"),
            ("/resume", "began with"), ("/nonsense", "unknown command"), ("/clear", "a new conversation"),
            ("/resume my work", "messages with openai-chat/m"),
        ]  # fmt: skip
        for line, wanted in shown:
            before = terminal.text().count(wanted)
            enter(terminal, line)
            wait_for(terminal, wanted, count=before + 1)
            text = at_prompt(terminal, wanted)
        assert (place / "work" / "shape.py").read_text() == FILE
        terminal.type("\x04")
    return text


def stopping(kind: type, place: Path) -> str:
    """Ctrl-C in an answer and in a command; then the turn after it works."""
    prepare(place)
    with (
        five_providers(place, delay=0.01) as (config, servers),
        chatting(kind, place, config, "openai-chat/m") as terminal,
    ):
        wait_for(terminal, PROMPT)
        enter(terminal, "please count")
        wait_for(terminal, "one two three")
        terminal.type("\x03")
        at_prompt(terminal, "0 steps")
        enter(terminal, "please wait")
        at_prompt(terminal, "sleep 4711.25", prompt=QUESTION)
        enter(terminal, "y")
        _until_runs("sleep\x004711.25")
        terminal.type("\x03")
        wait_for(terminal, "Whether it had its effect")
        at_prompt(terminal, "1 step · ")
        enter(terminal, "what do you remember?")
        wait_for(terminal, "I remember nothing.")
        text = at_prompt(terminal, "I remember nothing.")
        check_pairs(servers["openai-chat"])
        assert _running("sleep\x004711.25") == []
    return text


def killed(kind: type, place: Path) -> str:
    """SIGKILL while a command runs; resumed, its outcome is asked about and it is not run again."""
    prepare(place)
    counter = place / "work" / "counter"
    with five_providers(place) as (config, servers):
        with chatting(kind, place, config, "openai-chat/m") as terminal:
            wait_for(terminal, PROMPT)
            enter(terminal, "please bump")
            at_prompt(terminal, "sh -c", prompt=QUESTION)
            enter(terminal, "y")
            while not counter.exists():
                terminal.text()
            os.kill(terminal.pid, signal.SIGKILL)
        with chatting(kind, place, config, "--resume") as terminal:
            wait_for(terminal, "whether it had its effect is not known")
            wait_for(terminal, "run it again?")
            enter(terminal, "n")
            wait_for(terminal, PROMPT)
            enter(terminal, "what do you remember?")
            wait_for(terminal, "I remember nothing.")
            text = at_prompt(terminal, "I remember nothing.")
        check_pairs(servers["openai-chat"])
        result = [part for message in servers["openai-chat"].requests[-1].messages for part in message.parts]
        assert any(isinstance(part, ToolResult) and "interrupted" in part.text for part in result)
    assert counter.read_text() == "x\n"
    return text


def _running(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
                if line.startswith(mark):
                    found.append(line)
    return found


def _until_runs(mark: str) -> None:
    while Path("/proc/self").exists() and not _running(mark):
        pass
