"""Where workers of all machines write which circuit breakers opened, and read what others wrote.

Nothing depends on it.
"""

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
    """A breaker has opened. `key`: names a target at its address; `number`: which opening of this worker's it is;
    `age`: how many seconds ago."""

    key: str
    worker: str
    number: int
    age: float


class Board(Protocol):
    """Raises StoreUnreachable where it cannot be used now."""

    async def exchange(self, worker: str, opened: dict[str, int], keys: Sequence[str]) -> list[Opening]:
        """Write what opened here, by key, and read what opened elsewhere of these keys lately."""
        ...

    def close(self) -> None:
        """Nothing more is written."""
        ...
