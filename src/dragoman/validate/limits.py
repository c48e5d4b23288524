"""The budget of a run, and the pace of its requests."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from time import monotonic


class CapReached(Exception):
    """A request was not sent because it might have cost more than is left. The message says so in one line."""


class Budget:
    """The US dollars that a run may spend. `limit` None: no limit."""

    __slots__ = ("_held", "_limit", "spent")

    def __init__(self, limit: Decimal | None) -> None:
        self._limit = limit
        self._held = Decimal(0)  # what requests under way may cost
        self.spent = Decimal(0)

    @contextmanager
    def hold(self, price: Decimal | None) -> Iterator[None]:
        """Reserve what a request may cost at most while it is under way; None: unknown.

        Raises:
            CapReached: less than that is left.
        """
        most = price or Decimal(0)
        if self._limit is not None and self.spent + self._held + most > self._limit:
            raise CapReached(
                f"the spend cap of ${self._limit:f} is reached: ${self.spent:.4f} spent, up to ${most:.4f} to come"
            )
        self._held += most
        try:
            yield
        finally:
            self._held -= most

    def spend(self, dollars: Decimal) -> None:
        """Add what was spent."""
        self.spent += dollars


class Pace:
    """Allows one request at a time to each provider, and a number per minute to providers on other machines."""

    __slots__ = ("_interval", "_last", "_locks")

    def __init__(self, *, per_minute: float) -> None:
        self._interval = 60 / per_minute
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._last: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, provider: str, *, local: bool) -> AsyncIterator[None]:
        """Wait for this provider's turn, and hold it."""
        async with self._locks[provider]:
            last = self._last.get(provider)
            if last is not None and not local:
                await asyncio.sleep(max(0.0, last + self._interval - monotonic()))
            self._last[provider] = monotonic()
            yield
