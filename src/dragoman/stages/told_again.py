"""Compare the calls of a text with those of the same text as a later event tells it whole.

A client reads one of both. If they hold the same calls, whatever the words around them, these run; else none does:
those that wait fail, and for one that has left, or stands in the later text alone, the answer fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman.codec.parts.settled_arguments import is_same
from dragoman.events import (
    EVERY_KIND,
    Deviation,
    Event,
    Failure,
    Finish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallEnd,
    ToolCallFailed,
    settle_reason,
)
from dragoman.protocol import Stage

OTHER_CALLS: Final = "its text came twice, with other calls in it"
#: Texts of one answer that are compared; with more of them its calls are refused unseen.
_MOST_COMPARED: Final = 8

_Calls: TypeAlias = list[tuple[str, str]]  # names and arguments
_SEEN: Final = frozenset[type]({Deviation, ToolCallEnd})


class ToldAgain:
    """The stage behind those that read calls in text. A `dragoman.protocol.Stage`."""

    __slots__ = ("_held", "_in_text", "_make", "_marks_calls", "_said", "_told", "_twins", "_usable", "handles")

    acts_on = frozenset[type]({Deviation})

    def __init__(self, make: Callable[[], Sequence[Stage]], *, marks_calls: bool) -> None:
        """Create it.

        Args:
            make: gives new stages that read calls in text.
            marks_calls: these report each call that they find; else every call is one of a text.
        """
        self._make = make
        self._marks_calls = marks_calls
        self._in_text: set[str] = set()  # where calls of texts stand
        self._usable = self._twins = 0  # calls that left, and those of texts that a structured one told already
        self._said: _Calls = []  # calls of texts that left, and that wait
        self._held: list[ToolCallEnd] = []
        self._told: list[tuple[str | None, str]] = []
        self.handles: frozenset[type] = _SEEN

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        out: list[Event] = []
        for event in events:
            if type(event) is Deviation:
                if event.texts is not None:
                    self._add(*event.texts)
                    self.handles = EVERY_KIND
                    continue
                if event.code == "rescued-call":
                    self._in_text.add(event.where)
                elif event.code == "duplicate-call":
                    self._twins += event.where in self._in_text
            elif type(event) is ToolCallEnd:
                self._usable += 1
                if not self._marks_calls or f"call {event.index}" in self._in_text:
                    self._said.append((event.call.name, event.call.arguments))
                    if self._told:
                        self._held.append(event)
                        continue
            elif self._told and (type(event) is Finish or type(event) is Failure):
                event = self._settle(event, out)
            out.append(event)
        return out if self._told else events

    def _add(self, said: str | None, told: str) -> None:
        """Keep a text, unless it goes on with the last one: some servers tell all text so far with each piece."""
        if said is None and self._told and self._told[-1][0] is None and told.startswith(self._told[-1][1]):
            self._told[-1] = (None, told)
        elif len(self._told) <= _MOST_COMPARED:
            self._told.append((said, told))

    def _settle(self, end: Finish | Failure, out: list[Event]) -> Finish | Failure:
        """Let the waiting calls go, or fail them. Return the end of the answer."""
        held, name = self._held, self._refused()
        if name is None:
            out += held
            return end
        for event in held:
            call = event.call
            message = f"tool call {call.name}, written as text: {OTHER_CALLS}"
            out.append(ToolCallFailed(event.index, call.id, call.name, "contradicted", message, call.arguments))
        if isinstance(end, Failure):
            return end
        if len(held) < len(self._said) or not held:
            message = f"tool call {name}, written as text: {OTHER_CALLS}"
            return Failure("wire", message, usage=end.usage, cost=end.cost, native=end.native)
        reason = settle_reason(end.reason, usable_calls=self._usable - len(held), failed_calls=len(held))
        return msgspec.structs.replace(end, reason=reason)

    def _refused(self) -> str | None:
        """Return the name of a call that only one telling of a text has, or None."""
        names = [name for name, _ in self._said]
        if len(self._told) > _MOST_COMPARED:
            return names[0] if names else None
        for said, told in self._told:
            calls = self._calls_in(told)
            if said is not None and _are_same(self._calls_in(said), calls):
                continue
            if not _are_same(self._said, calls) and not (self._twins and len(calls) <= len(names) + self._twins):
                return (names + [name for name, _ in calls])[0] if names or calls else None
        return None

    def _calls_in(self, text: str) -> _Calls:
        """Return the calls that a text holds if it is the whole answer."""
        events: list[Event] = [TextStart(0), TextDelta(0, text), TextEnd(0), Finish("stop")]
        for stage in self._make():
            events = stage.feed(events)
        return [(event.call.name, event.call.arguments) for event in events if type(event) is ToolCallEnd]


def _are_same(calls: _Calls, others: _Calls) -> bool:
    return len(calls) == len(others) and all(
        name == other and is_same(text, again) for (name, text), (other, again) in zip(calls, others, strict=True)
    )
