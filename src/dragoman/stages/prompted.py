"""Calls that a model was told to write as text, where its server has no field for them (`dragoman.ways`)."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.contract import NewId
from dragoman.events import EVERY_KIND, Deviation, Event
from dragoman.stages.rescue import Rescue, hermes
from dragoman.types import Tool


class Prompted:
    """Reads the one form that was asked for; to find it is no deviation. A `dragoman.contract.Stage`."""

    __slots__ = ("_rescue",)

    handles = EVERY_KIND

    def __init__(self, tools: Sequence[Tool], *, new_id: NewId) -> None:
        self._rescue = Rescue(tools, (hermes.FAMILY,), new_id=new_id)

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        out = self._rescue.feed(events)
        return [event for event in out if type(event) is not Deviation or event.code != "rescued-call"]
