"""A board on which workers of all machines publish which circuit breakers opened. Nothing depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, final

import msgspec

#: Seconds after which an opening is no news.
NEWS_SECONDS: Final = 10
#: Openings that are read at once.
MOST_OPENINGS: Final = 500


@final
class Opening(msgspec.Struct, frozen=True):
    """A breaker has opened. `key`: a target at its address; `number`: of this worker's openings; `age`: in seconds."""

    key: str
    worker: str
    number: int
    age: float


class Board(Protocol):
    """The board. Its methods raise StoreUnreachable if it cannot be used now."""

    async def exchange(self, worker: str, opened: dict[str, int], keys: Sequence[str]) -> list[Opening]:
        """Publish what opened here, by key, and return what recently opened elsewhere of these keys."""
        ...

    def close(self) -> None:
        """Close it."""
        ...
