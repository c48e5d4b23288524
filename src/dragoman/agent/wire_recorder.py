"""Record the last exchange with the model as it went over the wire: the request, and the answer's bytes with their
events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

import msgspec

from dragoman.agent.safe_text import plain_line, plain_text
from dragoman.events import Deviation, Event, Failure, Finish, ToolCallEnd, ToolCallFailed, ToolCallStart, UsageUpdate
from dragoman.providers.endpoint import Outgoing

_LIMIT: Final = 4 * 1024 * 1024  # bytes of one answer that are kept
_REQUEST_SHOWN: Final = 2_000
_TEXT_SHOWN: Final = 60
_ROWS_SHOWN: Final = 200


@final
class Row(msgspec.Struct, frozen=True):
    """Bytes that came together, their events and deviations, as texts for a terminal."""

    data: str
    events: str
    deviations: str


@final
class WireRecorder:
    """Records the last exchange. Headers, which contain keys, are not kept."""

    __slots__ = ("_outgoing", "_size", "pieces", "status")

    def __init__(self) -> None:
        self._outgoing: Outgoing | None = None
        self._size = 0
        self.status = 0
        self.pieces: list[tuple[bytes, list[Event]]] = []

    def take(self, outgoing: Outgoing, status: int, data: bytes, events: Sequence[Event]) -> None:
        """Add bytes of an answer. Another request than the last one begins a new recording."""
        if outgoing is not self._outgoing:
            self._outgoing, self._size, self.pieces = outgoing, 0, []
        self.status = status
        self._size += len(data)
        if self._size <= _LIMIT:
            self.pieces.append((data, list(events)))

    @property
    def request(self) -> str:
        """Describe the request in a few lines: its address, and the beginning of its body; "" if there was none."""
        if self._outgoing is None:
            return ""
        place = self._outgoing.url.partition("?")[0]
        body = plain_line(self._outgoing.body.decode("utf-8", "replace"), _REQUEST_SHOWN)
        return f"{self._outgoing.method} {plain_line(place)}\n{len(self._outgoing.body):,} bytes: {body}"

    def rows(self) -> Iterator[Row]:
        """Yield the answer, piece by piece."""
        for data, events in self.pieces[:_ROWS_SHOWN]:
            lines = data.decode("utf-8", "replace").splitlines() if data else ["(the end of the body)"]
            odd = [f"{event.code} {event.where}" for event in events if isinstance(event, Deviation)]
            yield Row(
                "\n".join(plain_line(line, 400) for line in lines if line.strip()),
                "\n".join(_say(event) for event in events if not isinstance(event, Deviation)),
                "\n".join(plain_line(each) for each in odd),
            )
        if len(self.pieces) > _ROWS_SHOWN:
            yield Row(f"({len(self.pieces) - _ROWS_SHOWN:,} more pieces)", "", "")


def _say(event: Event) -> str:
    name = type(event).__name__
    match event:
        case ToolCallStart(_, id, tool):
            return plain_line(f"{name} {tool} {id}")
        case ToolCallEnd(_, call):
            return plain_line(f"{name} {call.name} {call.arguments}", 120)
        case ToolCallFailed(_, _, tool, kind) | Failure(kind, tool):
            return plain_line(f"{name} {kind} {tool}")
        case Finish(reason):
            return f"{name} {reason}"
        case UsageUpdate(usage):
            return f"{name} {usage.input} in, {usage.output} out"
        case _:
            text = getattr(event, "text", None)
            return f"{name} {_quoted(text)}" if isinstance(text, str) else name


def _quoted(text: str) -> str:
    """Quote a delta's text, because white space at its ends belongs to it."""
    shown = repr(text[:_TEXT_SHOWN])
    return plain_text(shown if len(text) <= _TEXT_SHOWN else f"{shown}…")
