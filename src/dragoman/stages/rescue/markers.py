"""What begins the calls of families, as one pattern for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dragoman.stages.rescue.cursor import Family

#: Letters that tell a marker from ordinary words.
_WORD_HEAD: Final = 10


class Markers:
    """What begins the calls of some families: everything about it that does not depend on a text.

    Attributes:
        openers: finds a whole marker, the longest one at a place.
        first: finds where a marker may begin.
        partial: all proper beginnings of markers.
        partial_on_line: those of them that count only at the start of a line.
        longest: the length of the longest marker.
    """

    __slots__ = ("first", "longest", "openers", "partial", "partial_on_line")

    def __init__(self, families: Sequence[Family]) -> None:
        openers = sorted({opener for family in families for opener in family.openers}, key=len, reverse=True)
        anywhere = {opener for family in families if family.where != "line" for opener in family.openers}
        self.openers = re.compile("|".join(map(re.escape, openers)))
        self.partial = frozenset(opener[:size] for opener in openers for size in range(1, len(opener)))
        self.partial_on_line = self.partial - {opener[:size] for opener in anywhere for size in range(1, len(opener))}
        self.longest = max(map(len, openers))
        self.first = re.compile("|".join(sorted({_beginning(opener) for opener in openers})))


def _beginning(opener: str) -> str:
    """A pattern of how a marker begins; of a word, as much of its head as has come, since its first letters are
    everywhere."""
    if not opener[0].isalnum():
        return re.escape(opener[0])
    head = opener[:_WORD_HEAD]
    pattern = re.escape(head[-1])
    for letter in reversed(head[:-1]):
        pattern = rf"{re.escape(letter)}(?:{pattern}|\Z)"
    return pattern
