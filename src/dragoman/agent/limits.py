"""The limits of a run, at which the user is asked: steps, time, money, tokens, and repeated calls."""

from __future__ import annotations

import hashlib
from collections import Counter
from decimal import Decimal
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.events import Reply
from dragoman.types import ToolCall

#: Why a run is over, or should be.
Reason: TypeAlias = Literal[
    "answered", "interrupted", "failed", "steps", "minutes", "usd", "tokens", "repeated_call", "repeated_error",
]  # fmt: skip

#: How often the same is taken as going round in circles.
REPEATS: Final = 3


@final
class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of one run, which is all that follows one prompt. `usd` counts the known costs.

    `calls`: the most calls of one answer that are run.
    """

    steps: int = 50
    minutes: float = 30.0
    usd: Decimal = Decimal(5)
    tokens: int = 2_000_000
    calls: int = 32


@final
class Meter:
    """What a run has used. `reached` says which limit is reached; going on raises that limit by as much again."""

    __slots__ = (
        "_calls", "_errors", "_is_estimated", "_limits", "_rounds", "_since", "_unseen", "cost", "input", "output",
        "steps", "unpriced",
    )  # fmt: skip

    def __init__(self, limits: Limits, *, now: float) -> None:
        """Start it. `now` is in seconds of a monotonic clock."""
        self._limits = limits
        self._since = now
        self._rounds: Counter[Reason] = Counter()
        self._calls: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self.steps = 0
        self.input = 0
        self.output = 0
        self.cost = Decimal(0)
        self.unpriced = 0  # answers whose cost is not known
        self._unseen = 0  # of `input`: prompts of requests that failed without a word, of which nobody knows the tokens
        self._is_estimated = False

    @property
    def time(self) -> tuple[float, float]:
        """Return when the time began, and how many seconds the run may take."""
        return self._since, self._limits.minutes * 60 * (1 + self._rounds["minutes"])

    @property
    def tokens(self) -> str:
        """Describe the tokens that answers reported, with "about" if one did not report all; "" if none came."""
        seen = self.input - self._unseen
        if not seen and not self.output:
            return ""
        return f"{'about ' if self._is_estimated else ''}{seen:,} in, {self.output:,} out"

    def reached(self, *, now: float, prompt_tokens: int) -> Reason | None:
        """Return the limit that another step, with a prompt of about that many tokens, would pass, or None."""
        limits = self._limits
        times = {reason: 1 + rounds for reason, rounds in self._rounds.items()}
        if self.steps >= limits.steps * times.get("steps", 1):
            return "steps"
        if now - self._since >= limits.minutes * 60 * times.get("minutes", 1):
            return "minutes"
        if self.cost >= limits.usd * times.get("usd", 1):
            return "usd"
        if self.input + self.output + prompt_tokens > limits.tokens * times.get("tokens", 1):
            return "tokens"
        return self._circling()

    def go_on(self, reason: Reason) -> None:
        """Raise a limit after the user's consent."""
        self._rounds[reason] += 1
        if reason == "repeated_call":
            self._calls.clear()
        if reason == "repeated_error":
            self._errors.clear()

    def count_reply(self, reply: Reply, *, estimate: int, is_step: bool = True) -> None:
        """Count an answer. What it does not report is estimated, with `estimate` tokens for its prompt."""
        usage = reply.usage
        self.steps += is_step
        self.input += estimate if usage.input is None else usage.input
        self.output += (len(reply.text) + len(reply.thinking)) // 4 if usage.output is None else usage.output
        if reply.error is not None and usage.input is None and usage.output is None and not reply.parts:
            self._unseen += estimate
        elif usage.input is None or usage.output is None:
            self._is_estimated = True
        if reply.cost is not None:
            self.cost += reply.cost.usd
        else:
            self.unpriced += 1

    def count_call(self, call: ToolCall) -> None:
        """Count a call that the model asked for, also if it is refused or fails."""
        self._calls[_key(call.name, call.arguments)] += 1

    def count_outcome(self, call: ToolCall, plan: Plan | None, outcome: Outcome) -> None:
        """Count the outcome of a call. Once a file has changed, reading and running the same again makes sense."""
        if outcome.is_error:
            self._errors[_key(call.name, outcome.text)] += 1
        elif plan is not None and outcome.change is not None:
            kept = {key: count for key, count in self._calls.items() if key.startswith("write ")}
            self._calls = Counter(kept)
            self._calls[f"write {_key(call.name, call.arguments)}"] += 1

    def count_failed(self, name: str, message: str) -> None:
        """Count a call that could not be delivered."""
        self._errors[_key(name, message)] += 1

    def _circling(self) -> Reason | None:
        if max(self._calls.values(), default=0) >= REPEATS:
            return "repeated_call"
        return "repeated_error" if max(self._errors.values(), default=0) >= REPEATS else None


def _key(name: str, text: str) -> str:
    return hashlib.sha256(f"{name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()
