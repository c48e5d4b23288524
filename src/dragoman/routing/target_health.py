"""One client's knowledge of its targets' health: a circuit breaker and a retry budget for each."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman.routing.circuit_breaker import CircuitBreaker
from dragoman.routing.retry import Budget

#: Targets that are remembered; a client of a gateway may make names up.
_KEPT: Final = 1_024


@final
class Health(msgspec.Struct, eq=False):
    """The health of one target."""

    breaker: CircuitBreaker = msgspec.field(default_factory=CircuitBreaker)
    budget: Budget = msgspec.field(default_factory=Budget)


@final
class HealthTable:
    """The health of all targets that were asked. `looks`: the number of look-ups."""

    __slots__ = ("_of", "looks")

    def __init__(self) -> None:
        self._of: dict[str, Health] = {}
        self.looks: int = 0

    def openings(self, target: str) -> int:
        """Return how often a target's open circuit breaker has opened by its own observations; 0 if it is closed."""
        found = self._of.get(target)
        if found is None or not found.breaker.is_open or found.breaker.is_told:
            return 0
        return found.breaker.openings

    def is_open(self, target: str) -> bool:
        """Return whether a target's circuit breaker is open. A target that was never asked has none."""
        found = self._of.get(target)
        return found is not None and found.breaker.is_open

    def of(self, target: str) -> Health:
        """Return the health of a target; a new one starts without history."""
        self.looks += 1
        found = self._of.get(target)
        if found is None:
            if len(self._of) >= _KEPT:
                del self._of[next(iter(self._of))]
            found = self._of[target] = Health()
        return found
