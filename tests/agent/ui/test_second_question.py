"""What was not all shown is asked about twice."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.agent.interface import Verdict
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.ui import terminal
from dragoman.agent.ui.approval_view import LONGEST, Showing, show_action
from dragoman.types import ToolCall


def asked(rows: int, answers: list[str]) -> tuple[Verdict, list[str]]:
    """The verdict on an action of so many lines, and the questions that were put."""
    plan = Plan("run", "run", (), "\n".join(f"line {number}" for number in range(rows)), "", _nothing)
    questions: list[str] = []
    shown: list[bool] = []

    def show_plan(plan: Plan, *, whole: bool = False) -> Showing:
        shown.append(whole)
        return show_action(plan, width=80, height=500)

    async def ask(question: str, keys: str) -> str:
        questions.append(question)
        return answers.pop(0)

    chat: Any = SimpleNamespace(_see=lambda: SimpleNamespace(show_plan=show_plan), _ask=ask)
    chat._knows = partial(terminal.Chat._knows, chat)
    verdict = asyncio.run(terminal.Chat.approve(chat, plan, ToolCall("c", "run", "{}")))
    assert not answers and shown.count(True) == sum("all" in question for question in questions[2:])
    return verdict, questions


async def _nothing() -> Outcome:
    return Outcome("")


@pytest.mark.parametrize("first", ["y", "s"])
def test_forty_lines_are_asked_about_once(first: str) -> None:
    verdict, questions = asked(LONGEST, [first])
    assert LONGEST == 40 and len(questions) == 1
    assert verdict.kind == {"y": "once", "s": "session"}[first]


@pytest.mark.parametrize("first", ["y", "s"])
@pytest.mark.parametrize("rows", [LONGEST + 1, 3_003])
def test_more_than_forty_are_asked_about_again(rows: int, first: str) -> None:
    for second, what in (("y", {"y": "once", "s": "session"}[first]), ("n", "no"), ("", "no"), ("what?", "no")):
        verdict, questions = asked(rows, [first, second])
        assert verdict.kind == what
        assert f"{rows:,} lines" in questions[1] and "not shown" in questions[1]
    verdict, questions = asked(rows, [first, "a", "n"])  # all of it is shown, then it is asked again
    assert verdict.kind == "no" and len(questions) == 3


def test_a_no_is_not_asked_again() -> None:
    verdict, questions = asked(3_003, ["n"])
    assert verdict.kind == "no" and len(questions) == 1
