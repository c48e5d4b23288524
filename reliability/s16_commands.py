# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""S16, S20: commands that a rule was not meant for, what is shown of a command and what runs, what reaches a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from dragoman import _json
from dragoman.agent.approval import Approvals, parse_rule
from dragoman.agent.interface import CallBegins, CallEnded, Failed, Shortened
from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed
from dragoman.agent.tools.run import run_tool, shell_tool
from dragoman.agent.ui.approval_view import show_action
from dragoman.agent.ui.drawing import Screen
from dragoman.agent.work_folder import WorkFolder
from dragoman.events import (
    Event,
    Failure,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingStart,
    ToolCallDelta,
    ToolCallStart,
)
from dragoman.types import ToolCall
from reliability.row import Result, Scale

#: Rules of people who meant well, and the command that each was written for.
RULES = {
    "run:git status": ["git", "status"],
    "run:git commit -m *": ["git", "commit", "-m", "words"],
    "run:git log **": ["git", "log", "main"],
    "run:ls **": ["ls", "src"],
    "run:python -m pytest **": ["python", "-m", "pytest", "tests"],
    "run:make te*": ["make", "test"],
    "run:cat docs/*": ["cat", "docs/a"],
    "run:npm run test": ["npm", "run", "test"],
}
#: What turns a command into another one, word by word: in place of a word, behind the last, before the first.
_WORDS = [
    ";", "&&", "||", "|", "&", "\n", "$(touch x)", "`touch x`", ">x", "<x", "${IFS}", "-c", "-exec", "--upload-pack=touch x",
    "--output=x", "-o", "-p", "--config=x", "--", "-", "", " ", "*", "**", "..", "../x", "/etc/passwd", "~", "a/b", "touch", "sh", "env",
    "git", "-C", "--exec-path=.", "--ext-diff", "-G.", "x;touch y", "x\ttouch", "x\ntouch y", "x touch", "'", '"', "\\", "%s", "!!", "#",
]  # fmt: skip
_HIDDEN = ["\0", "\r", "\x1b[2K", "\x08", "\u202e", "\u2066", "\u200b", "\u00ad", "\ufeff", "\u3164", "\ufe0f", "\U000e0041", "\x7f", "\x85", "\u2028", "\ue000"]  # fmt: skip
_ESCAPES = [
    "\x1b]0;t\x07", "\x1b]52;c;eA==\x07", "\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\", "\x1b[2J", "\x1b[1A", "\x1b[8m", "\x1b[?1049h", "\x1b[6n",
    "\x1bc", "\x1bP1$r\x1b\\", "\x1b_G\x1b\\", "\x1b^x\x1b\\", "\x1bX\x1b\\", "\x9b2J", "\x9d0;t\x9c", "\x90q\x9c", "\x9f\x9c", "\x1b", "\x9b",
    "\x07", "\x08", "\x0b", "\x0c", "\x0e", "\x7f", "\r", "\r\n\x1b[A", "\u202e", "\u2066", "\u200f", "\u200b", "\ufeff", "\U000e0041", "\ud800",
    "\x1b[38;5;1m", "\x1b[>c", "\x1b]1337;File=:\x07", "\x1b]9;x\x07", "\x1b(0", "\x1b#8", "\x1b]4;1;?\x07",
]  # fmt: skip
#: Raw in what a terminal gets: any of these but our own colours, line ends and tabs.
_RAW = re.compile(
    "\x1b(?!\\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|[\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|[\U000e0000-\U000e007f]|[\ud800-\udfff]"
)
_PRINT = "import sys; sys.stdout.buffer.write(b'\\0'.join(map(__import__('os').fsencode, sys.argv[1:])))"


def measure(scale: Scale) -> Iterator[Result]:
    """Adversarial commands against rules, what ran against what was shown, sequences at a terminal."""
    base = next(place for place in ("/var/opt", str(Path.home())) if os.access(place, os.W_OK))
    with tempfile.TemporaryDirectory(dir=base) as place:
        home, work = Path(place, "home"), Path(place, "home", "work")
        work.mkdir(parents=True)
        for name in ("git", "ls", "python", "make", "cat", "npm", "touch", "sh", "env"):
            (home / name).write_text("#!/bin/sh\n")
            (home / name).chmod(0o755)
        environ = {"PATH": f"{home}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
        sandbox = Sandbox(work, environ=environ, home=home, bubblewrap=find_bubblewrap(), is_wanted=True)
        with contextlib.closing(WorkFolder(work)) as folder:
            yield unasked(folder, sandbox)
            yield asyncio.run(shown(folder, sandbox, scale.pick(60, 15)))
    yield drawn()


def adversarial() -> Iterator[tuple[str, list[str]]]:
    """Commands that differ from what a rule was written for, each with the rule."""
    for rule, argv in RULES.items():
        for word in (*_WORDS, *(f"x{each}" for each in _HIDDEN)):
            for place in range(len(argv)):
                yield rule, [*argv[:place], word, *argv[place + 1 :]]
            yield rule, [*argv, word, "touch", "x"]
            yield rule, [word, *argv]
            yield rule, [f"{argv[0]}{word}", *argv[1:]]
            yield rule, [" ".join(argv), word]


def _is_meant(rule: str, argv: list[str]) -> bool:
    """Whether the rule's own words say so: each word the same, or where the rule has a star any word but an option."""
    wanted = shlex.split(rule.removeprefix("run:"))
    if wanted[-1] == "**":
        return argv[: len(wanted) - 1] == wanted[:-1] and not any(
            word.startswith("-") for word in argv[len(wanted) - 1 :]
        )
    if len(wanted) != len(argv):
        return False
    for mine, word in zip(wanted, argv, strict=True):
        head, star, tail = mine.partition("*")
        is_like = word == mine or (star != "" and mine == "*" and not word.startswith("-"))
        is_like |= (
            star != ""
            and mine != "*"
            and word.startswith(head)
            and word.endswith(tail)
            and "/" not in word[len(head) :]
        )
        if not is_like:
            return False
    return True


def unasked(folder: WorkFolder, sandbox: Sandbox) -> Result:
    """What rules let run that they do not say, and what is refused because it would not be seen."""
    run, shell = run_tool(folder, sandbox), shell_tool(folder, sandbox)
    tried = wrong = hidden = 0
    seen = set()
    for rule, argv in adversarial():
        if (rule, *argv) in seen:
            continue
        seen.add((rule, *argv))
        tried += 1
        approvals = Approvals([parse_rule(rule)], is_confined=True)
        with contextlib.suppress(ToolFailed):
            plan = run.plan(ToolCall("c", "run", _json.to_text({"argv": argv})))
            wrong += approvals.covers(plan) and not _is_meant(rule, argv)
            hidden += any(each in word for each in _HIDDEN for word in argv)
        for script in (shlex.join(argv), " ".join(argv)):
            with contextlib.suppress(ToolFailed):
                wrong += approvals.covers(shell.plan(ToolCall("c", "shell", _json.to_text({"script": script}))))
    words = (
        f"{wrong} of {tried:,} run unasked that no rule says, {hidden} with a character that is not seen are planned"
    )
    return Result(
        "S16", "0 of ≥ 500 adversarial commands run unasked", words, tried >= 500 and not wrong and not hidden
    )


async def shown(folder: WorkFolder, sandbox: Sandbox, count: int) -> Result:
    """What a program gets is what stands in the question, word by word."""
    python = os.path.realpath(sys.executable)
    words = [
        *_WORDS,
        "ä",
        "漢字",
        "x" * 3_000,
        "a\nb" * 50,
        "[y] once  [s] ",
        "│ x",
        "é\u0301",
        "\u00a0",
        "\u0430bc",
        "<U+202E>",
    ]
    lists = [list(each) for each in itertools.chain(itertools.combinations(words, 2), ([word] for word in words))]
    wrong = 0
    for argv in lists[:: max(1, len(lists) // count)]:
        command = [python, "-I", "-S", "-c", _PRINT, *argv]
        plan = run_tool(folder, sandbox).plan(ToolCall("c", "run", _json.to_text({"argv": command})))
        finished = await sandbox.run(command, seconds=20)
        ran = finished.output.split("\0")
        rows = show_action(plan, width=80, height=60, whole=True).text.plain.split("\n")
        told = "".join(row.removeprefix("│ ") for row in rows)
        said = shlex.split(plan.action)
        wrong += (
            ran != argv
            or said != command
            or (told.isascii() and "<U+" not in told and told != plan.action.replace("\n", ""))
        )
    # Every plan's words, without running them: what is shown reads back as what would run.
    for argv in lists:
        plan = run_tool(folder, sandbox).plan(ToolCall("c", "run", _json.to_text({"argv": ["touch", *argv]})))
        wrong += tuple(shlex.split(plan.action)) != plan.subject or plan.subject != ("touch", *argv)
    return Result(
        "S16",
        "what is shown is what runs",
        f"{wrong} of {len(lists):,} commands differ, {count} of them run",
        not wrong,
    )


def drawn() -> Result:
    """Sequences in everything that is drawn: an answer in pieces, a call, a question, a result, a failure, a summary."""
    raw, tried = [], 0
    texts = [each for one in _ESCAPES for each in (one, f"a{one}b", f"{one}{one}[2J", f"{one}\n{one}x", one * 40)]
    texts += [f"{one}{other}x" for one, other in itertools.product(_ESCAPES[:12], _ESCAPES[1::3])]
    for text in texts:
        tried += 1
        console = Console(file=io.StringIO(), width=60, height=30, force_terminal=True, legacy_windows=False)
        screen = Screen(console)
        events: list[Event] = [TextStart(0), *(TextDelta(0, piece) for piece in (*text, text, "\n")), TextEnd(0)]
        screen.show(events)
        screen.show([ThinkingStart(1), ThinkingDelta(1, text), ToolCallStart(2, "c", text), ToolCallDelta(2, text)])
        screen.close()
        call = ToolCall("c", text, text)
        plan = Plan("run", "run", (text,), f"{text}\n(facts)", text, None, diff=f"+{text}\n", facts="(facts)")  # type: ignore[arg-type]
        screen.show_plan(plan, whole=True)
        screen.say(text)
        for is_run in (True, False):
            screen.tell(CallBegins(call, plan))
            screen.tell(CallEnded(call, plan, Outcome(text, is_error=is_run), was_run=is_run))
        screen.tell(Failed(Failure("server", text)))
        screen.tell(Shortened(1, 2, 1, text, by_model=True))
        shown_text = console.file.getvalue()  # type: ignore[attr-defined]
        # What rich itself writes to hide the cursor and to move within its own region is no text of others.
        left = re.sub(r"\x1b\[(?:\?25[lh]|\d*A|2K|1?K)|\r", "", shown_text)
        if _RAW.search(left) is not None:
            raw.append(ascii(text[:40]))
    words = f"{len(raw)} of {tried} texts reach the terminal raw{': ' + ', '.join(raw[:5]) if raw else ''}"
    return Result("S20", "0 of ≥ 300 escape sequences reach the terminal", words, tried >= 300 and not raw)
