"""The reply of a stream so far, folded only on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.client.streaming.partial_arguments import PartialArguments
from dragoman.events import Event, Fold, Reply, ToolCallDelta, ToolCallStart


class ReplySoFar:
    """The events of one response. `unread`: those that came since the last look."""

    __slots__ = ("_fold", "_partials", "unread")

    def __init__(self) -> None:
        self.unread: list[Event] = []
        self._fold = Fold()
        self._partials: dict[int, PartialArguments] = {}

    def reply(self) -> Reply:
        """Return the response so far."""
        self._read()
        return self._fold.reply()

    def arguments(self, index: int) -> Mapping[str, Any]:
        """Return the arguments so far of the call with this part index; {} if there is no such call."""
        self._read()
        view = self._partials.get(index)
        return view.values() if view is not None else {}

    def _read(self) -> None:
        for event in self.unread:
            self._fold.add(event)
            if isinstance(event, ToolCallDelta):
                self._partials[event.index].feed(event.text)
            elif isinstance(event, ToolCallStart):
                self._partials[event.index] = PartialArguments()
        self.unread.clear()
