"""The tools of a session by name, and how a call becomes a plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import final

import msgspec

from dragoman import _json
from dragoman.agent.safe_text import hidden_character
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.errors import UsageError
from dragoman.inputs.functions import tool_of
from dragoman.types import Tool, ToolCall


@final
class Planner(msgspec.Struct, frozen=True):
    """A tool, and the function that plans a call of it."""

    tool: Tool
    plan: Callable[[ToolCall], Plan]


@final
class Toolbox:
    """The tools of a session, by name."""

    __slots__ = ("_planners",)

    def __init__(self, planners: Iterable[Planner] = ()) -> None:
        self._planners: dict[str, Planner] = {}
        for planner in planners:
            self.add(planner)

    def add(self, planner: Planner) -> None:
        """Add a tool.

        Raises:
            UsageError: its name is taken.
        """
        if planner.tool.name in self._planners:
            raise UsageError(f"expected tools of different names, got {planner.tool.name!r} more than once")
        self._planners[planner.tool.name] = planner

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that are offered to the model."""
        return tuple(planner.tool for planner in self._planners.values())

    def only(self, names: Iterable[str]) -> Toolbox:
        """Return a toolbox of these names."""
        wanted = frozenset(names)
        return Toolbox(planner for name, planner in self._planners.items() if name in wanted)

    def plan(self, call: ToolCall) -> Plan:
        """Plan a call.

        Raises:
            ToolFailed: no such tool, arguments that do not fit, or an action that is never allowed. For the model.
        """
        planner = self._planners.get(call.name)
        if planner is None:
            raise ToolFailed(f"there is no tool {call.name[:80]!r}; there are: {', '.join(self._planners) or 'none'}")
        try:
            return planner.plan(call)
        except (UsageError, OSError, ValueError) as problem:
            raise ToolFailed(str(problem)) from None


def planner_of(function: Callable[..., Plan]) -> Planner:
    """Return a planner for a function from arguments to a plan. Its signature and docstring are the tool's schema."""
    read = tool_of(function)

    def plan(call: ToolCall) -> Plan:
        made: Plan = read.call(call)  # type: ignore[assignment]  # none of ours is a coroutine
        return made

    return Planner(read.tool, plan)


def other_plan(
    call: ToolCall, title: str, do: Callable[[], Awaitable[Outcome]], *, is_idempotent: bool = False
) -> Plan:
    """Return the plan of a foreign tool, which can only show where the tool comes from and the arguments.

    Raises:
        ToolFailed: an argument contains something invisible.
    """
    text = _json.to_text(call.values())
    hidden = hidden_character(text)
    if hidden is not None:
        raise ToolFailed(f"expected arguments of visible characters, got one with {hidden}")
    return Plan(
        tool=call.name,
        kind="other",
        subject=(text,),
        shown=f"{title}\n{text}",
        identity=identity_of(call.name, {"arguments": text}),
        do=do,
        is_idempotent=is_idempotent,
    )
