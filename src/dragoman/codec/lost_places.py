"""Note what of an answer another protocol cannot express, place by place; of very many, the first ones."""

from __future__ import annotations

from typing import Final

from dragoman.events import Deviation

#: Places that are told; an answer may have as many as its frames have room for.
MOST_LOST: Final = 256


def lose(lost: list[Deviation], where: str, seen: str) -> bool:
    """Note a place. Return False if no more are noted, which a last note says."""
    if len(lost) < MOST_LOST:
        lost.append(Deviation("untranslated", where, seen, "note"))
        return True
    if len(lost) == MOST_LOST:
        lost.append(Deviation("untranslated", "", "further places", "note"))
    return False
