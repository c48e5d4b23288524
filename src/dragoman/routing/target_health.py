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
    """Of all targets that were asked.

    Attributes:
        looks: how often it was asked for one.
    """

    __slots__ = ("_of", "looks")

    def __init__(self) -> None:
        self._of: dict[str, Health] = {}
        self.looks: int = 0

    def openings(self, target: str) -> int:
        """How often a target's circuit breaker has opened by what was seen here, if it is open now; else 0."""
        found = self._of.get(target)
        if found is None or not found.breaker.is_open or found.breaker.is_told:
            return 0
        return found.breaker.openings

    def is_open(self, target: str) -> bool:
        """Whether a target's circuit breaker is open; one that was not asked has none."""
        found = self._of.get(target)
        return found is not None and found.breaker.is_open

    def of(self, target: str) -> Health:
        """The standing of a target; a new one has none of the past."""
        self.looks += 1
        found = self._of.get(target)
        if found is None:
            if len(self._of) >= _KEPT:
                del self._of[next(iter(self._of))]
            found = self._of[target] = Health()
        return found
