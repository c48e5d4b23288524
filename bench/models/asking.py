"""Asks a model the tasks in one way, through dragoman's own client, and judges what it called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks import Task

from dragoman import Client, Params, Reply

#: Most tokens of an answer: the longest call that is asked for has about forty.
MAX_TOKENS = 96


@dataclass(frozen=True)
class Outcome:
    """What came of a task: `is_right` when the one right call came with exactly its arguments, or, where no tool is
    needed, no call at all. `calls` are those that a program would have run."""

    task: Task
    is_right: bool
    calls: tuple[tuple[str, dict[str, object]], ...]
    reply: Reply


def play(client: Client, target: str, tasks: Iterable[Task], *, forced: bool = False) -> Iterator[Outcome]:
    """Ask them one after the other, at temperature 0. `forced`: a call is asked for at all events."""
    params = Params(max_tokens=MAX_TOKENS, temperature=0)
    for task in tasks:
        with client.stream(
            target, task.prompt, tools=task.tools, tool_choice="any" if forced else "auto", params=params
        ) as stream:
            for _ in stream:
                pass
        yield judge(task, stream.reply)


def judge(task: Task, reply: Reply) -> Outcome:
    """Whether the reply is what was asked for."""
    calls = tuple((call.name, dict(call.values())) for call in reply.tool_calls)
    wanted = [] if task.name is None else [(task.name, folded(task.arguments))]
    is_right = [(name, folded(values)) for name, values in calls] == wanted and not reply.failed_calls
    return Outcome(task, is_right, calls, reply)


def folded(value: object) -> object:
    """The value with no difference of upper and lower case."""
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, dict):
        return {name: folded(inner) for name, inner in value.items()}
    return value
