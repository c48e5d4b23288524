"""What goes with a prompt: the files that it names, and the output of commands that the user typed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.faces import make_tools
from dragoman.agent.attachments import Attachments, mentions
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed
from dragoman.agent.work_folder import WorkFolder


@pytest.mark.parametrize(
    ("prompt", "paths"),
    [
        ("explain @a.py", ["a.py"]),
        ("@a.py @b/c.py\n@a.py", ["a.py", "b/c.py"]),
        ('@"a name.txt" and @\'x', ["a name.txt", "'x"]),
        ("write to me@example.org", []),
        ("@@ -1 +1 @@ is a diff, @ is not a name", ["@"]),
    ],
)
def test_a_name_stands_behind_a_sign_at_a_words_beginning(prompt: str, paths: list[str]) -> None:
    assert mentions(prompt) == paths


def attachments(place: Path) -> Attachments:
    return Attachments(make_tools(WorkFolder(place)))


def add(these: Attachments, prompt: str, *, may: bool = False) -> tuple[list[str], list[str], list[Plan]]:
    """The lines that are shown, the texts that are sent, and what was asked."""
    asked: list[Plan] = []

    async def ask(plan: Plan, why: str) -> bool:
        asked.append(plan)
        return may

    lines = asyncio.run(these.add_files(prompt, ask, lambda outcome: outcome))
    return lines, [part.text for part in these.take()], asked


def test_nothing_outside_of_the_folder_is_attached(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    (work / "link").symlink_to(tmp_path / "secret.txt")
    (work / "picture").write_bytes(b"\xff\xfe\x00")
    names = ("../secret.txt", str(tmp_path / "secret.txt"), "link", "picture", "nobody", ".", "~/x", "@", "a\u202eb")
    for name in names:
        lines, sent, _ = add(attachments(work), f"@{name} please")
        assert sent == [] and len(lines) == 1 and "is sent as typed: " in lines[0], name
        assert "\u202e" not in lines[0]


def test_a_file_that_holds_keys_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    assert add(attachments(tmp_path), "@.env")[:2] == (["@.env is not attached"], [])
    lines, sent, asked = add(attachments(tmp_path), "@.env", may=True)
    assert lines == ["attached .env: 1 line"] and "KEY=1" in sent[0] and len(asked) == 1


def test_what_is_sent_is_bounded_and_sent_once(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"f{number}.txt").write_text("line\n" * 3_000)
    these = attachments(tmp_path)
    lines, sent, _ = add(these, " ".join(f"@f{number}.txt," for number in range(30)))
    assert len(sent) == 20 and lines[-1] == "at most 20 files of one prompt are attached"
    assert "(lines 1-2000 of 3000)" in sent[0]
    assert these.take() == ()


def test_a_command_is_the_script_that_was_typed(tmp_path: Path) -> None:
    these = attachments(tmp_path)
    plan = these.plan_command("echo one | tr o 0")
    assert plan.tool == "shell" and plan.subject == ("echo one | tr o 0",)
    with pytest.raises(ToolFailed, match="visible characters"):
        these.plan_command("echo \u202e")
    with pytest.raises(ToolFailed, match="expected a script"):
        these.plan_command("")
    these.add_output("echo one", Outcome("one\n(exit status 0)"), lambda outcome: outcome)
    (part,) = these.take()
    assert "echo one" in part.text and "one\n(exit status 0)" in part.text
