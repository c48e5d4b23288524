"""The interface between the loop and a terminal or a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, final

import msgspec

from dragoman.agent.limits import Reason
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.events import Event, Failure, Reply
from dragoman.types import ToolCall


@final
class Verdict(msgspec.Struct, frozen=True):
    """The decision on an action: yes once, yes to all identical ones in the session, or no. `words` go to the model."""

    kind: Literal["once", "session", "no"]
    words: str = ""


@final
class CallBegins(msgspec.Struct, frozen=True):
    """A call is about to run."""

    call: ToolCall
    plan: Plan


@final
class CallEnded(msgspec.Struct, frozen=True):
    """A call has its outcome. `plan` None: no plan was made. `was_run` False: it was refused or stopped."""

    call: ToolCall
    plan: Plan | None
    outcome: Outcome
    was_run: bool


@final
class StepEnded(msgspec.Struct, frozen=True):
    """An answer is complete. `prompt` tokens were sent, of a window of `window` (None: unknown)."""

    reply: Reply
    prompt: int
    window: int | None


@final
class Shortened(msgspec.Struct, frozen=True):
    """The conversation was shortened by `messages` messages, from `before` to `after` tokens."""

    messages: int
    before: int
    after: int
    summary: str
    by_model: bool


@final
class Failed(msgspec.Struct, frozen=True):
    """The model's answer failed."""

    failure: Failure


@final
class Interrupted(msgspec.Struct, frozen=True):
    """A call was cut off, and its effect is unknown."""

    call: ToolCall


Notice: TypeAlias = CallBegins | CallEnded | StepEnded | Shortened | Failed | Interrupted


class UserInterface(Protocol):
    """Shows events, and asks the user."""

    def show(self, events: Sequence[Event]) -> None:
        """Show the model's answer as it comes. One part is open at a time."""
        ...

    def tell(self, notice: Notice) -> None:
        """Show a notice."""
        ...

    async def approve(self, plan: Plan, call: ToolCall, why: str = "") -> Verdict:
        """Ask whether this may be done. `why`: the reason to ask although a rule allows it."""
        ...

    async def go_on(self, reason: Reason) -> bool:
        """Ask, at a limit, whether the run may continue for as much again."""
        ...

    async def run_again(self, call: ToolCall) -> bool:
        """Ask whether to run a call again during which the agent was killed, so that its effects are unknown."""
        ...
