"""Lists of an answer's parts, of which most entries may be nothing: they count before anything is made of them."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.bounds import AnswerBounds, exceeded
from dragoman.codec.framing.event_stream import TooLarge


def check_entries(entries: Sequence[object], bounds: AnswerBounds) -> None:
    """A list of content, items or calls. An entry that is nothing takes hundreds of bytes while it is looked at, and a
    frame may hold millions.

    Raises:
        TooLarge: it has more entries than the answer may have parts.
    """
    most = bounds.parts
    if len(entries) > most:
        raise TooLarge(exceeded(f"a list of at most {most} parts", "parts", str(len(entries))))
