"""Calls in tags that seem to have ended, while what follows may show that a value went on.

A value between tags has no quotation marks: where it holds its own closing tags (`x</parameter></function>`), the call
seems to end in it, and what follows reads as prose and other calls. Such tags come again at the real end, where they
close nothing. Then nobody can tell where the value ended, so that no call of the text from there on is run.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.stages.rescue.cursor import Close
from dragoman.stages.rescue.parts import Call
from dragoman.stages.rescue.typed_tags import NESTED

_TWO_READINGS: Final = "its closing tags come again behind it, so that a value of it may go on: two readings"
#: Characters of text in which a tag and the beginning of the next one stand.
_KEPT: Final = 120


class Ended:
    """Calls that wait, from the first one in tags on, with the text that came behind it: up to the end of the text."""

    __slots__ = ("_again", "_calls", "_is_refused", "_tail")

    def __init__(self) -> None:
        self._calls: list[tuple[Call, Close]] = []
        self._again: re.Pattern[str] | None = None
        self._tail = ""
        self._is_refused = False

    def __bool__(self) -> bool:
        return self._again is not None

    def holds(self, call: Call, end: Close, value_ends: tuple[str, ...]) -> bool:
        """Whether a call waits that has ended. `value_ends`: of its family."""
        if not (self._calls or self._is_refused):
            if not value_ends:
                return False
            self._again = re.compile(rf"(?:{'|'.join(map(re.escape, value_ends))})\s{{0,40}}[<\]]")
        # All that stood behind a call whose value holds the beginning of another was passed over, tags among it.
        self._is_refused = self._is_refused or (end.problem == NESTED and bool(self._calls))
        self._calls.append((call, end))
        return True

    def refuse(self) -> None:
        """A tag of thinking ended a text in the middle of a call: what follows may be the rest of one of its values."""
        self._is_refused = True

    def add(self, text: str) -> None:
        """Text that is no call."""
        if self._again is None or not text:
            return
        text = self._tail + text
        self._is_refused = self._is_refused or self._again.search(text) is not None
        self._tail = text[-_KEPT:]

    def take(self) -> list[tuple[Call, Close]]:
        """The calls that waited, each with how it ended."""
        calls, self._calls = self._calls, []
        if self._is_refused:
            return [(call, end if end.problem else Close("", _TWO_READINGS)) for call, end in calls]
        self._again, self._tail = None, ""
        return calls
