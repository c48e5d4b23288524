"""What the reader of a body asks of its decoder."""

from __future__ import annotations

from typing import Protocol


class ReadsBatches(Protocol):
    """A decoder that reads many events at once."""

    def read_batch(self, lines: list[bytes]) -> int:
        """Take the data of events that came together and look alike, each from brace to brace. Gives how many it took,
        from the first on; those behind it wants one by one. Its work is done between the frames before and after."""
        ...
