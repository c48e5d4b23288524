"""Remove deviations that the request itself asked for."""

from __future__ import annotations

from dragoman.events import EVERY_KIND, Deviation, Event
from dragoman.protocol import Expectation


class Expected:
    """Removes deviations that the request explains. A `dragoman.protocol.Stage`."""

    __slots__ = ("_expectation", "handles")

    acts_on = EVERY_KIND

    def __init__(self, expectation: Expectation) -> None:
        self._expectation = expectation
        self.handles = frozenset[type]({Deviation})

    def feed(self, events: list[Event]) -> list[Event]:
        explains = self._expectation.explains
        kept = [event for event in events if type(event) is not Deviation or not explains(event)]
        return kept if len(kept) < len(events) else events
