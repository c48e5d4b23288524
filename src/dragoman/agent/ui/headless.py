"""The agent without a person: every question is answered with no, and the model gets the refusal as a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from dragoman import _json
from dragoman.agent.interface import CallBegins, CallEnded, Failed, Interrupted, Notice, Shortened, StepEnded, Verdict
from dragoman.agent.limits import Meter, Reason
from dragoman.agent.safe_text import plain_line
from dragoman.agent.tool_plan import Plan
from dragoman.events import Event
from dragoman.events.event_lines import event_object
from dragoman.types import ToolCall

#: Told to the model in place of asking.
REFUSED: Final = (
    "nobody is there to ask. Only what the user allowed beforehand is done; go on without it, or say what is missing"
)

Write = Callable[[str], None]


@final
class Headless:
    """An interface for scripts. `write` gets one JSON object per line or, without JSON, one line per call.

    Attributes:
        refused: what was refused, as it would have been shown.
        text: the model's last words.
        problem: why its last answer failed, or "".
    """

    __slots__ = ("_as_json", "_write", "problem", "refused", "text")

    def __init__(self, write: Write, *, as_json: bool) -> None:
        self._write = write
        self._as_json = as_json
        self.refused: list[str] = []
        self.text = ""
        self.problem = ""

    def show(self, events: Sequence[Event]) -> None:
        """Write the model's answer, one event per line."""
        if self._as_json:
            for event in events:
                self._line(event_object(event))

    def tell(self, notice: Notice) -> None:
        """Write a notice."""
        match notice:
            case StepEnded(reply, prompt, window):
                self.text = reply.text
                self._say({"type": "StepEnded", "prompt_tokens": prompt, "window": window}, "")
            case CallBegins(call, plan):
                self._say({"type": "CallBegins", "id": call.id, "shown": plan.shown}, "")
            case CallEnded(call, plan, outcome, was_run):
                done = "failed" if outcome.is_error else "done"
                words = {"id": call.id, "name": call.name, "was_run": was_run, "is_error": outcome.is_error}
                shown = plain_line((plan.shown if plan else call.name).partition("\n")[0], 120)
                self._say(
                    {"type": "CallEnded", **words, "result": outcome.text},
                    f"{shown}: {done if was_run else plain_line(outcome.text, 100)}",
                )
            case Shortened(messages, before, after):
                numbers = {"messages": messages, "before": before, "after": after}
                line = f"{messages} messages summarised ({before:,} → {after:,} tokens)"
                self._say({"type": "Shortened", **numbers}, line)
            case Failed(failure):
                self.problem = f"{failure.kind}: {failure.message}"
            case Interrupted(call):
                self._say({"type": "Interrupted", "id": call.id, "name": call.name}, f"{call.name}: outcome unknown")

    async def approve(self, plan: Plan, call: ToolCall, why: str = "") -> Verdict:
        """Refuse."""
        self.refused.append(f"{plan.shown}\n({why})" if why else plan.shown)
        return Verdict("no", f"{why}. {REFUSED}" if why else REFUSED)

    async def go_on(self, reason: Reason) -> bool:
        """Refuse."""
        return False

    async def run_again(self, call: ToolCall) -> bool:
        """Refuse."""
        return False

    def end(self, reason: Reason, meter: Meter, *, session: str) -> None:
        """Write the last line: the answer, why it ended, what it used."""
        if self._as_json:
            self._line(
                {
                    "type": "Done",
                    "reason": reason,
                    "text": self.text,
                    "error": self.problem or None,
                    "steps": meter.steps,
                    "usage": {"input": meter.input, "output": meter.output},
                    "cost": None if meter.unpriced and not meter.cost else {"usd": str(meter.cost)},
                    "refused": self.refused,
                    "session": session,
                }
            )

    def _say(self, value: dict[str, Any], line: str) -> None:
        if self._as_json:
            self._line(value)
        elif line:
            self._write(f"{line}\n")

    def _line(self, value: dict[str, Any]) -> None:
        self._write(_json.to_text(value) + "\n")
