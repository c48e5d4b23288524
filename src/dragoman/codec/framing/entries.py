"""Bound the lists of an answer's parts before objects are created: even an empty entry counts."""

from __future__ import annotations

from collections.abc import Sized

from dragoman.bounds import AnswerBounds, exceeded
from dragoman.codec.framing.event_stream import TooLarge


def check_entries(entries: Sized, bounds: AnswerBounds) -> None:
    """Check a list of content, items or calls. An empty entry takes hundreds of bytes in memory, and a frame may hold
    millions.

    Raises:
        TooLarge: it has more entries than the answer may have parts.
    """
    most = bounds.parts
    if len(entries) > most:
        raise TooLarge(exceeded(f"a list of at most {most} parts", "parts", str(len(entries))))
