"""Strict mode: the first deviation ends the response."""

from __future__ import annotations

from dragoman.errors import DEVIATION_REFUSED
from dragoman.events import EVERY_KIND, Deviation, Event, Failure


class Strict:
    """Turns the first deviation into a `Failure`. A `dragoman.protocol.Stage`."""

    __slots__ = ("_failed", "_takes_notes", "handles")

    acts_on = EVERY_KIND

    def __init__(self, *, takes_notes: bool = True) -> None:
        """Create it. `takes_notes`: a deviation of severity "note" is no failure."""
        self._failed = False
        self._takes_notes = takes_notes
        self.handles = frozenset[type]({Deviation})

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events; nothing leaves after the failure."""
        if self._failed:
            return []
        for position, event in enumerate(events):
            if type(event) is Deviation and not (self._takes_notes and event.severity == "note"):
                self._failed = True
                self.handles = EVERY_KIND
                where = f" at {event.where}" if event.where else ""
                seen = f": {event.seen}" if event.seen else ""
                words = f"deviation {event.code}{where}{seen} (strict)"
                return [*events[: position + 1], Failure("wire", words, code=DEVIATION_REFUSED)]
        return events
