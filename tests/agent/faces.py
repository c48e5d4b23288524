"""A face that answers as it is told and remembers all it saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from agent.playing import Brain, InProcess
from dragoman.agent.approval import Approvals, parse_rule
from dragoman.agent.interface import CallEnded, Notice, Shortened, Verdict
from dragoman.agent.limits import Limits, Reason
from dragoman.agent.loop import Agent
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.session.session_file import Session
from dragoman.agent.tool_plan import Plan
from dragoman.agent.tools.edit import edit_tool, write_tool
from dragoman.agent.tools.list import list_tool
from dragoman.agent.tools.read import read_tool
from dragoman.agent.tools.run import run_tool, shell_tool
from dragoman.agent.tools.search import search_tool
from dragoman.agent.tools.toolbox import Planner, Toolbox
from dragoman.agent.work_folder import WorkFolder
from dragoman.config import load_config
from dragoman.events import Event
from dragoman.types import ToolCall


class Watching:
    """Says yes, or what `answer` says."""

    def __init__(self, answer: Callable[[Plan], Verdict] = lambda plan: Verdict("once"), *, goes_on: int = 0) -> None:
        self.answer = answer
        self.goes_on = goes_on
        self.events: list[Event] = []
        self.notices: list[Notice] = []
        self.asked: list[Plan] = []
        self.whys: list[str] = []
        self.reasons: list[Reason] = []
        self.runs_again = False
        self.asked_again: list[ToolCall] = []

    def show(self, events: Sequence[Event]) -> None:
        self.events += events

    def tell(self, notice: Notice) -> None:
        self.notices.append(notice)

    async def approve(self, plan: Plan, call: ToolCall, why: str = "") -> Verdict:
        self.asked.append(plan)
        self.whys.append(why)
        return self.answer(plan)

    async def go_on(self, reason: Reason) -> bool:
        self.reasons.append(reason)
        self.goes_on -= 1
        return self.goes_on >= 0

    async def run_again(self, call: ToolCall) -> bool:
        self.asked_again.append(call)
        return self.runs_again

    @property
    def ended(self) -> list[CallEnded]:
        return [notice for notice in self.notices if isinstance(notice, CallEnded)]

    @property
    def shortened(self) -> list[Shortened]:
        return [notice for notice in self.notices if isinstance(notice, Shortened)]


LIMITS = Limits()
LAB = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'


def make_tools(folder: WorkFolder, *more: Planner, sandbox: Sandbox | None = None) -> Toolbox:
    sandbox = sandbox or Sandbox(folder.path, environ={"PATH": "/usr/bin:/bin"}, home=folder.path)
    return Toolbox(
        [
            read_tool(folder),
            list_tool(folder),
            search_tool(folder, ripgrep=None),
            edit_tool(folder),
            write_tool(folder),
            run_tool(folder, sandbox),
            shell_tool(folder, sandbox),
            *more,
        ]
    )


class Bench:
    """An agent in a folder of its own, with a brain for a model."""

    def __init__(
        self,
        place: Path,
        brain: Brain,
        *more: Planner,
        face: Watching | None = None,
        rules: Sequence[str] = (),
        limits: Limits = LIMITS,
        tables: str = LAB,
        target: str = "lab/m",
        window: int | None = None,
        clock: Callable[[], float] = lambda: 0.0,
        session: Session | None = None,
    ) -> None:
        self.place = place / "work"
        self.place.mkdir(exist_ok=True)
        self.folder = WorkFolder(self.place)
        file = place / "dragoman.toml"
        file.write_text(tables, encoding="utf-8")
        self.client = InProcess(load_config(file, environ={}, home=place), brain)
        self.face = face or Watching()
        self.session = session or Session.create(place / "state", folder=self.place, target=target, id="s", at=1)
        self.agent = Agent(
            self.client,  # type: ignore[arg-type]
            self.session,
            make_tools(self.folder, *more),
            approvals=Approvals(map(parse_rule, rules), is_confined=True),
            face=self.face,
            system="You are at work.",
            limits=limits,
            clock=clock,
        )
        self.agent.known_window = window

    def close(self) -> None:
        self.session.close()
        self.folder.close()

    def results(self) -> list[tuple[str, str, bool]]:
        """(tool, text, is_error) of every result of the conversation."""
        return [
            (part.name, part.text, part.is_error)  # type: ignore[union-attr]
            for message in self.session.messages
            if message.role == "tool"
            for part in message.parts
        ]


def check_sound(session: Session) -> None:
    """Every call has exactly one result, right after it, under an id that no other call has."""
    calls: list[str] = []
    for place, message in enumerate(session.messages):
        here = [each.id for each in message.tool_calls]
        calls += here
        if here:
            following = session.messages[place + 1] if place + 1 < len(session.messages) else None
            assert following is not None and following.role == "tool", f"calls without results: {here}"
            assert [part.call_id for part in following.parts] == here  # type: ignore[union-attr]
    assert len(set(calls)) == len(calls)
    assert all(calls)
