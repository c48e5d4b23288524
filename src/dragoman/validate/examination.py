"""One target's examination: its probes one after the other, each in its trials, and the proof that comes of them."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from statistics import median
from time import time
from typing import Final, TypeAlias, final

import msgspec

from dragoman.client.target import Target
from dragoman.contract import Way
from dragoman.estimate import estimate_tokens
from dragoman.events import Deviation, Failure
from dragoman.proofs import ProbeResult, Proof, Suite
from dragoman.providers import Model
from dragoman.secret import Secret
from dragoman.types import Cost, Message, Request, Text, ToolResult, Usage
from dragoman.validate.asking import Asked, Asker
from dragoman.validate.grade import Grade, grade, one_line, sum_up
from dragoman.validate.ladder import probes_of, reason_to_skip
from dragoman.validate.limits import Budget, CapReached, Pace
from dragoman.validate.probe import SUITE_VERSION, Plan, Probe, Turn, load_probes, plan_probe

_WAYS: Final[tuple[Way, ...]] = ("native", "schema", "prompted")
_MORE_ROOM: Final = 8  # times as many tokens for a model that was cut while it was thinking
_MOST_WAITING: Final = 3  # times that a busy provider is waited for
_LONGEST_WAIT: Final = 90.0  # seconds
_MOST_ERRORS: Final = 3  # in a row, after which there is no sense in going on
_MOST_WINDOWS: Final = 4  # a prompt is as long as so many windows at most
_FATAL: Final = frozenset({"auth", "permission", "quota", "connection", "not_found"})


@final
class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to validate.

    Attributes:
        trials: of each probe; with more than one, every second is asked at the model's own temperature.
        seed: settles what varies.
        max_context: longest window that long prompts fill, in tokens.
        timeout: seconds for one answer.
    """

    suite: Suite = "quick"
    trials: int = 1
    seed: str = "0"
    max_context: int = 32_768
    timeout: float = 300.0


@final
class Trial(msgspec.Struct, frozen=True):
    """One run of one probe: each turn, and what it was worth. `way`: how the tools were asked for."""

    probe: str
    number: int
    at_zero: bool
    way: Way
    grade: Grade
    turns: tuple[Asked, ...]


@final
class TargetRun(msgspec.Struct, frozen=True):
    """What came of one target. `problem`: why there is no proof, or why it is not whole."""

    target: str
    proof: Proof | None
    trials: tuple[Trial, ...] = ()
    claims: Model | None = None
    problem: str = ""


#: Is told of each probe when it is done: (target, probe, result, done, of how many).
OnProgress: TypeAlias = Callable[[str, str, ProbeResult, int, int], None]


class Examination:
    """One target's probes, one after the other."""

    def __init__(
        self, asker: Asker, settings: Settings, budget: Budget, pace: Pace, target: Target, claims: Model
    ) -> None:
        self._asker = asker
        self._settings = settings
        self._budget = budget
        self._pace = pace
        self._target = target
        self._claims = claims
        self._context = min(claims.context or 0, settings.max_context)
        self._takes_temperature = True
        self._results: dict[str, ProbeResult] = {}
        self._skipped: dict[str, str] = {}
        self._trials: list[Trial] = []
        self._costs: list[Cost] = []
        self._is_cost_known = True
        self._requests = 0
        self._errors = 0  # in a row
        self._problem = ""

    async def whole(self, target: Target, *, version: str, on_progress: OnProgress) -> TargetRun:
        """All probes of the suite, then the proof of it. `target` is as configured, without a started address."""
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
        proof = self._proof(target, ways, version)
        return TargetRun(target.name, proof, tuple(self._trials), self._claims, self._problem)

    def _misfit(self, probe: Probe) -> str:
        """Why a probe does not fit the model's window; "" when it does."""
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
        """All trials of a probe; None when it was not asked (the reason is noted)."""
        trials = []
        for number in range(self._settings.trials):
            trial = await self._trial(probe, number, way="native")
            if trial is None:
                return None
            trials.append(trial)
            if self._problem:
                break
        return sum_up([trial.grade for trial in trials], at_zero=[trial.at_zero for trial in trials])

    async def _trial(self, probe: Probe, number: int, *, way: Way) -> Trial | None:
        plan = self._plan(probe, number)
        at_zero = probe.at_zero and number % 2 == 0 and self._takes_temperature
        target = self._changed(plan, way)
        asked: list[Asked] = []
        verdict = Grade("error", "nothing was asked")
        messages: tuple[Message, ...] = ()
        for turn in plan.turns:
            messages = (*messages, *_opening_after(turn, asked))
            request = self._request(plan, messages, 0.0 if at_zero else None)
            try:
                answer = await self._ask(target, request, turn)
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

    async def _ask(self, target: Target, request: Request, turn: Turn) -> Asked:
        """One answer: a busy provider is waited for, a refused temperature left out, a cut thought given more room."""
        answer = await self._paced(target, request, turn)
        for _ in range(_MOST_WAITING):
            failure = answer.reply.error
            if not isinstance(failure, Failure) or failure.kind not in ("rate", "overloaded"):
                break
            await asyncio.sleep(min(failure.retry_after or 5.0, _LONGEST_WAIT))
            answer = await self._paced(target, request, turn)
        params = request.params
        if params.temperature is not None and _refuses_temperature(answer.reply.error):
            self._takes_temperature = False
            params = msgspec.structs.replace(params, temperature=None)
            answer = await self._paced(target, msgspec.structs.replace(request, params=params), turn)
        thought = answer.reply.thinking or answer.reply.usage.reasoning
        if answer.reply.stop_reason == "length" and turn.expect.stop != "length" and thought and params.max_tokens:
            params = msgspec.structs.replace(params, max_tokens=params.max_tokens * _MORE_ROOM)
            answer = await self._paced(target, msgspec.structs.replace(request, params=params), turn)
        return answer

    async def _paced(self, target: Target, request: Request, turn: Turn) -> Asked:
        price = self._price(request)
        with self._budget.hold(price):
            async with self._pace.turn(target.provider.name, local=target.provider.local):
                answer = await self._asker.ask(target, request, abort_after=turn.abort_after)
            self._requests += 1
            cost = answer.reply.cost
            if cost is None and price is not None and not isinstance(answer.reply.error, Failure):
                cost = Cost(price, "catalogue")  # it told no tokens: the most that it can have cost
            if cost is not None:
                self._budget.spend(cost.usd)
                self._costs.append(cost)
            elif not isinstance(answer.reply.error, Failure):
                self._is_cost_known = False
        return answer

    def _note(self, verdict: Grade, answer: Asked) -> None:
        """Whether there is no sense in going on."""
        failure = answer.reply.error
        self._errors = self._errors + 1 if verdict.verdict == "error" else 0
        if verdict.verdict != "error" or not isinstance(failure, Failure):
            return
        if self._errors >= _MOST_ERRORS or (failure.kind in _FATAL and not self._results):
            self._problem = one_line(f"{failure.kind}: {failure.message}", limit=200)

    async def _ways(self) -> tuple[Way, ...]:
        """Which ways of asking for tools work. The quick suite looks for others only when the native one does not."""
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

    def _changed(self, plan: Plan, way: Way) -> Target:
        target = msgspec.structs.replace(self._target, tools=way, refuses_tools=False)
        if plan.target.model is not None:
            target = msgspec.structs.replace(target, model=plan.target.model)
        if plan.target.key is not None:
            target = msgspec.structs.replace(target, key=Secret(plan.target.key))
        return target

    def _request(self, plan: Plan, messages: Sequence[Message], temperature: float | None) -> Request:
        params = msgspec.structs.replace(plan.params, temperature=temperature)
        return Request(self._target.model, tuple(messages), plan.tools, plan.choice, params)

    def _price(self, request: Request) -> Decimal | None:
        """What a request may cost at most, as far as that is known."""
        usage = Usage(input=estimate_tokens(request), output=request.params.max_tokens)
        cost = self._asker.price(self._target.name, usage)
        return cost.usd if cost is not None else None

    # ------------------------------------------------------------ what comes of it

    def _proof(self, target: Target, ways: tuple[Way, ...], version: str) -> Proof:
        native = [turn for trial in self._trials if trial.way == "native" for turn in trial.turns]
        called = [turn for trial in self._trials if trial.probe == "toolCall" for turn in trial.turns]
        names = {turn.reply.model for turn in called if turn.reply.model and not turn.reply.error}
        deviations = Counter(event.code for turn in native for event in turn.events if isinstance(event, Deviation))
        first = [turn.first_event for turn in native if turn.first_event is not None]
        speeds = [speed for turn in native if (speed := turn.tokens_per_second) is not None]
        renamed = sorted(name for name in names if name != target.model)
        return Proof(
            target=target.name,
            protocol=target.protocol.name,
            endpoint=target.provider.base_url,
            digest=self._claims.digest,
            version=renamed[0] if len(names) == 1 and renamed else None,
            suite=self._settings.suite,
            suite_version=SUITE_VERSION,
            dragoman=version,
            at=math.floor(time()),
            probes=self._results,
            skipped=self._skipped,
            deviations=dict(sorted(deviations.items())),
            ways=ways,
            first_event=round(median(first), 3) if first else None,
            tokens_per_second=round(median(speeds), 1) if speeds else None,
            cost=self._sum(),
            requests=self._requests,
        )

    def _sum(self) -> Cost | None:
        """What all of it cost; None when that is not known."""
        if not self._costs or not self._is_cost_known:
            return None
        return Cost(sum((cost.usd for cost in self._costs), Decimal(0)), self._costs[-1].source)


def _refuses_temperature(error: object) -> bool:
    """Some thinking models take none but their own."""
    return isinstance(error, Failure) and error.kind == "bad_request" and "temperature" in error.message.lower()


def _opening(turn: Turn) -> Message:
    """A turn's own words."""
    return Message("user", (Text(turn.system + turn.user),))


def _opening_after(turn: Turn, asked: Sequence[Asked]) -> tuple[Message, ...]:
    """What a turn adds to the conversation: its system text, results of the last answer's calls, the user's words."""
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
