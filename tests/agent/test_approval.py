# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Approvals: what is shown is what is run, nothing is allowed by its beginning, and a yes holds for the same alone."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.faces import Bench, Watching
from agent.playing import call, script
from dragoman.agent.approval import Approvals, Rule, parse_rule
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.tool_plan import Plan, ToolFailed
from dragoman.agent.tools.run import run_tool, shell_tool
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.agent.work_folder import WorkFolder
from dragoman.errors import UsageError
from dragoman.types import ToolCall

#: A user's rules; none of the commands below is what they name.
RULES = ["run:git status", "run:ls", "run:echo hello", "run:cat *.md", "run:python -m pytest **", "shell:make test"]

_PREFIXED = [
    ["git", "status", more] for more in ("-s", "--help", ";", "&&", "|", "`id`", "$(id)", "--output=/etc/x", "\n", "x")
]
_CONFIGURED = [
    ["git", flag, "status"] for flag in ("-c", "-ccore.pager=id", "--exec-path=/tmp", "-C/", "-p", "--git-dir=/x")
]
_SPELLED = [["Git", "status"], ["GIT", "status"], ["./git", "status"], ["/usr/bin/git", "status"], ["git", "Status"], ["git ", "status"],
            [" git", "status"], ["git", " status"], ["git status"], ["git", "status", ""], ["gi", "t", "status"], ["gіt", "status"],
            ["git", "stаtus"], ["\\git", "status"], ["git\u200b", "status"], ["git", "status\u202e"], ["git", "sta\0tus"],
            ["git\0", "status"], ["git", "status\r"], ["git", "status\nrm"], ["env", "git", "status"], ["sudo", "git", "status"],
            ["nice", "git", "status"], ["sh", "-c", "git status"], ["bash", "-lc", "git status"], ["xargs", "git", "status"]]  # fmt: skip
_SHELLS = [[shell, "-c", words] for shell in ("sh", "bash", "dash", "/bin/sh", "busybox", "python", "perl", "env") for words in
           ("ls", "echo hello", "git status", "make test", "git status; id", "true && git status", "git status #", ":;" * 60 + "id")]  # fmt: skip
_GLOBBED = [
    ["cat", word]
    for word in ("-n.md", "--help.md", "a/b.md", "../x.md", "/etc/x.md", "-.md", "a.mdx", "a.MD", "a.md ", "a.md\n")
]
_MORE = [["cat", "a.md", word] for word in ("/etc/passwd", "b.md", "-A", ">", "|", "id", "../../x")]
_TESTS = [["python", "-m", "pytest", word] for word in ("-p", "--rootdir=/", "-c/x", "--pyargs", "-x", "--", "-")]
_TESTS += [["python", word, "pytest", "tests"] for word in ("-c", "-im", "-mm", "m", "--m", "-M")] + [
    ["python", "-m", "pytestx"]
]
_TESTS += [
    ["python", "-m", "pytest", "tests", "-p", "evil"],
    ["python3", "-m", "pytest"],
    ["python", "-m", "pip", "install", "x"],
]
_OTHERS = [[program, *words] for program in ("ls", "echo", "git", "cat", "id", "curl", "rm", "chmod", "dd", "nc") for words in
           (["-la"], ["hello", "there"], ["hello;id"], ["$(id)"], ["`id`"], ["|", "sh"], [">", "/etc/x"], ["-rf", "/"], ["&"], ["\\\n", "id"],
            ["hello\u2028id"], ["'"], ['"'], ["hello\x1b[2K"], ["*"], ["~"], ["{a,b}"], ["!!"], ["-exec", "id", ";"], ["--", "hello"])]  # fmt: skip
_LONG = [["git", *["status"] * count] for count in (2, 3, 10, 50, 51, 999)] + [
    ["git status"] * count for count in (1, 2, 50)
]
_JOINED = [[";".join([*["true"] * count, "git status"])] for count in (1, 10, 49, 50, 51, 200)]
_HIDDEN = [
    ["echo", f"hello{chr(code)}"]
    for code in (*range(9), *range(0xB, 0x20), 0x7F, *range(0x80, 0xA0), 0x202A, 0x202E, 0x2066, 0xFEFF)
]
_CLOSE = (
    [["ls", f"{word}"] for word in "abcdefghij"]
    + [[f"l{letter}"] for letter in "abcdefgh"]
    + [[f"ls{letter}"] for letter in ";|&>\n\t "]
)
_SCRIPTS = ["make test ", " make test", "make  test", "make test;id", "make test\nid", "make\ttest", "make test &", "make test|sh", "make test #x",
            "make tests", "Make test", "make test\\", "(make test)", "make -f x test", "$(make test)", "X=1 make test", "make test > x"]  # fmt: skip
_ENDED = [[*base, end] for base in (["git", "status"], ["echo", "hello"], ["python", "-m", "pytest"]) for end in
          ("-x;id", "--a|sh", "-$(id)", "-`id`", "-&", "->/etc/x", "-<x", "-\\", "-*", "-~", "-'", '-"', "-{a,b}", "-!!", "-#", "-\n", "-%0a",
           "--plugin=evil", "-vv", "-k", "-o", "-D", "-n", "-W", "-pevil")]  # fmt: skip
COMMANDS = [
    *_PREFIXED, *_CONFIGURED, *_SPELLED, *_SHELLS, *_GLOBBED, *_MORE, *_TESTS, *_OTHERS, *_LONG, *_JOINED, *_HIDDEN, *_CLOSE, *_ENDED,
]  # fmt: skip


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    folder = WorkFolder(tmp_path)
    sandbox = Sandbox(tmp_path, environ={"PATH": "/usr/bin:/bin"}, home=tmp_path)
    return Toolbox([run_tool(folder, sandbox), shell_tool(folder, sandbox)])


def plan_of(toolbox: Toolbox, asked: ToolCall) -> Plan | None:
    """The plan, or None when nothing could come of the call."""
    try:
        return toolbox.plan(asked)
    except ToolFailed:
        return None


def test_there_are_enough_commands() -> None:
    assert len({tuple(words) for words in COMMANDS}) + len(_SCRIPTS) >= 500


def test_no_adversarial_command_runs_without_asking(toolbox: Toolbox) -> None:
    approvals = Approvals(map(parse_rule, RULES), is_confined=True)
    for words in COMMANDS:
        plan = plan_of(toolbox, call("run", argv=words))
        assert plan is None or not approvals.covers(plan), words
    for text in _SCRIPTS:
        plan = plan_of(toolbox, call("shell", script=text))
        assert plan is None or not approvals.covers(plan), text


def test_what_the_rules_name_runs(toolbox: Toolbox) -> None:
    approvals = Approvals(map(parse_rule, RULES), is_confined=True)
    for words in (["ls"], ["echo", "hello"], ["cat", "a.md"]):
        plan = toolbox.plan(call("run", argv=words))
        assert approvals.covers(plan), words
    assert approvals.covers(toolbox.plan(call("shell", script="make test")))


def test_what_is_shown_is_what_is_run(toolbox: Toolbox) -> None:
    """The words that are approved, read as a shell reads them, are the words of the command."""
    for words in COMMANDS:
        plan = plan_of(toolbox, call("run", argv=words))
        if plan is not None:
            shown = plan.shown.rpartition("\n(")[0]
            assert tuple(shlex.split(shown)) == plan.subject == tuple(words)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_any_command_is_shown_as_it_is_or_refused(words: list[str]) -> None:
    words = ["echo", *words]
    folder = WorkFolder(Path("/usr"))
    sandbox = Sandbox(Path("/usr"), environ={"PATH": "/usr/bin:/bin"}, home=Path("/usr"))
    sandbox_path = sandbox.found("echo")
    plan = None
    try:
        plan = Toolbox([run_tool(folder, sandbox)]).plan(call("run", argv=words)) if sandbox_path else None
    except ToolFailed:
        pass
    finally:
        folder.close()
    if plan is not None:
        assert tuple(shlex.split(plan.shown.rpartition("\n(")[0])) == plan.subject


def test_the_command_that_runs_is_the_one_that_was_approved(tmp_path: Path) -> None:
    """A call that is asked again with other words is another call."""
    seen: list[str] = []
    answers = script(call("run", argv=["echo", "one"]), call("run", argv=["echo", "two"]), "done")
    bench = Bench(tmp_path, answers, face=Watching())
    original = bench.face.answer
    bench.face.answer = lambda plan: (seen.append(plan.shown), original(plan))[1]  # type: ignore[func-returns-value]
    asyncio.run(bench.agent.run("go"))
    assert [text.splitlines()[0] for text in seen] == ["echo one", "echo two"]
    assert [text for _, text, _ in bench.results()] == ["one\n(exit status 0)", "two\n(exit status 0)"]


@pytest.mark.parametrize(
    "text",
    ["", ":", "*", "*:x", "run:", "run:**", "run:*", "run:* **", "run:'a", "shell", "shell:", "a b", "run:a\u202eb"],
)
def test_a_rule_that_says_everything_or_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rule(text)


def test_a_rule_is_read_as_words() -> None:
    assert parse_rule("write") == Rule("write", None, "write")
    assert parse_rule("run:git commit -m 'a b'").words == ("git", "commit", "-m", "a b")
    assert parse_rule("edit:src/**/*.py").words == ("src", "**", "*.py")
    assert parse_rule("fetch:https://docs.python.org/3/**").words == ("https://docs.python.org", "3", "**")


def _plan(tool: str, kind: str, *subject: str, asks: str = "unless-ruled") -> Plan:
    return Plan(tool, kind, subject, "", f"{tool}{subject}", None, asks)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "subject", "covered"),
    [
        ("edit:src/**", ("src", "a", "b.py"), True),
        ("edit:src/**", ("srcx", "a"), False),
        ("edit:src/**", ("a", "src", "b"), False),
        ("edit:**/*.py", ("a", "b.py"), True),
        ("edit:**/*.py", ("b.py",), True),
        ("edit:*.py", ("a", "b.py"), False),
        ("edit:a/*/c", ("a", "b", "c"), True),
        ("edit:a/*/c", ("a", "b", "b", "c"), False),
        ("edit:.git*", (".gitignore",), True),
        ("edit", ("any", "thing"), True),
        ("write:src/**", ("src", "a"), False),
    ],
)
def test_a_path_rule_covers(rule: str, subject: tuple[str, ...], covered: bool) -> None:
    assert Approvals([parse_rule(rule)]).covers(_plan("edit", "write", *subject)) is covered


def test_all_commands_may_be_allowed_only_in_a_sandbox() -> None:
    plan = _plan("run", "run", "ls")
    assert not Approvals([parse_rule("run")], is_confined=False).covers(plan)
    assert Approvals([parse_rule("run")], is_confined=True).covers(plan)


def test_after_text_from_outside_only_rules_with_a_pattern_hold() -> None:
    approvals = Approvals([parse_rule("edit"), parse_rule("run:make test")], is_confined=True)
    edit, make, granted = _plan("edit", "write", "a"), _plan("run", "run", "make", "test"), _plan("run", "run", "ls")
    approvals.grant(granted)
    assert all(approvals.covers(plan) for plan in (edit, make, granted))
    assert [approvals.covers(plan, taint="outside") for plan in (edit, make, granted)] == [False, True, False]


def test_what_must_always_be_asked_is_never_covered() -> None:
    plan = _plan("edit", "write", ".git", "hooks", "pre-commit", asks="always")
    approvals = Approvals([parse_rule("edit"), parse_rule("edit:.git/**")])
    approvals.grant(plan)
    assert not approvals.covers(plan)


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".github/workflows/x.yml", ".vscode/tasks.json", "sub/.git/config"]
)
def test_files_that_are_run_later_are_asked_whatever_the_rules_say(tmp_path: Path, path: str) -> None:
    bench = Bench(tmp_path, script(call("write", path=path, content="x"), "done"), rules=["write", "write:**/*x*"])
    asyncio.run(bench.agent.run("go"))
    assert len(bench.face.asked) == 1
