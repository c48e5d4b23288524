"""What one client knows of its targets' health: a circuit breaker and a budget of retries for each."""

from __future__ import annotations

from typing import Final, final

from dragoman.routing.circuit_breaker import CircuitBreaker
from dragoman.routing.retry import Budget

#: Targets that are remembered; a client of a gateway may make names up.
_KEPT: Final = 1_024


@final
class Health:
    """Of one target."""

    __slots__ = ("breaker", "budget")

    def __init__(self) -> None:
        self.breaker: CircuitBreaker = CircuitBreaker()
        self.budget: Budget = Budget()


@final
class HealthTable:
    """Of all targets that were asked."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[str, Health] = {}

    def is_open(self, target: str) -> bool:
        """Whether a target's circuit breaker is open; one that was not asked has none."""
        found = self._of.get(target)
        return found is not None and found.breaker.is_open

    def of(self, target: str) -> Health:
        """The standing of a target; a new one has none of the past."""
        found = self._of.get(target)
        if found is None:
            if len(self._of) >= _KEPT:
                del self._of[next(iter(self._of))]
            found = self._of[target] = Health()
        return found
