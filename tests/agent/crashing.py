"""An agent that is killed: it bumps a counter outside of its session, and a signal ends it at any moment.

    python crashing.py STORE COUNTER SESSION|new

Each run of the tool appends its call's id to the counter, one write, so the counter tells what was really done.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.faces import LAB, Watching
from agent.playing import InProcess
from dragoman.agent.approval import Approvals, parse_rule
from dragoman.agent.limits import Limits
from dragoman.agent.loop import Agent
from dragoman.agent.session.session_file import Session
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.tools.toolbox import Planner, Toolbox, other_plan
from dragoman.config import load_config
from dragoman.types import Part, Request, Text, Tool, ToolCall

STEPS = 6
CALLS = 2


def brain(request: Request) -> list[Part]:
    """Calls the tool until it has seen enough results, with ids that say which."""
    done = sum(len(message.tool_calls) for message in request.messages)
    if done >= STEPS * CALLS:
        return [Text("done")]
    return [ToolCall(f"call_{done + number:03}", "bump", "{}") for number in range(CALLS)]


def tool(counter: Path) -> Planner:
    def plan(asked: ToolCall) -> Plan:
        async def do() -> Outcome:
            handle = os.open(counter, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, f"{asked.id}\n".encode())
            os.close(handle)
            await asyncio.sleep(0.001)
            return Outcome("bumped")

        return other_plan(asked, "bump", do)

    return Planner(Tool("bump"), plan)


async def work(store: Path, counter: Path, session: Session) -> None:
    file = store / "dragoman.toml"
    file.write_text(LAB)
    client = InProcess(load_config(file, environ={}, home=store), brain)
    agent = Agent(
        client,  # type: ignore[arg-type]
        session,
        Toolbox([tool(counter)]),
        approvals=Approvals([parse_rule("bump")]),
        face=Watching(),
        system="Bump.",
        limits=Limits(steps=100),
    )
    if session.messages:
        await agent.go_on()
    else:
        await agent.run("go")


def main(store: Path, counter: Path, which: str) -> None:
    if which == "new":
        session = Session.create(store, folder=store, target="lab/m", id="crash", at=1)
    else:
        session = Session.load(Path(which))
    asyncio.run(work(store, counter, session))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
