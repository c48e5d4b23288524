"""The results of a target's examination: its trials, and the proof that follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import final

import msgspec

from dragoman.events import Deviation
from dragoman.proofs import ProbeResult, Proof, Suite
from dragoman.protocol import ToolMode
from dragoman.providers.catalog import Model
from dragoman.routing.target import Target
from dragoman.types import Cost
from dragoman.validate.ask import Asked
from dragoman.validate.grade import Grade
from dragoman.validate.probe import SUITE_VERSION


@final
class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to validate.

    Attributes:
        trials: of each probe; with more than one, every second is asked at the model's own temperature.
        seed: settles the variable parts.
        max_context: the longest window that long prompts fill, in tokens.
        timeout: seconds for one answer.
    """

    suite: Suite = "quick"
    trials: int = 1
    seed: str = "0"
    max_context: int = 32_768
    timeout: float = 300.0


@final
class Trial(msgspec.Struct, frozen=True):
    """One run of one probe: each turn with its grade. `way`: how the tools were requested."""

    probe: str
    number: int
    at_zero: bool
    way: ToolMode
    grade: Grade
    turns: tuple[Asked, ...]


@final
class TargetRun(msgspec.Struct, frozen=True):
    """The results of one target. `problem`: why there is no proof, or why it is incomplete."""

    target: str
    proof: Proof | None
    trials: tuple[Trial, ...] = ()
    claims: Model | None = None
    problem: str = ""


def prove(
    target: Target,
    trials: Sequence[Trial],
    *,
    results: Mapping[str, ProbeResult],
    skipped: Mapping[str, str],
    ways: tuple[ToolMode, ...],
    digest: str | None,
    suite: Suite,
    cost: Cost | None,
    requests: int,
    dragoman: str,
    now: int,
) -> Proof:
    """Return the proof that follows from these trials.

    Args:
        target: as configured, without the address of a server that was started for it.
        now: Unix seconds.
    """
    native = [turn for trial in trials if trial.way == "native" for turn in trial.turns]
    deviations = Counter(
        event.code
        for turn in native
        for event in turn.events
        if isinstance(event, Deviation) and event.severity != "note"
    )
    first = [turn.first_event for turn in native if turn.first_event is not None]
    speeds = [speed for turn in native if (speed := turn.tokens_per_second) is not None]
    return Proof(
        target=target.name,
        protocol=target.protocol.name,
        endpoint=target.provider.base_url,
        digest=digest,
        version=_version(target, trials),
        suite=suite,
        suite_version=SUITE_VERSION,
        dragoman=dragoman,
        at=now,
        probes=dict(results),
        skipped=dict(skipped),
        deviations=dict(sorted(deviations.items())),
        ways=ways,
        first_event=round(median(first), 3) if first else None,
        tokens_per_second=round(median(speeds), 1) if speeds else None,
        cost=cost,
        requests=requests,
    )


def _version(target: Target, trials: Sequence[Trial]) -> str | None:
    """Return the model's name in its answers, if it is not the requested one."""
    answers = [turn.reply for trial in trials if trial.probe == "toolCall" for turn in trial.turns]
    names = {reply.model for reply in answers if reply.model and not reply.error}
    return names.pop() if len(names) == 1 and target.model not in names else None
