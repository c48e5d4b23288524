"""Turn thinking that a model writes into its text between tags into thinking parts, live.

`scanner.py` reads the text; this stage creates the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallFailed,
    UsageUpdate,
)
from dragoman.protocol import PLAIN, Dialect
from dragoman.secret import name_alone
from dragoman.stages.part_indices import FEW, OPENING, PartIndices, index_of, of_kinds, text_of
from dragoman.stages.thinking.scanner import Found, ThinkingScanner
from dragoman.types import Native


class _Text(msgspec.Struct, eq=False):
    """A text part that is read for tags. `index` is that of the open part in the output, or -1."""

    start: TextStart
    reader: ThinkingScanner
    index: int = -1
    is_thinking: bool = False  # the part that is open in the output
    has_said: bool = False  # something left
    behind: str = ""  # what stood before the next text, and is none

    __repr__ = name_alone


class ThinkingTags:
    """The stage for one response. A `dragoman.protocol.Stage`."""

    __slots__ = ("_dialect", "_end_waits", "_indices", "_is_start", "_may_begin", "_out", "_text", "handles")

    acts_on = frozenset[type]({TextStart})

    def __init__(self, dialect: Dialect = PLAIN) -> None:
        self._dialect = dialect
        self._out: list[Event] = []
        self._text: _Text | None = None  # the part in which tags may still be found
        self._end_waits: TextEnd | None = None  # of that part, until it is known whether more follows
        self._may_begin = True  # at the start of the message, or after thinking only
        self._is_start = True  # nothing has come at all
        self._indices = PartIndices()
        self.handles: frozenset[type] = OPENING

    def feed(self, events: list[Event]) -> list[Event]:
        passed = 0 if self.handles is EVERY_KIND else self._passing(events)
        if passed == len(events):
            return events
        out = self._out = events[:passed]
        for event in events[passed:]:
            self._take(event)
        self._out = []
        is_any = self._indices.are_changed or self._end_waits is not None
        self.handles = EVERY_KIND if is_any else OPENING if self._text is None else _READ
        return out

    def _passing(self, events: list[Event]) -> int:
        """Return how many events pass as they are, before the first in which something must be read."""
        text = self._text
        if text is None:
            return self._before_text(events)
        if (said := text_of(events, TextDelta)) is not None:
            is_read = index_of(events[0]) == text.start.index
            if not is_read or text.reader.passes(said):
                return len(events)
        for position, event in enumerate(events):
            kind = type(event)
            if type(event) is TextDelta:
                if event.index == text.start.index and not text.reader.passes(event.text):
                    return position
            elif kind is TextStart or kind is TextEnd or kind is Failure:
                return position
            elif kind in OPENING:
                self._opens(event)
                self._indices.of(index_of(event))
        return len(events)

    def _before_text(self, events: list[Event]) -> int:
        """As `_passing`, if no text is read."""
        for event in events if len(events) <= FEW else of_kinds(events, OPENING):
            if type(event) is TextStart:
                return events.index(event)
            if type(event) in OPENING:
                self._opens(event)
                self._indices.of(index_of(event))
        return len(events)

    def _opens(self, event: Event) -> None:
        """Take the start of a part that is not read: it decides whether tags may count in the text that follows."""
        kind = type(event)
        if kind is ThinkingStart:
            self._may_begin, self._is_start = True, False
        elif kind is not ToolCallFailed:
            self._may_begin = self._is_start = False

    def _take(self, event: Event) -> None:
        if self._end_waits is not None and type(event) not in _BETWEEN:
            end, self._end_waits = self._end_waits, None
            assert self._text is not None
            self._end(self._text, end, is_last=type(event) is Finish or type(event) is Failure)
        text = self._text
        if type(event) is TextDelta and text is not None and event.index == text.start.index:
            self._delta(text, event)
        elif type(event) is TextStart and self._may_begin and text is None:
            opened = self._dialect.thinking_opened and self._is_start
            reader = ThinkingScanner(self._dialect.thinking_tags, opened=opened, has_thought=not self._is_start)
            self._text = _Text(event, reader)
        elif type(event) is TextEnd and text is not None and event.index == text.start.index:
            if text.reader.may_go_on():
                self._end_waits = event
            else:
                self._end(text, event)
        else:
            if type(event) in OPENING:
                self._opens(event)
            elif type(event) is Failure and text is not None:
                self._read(text, text.reader.end())
            self._out.append(self._indices.move(event))

    # ------------------------------------------------------------ text

    def _delta(self, text: _Text, event: TextDelta) -> None:
        if text.reader.passes(event.text):
            self._out.append(event if text.index == event.index else TextDelta(text.index, event.text))
            return
        self._read(text, text.reader.feed(event.text))
        if text.reader.is_done and text.index == event.index:
            self._text = None  # the part goes on as it came
            self._may_begin = self._is_start = False

    def _read(self, text: _Text, found: Sequence[Found]) -> None:
        for kind, piece in found:
            if kind == "was":
                self._out.append(TextEnd(text.index, was_thinking=True))
                self._report(text)
                text.index = -1
            elif kind == "behind":
                text.behind = piece
            elif kind == "end":
                self._close(text)
                text.behind = ""
            else:
                is_thinking = kind == "thinking"
                if text.is_thinking is not is_thinking:
                    self._close(text)
                if text.index < 0:
                    self._open(text, is_thinking=is_thinking)
                self._out.append((ThinkingDelta if is_thinking else TextDelta)(text.index, piece))

    def _open(self, text: _Text, *, is_thinking: bool) -> None:
        given = text.start.index
        native = None if text.has_said else text.start.native
        text.index = self._indices.add(given) if text.has_said else self._indices.of(given)
        text.has_said, text.is_thinking = True, is_thinking
        if is_thinking:
            self._report(text)
            self._out.append(ThinkingStart(text.index, native))
        else:
            self._out.append(TextStart(text.index, native, text.behind or None))
        text.behind = ""

    def _close(self, text: _Text) -> None:
        if text.index >= 0:
            self._out.append((ThinkingEnd if text.is_thinking else TextEnd)(text.index))
            text.index = -1

    def _end(self, text: _Text, event: TextEnd, *, is_last: bool = True) -> None:
        """End the incoming part. Its signature and fields go to the last part that it became. `is_last`: of the
        message.
        """
        self._read(text, text.reader.end(is_last=is_last))
        self._text = None
        if text.index < 0 and (event.signature is not None or event.native is not None or not text.reader.has_markup):
            self._open(text, is_thinking=False)
        if text.index >= 0:
            self._out.append(_ended(text, event.signature, event.native))
        if text.has_said and not text.is_thinking and text.index >= 0:
            self._may_begin = self._is_start = False
        elif text.reader.has_markup:
            self._is_start = False

    def _report(self, text: _Text) -> None:
        """Report thinking in the text as a deviation, unless the dialect declares it."""
        if self._dialect.thinking_tags is None and not self._dialect.thinking_opened:
            self._out.append(Deviation("thinking-as-text", f"part {text.start.index}"))


def _ended(text: _Text, signature: str | None, native: Native | None) -> Event:
    if text.is_thinking:
        return ThinkingEnd(text.index, signature, None, native)
    return TextEnd(text.index, False, signature, native)


#: What says nothing of whether a message goes on.
_BETWEEN: Final = frozenset[type]({Deviation, NativeEvent, UsageUpdate})
#: What is seen while a text is read.
_READ: Final = OPENING | {TextDelta, TextEnd, Failure}
