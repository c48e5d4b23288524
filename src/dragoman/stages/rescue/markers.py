"""What begins the calls of families, as one pattern for all of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.stages.rescue.cursor import Family

#: Letters that tell a marker from ordinary words.
_WORD_HEAD: Final = 10

#: A pattern that finds nothing: of no families.
_NOTHING: Final = "(?!)"


class Markers:
    """What begins the calls of some families: everything about it that does not depend on a text.

    Attributes:
        openers: finds a whole marker, the longest one at a place.
        first: finds where a marker may begin.
        partial: all proper beginnings of markers.
        partial_on_line: those of them that count only at the start of a line.
        longest: the length of the longest marker.
        repeated: a marker that follows itself, many times.
    """

    __slots__ = ("_begun", "first", "longest", "openers", "partial", "partial_on_line", "repeated")

    def __init__(self, families: Sequence[Family]) -> None:
        openers = sorted({opener for family in families for opener in family.openers}, key=len, reverse=True)
        anywhere = {opener for family in families if family.where != "line" for opener in family.openers}
        any_of_them = "|".join(map(re.escape, openers)) or _NOTHING
        self.openers = re.compile(any_of_them)
        self.partial = frozenset(opener[:size] for opener in openers for size in range(1, len(opener)))
        self.partial_on_line = self.partial - {opener[:size] for opener in anywhere for size in range(1, len(opener))}
        self.longest = max(map(len, openers), default=0)
        self.repeated = re.compile(rf"({any_of_them})(?:\s*+\1){{3,}}+")
        self._begun = {
            opener: [
                (family, fitting)
                for family in families
                if (fitting := sorted((one for one in family.openers if opener.startswith(one)), key=len, reverse=True))
            ]
            for opener in openers
        }
        self.first = re.compile("|".join(sorted({_beginning(opener) for opener in openers})) or _NOTHING)

    def begun(self, opener: str, *, is_line_start: Callable[[], bool]) -> list[tuple[Family, str]]:
        """The families that a whole marker begins, each with its longest one that counts at this place."""
        found = []
        for family, fitting in self._begun[opener]:
            for one in fitting:
                if (family.where != "line" and one not in family.line_openers) or is_line_start():
                    found.append((family, one))
                    break
        return found


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


@functools.lru_cache(maxsize=4)
def sort_families(families: tuple[Family, ...]) -> tuple[list[Family], list[Family], Markers]:
    """Families that are found in the text, those that are the whole message, and the markers of the former."""
    found = [family for family in families if family.where != "message"]
    return found, [family for family in families if family.where == "message"], Markers(found)


@functools.lru_cache(maxsize=64)
def value_ends(families: tuple[Family, ...], name: str) -> tuple[str, ...]:
    """What ends a value of a family by its name."""
    return next((family.value_ends for family in families if family.name == name), ())
