"""Handle servers that repeat all of a text with each piece of it, and reduce each piece to its new part.

DashScope without `incremental_output` does so, and gateways before it. Only the pieces themselves identify such a
server. A piece that begins with everything before it, and goes on, is rare in a growing text. Three in a row, the first
ones of a text, are a text that no model writes, if they repeat words. Until then the pieces wait. At the end of a text
two are enough. Some of these servers send a piece twice, and those of thinking and text alternately, each time in parts
of their own. A server that repeats thinking does so with text, so the proof of one is that of the other, and from then
on nothing waits. https://www.alibabacloud.com/help/en/model-studio/stream (read 2026-11-26).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from dragoman.codec.patterns import rare_pattern
from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    NativeEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    UsageUpdate,
)
from dragoman.gathered import GatheredText

_Delta: TypeAlias = TextDelta | ThinkingDelta
#: Pieces that begin with all before them: so many prove it, or fewer at the end of a text that has no others.
_PROOF: Final = 3
_PROOF_OF_ALL: Final = 2
#: Pieces that say no more than the one before, as long as none has grown; and all that wait without a proof.
_MOST_EQUAL: Final = 2
_MOST_HELD: Final = 64
#: What a text that was said again has at least: different characters, and words, or a length. A line of dashes and a
#: list of a word's beginnings (" s", " st", " str") may grow so, piece by piece.
_DIFFERENT: Final = 6
_LONG: Final = 16
_WORDS: Final = rare_pattern(r"\S\s+\S|[\u0e00-\uffff]")  # without spaces between them in the scripts from Thai on
#: What changes nothing of the order of texts.
_BESIDE: Final = frozenset({Deviation, NativeEvent, UsageUpdate})
_EDGES: Final = frozenset({TextStart, TextEnd, ThinkingStart, ThinkingEnd})


class _Watch(msgspec.Struct, eq=False):
    """The pieces of one kind of text.

    Attributes:
        is_on: whether the next piece must be seen.
        is_proven: whether each piece repeats everything.
        grown, equal: pieces in a row that begin with everything before them and go on, or do not.
        waits: whether pieces of it wait.
    """

    _kind: type[TextDelta] | type[ThinkingDelta]
    where: str
    is_on: bool = True
    is_proven: bool = False
    waits: bool = False
    _index: int = -1  # of the part that is read
    _is_told: bool = False  # a deviation told of it
    _old: list[_Delta] = []  # pieces of a text that is proven, which the next one tells from new words
    _first: str = ""  # what left before anything waited
    grown: int = 0
    equal: int = 0
    _again: str = ""  # what the last of these said again
    _total: str = ""  # what the last piece that said all has said
    _new: GatheredText = msgspec.field(default_factory=GatheredText)  # what pieces behind it said that say what is new
    _size: int = 0  # characters of both

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.where}>"  # not the text

    @property
    def is_seen(self) -> bool:
        """Return whether a piece of it came, and the next must be seen."""
        return self.is_on and self._size > 0

    def is_first(self, delta: _Delta) -> bool:
        """Take the first piece. Return False if one came before."""
        if self._size:
            return False
        self._first, self._index = delta.text, delta.index
        self._say(delta.text)
        self.is_on = not delta.text.startswith("\n")  # lines that begin with their line end may grow by themselves
        return True

    def says_again(self, delta: _Delta) -> bool:
        """Return whether a further piece begins with everything before it."""
        text = delta.text
        if not text.startswith(self._total):
            return False
        if len(text) > self._size:
            self.grown += 1
            self._again = self._total
            self._say(text)
        else:
            self.equal += 1
        return True

    def is_proof(self, wanted: int) -> bool:
        """Return whether `wanted` pieces have repeated words."""
        return self.waits and self.grown >= wanted and _is_a_text(self._again)

    def prove(self, held: list[Event], *, is_told: bool) -> None:
        """Record that each piece repeats everything. `held`: what is read again, with a waiting first piece."""
        self.is_proven, self._is_told = self.is_on, is_told
        pieces = sum(type(event) is self._kind for event in held)
        self._say(self._first if pieces == self.grown + self.equal else "")
        self.waits = False

    def turn_off(self) -> None:
        """Record that the pieces are increments."""
        self.is_on = self.waits = False
        self._total = self._again = self._first = ""

    def _say(self, text: str) -> None:
        self._total, self._size = text, len(text)
        self._new.clear()

    def take_proven(self, delta: _Delta, out: list[Event]) -> None:
        """Take a piece of a proven text."""
        text = delta.text
        if len(text) >= self._size and text.startswith(self._total + self._new.text()):
            self._old = []  # said again, too
            if self._size and not self._is_told:
                self._is_told = True
                out.append(Deviation("cumulative-text", self.where, "as of the other text"))
            if new := text[self._size :]:
                out.append(self._kind(delta.index, new))
            self._index = delta.index
            self._say(text)
        elif delta.index != self._index:  # a part that begins anew
            self.release(out)
            out.append(delta)
            self._index = delta.index
            self._say(text)
        elif not self._new and self._total.startswith(text):
            self._old.append(delta)  # an old piece, or a new word that the text begins with: the next piece tells
        else:  # the end of a few streams says what is new alone
            self.release(out)
            self._add(delta, out)

    def release(self, out: list[Event]) -> None:
        """Release the pieces, because nothing distinguishes old pieces from new words any more."""
        for delta in self._old:
            self._add(delta, out)
        self._old = []

    def _add(self, delta: _Delta, out: list[Event]) -> None:
        self._new.add(delta.text)
        self._size += len(delta.text)
        out.append(delta)


def _is_a_text(again: str) -> bool:
    """Return whether the repetition is more than a few characters, or a word, that a growing text may repeat."""
    if len(set("".join(again.split()))) < _DIFFERENT:
        return False
    return len(again) >= _LONG or _WORDS.search(again) is not None


class Cumulative:
    """Removes from each piece of a text what the earlier ones said. A `dragoman.protocol.Stage`."""

    __slots__ = ("_has_begun", "_held", "_is_new", "_opening", "_text", "_thinking", "handles")
    acts_on = frozenset[type]({TextDelta, ThinkingDelta})

    def __init__(self) -> None:
        self.handles: frozenset[type] = self.acts_on
        self._has_begun = False

    def _begin(self) -> None:
        """Begin with the first piece: an answer without any needs none of this."""
        self._has_begun = True
        self._text, self._thinking = _Watch(TextDelta, "text"), _Watch(ThinkingDelta, "thinking")
        self._held: list[Event] = []  # what waits, in its order
        self._opening: Event | None = None  # the start of a part that may say nothing new
        self._is_new = False  # a kind of text is seen no more

    def feed(self, events: list[Event]) -> list[Event]:
        if self.handles is not EVERY_KIND and self.handles.isdisjoint(map(type, events)):
            return events
        if not self._has_begun:
            self._begin()
        out: list[Event] = []
        for place, event in enumerate(events):
            if type(event) in _BESIDE:
                out.append(event)
            elif self._opening is not None or self._text.is_proven or self._thinking.is_proven:
                self._take_proven(event, out)
            else:
                self._take(event, out)
                if self._is_new:
                    self._is_new = False
                    if self._handled().isdisjoint(map(type, events[place + 1 :])):
                        out += events[place + 1 :]
                        break
        handles = self._handled()
        is_same = handles == self.handles and len(out) == len(events) and out == events
        self.handles = handles
        return events if is_same else out

    def _watch(self, event: TextDelta | ThinkingDelta | TextStart | ThinkingStart) -> _Watch:
        return self._text if isinstance(event, TextDelta | TextStart) else self._thinking

    # ------------------------------------------------------------ until it is proven

    def _take(self, event: Event, out: list[Event]) -> None:
        if isinstance(event, TextDelta | ThinkingDelta) and (watch := self._watch(event)).is_on:
            if watch.is_first(event):
                self._pass(event, out)
            elif watch.says_again(event) and self._may_wait(watch):
                self._held.append(event)
                watch.waits = True
                if watch.is_proof(_PROOF):
                    self._prove(watch, out)
            else:
                self._let_go(out)
                watch.turn_off()
                self._is_new = True
                out.append(event)
        elif isinstance(event, TextStart | ThinkingStart) and self._watch(event).is_seen:
            self._held.append(event)
        elif type(event) in _EDGES or isinstance(event, TextDelta | ThinkingDelta):
            self._pass(event, out)
        else:
            self._decide(out)
            if self._opening is None:
                out.append(event)
            else:
                self._take_proven(event, out)

    def _may_wait(self, watch: _Watch) -> bool:
        """Return whether a repeating piece may be more than chance."""
        has_grown = self._text.grown or self._thinking.grown
        return len(self._held) < _MOST_HELD and bool(has_grown or watch.equal <= _MOST_EQUAL)

    def _pass(self, event: Event, out: list[Event]) -> None:
        """Pass an event behind what waits."""
        if len(self._held) >= _MOST_HELD:
            self._let_go(out)
        (self._held if self._held else out).append(event)

    def _decide(self, out: list[Event]) -> None:
        """Decide about the waiting pieces, because something else than text and thinking comes."""
        if not self._held:
            return
        for watch in (self._text, self._thinking):
            if watch.is_proof(_PROOF_OF_ALL):
                return self._prove(watch, out)
        self._let_go(out)

    def _let_go(self, out: list[Event]) -> None:
        out += self._held
        self._held = []
        for watch in (self._text, self._thinking):
            if watch.waits:
                watch.turn_off()

    def _prove(self, proven: _Watch, out: list[Event]) -> None:
        held, self._held = self._held, []
        out.append(Deviation("cumulative-text", proven.where, f"{proven.grown + 1} pieces"))
        for watch in (self._text, self._thinking):
            if not watch.is_proven:
                watch.prove(held, is_told=watch is proven)
        for event in held:
            self._take_proven(event, out)

    # ------------------------------------------------------------ from then on

    def _take_proven(self, event: Event, out: list[Event]) -> None:
        """Drop a part that says nothing new."""
        if isinstance(event, TextStart | ThinkingStart) and self._watch(event).is_proven and event.native is None:
            self._flush(out)
            self._opening = event
        elif isinstance(event, TextDelta | ThinkingDelta):
            self._take_piece(event, out)
        elif isinstance(event, TextEnd | ThinkingEnd):
            self._watch_of_end(event).release(said := list[Event]())
            if said:
                self._flush(out)
                out += said
            if self._opening is not None and _is_bare(event):
                self._opening = None
            else:
                self._flush(out)
                out.append(event)
        else:
            for watch in (self._text, self._thinking):
                watch.release(out)
            self._flush(out)
            out.append(event)

    def _take_piece(self, event: _Delta, out: list[Event]) -> None:
        watch, said = self._watch(event), list[Event]()
        if watch.is_proven:
            watch.take_proven(event, said)
        else:  # it was not like this
            said.append(event)
        if said:
            self._flush(out)
            out += said

    def _watch_of_end(self, event: TextEnd | ThinkingEnd) -> _Watch:
        return self._text if isinstance(event, TextEnd) else self._thinking

    def _flush(self, out: list[Event]) -> None:
        if self._opening is not None:
            out.append(self._opening)
            self._opening = None

    def _handled(self) -> frozenset[type]:
        """Return what must be seen: everything while something waits, so that nothing overtakes it."""
        text, thinking = self._text, self._thinking
        if self._held or self._opening is not None or text.is_proven or thinking.is_proven:
            return EVERY_KIND
        kinds: set[type] = set()
        for watch, kind, start in ((text, TextDelta, TextStart), (thinking, ThinkingDelta, ThinkingStart)):
            if watch.is_on:
                kinds |= {kind, start} if watch.is_seen else {kind}
        return frozenset(kinds)


def _is_bare(event: TextEnd | ThinkingEnd) -> bool:
    """Return whether the end of a part has no further field."""
    return event.signature is None and event.native is None and getattr(event, "redacted", None) is None
