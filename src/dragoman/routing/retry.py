"""Decide whether and when the same target is asked again. Pure: times and randomness are arguments.

A failure that another try may mend is retried after the wait that the provider names, else after an exponential wait
with jitter. A wait above one minute is not waited for: the failure goes to the caller at once and contains the wait.
Not retried are a wrong request, a missing key, a spent quota and a prompt that is too long. A `Budget` bounds the load
that retries add, so that they do not bury a provider in trouble.
"""

from __future__ import annotations

from typing import Final

from dragoman.config import MOST_RETRIES
from dragoman.errors import DEVIATION_REFUSED, RETRYABLE
from dragoman.events import Failure

#: Requests that one request of a caller becomes at most, while only retries multiply it.
MOST_ATTEMPTS: Final = 1 + MOST_RETRIES
#: The longest wait, in seconds, that is sat through.
LONGEST_WAIT: Final = 60.0
#: The first wait without a provider's word, and the longest; in seconds, before jitter.
_FIRST_WAIT: Final = 0.5
_LAST_WAIT: Final = 8.0
#: Connections that fail the same way a second later.
_SETTLED_CODES: Final = frozenset({"unknown_host", "tls", "proxy"})

#: Seconds over which a budget is reckoned.
WINDOW: Final = 10
#: Retries that a target may be sent within a window, as a share of the requests within it: a fifth, less what waiting
#: may move from one window into the next.
RETRY_SHARE: Final = 0.19
#: Retries that are allowed within a window however few requests there are.
RETRY_FLOOR: Final = 3


def pick_delay(
    failure: Failure, *, tries: int, random: float, is_local: bool = False, should_retry: bool | None = None
) -> float | str:
    """Return the seconds to wait before the same target is asked again, or why it is not.

    Args:
        failure: of the last try.
        tries: how often the target was asked, 1 or more.
        random: from 0 to 1, for the jitter.
        is_local: a server on this machine; if it refuses connections it is not running.
        should_retry: the provider's own advice (`x-should-retry`), or None.
    """
    if should_retry is False:
        return "the provider says not to try again"
    reason = refuses_retry(failure, is_local=is_local)
    if reason:
        return reason
    if failure.retry_after is not None:
        if failure.retry_after > LONGEST_WAIT:
            return f"the wait of {failure.retry_after:.0f} s is longer than {LONGEST_WAIT:.0f} s"
        return failure.retry_after
    wait: float = min(_FIRST_WAIT * 2 ** min(tries - 1, 16), _LAST_WAIT)
    return wait * (0.5 + 0.5 * random)


def refuses_retry(failure: Failure, *, is_local: bool = False) -> str:
    """Return why a second try cannot mend this failure, or "" if it may."""
    if failure.kind not in RETRYABLE:
        return f"another try does not mend {failure.kind}"
    if failure.code in _SETTLED_CODES or (failure.code == "refused" and is_local):
        return "the connection fails the same way again"
    if failure.code == DEVIATION_REFUSED:
        return "strict refuses what the server sends, which another try does not change"
    if failure.kind == "timeout" and failure.status is None:
        return "the time was spent"
    return ""


class Budget:
    """Counts requests and retries of one target per second. Both sums err on the safe side by up to a second."""

    __slots__ = ("_requests", "_retries", "_second")

    def __init__(self) -> None:
        self._requests = [0] * (WINDOW + 1)
        self._retries = [0] * (WINDOW + 1)
        self._second = 0

    def note_request(self, now: float) -> None:
        """Record a request that is not a retry. `now` is seconds of a monotonic clock."""
        if int(now) != self._second:
            self._advance(now)
        self._requests[self._second % (WINDOW + 1)] += 1

    def take(self, now: float) -> bool:
        """Return whether a retry may be sent; if so, count it."""
        self._advance(now)
        oldest = (self._second + 1) % (WINDOW + 1)
        requests = sum(self._requests) - self._requests[oldest]
        if sum(self._retries) + 1 > max(RETRY_FLOOR, RETRY_SHARE * requests):
            return False
        self._retries[self._second % (WINDOW + 1)] += 1
        return True

    def _advance(self, now: float) -> None:
        second = int(now)
        for passed in range(self._second + 1, min(second, self._second + WINDOW + 1) + 1):
            self._requests[passed % (WINDOW + 1)] = self._retries[passed % (WINDOW + 1)] = 0
        if second > self._second + WINDOW + 1:
            self._requests = [0] * (WINDOW + 1)
            self._retries = [0] * (WINDOW + 1)
        self._second = max(second, self._second)
