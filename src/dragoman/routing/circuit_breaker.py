"""A circuit breaker for one target. Pure: times are arguments.

It counts failures that concern the target's health, those in the middle of an answer too, but not those that a client's
request caused. It opens after several failures in a row, or when too many of the last seconds' answers failed. While it
is open, the target is skipped if there is another. Later one request is let through as a probe, and its result decides.
Another machine's breaker may report that it opened; that opens this one, but no report closes it or keeps it open. A
target that asks for a pause (429 with a time) is skipped for that time, which does not count as a failure.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dragoman.events import Failure, FailureKind
from dragoman.routing.retry import LONGEST_WAIT

#: Failures of the target. Of the rest most are the request's, or the account's; "rate" asks for a pause.
COUNTED: Final[frozenset[FailureKind]] = frozenset({"overloaded", "timeout", "connection", "wire", "internal"})
#: Failures in a row that open it.
IN_A_ROW: Final = 5
#: Or this share of the answers of the last seconds, once there are so many failures and answers.
_SHARE: Final = 0.1
_LEAST_FAILED: Final = 5
_LEAST_ANSWERS: Final = 20
_WINDOW: Final = 10  # seconds
#: How long it stays open before a probe, in seconds.
OPEN_SECONDS: Final = 5.0
#: For how many seconds nothing is believed after a word that a probe showed to be wrong, at first and at most: twice as
#: long each time, until this one opens by itself.
_DOUBT: Final = 10.0
_LONGEST_DOUBT: Final = 600.0

Change: TypeAlias = Literal["opened", "healed"]


class CircuitBreaker:
    """The health of one target.

    `begin` announces every request to it; one of `succeeded`, `failed`, `abandoned` settles the request.

    Attributes:
        openings: how often it has opened by its own observations.
        is_told: it is open by another machine's report only.
    """

    __slots__ = (
        "_answered", "_answers", "_believes_from", "_doubt", "_failures", "_in_a_row", "_open_until", "_opened",
        "_probe", "_rests_until", "_second", "is_told", "openings",
    )  # fmt: skip

    def __init__(self) -> None:
        self._in_a_row = 0
        self._opened: float | None = None  # when it opened; None while it is closed
        self._open_until = 0.0
        self._rests_until = 0.0
        self._probe: float | None = None  # when the probe that is under way began
        self._answers = [0] * _WINDOW
        self._failures = [0] * _WINDOW
        self._second = 0
        self.openings: int = 0
        self._answered: float | None = None  # when a request was answered last
        self.is_told: bool = False
        self._doubt = 0.0
        self._believes_from = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it has opened and not closed yet."""
        return self._opened is not None

    def admits(self, now: float) -> bool:
        """Return whether a request may go to the target now, as an ordinary one or as a probe."""
        if now < self._rests_until:
            return False
        return self._opened is None or (now >= self._open_until and self._probe is None)

    def begin(self, now: float) -> None:
        """Record a request, admitted or not: the last target of a chain is always asked."""
        if self._opened is not None and now >= self._open_until and self._probe is None:
            self._probe = now

    def succeeded(self, now: float, *, begun: float) -> Change | None:
        """Record that a request begun at `begun` was answered completely, or refused for what it contains."""
        if self._probe is not None:
            self._settle(begun)
        self._in_a_row = 0
        self._answered = now
        self._count(now, failed=False)
        if self._opened is None or begun < self._opened:
            return None
        self._opened = None
        if self.is_told:
            self.is_told = False
            self._doubt = min(max(_DOUBT, 2 * self._doubt), _LONGEST_DOUBT)
            self._believes_from = now + self._doubt
        self._answers = [0] * _WINDOW
        self._failures = [0] * _WINDOW
        return "healed"

    def failed(self, failure: Failure, now: float, *, begun: float) -> Change | None:
        """Record that a request begun at `begun` failed, before or during its answer."""
        if failure.kind == "rate" and failure.retry_after is not None:
            self._rests_until = max(self._rests_until, now + min(failure.retry_after, LONGEST_WAIT))
        if failure.kind not in COUNTED:
            return self.succeeded(now, begun=begun)
        self._settle(begun)
        self._in_a_row += 1
        self._count(now, failed=True)
        if self._opened is not None:
            if begun >= self._opened:  # the probe, or one that had nowhere else to go
                self._open_until = now + OPEN_SECONDS
                if self.is_told:
                    self.is_told, self._doubt = False, 0.0
            return None
        if self._in_a_row < IN_A_ROW and not self._fails_often():
            return None
        self._opened = now
        self._open_until = now + OPEN_SECONDS
        self.openings += 1
        self._doubt = self._believes_from = 0.0
        return "opened"

    def told_open(self, now: float, *, age: float) -> bool:
        """Take another machine's report that its breaker opened `age` seconds ago. Return whether this one opens too.

        Then a probe decides, as usual. It does not open if an answer came since, or if reports proved wrong lately.
        """
        if self._opened is not None or now < self._believes_from:
            return False
        if self._answered is not None and self._answered > now - age:
            return False
        self._opened = now
        self._open_until = now + OPEN_SECONDS
        self.is_told = True
        return True

    def abandoned(self, *, begun: float) -> None:
        """Record that the caller gave up a request begun at `begun`, which says nothing about the target."""
        self._settle(begun)

    def _settle(self, begun: float) -> None:
        if self._probe == begun:
            self._probe = None

    def _count(self, now: float, *, failed: bool) -> None:
        second = int(now)
        if second != self._second:
            self._go_on(second)
        self._answers[self._second % _WINDOW] += 1
        self._failures[self._second % _WINDOW] += failed

    def _go_on(self, second: int) -> None:
        """Forget the seconds that have passed."""
        for passed in range(self._second + 1, min(second, self._second + _WINDOW) + 1):
            self._answers[passed % _WINDOW] = self._failures[passed % _WINDOW] = 0
        if second > self._second + _WINDOW:
            self._answers = [0] * _WINDOW
            self._failures = [0] * _WINDOW
        self._second = max(second, self._second)

    def _fails_often(self) -> bool:
        failures, answers = sum(self._failures), sum(self._answers)
        return failures >= _LEAST_FAILED and answers >= _LEAST_ANSWERS and failures >= _SHARE * answers
