"""The interface between the reader of a body and its decoder."""

from __future__ import annotations

from typing import Protocol


class ReadsBatches(Protocol):
    """A decoder that reads many events at once."""

    def read_batch(self, lines: list[bytes]) -> int:
        """Take the data of similar events that came together, each from brace to brace. Return False to get them one by
        one.

        Its work is done between the frames before and after them.
        """
        ...
