"""Decide after a failure: ask the next target, ask this one again, or let the failure stand. Pure.

Only failures before the first event of an answer come here. After that a failure stands, because a second model's words
must never be joined to the first's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final

import msgspec

from dragoman.codec.errors.context_overflow import read_overflow
from dragoman.codec.errors.unsupported_tools import refuses_tools
from dragoman.events import Failure
from dragoman.routing.retry import MOST_ATTEMPTS, pick_delay
from dragoman.types import FailureKind

#: Failures that lie with the target, its key or its account: another target may do better.
MOVES: Final[frozenset[FailureKind]] = frozenset(
    {
        "rate", "overloaded", "timeout", "connection", "wire", "answer_too_large", "internal", "auth", "permission",
        "quota", "not_found",
    }
)  # fmt: skip


@final
class Candidate(msgspec.Struct, frozen=True):
    """A target of a chain. `context` is in tokens; `is_admitted`: its circuit breaker admits a request."""

    name: str
    context: int | None = None
    is_admitted: bool = True
    is_local: bool = False


@final
class Move(msgspec.Struct, frozen=True):
    """Ask the candidate at `position`; skip those at `skipped`."""

    position: int
    skipped: tuple[int, ...]
    reason: str


@final
class Wait(msgspec.Struct, frozen=True):
    """Ask the same target again after some seconds."""

    seconds: float
    reason: str


@final
class Stop(msgspec.Struct, frozen=True):
    """Let the failure stand."""

    reason: str


Decision: TypeAlias = Move | Wait | Stop


def pick_first(candidates: Sequence[Candidate]) -> Move:
    """Return the first candidate that is admitted. The last one always is."""
    position = next((number for number, one in enumerate(candidates) if one.is_admitted), len(candidates) - 1)
    return Move(position, tuple(range(position)), "first that is admitted" if position else "first")


def decide(
    failure: Failure,
    candidates: Sequence[Candidate],
    *,
    position: int,
    attempts: int,
    tries: int,
    retries: int,
    random: float,
    should_retry: bool | None = None,
) -> Decision:
    """Decide what follows a failure before the first event of an answer.

    Args:
        candidates: the chain, in the order in which it is asked.
        position: the candidate that failed.
        attempts: the requests sent so far, to all candidates.
        tries: the requests sent to this candidate in a row.
        retries: the most retries of one candidate.
        random: from 0 to 1.
        should_retry: the provider's own advice.
    """
    after = _next(failure, candidates, position)
    if isinstance(after, Move):
        return after
    if tries > retries or attempts >= MOST_ATTEMPTS:
        return Stop(f"{after}; asked {attempts} times")
    here = candidates[position]
    delay = pick_delay(failure, tries=tries, random=random, is_local=here.is_local, should_retry=should_retry)
    if isinstance(delay, str):
        return Stop(f"{after}; {delay}")
    return Wait(delay, f"{after}; again in {delay:.2f} s")


def _next(failure: Failure, candidates: Sequence[Candidate], position: int) -> Move | str:
    """Return the next candidate, or why there is none."""
    rest = range(position + 1, len(candidates))
    if not rest:
        return "no target is left"
    if failure.kind == "context":
        needed = _tokens_needed(failure, candidates[position])
        if needed is None:
            return "the context is exceeded, and by how much is not known"
        fitting = [number for number in rest if (candidates[number].context or 0) > needed]
        if not fitting:
            return f"no target left is known to take more than {needed} tokens"
        return _picked(candidates, fitting, position, "a larger context")
    if failure.kind in MOVES or _is_of_the_target(failure):
        return _picked(candidates, list(rest), position, f"{failure.kind} before the answer")
    return f"no other target mends {failure.kind}"


def _picked(candidates: Sequence[Candidate], numbers: Sequence[int], position: int, reason: str) -> Move:
    chosen = next((number for number in numbers if candidates[number].is_admitted), numbers[-1])
    return Move(chosen, tuple(range(position + 1, chosen)), reason)


def _tokens_needed(failure: Failure, failed: Candidate) -> int | None:
    """Return the number of tokens that the next candidate's context must exceed.

    It is the request's size if the failure reports it, else the failed candidate's limit.
    """
    overflow = read_overflow(failure.message)
    figures = [figure for figure in (overflow.asked, overflow.limit or failed.context) if figure is not None]
    return max(figures, default=None)


def _is_of_the_target(failure: Failure) -> bool:
    """Return whether another target may accept the request: this server supports no tools, or no longer exists."""
    return refuses_tools(failure) or (failure.status is not None and 300 <= failure.status < 400)
