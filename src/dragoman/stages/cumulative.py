"""Servers that say all of a text again with each piece of it (DashScope without `incremental_output`, gateways before
it): each piece then says what is new.

Nothing but the pieces tells such a server. A piece that begins with all that came before it, and goes on, is rare in a
text that grows; three in a row, the first ones of a text, are a text that no model writes. Until then the pieces wait.
https://www.alibabacloud.com/help/en/model-studio/stream (read 2026-11-26).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dragoman.events import EVERY_KIND, Deviation, Event, NativeEvent, TextDelta, ThinkingDelta, UsageUpdate

_Delta: TypeAlias = TextDelta | ThinkingDelta
#: Pieces that begin with all before them: so many prove it, or fewer at the end of a text that has no others.
_PROOF: Final = 3
_PROOF_OF_ALL: Final = 2
#: Different characters that the text has at least: a line of dashes may grow so, piece by piece.
_DIFFERENT: Final = 6
#: What changes nothing of the order of texts.
_BESIDE: Final = frozenset({Deviation, NativeEvent, UsageUpdate})


class _Watch:
    """The pieces of one kind of text.

    Attributes:
        is_on: whether the next piece must be seen.
        held: pieces that wait.
    """

    __slots__ = ("_first", "_grown", "_is_proven", "_kind", "_where", "held", "is_on", "total")

    def __init__(self, kind: type[TextDelta] | type[ThinkingDelta], where: str) -> None:
        self._kind, self._where = kind, where
        self.is_on = True
        self._is_proven = False
        self.held: list[_Delta] = []
        self._first = 0  # characters that left before
        self._grown = 0  # pieces in a row that begin with all before them
        self.total = ""  # what a server that says all again has said

    def take(self, delta: _Delta, out: list[Event]) -> None:
        """The next piece."""
        text = delta.text
        if self._is_proven:
            return self._take_proven(delta, out)
        if not self.total:
            self.total, self._first = text, len(text)
            out.append(delta)
        elif text.startswith(self.total) and (self.held or len(text) > len(self.total)):
            self._grown += len(text) > len(self.total)
            self.total = text
            self.held.append(delta)
            if self._grown >= _PROOF and self._is_a_text():
                self._prove(out)
        else:
            self.release(out)
            out.append(delta)

    def end(self, out: list[Event]) -> None:
        """Something else comes: what waits is decided."""
        if self.held and self._grown >= _PROOF_OF_ALL and self._is_a_text():
            self._prove(out)
        elif self.held:
            self.release(out)

    def release(self, out: list[Event]) -> None:
        """The pieces are what they seem: they say what is new."""
        out += self.held
        self.held, self.total, self.is_on = [], "", False

    def _is_a_text(self) -> bool:
        return len(set(self.total)) >= _DIFFERENT

    def _prove(self, out: list[Event]) -> None:
        out.append(Deviation("cumulative-text", self._where, f"{self._grown + 1} pieces"))
        self._tell(self.held[0].index, self.total[self._first :], out)
        self._is_proven, self.held = True, []

    def _tell(self, index: int, text: str, out: list[Event]) -> None:
        if text:
            out.append(self._kind(index, text))

    def _take_proven(self, delta: _Delta, out: list[Event]) -> None:
        text = delta.text
        if text.startswith(self.total):
            self._tell(delta.index, text[len(self.total) :], out)
            self.total = text
        elif not self.total.startswith(text):  # the end of a few streams says what is new alone
            self.total += text
            out.append(delta)


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
