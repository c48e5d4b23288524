"""Find brackets behind a call that nothing opened: they show that its arguments continue there."""

from __future__ import annotations

import functools
import re
from typing import Final

from dragoman.codec.patterns import rare_pattern

#: Why a call is refused behind whose brackets something stands that may be of it.
MAY_GO_ON: Final = "what stands behind its brackets may be the rest of its arguments: two readings"
#: The last bracket of a call that has its arguments, none perhaps, between it and its name.
WRITTEN: Final = ")"
#: What changes a reading: quotation marks, brackets, what follows a backslash, and the end of the call's line.
_MARKS: Final = {"}": '"{}\\[\\]\\\\\n', ")": "\"'()\\\\\n"}
#: Brackets that may be open.
_DEEPEST: Final = 1000
_ANY: Final = "any"
#: What may stand behind the last bracket of a call.
_BETWEEN: Final = " \t\r\n,;)]"
#: Characters before a mark that are looked at.
_BEFORE: Final = 40
#: How a value ends, right before a bracket: quotation marks, brackets, digits, words that are values, and what stands
#: behind a key without quotation marks.
_VALUE_END: Final = rare_pattern(
    r"(?:[\"'”’»\]}>\d]|\b(?:true|false|null|True|False|None)|[:,][ \t]{0,4}[\w.+-]{1,20})\Z"
)
#: Quotation marks and what escapes them: a bracket before one is quoted.
_QUOTES: Final = ('"', "'", "\\", "”", "’", "»")
#: What an object's last bracket does not stand before.
_FOLLOWING: Final = ("}", ",", ";", ")", *_QUOTES)


@functools.lru_cache(maxsize=256)
def _marks(closes: str, tags: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    first = "".join(sorted({tag[0] for pair in tags for tag in pair}))
    return re.compile(f"[{_MARKS[closes]}{re.escape(first)}]")


class Brackets:
    """Tells whether a text that comes in pieces closes a bracket that it did not open, or the call's own tag.

    Attributes:
        goes_on: it does.
        is_over: nothing more is to be read.
    """

    __slots__ = (
        "_ahead",
        "_closes",
        "_tags",
        "_in_line",
        "_is_begin",
        "_is_loose",
        "_kept",
        "_marks",
        "_readings",
        "_start",
        "goes_on",
        "is_over",
    )

    def __init__(self, closes: str, tags: tuple[tuple[str, str], ...], *, ends_in_text: bool) -> None:
        """Create it. `closes`: the call's last bracket; `tags`: those around such calls; `ends_in_text`: its last value
        is a text.
        """
        self._closes, self._tags = closes, dict(tags)
        self._marks = _marks(closes, tags)
        self._readings = [_Reading(closes, "")]  # left between two values
        if ends_in_text:
            self._readings.append(_Reading(closes, _ANY))  # left inside of a text
        self._ahead = max(
            (1, *(len(tag) for pair in tags for tag in pair))
        )  # characters from a mark on that tell what it is
        self._kept = ""  # what came last: the marks from `_start` on were not read
        self._start = 0
        self._in_line = True  # the call's line has not ended
        self._is_begin = True  # no mark came
        self._is_loose = False  # the last mark was a bracket that nothing opened and that ends no value
        self.goes_on = self.is_over = False

    def feed(self, text: str, *, is_end: bool = False) -> None:
        """Take the next text. `is_end`: nothing follows it."""
        if self.is_over:
            return
        text = self._kept + text
        sure = len(text) if is_end else max(len(text) - self._ahead, self._start)
        position = self._start
        while not self.is_over and (found := self._marks.search(text, position)) is not None and found.start() < sure:
            position = self._read(text, found.start(), is_end=is_end)
        self._start = max(position, sure)
        dropped = max(min(self._start, len(text)) - _BEFORE, 0)
        self._kept, self._start = text[dropped:], self._start - dropped
        self.is_over = self.is_over or is_end

    def _read(self, text: str, place: int, *, is_end: bool) -> int:
        """Read the mark at a place. Return where the next one may be."""
        mark = text[place]
        if text.startswith(tuple(self._tags.values()), place):
            self.goes_on = self.is_over = True
        elif text.startswith(tuple(self._tags), place):
            self._tags = {}  # what closes then is another one's
        elif mark == "\\":
            return place + 2
        elif mark == "\n":
            self._in_line = False
        elif mark in "\"'{}[]()":
            before, after = text[max(place - _BEFORE, 0) : place].rstrip(), text[place + 1 : place + 2]
            if mark == "'" and before[-1:].isalnum() and after.isalnum():
                return place + 1  # an apostrophe
            closed = [reading.closes(mark) for reading in self._readings]  # each reads on
            if self._is_begin and mark == '"' and not before.strip(_BETWEEN):
                self._readings.append(_Reading(self._closes, ""))  # this one is a stray, beside the brackets
            self._is_begin = False
            is_code = text[place - 1 : place] == after == "`"  # of which no body ends
            if any(closed) and not is_code:
                is_last = is_end and not text[place + 1 :].strip(_BETWEEN)
                self.goes_on = self.is_over = self._is_end(before, after, is_last=is_last)
            else:
                self._is_loose = False
        return place + 1

    def _is_end(self, before: str, after: str, *, is_last: bool) -> bool:
        """Return whether an unopened closing bracket between these may end the rest of a body."""
        if self._closes == "}":
            is_loose = self._is_loose and before[-1:] == "}"  # behind one of words: it is of them too
            is_value = not before or (not is_loose and _VALUE_END.search(before) is not None)
            self._is_loose = not is_value
            return (is_value or self._in_line) and (is_last or after not in _FOLLOWING)  # the last bracket tells
        if after in _QUOTES:
            return False
        return before[-1:] in ('"', "'", "]", "}") or (before[-1:].isalnum() and (self._in_line or after == "]"))


class _Reading:
    """One reading of a text behind a call: which of its brackets are open."""

    __slots__ = ("_closes", "_open", "_quote")

    def __init__(self, closes: str, quote: str) -> None:
        """Create it. `quote`: of the text in which it begins; `_ANY`: whichever comes first."""
        self._closes = closes
        self._quote = quote
        self._open: list[str] = []

    def closes(self, mark: str) -> bool:
        """Return whether a mark closes an unopened bracket of the call's kind. The brace of `{"a"]}` is none of an
        object.
        """
        if mark in "\"'":
            if not self._quote:
                self._quote = mark
            elif self._quote in (mark, _ANY):
                self._quote = ""
        elif self._quote:
            return False
        elif mark in "{[(":
            if len(self._open) < _DEEPEST:
                self._open.append(mark)
        elif mark == "]":
            del self._open[-1:]
        else:
            while self._open and self._open[-1] == "[":
                self._open.pop()
            if not self._open:
                return mark == self._closes
            self._open.pop()
        return False
