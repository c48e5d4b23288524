"""How much a run may cost, and how fast it may ask."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from time import monotonic


class Budget:
    """US dollars that a run may spend. `limit` None: no limit."""

    __slots__ = ("_limit", "spent")

    def __init__(self, limit: Decimal | None) -> None:
        self._limit = limit
        self.spent = Decimal(0)

    def spend(self, dollars: Decimal) -> None:
        """That much was spent."""
        self.spent += dollars

    def refusal(self, price: Decimal | None) -> str:
        """Why a request that may cost so much is not sent; "" when it may be."""
        if self._limit is None or price is None or self.spent + price <= self._limit:
            return ""
        return f"the spend cap of ${self._limit:f} is reached: ${self.spent:.4f} spent, up to ${price:.4f} to come"


class Pace:
    """One request to a provider at a time, and no more than so many a minute to one on another machine."""

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
