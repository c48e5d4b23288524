"""Servers that say all of a text again with each piece of it (DashScope without `incremental_output`, gateways before
it): each piece then says what is new.

Nothing but the pieces tells such a server. A piece that begins with all that came before it, and goes on, is rare in a
text that grows; three in a row, the first ones of a text, are a text that no model writes, if what they say again is
words. Until then the pieces wait. At the end of a text two are enough.
https://www.alibabacloud.com/help/en/model-studio/stream (read 2026-11-26).
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from dragoman.events import EVERY_KIND, Deviation, Event, NativeEvent, TextDelta, ThinkingDelta, UsageUpdate
from dragoman.gathered import GatheredText

_Delta: TypeAlias = TextDelta | ThinkingDelta
#: Pieces that begin with all before them: so many prove it, or fewer at the end of a text that has no others.
_PROOF: Final = 3
_PROOF_OF_ALL: Final = 2
#: What a text that was said again has at least: different characters, and words, or a length. A line of dashes and a
#: list of a word's beginnings (" s", " st", " str") may grow so, piece by piece.
_DIFFERENT: Final = 6
_LONG: Final = 16
_WORDS: Final = re.compile(r"\S\s+\S|[\u0e00-\uffff]")  # without spaces between them in the scripts from Thai on
#: What changes nothing of the order of texts.
_BESIDE: Final = frozenset({Deviation, NativeEvent, UsageUpdate})


class _Watch:
    """The pieces of one kind of text.

    Attributes:
        is_on: whether the next piece must be seen.
        held: pieces that wait.
    """

    __slots__ = (
        "_again",
        "_first",
        "_grown",
        "_index",
        "_is_proven",
        "_kind",
        "_new",
        "_size",
        "_total",
        "_where",
        "held",
        "is_on",
    )

    def __init__(self, kind: type[TextDelta] | type[ThinkingDelta], where: str) -> None:
        self._kind, self._where = kind, where
        self.is_on = True
        self._is_proven = False
        self._index = 0  # of the part that was proven
        self.held: list[_Delta] = []
        self._first = 0  # characters that left before
        self._grown = 0  # pieces in a row that begin with all before them
        self._again = ""  # what the last of these said again
        self._total = ""  # what the last piece that said all has said
        self._new = GatheredText()  # what pieces behind it said that say only what is new
        self._size = 0  # characters of both

    def take(self, delta: _Delta, out: list[Event]) -> None:
        """The next piece."""
        text = delta.text
        if self._is_proven:
            return self._take_proven(delta, out)
        if not self._size:
            self._say(text)
            self._first = len(text)
            self.is_on = not text.startswith("\n")  # lines that begin with their line end may grow by themselves
            out.append(delta)
        elif text.startswith(self._total) and (self.held or len(text) > self._size):
            if len(text) > self._size:
                self._grown += 1
                self._again = self._total
            self._say(text)
            self.held.append(delta)
            if self._grown >= _PROOF and _is_a_text(self._again):
                self._prove(out)
        else:
            self.release(out)
            out.append(delta)

    def end(self, out: list[Event]) -> None:
        """Something else comes: what waits is decided."""
        if self._is_proven:
            self._release_new(out)
        elif self.held and self._grown >= _PROOF_OF_ALL and _is_a_text(self._again):
            self._prove(out)
        elif self.held:
            self.release(out)

    def release(self, out: list[Event]) -> None:
        """The pieces are what they seem: they say what is new."""
        out += self.held
        self.held, self._total, self._again, self.is_on = [], "", "", False

    def _say(self, text: str) -> None:
        self._total, self._size = text, len(text)
        self._new.clear()

    def _prove(self, out: list[Event]) -> None:
        out.append(Deviation("cumulative-text", self._where, f"{self._grown + 1} pieces"))
        self._index = self.held[0].index
        self._tell(self._index, self._total[self._first :], out)
        self._is_proven, self.held = True, []

    def _tell(self, index: int, text: str, out: list[Event]) -> None:
        if text:
            out.append(self._kind(index, text))

    def _take_proven(self, delta: _Delta, out: list[Event]) -> None:
        text = delta.text
        if len(text) >= self._size and text.startswith(self._total + self._new.text()):
            self.held = []  # said again, too
            self._tell(delta.index, text[self._size :], out)
            self._index = delta.index
            self._say(text)
        elif delta.index != self._index:  # a part that begins anew
            self._is_proven, self._grown, self._size = False, 0, 0
            self.take(delta, out)
        elif not self._new and self._total.startswith(text):
            self.held.append(delta)  # an old piece, or a new word that the text begins with: the next piece tells
        else:  # the end of a few streams says what is new alone
            self._release_new(out)
            self._add(delta, out)

    def _release_new(self, out: list[Event]) -> None:
        for delta in self.held:
            self._add(delta, out)
        self.held = []

    def _add(self, delta: _Delta, out: list[Event]) -> None:
        self._new.add(delta.text)
        self._size += len(delta.text)
        out.append(delta)


def _is_a_text(again: str) -> bool:
    """Whether what was said again is more than a few characters, or a word, that a text may repeat as it grows."""
    if len(set("".join(again.split()))) < _DIFFERENT:
        return False
    return len(again) >= _LONG or _WORDS.search(again) is not None


class Cumulative:
    """Takes from each piece of a text what the ones before it said. A `dragoman.protocol.Stage`."""

    __slots__ = ("_text", "_thinking", "handles")
    acts_on = frozenset[type]({TextDelta, ThinkingDelta})

    def __init__(self) -> None:
        self._text, self._thinking = _Watch(TextDelta, "text"), _Watch(ThinkingDelta, "thinking")
        self.handles: frozenset[type] = _handled(self._text, self._thinking)

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        if self.handles is not EVERY_KIND and self.handles.isdisjoint(map(type, events)):
            return events
        out: list[Event] = []
        for event in events:
            kind = type(event)
            if type(event) is TextDelta and self._text.is_on:
                self._thinking.end(out)
                self._text.take(event, out)
            elif type(event) is ThinkingDelta and self._thinking.is_on:
                self._text.end(out)
                self._thinking.take(event, out)
            else:
                if kind not in _BESIDE:
                    self._text.end(out)
                    self._thinking.end(out)
                out.append(event)
        handles = _handled(self._text, self._thinking)
        is_same = handles == self.handles and len(out) == len(events) and out == events
        self.handles = handles
        return events if is_same else out


def _handled(text: _Watch, thinking: _Watch) -> frozenset[type]:
    """What must be seen: all while something waits, so that nothing overtakes it."""
    if text.held or thinking.held:
        return EVERY_KIND
    return frozenset(kind for kind, watch in ((TextDelta, text), (ThinkingDelta, thinking)) if watch.is_on)
