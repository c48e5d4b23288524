"""One request's way along a chain: which target is asked, with what result, and which one is next. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, final

import msgspec

from dragoman.events import Event, Failure, Finish
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.circuit_breaker import Change
from dragoman.routing.fallback import Candidate, Move, Stop, decide, pick_first
from dragoman.routing.metering import Meter
from dragoman.routing.target import Chain, Target
from dragoman.routing.target_health import Health, HealthTable
from dragoman.secret import name_alone
from dragoman.types import Attempt, Outcome

_CHANGES: Final[dict[Change, str]] = {
    "opened": "its circuit breaker opened: it is passed over where there is another",
    "healed": "its circuit breaker closed: it is asked again",
}


@final
class Attempts(msgspec.Struct, eq=False):
    """The state of one request.

    Attributes:
        attempts: the results of the targets so far, without the one being asked.
        target: the target to ask.
        log: called with each decision, as one line.
        meter: records every request that is sent, or None.
    """

    __repr__ = name_alone

    _chain: Chain
    _health_table: HealthTable
    log: Callable[[str], None]
    meter: Meter | None = None
    _position: int = 0
    _asked: int = -1  # the position of the target that was asked last, and how often in a row
    _tries: int = 0
    _sent: int = 0
    _failure: tuple[Failure, bool | None] | None = None  # its last one, and the provider's advice
    _begun: float = 0.0
    _is_under_way: bool = False
    _standing: Health | None = None
    _candidates: Sequence[Candidate] = ()
    attempts: list[Attempt] = []

    def __post_init__(self) -> None:
        for name, reason in self._chain.unusable:
            self._skip(name, reason)

    @property
    def target(self) -> Target:
        """The target to ask."""
        return self._chain.targets[self._position]

    def before_send(self, outgoing: Outgoing) -> Callable[[Outgoing], Awaitable[None] | None] | None:
        """Return the callback to call before this request is written, if there is one.

        Raises:
            TransportFailed: the request must not be sent.
        """
        meter = self.meter
        if meter is None:
            return None
        if meter.is_limited:
            meter.admit(outgoing)
        return meter.send

    @property
    def retries(self) -> bool:
        """Whether a failure may lead to another request."""
        return self._chain.retries > 0 or len(self._chain.targets) > 1

    def begin(self, now: float) -> None:
        """Pick the first target, unless one is being asked already."""
        if len(self._chain.targets) > 1 and not self._is_under_way:
            self._look(now)
            self._go(pick_first(self._candidates), says="")

    def sent(self, now: float) -> None:
        """Record that a request to the target was sent. The same request in another form counts once."""
        if self._is_under_way:
            return
        target = self._chain.targets[self._position]
        self._standing = standing = self._health_table.of(target.name)
        if self._position != self._asked:
            self._asked, self._tries = self._position, 0
            standing.budget.note_request(now)
        standing.breaker.begin(now)
        self._begun = now
        self._is_under_way = True
        self._sent += 1
        self._tries += 1
        if self.meter is not None:
            self.meter.begin(target)

    def refused_form(self, failure: Failure) -> None:
        """Record that the target refused the request's form and is asked in another. It counts as the same try."""
        if self.meter is not None:
            self.meter.end("failed", failure)

    def unusable(self, reason: str, *, now: float, random: float, most_wait: float) -> float | None:
        """Record that the target cannot be asked at all. What follows is decided as if the chain did not hold it.

        So a target that was passed over, or that failed and may be asked again, has its turn where it is the last one.

        Returns:
            The seconds to wait before `target` is asked, or None if there is none, or the last failure stands.
        """
        place, targets = self._position, self._chain.targets
        self._skip(self.target.name, reason)
        if len(targets) == 1 or place == self._asked:
            return None
        self._note(f"cannot be asked: {reason}")
        self._chain = msgspec.structs.replace(self._chain, targets=targets[:place] + targets[place + 1 :])
        self._look(now)
        if self._failure is not None:
            self._position = self._asked
            return self._decide(now, random, most_wait)
        first = pick_first(self._candidates)
        self._position = first.position
        self._go(first, says="")
        return 0.0

    def failed(
        self, failure: Failure, *, now: float, random: float, most_wait: float, should_retry: bool | None = None
    ) -> float | None:
        """Record that the request failed before any of its answer was passed on.

        Args:
            failure: the last event of its answer.
            now: seconds.
            random: from 0 to 1.
            most_wait: the seconds left of the request's time.
            should_retry: the provider's own advice.

        Returns:
            The seconds to wait before `target`, which may have changed, is asked, or None if the failure stands.
        """
        self._settle("failed", failure, now)
        self._failure = failure, should_retry
        self._look(now)
        return self._decide(now, random, most_wait)

    def ended(self, end: Event, now: float) -> None:
        """Record the end of an answer of which something was passed on. A second call changes nothing."""
        if not self._is_under_way:
            return
        if type(end) is Finish:
            self._settle("answered", end, now)
        elif type(end) is Failure:
            self._settle("broken", end, now)
            self._note(f"{end.kind} stands: something of the answer was given out")

    def abandoned(self, now: float) -> None:
        """Record that the caller no longer waits for the answer."""
        if self._is_under_way and self._standing is not None:
            self._standing.breaker.abandoned(begun=self._begun)
            self._is_under_way = False
            if self.meter is not None:
                self.meter.end("cancelled", None)
            self.attempts.append(Attempt(self.target.name, "cancelled", "given up", seconds=now - self._begun))

    # ------------------------------------------------------------ inside

    def _settle(self, outcome: Outcome, end: Finish | Failure, now: float) -> None:
        """End the current request."""
        standing, meter, begun, self._is_under_way = self._standing, self.meter, self._begun, False
        assert standing is not None
        failure = end if type(end) is Failure else None
        change = None
        if meter is not None and meter.has_refused:
            standing.breaker.abandoned(begun=begun)
        elif failure is None:
            change = standing.breaker.succeeded(now, begun=begun)
        else:
            change = standing.breaker.failed(failure, now, begun=begun)
        if change is not None:
            self._note(_CHANGES[change])
        if meter is not None:
            meter.end(outcome, end)
        reason, kind, status = ("", None, None) if failure is None else (failure.message, failure.kind, failure.status)
        name = self._chain.targets[self._position].name
        self.attempts.append(Attempt(name, outcome, reason, kind, status, now - begun, end.usage, end.cost))

    def _decide(self, now: float, random: float, most_wait: float) -> float | None:
        """Decide what follows the last failure. Return what `failed` returns."""
        assert self._failure is not None
        failure, should_retry = self._failure
        decision = decide(
            failure,
            self._candidates,
            position=self._position,
            attempts=self._sent,
            tries=self._tries,
            retries=self._chain.retries,
            random=random,
            # What we refused ourselves is the client's to try again.
            should_retry=False if self.meter is not None and self.meter.has_refused else should_retry,
        )
        if isinstance(decision, Move):
            self._go(decision, says=failure.kind)
            return 0.0
        if not isinstance(decision, Stop):
            if decision.seconds >= most_wait:
                decision = Stop("no time is left")
            elif not self._health_table.of(self.target.name).budget.take(now):
                decision = Stop("the budget of retries is spent")
            else:
                self._note(f"{failure.kind}: {decision.reason}")
                return decision.seconds
        self._note(f"{failure.kind} stands: {decision.reason}")
        return None

    def _look(self, now: float) -> None:
        """Return the chain's targets with their current health."""
        self._candidates = [
            Candidate(
                target.name,
                target.limits.context,
                self._health_table.of(target.name).breaker.admits(now),
                target.provider.local,
            )
            for target in self._chain.targets
        ]

    def _go(self, move: Move, *, says: str) -> None:
        told = {one.target for one in self.attempts if one.outcome == "skipped"}
        for position in move.skipped:
            passed = self._candidates[position]
            if passed.name in told:
                continue  # it was passed over before
            why = "not known to take so many tokens" if passed.is_admitted else "its circuit breaker is open"
            self._skip(passed.name, why)
        if says or move.position != self._position:
            self._note(
                f"{says or 'passed over'}; trying {self._chain.targets[move.position].name} next ({move.reason})"
            )
        self._position = move.position

    def _skip(self, name: str, reason: str) -> None:
        self.attempts.append(Attempt(name, "skipped", reason))

    def _note(self, words: str) -> None:
        self.log(f"{self._chain.name}: {self.target.name}: {words}")


def before_the_answer(attempts: Sequence[Attempt]) -> str:
    """Describe the attempts before the one that answered: `lab/m failed (connection); ollama/granite4 answered`.

    Return "" if the first one answered, or none did.
    """
    if len(attempts) < 2 or attempts[-1].outcome != "answered":
        return ""
    told = (f"{one.target} {one.outcome}{f' ({one.kind})' if one.kind else ''}" for one in attempts[:-1])
    return f"{', '.join(told)}; {attempts[-1].target} answered"
