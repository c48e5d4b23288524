"""The parts of a response that are open: what they said, and what their ends are to tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal
from zlib import crc32

import msgspec

from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.events import TextStart, ThinkingStart
from dragoman.gathered import GatheredText
from dragoman.secret import name_alone
from dragoman.types import Native

#: What a text has at least with which no answer ends once more by chance: characters, and different ones. A line of
#: dashes is one token.
_LONG: Final = 16
_DIFFERENT: Final = 6
_MOST_BLANKS: Final = 4096


class SaidText(msgspec.Struct):
    """Knows a text again, but for its outer blanks, by its size and checksum: it is not kept.

    Attributes:
        pieces: what came last. A caller that appends to it calls `fold` periodically.
        is_whole: one frame tells all of the answer, so no second attempt stands in it: words that come again are meant.
    """

    pieces: list[str] = []
    _size: int = 0
    _checksum: int = 0
    _head: tuple[int, int] | None = None  # size and checksum of what came before the first call
    _words: SaidText | None = None  # what came behind the last call
    _mark: int = -1  # so many pieces came before the first call, until they are folded
    is_whole: bool = False

    __repr__ = name_alone

    def fold(self) -> None:
        """Take the pieces. The blanks at their end stay, if they are few."""
        if self._mark >= 0:
            later, self.pieces, self._mark = self.pieces[self._mark :], self.pieces[: self._mark], -1
            self.fold()
            self._head, self._words = (self._size, self._checksum), SaidText()
            self.pieces += later
        text = "".join(self.pieces)
        end = len(text.rstrip())
        if len(text) - end > _MOST_BLANKS:
            end = len(text)
        self._take(text[:end])
        if self._words is not None:
            self._words._take(text[:end])
        self.pieces = [text[end:]]

    def _take(self, text: str) -> None:
        said = text if self._size else text.lstrip()
        self._size += len(said)
        self._checksum = crc32(said.encode("utf-8", "surrogatepass"), self._checksum)

    def begins_again(self) -> bool:
        """Take the beginning of a call. Return whether the words before the first one came again before it."""
        if self._head is None:
            if self._mark < 0:
                self._mark = len(self.pieces)
            if self._mark == len(self.pieces):
                return False  # as most often: no words between calls
        self.fold()
        words, self._words = self._words or SaidText(), SaidText()
        return words._size > 0 and not self.is_whole and (words._size, words._checksum) == self._head

    def plus(self, text: str = "") -> SaidText:
        """Return a copy with another text behind it."""
        copy = SaidText([*self.pieces, text], self._size, self._checksum)
        copy.fold()
        return copy

    def rest_of(self, text: str) -> str | None:
        """Return what a text tells beyond this one; None if it begins with another one."""
        self.fold()
        text = text.lstrip()
        begin, rest = text[: self._size], text[self._size :]
        if len(begin) < self._size or crc32(begin.encode("utf-8", "surrogatepass")) != self._checksum:
            return None
        return rest.removeprefix(self.pieces[0]) if rest.strip() else ""

    def begins(self, text: str) -> bool:
        """Return whether a text tells all of it once more, and perhaps goes on."""
        return bool(self.rest_of(text) is not None and self._size and text.strip())

    def is_repeated(self, text: str) -> bool:
        """Return whether a text tells all of it once more, and is long enough to mean that."""
        return len(text.strip()) >= _LONG and len(set(text)) >= _DIFFERENT and self.rest_of(text) == ""


class OpenPart(msgspec.Struct, eq=False):
    """A text or thinking part that is open. `before`: the text before it. `native`: fields that its end tells, which
    `gathered` makes where they come in pieces.
    """

    index: int
    kind: type[TextStart] | type[ThinkingStart]
    signature: str | None = None
    redacted: str | None = None
    native: Native | None = None
    gathered: Callable[[], Native] | None = None
    before: SaidText | None = None
    has_said: bool = False

    __repr__ = name_alone

    def fields(self) -> Native | None:
        """Return the fields that its end tells."""
        return self.native if self.gathered is None else self.gathered()


class OpenCall(msgspec.Struct, eq=False):
    """A tool call that is open, or was.

    `state`: "waiting" for its name (and what came is held), "announced" (its start event left), "whole" or "failed".
    `id` is "" while the wire has not said one. `repeats` is the whole call under whose id this one was sent again.
    `is_settled`: nothing of its arguments can come any more. `unread`: the key of what may be its arguments, in a place
    where none are read; `is_torn`: a piece has them there, so that the others are not all.
    `pending`: text that may leave once the call is announced.
    `is_doubtful`: a name or another id came behind its arguments, so that further ones may be another call's.
    """

    index: int
    id: str
    name: str
    kind: Literal["function", "custom"]
    native: Native | None = None
    signature: str | None = None
    state: Literal["waiting", "announced", "whole", "failed"] = "waiting"
    text: ArgumentText = msgspec.field(default_factory=ArgumentText)
    pending: GatheredText | None = None
    arguments: str = ""  # the final text, when whole
    is_settled: bool = False
    fragments: int = 0
    size: int = 0  # characters of its arguments that came
    half: str = ""  # a high surrogate that waits for its other half
    live: list[str] | None = None  # takes plain fragments; None while they must be looked at
    repeats: OpenCall | None = None
    unread: str = ""
    is_torn: bool = False
    is_doubtful: bool = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.index} {self.state}>"  # arguments may hold secrets

    def is_open(self) -> bool:
        """Return whether it is neither complete nor failed."""
        return self.state in ("waiting", "announced")
