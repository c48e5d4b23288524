"""Keep one part open at a time, which is all that most clients' protocols can express.

The part that opened first is live; parts that open beside it wait, in the order in which they opened.
"""

from __future__ import annotations

from typing import Final

from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
)
from dragoman.gathered import GatheredRuns
from dragoman.stages.part_indices import index_of

#: Characters that may wait behind an open part; past them the response fails.
WAITING_LIMIT: Final = 32 * 1024 * 1024


_STARTS: Final = frozenset({TextStart, ThinkingStart, ToolCallStart})
_ENDS: Final = frozenset({TextEnd, ThinkingEnd, ToolCallEnd, ToolCallFailed})
_BESIDE_PARTS: Final = frozenset({Start, UsageUpdate, NativeEvent, Deviation, Finish, Failure})
#: What opens or closes a part: while nothing waits, the one that is open grows unseen.
_EDGES: Final = _STARTS | _ENDS | {PartEvent, Finish}


class Sequencer:
    """Puts interleaved parts one after the other. A `dragoman.protocol.Stage`."""

    __slots__ = ("_failed", "_limit", "_live", "_size", "_start", "_waiting", "handles")

    acts_on = EVERY_KIND

    def __init__(self, *, limit: int = WAITING_LIMIT) -> None:
        self._live = -1  # index of the open part
        self._start: Event | None = None  # with which it opened
        self._waiting: dict[int, GatheredRuns[Event]] = {}  # by part, in order of opening
        self._size = 0
        self._limit = limit
        self._failed = False
        self.handles: frozenset[type] = _EDGES

    def feed(self, events: list[Event]) -> list[Event]:
        passed = 0 if self._waiting or self._failed else self._in_order(events)
        if passed == len(events):
            return events
        out = events[:passed]
        for event in events[passed:]:
            if self._failed:
                break
            self._take(event, out)
        self.handles = EVERY_KIND if self._waiting or self._failed else _EDGES
        return out

    def _in_order(self, events: list[Event]) -> int:
        """Return how many events pass before the first that must wait. Nothing waits yet."""
        live = self._live
        passed = 0
        for event in events:
            kind = type(event)
            if kind in _STARTS:
                if live >= 0:
                    break
                live = index_of(event)
                self._start = event
            elif kind in _BESIDE_PARTS:
                if live >= 0 and kind is Finish:
                    break
            elif kind in _ENDS:
                if 0 <= live != index_of(event):
                    break
                live = -1
            elif live != index_of(event) and (live >= 0 or kind is not PartEvent):
                break
            passed += 1
        self._live = live
        return passed

    def _take(self, event: Event, out: list[Event]) -> None:
        kind = type(event)
        if type(event) is TextDelta or type(event) is ToolCallDelta or type(event) is ThinkingDelta:
            if event.index == self._live:
                out.append(event)
            else:
                self._wait(event.index, event, out, size=len(event.text))
        elif kind in _STARTS:
            index = index_of(event)
            if self._live < 0:
                self._live = index
                self._start = event
                out.append(event)
            else:
                self._wait(index, event, out)
        elif kind in _ENDS:
            index = index_of(event)
            if index == self._live:
                out.append(event)
                self._live = -1
                self._release(out)
            elif self._live < 0:
                out.append(event)  # a call that failed before it had a name
            else:
                self._wait(index, event, out)
        elif type(event) is PartEvent:
            if self._live < 0:
                out.append(event)
            else:
                self._wait(event.index, event, out)
        else:
            if kind is Finish:
                self._end_open(out)
            assert kind in _BESIDE_PARTS, f"not an event: {kind.__name__}"
            out.append(event)

    def _wait(self, index: int, event: Event, out: list[Event], *, size: int = 0) -> None:
        self._waiting.setdefault(index, GatheredRuns()).add(event)
        self._size += size
        if self._size > self._limit:
            self._failed = True
            out.append(Failure("answer_too_large", f"more than {self._limit} characters wait behind an open part"))

    def _release(self, out: list[Event]) -> None:
        """Release the waiting parts, up to the first that is still open."""
        while self._waiting and self._live < 0:
            index = next(iter(self._waiting))
            events = self._waiting.pop(index).take()
            for event in events:
                out.append(event)
                self._size -= len(event.text) if isinstance(event, TextDelta | ToolCallDelta | ThinkingDelta) else 0
            last = type(out[-1])
            if last not in (TextEnd, ToolCallEnd, ThinkingEnd, ToolCallFailed, PartEvent):
                self._live = index
                self._start = events[0]

    def _end_open(self, out: list[Event]) -> None:
        """End the open parts with the answer, so that nothing waits behind it. A call that did not end failed."""
        while self._live >= 0:
            start = self._start
            if isinstance(start, ToolCallStart):
                message = f"tool call {start.name}: the answer ends before its end"
                out.append(ToolCallFailed(start.index, start.id, start.name, "cut", message))
            else:
                out.append((ThinkingEnd if isinstance(start, ThinkingStart) else TextEnd)(self._live))
            self._live = -1
            self._release(out)
