"""Examine one target: its probes one after the other, each in its trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time
from typing import Final, TypeAlias

import msgspec

from dragoman.events import Failure
from dragoman.proofs import ProbeResult
from dragoman.protocol import ToolMode
from dragoman.providers.catalog import Model
from dragoman.routing.target import Target
from dragoman.secret import Secret
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Message, Request, Text, ToolResult
from dragoman.validate.ask import Asked
from dragoman.validate.compare_json import one_line
from dragoman.validate.grade import Grade, grade
from dragoman.validate.limits import CapReached
from dragoman.validate.probe import Plan, Probe, Turn, load_probes, plan_probe
from dragoman.validate.probe_order import probes_of, reason_to_skip
from dragoman.validate.results import Settings, TargetRun, Trial, prove
from dragoman.validate.sending import Sender
from dragoman.validate.statistics import sum_up

_WAYS: Final[tuple[ToolMode, ...]] = ("native", "schema", "prompted")
_MOST_ERRORS: Final = 3  # in a row, after which there is no sense in going on
_MOST_WINDOWS: Final = 4  # a prompt is as long as so many windows at most
_FATAL: Final = frozenset({"auth", "permission", "quota", "connection", "not_found"})

#: Called when a probe is done: (target, probe, result, done, of how many).
OnProgress: TypeAlias = Callable[[str, str, ProbeResult, int, int], None]


class Examination:
    """The examination of one target."""

    __slots__ = (
        "_claims", "_context", "_errors", "_problem", "_results",
        "_sender", "_settings", "_skipped", "_target", "_trials",
    )  # fmt: skip

    def __init__(self, sender: Sender, settings: Settings, target: Target, claims: Model) -> None:
        """Create it. `target` has an address; `claims` is what is known of its model."""
        self._sender = sender
        self._settings = settings
        self._target = target
        self._claims = claims
        self._context = min(claims.context or 0, settings.max_context)
        self._results: dict[str, ProbeResult] = {}
        self._skipped: dict[str, str] = {}
        self._trials: list[Trial] = []
        self._errors = 0  # in a row
        self._problem = ""

    async def whole(self, target: Target, *, version: str, on_progress: OnProgress) -> TargetRun:
        """Run all probes of the suite. Return the run with its proof. `target`: as configured, not as started."""
        suite = self._settings.suite
        probes = probes_of(suite, load_probes())
        for place, probe in enumerate(probes, 1):
            reason = (
                self._problem
                or reason_to_skip(probe, suite=suite, results=self._results, skipped=self._skipped)
                or self._misfit(probe)
            )
            if reason:
                self._skipped[probe.name] = reason
                continue
            result = await self._probe(probe)
            if result is not None:
                self._results[probe.name] = result
                on_progress(target.name, probe.name, result, place, len(probes))
        ways = await self._ways() if not self._problem else ()
        if not self._results:
            return TargetRun(target.name, None, tuple(self._trials), self._claims, self._problem or "nothing was asked")
        proof = prove(
            target,
            self._trials,
            results=self._results,
            skipped=self._skipped,
            ways=ways,
            digest=self._claims.digest,
            suite=suite,
            cost=self._sender.cost,
            requests=self._sender.requests,
            dragoman=version,
            now=int(time()),
        )
        return TargetRun(target.name, proof, tuple(self._trials), self._claims, self._problem)

    def _misfit(self, probe: Probe) -> str:
        """Return why a probe does not fit the model's window; "" if it does."""
        context = self._claims.context
        if context is None:
            return "the context window is not known" if probe.needs_context else ""
        plan = self._plan(probe, 0)
        answer = plan.params.max_tokens or 0
        needed = sum(estimate_tokens(self._request(plan, (_opening(turn),), 0)) for turn in plan.turns)
        if needed > _MOST_WINDOWS * self._settings.max_context:
            return f"would send about {needed:,} tokens; --context bounds long prompts"
        if not probe.needs_context and needed + (answer if answer > 1000 else 0) > context:
            return f"needs about {needed + answer:,} tokens of context, and there are {context:,}"
        return ""

    # ------------------------------------------------------------ one probe

    async def _probe(self, probe: Probe) -> ProbeResult | None:
        """Run all trials of a probe. Return None if it was skipped; the reason is recorded."""
        trials = []
        for number in range(self._settings.trials):
            trial = await self._trial(probe, number, way="native")
            if trial is None:
                return None
            trials.append(trial)
            if self._problem:
                break
        return sum_up([trial.grade for trial in trials], at_zero=[trial.at_zero for trial in trials])

    async def _trial(self, probe: Probe, number: int, *, way: ToolMode) -> Trial | None:
        plan = self._plan(probe, number)
        at_zero = probe.at_zero and number % 2 == 0 and self._sender.takes_temperature
        target = self._changed(plan, way)
        asked: list[Asked] = []
        verdict = Grade("error", "nothing was asked")
        messages: tuple[Message, ...] = ()
        for turn in plan.turns:
            messages = (*messages, *_opening_after(turn, asked))
            request = self._request(plan, messages, 0.0 if at_zero else None)
            try:
                answer = await self._sender.ask(target, request, turn)
            except CapReached as reached:
                self._problem = self._skipped[probe.name] = str(reached)
                return None
            asked.append(answer)
            verdict = grade(probe, turn, answer.seen)
            self._note(verdict, answer)
            if verdict.verdict != "passed":
                break
            messages = (*messages, answer.reply.message)
        trial = Trial(probe.name, number, at_zero, way, verdict, tuple(asked))
        self._trials.append(trial)
        return trial

    def _note(self, verdict: Grade, answer: Asked) -> None:
        """Record an error after which it makes no sense to continue."""
        failure = answer.reply.error
        self._errors = self._errors + 1 if verdict.verdict == "error" else 0
        if verdict.verdict != "error" or not isinstance(failure, Failure):
            return
        if self._errors >= _MOST_ERRORS or (failure.kind in _FATAL and not self._results):
            self._problem = one_line(f"{failure.kind}: {failure.message}", limit=200)

    async def _ways(self) -> tuple[ToolMode, ...]:
        """Return the ways of asking for tools that work. The quick suite tries others only if the native one fails."""
        probe = next(probe for probe in load_probes() if probe.name == "toolCall")
        native = self._results.get(probe.name)
        works = {"native": native is not None and native.verdict == "passed"}
        if self._settings.suite == "full" or not works["native"]:
            for way in _WAYS[1:]:
                trial = await self._trial(probe, 0, way=way)
                works[way] = trial is not None and trial.grade.verdict == "passed"
        return tuple(way for way in _WAYS if works.get(way))

    # ------------------------------------------------------------ what is sent

    def _plan(self, probe: Probe, number: int) -> Plan:
        return plan_probe(
            probe,
            seed=f"{self._settings.seed}/{self._target.name}/{number}",
            context=self._context,
            claimed=self._claims.context or 0,
        )

    def _changed(self, plan: Plan, way: ToolMode) -> Target:
        target = msgspec.structs.replace(self._target, tools=way, refuses_tools=False)
        if plan.target.model is not None:
            target = msgspec.structs.replace(target, model=plan.target.model)
        if plan.target.key is not None:
            target = msgspec.structs.replace(target, key=Secret(plan.target.key))
        return target

    def _request(self, plan: Plan, messages: Sequence[Message], temperature: float | None) -> Request:
        params = msgspec.structs.replace(plan.params, temperature=temperature)
        return Request(self._target.model, tuple(messages), plan.tools, plan.choice, params, plan.probe.params.stream)


def _opening(turn: Turn) -> Message:
    """Return a turn's own words."""
    return Message("user", (Text(turn.system + turn.user),))


def _opening_after(turn: Turn, asked: Sequence[Asked]) -> tuple[Message, ...]:
    """Return what a turn adds to the conversation: its system text, results of the last calls, the user's words."""
    added = [Message("system", (Text(turn.system),))] if turn.system else []
    if turn.results or turn.errors:
        calls = asked[-1].reply.tool_calls
        results = tuple(
            ToolResult(
                call.id,
                call.name,
                (Text(turn.errors.get(call.name) or turn.results.get(call.name, "")),),
                is_error=call.name in turn.errors,
            )
            for call in calls
        )
        added.append(Message("tool", results))
    if turn.user:
        added.append(Message("user", (Text(turn.user),)))
    return tuple(added)
