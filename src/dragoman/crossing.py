"""What of an answer only its own protocol knows, when the answer is written in another one: it is named as lost.

Every encoder and every whole response goes through here, so that nothing is lost without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from dragoman._json import Raw
from dragoman.deviations import clip
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    PartEvent,
    Reply,
    Start,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
)
from dragoman.fields import Fields, read_fields, read_items, read_text
from dragoman.types import Media, Native, Opaque, ProtocolName, Text, Thinking, ToolCall, ToolResult

#: Events of a whole response with native fields, and those of a part. A call tells all of its own at its end.
_OF_RESPONSE: Final = frozenset({Start, Finish, Failure})
_OF_PART: Final = frozenset({TextStart, TextEnd, ThinkingStart, ThinkingEnd})
#: Native fields that only hold the path of others: lists of one object, and objects.
_LISTS: Final = frozenset({"choices", "candidates"})
_OBJECTS: Final = frozenset({"message", "usage", "usageMetadata"})
_NOTHING: Final = frozenset({b"null", b"[]", b"{}", b'""'})


@final
class Crossing:
    """One answer on its way into `protocol`; None: into a form that knows no native fields at all.

    Attributes:
        lost: a note for each field that could not be said, with its path in the answer.
    """

    __slots__ = ("_protocol", "lost")

    def __init__(self, protocol: ProtocolName | None) -> None:
        self._protocol = protocol
        self.lost: list[Deviation] = []

    def note(self, event: Event) -> None:
        """Take an event that opens, ends or is a part, or the response."""
        kind = type(event)
        if kind in _OF_RESPONSE:
            self._native(event.native, "")  # type: ignore[union-attr]
        elif kind in _OF_PART:
            if event.native is not None:  # type: ignore[union-attr]
                self._native(event.native, f"parts[{event.index}].")  # type: ignore[union-attr]
        elif type(event) is ToolCallEnd:
            self._part(event.call, event.index)
        elif type(event) is PartEvent:
            self._part(event.part, event.index)

    def note_reply(self, reply: Reply) -> list[Deviation]:
        """Take a whole answer; gives `lost`."""
        self._native(reply.native, "")
        for index, part in enumerate(reply.parts):
            self._part(part, index)
        return self.lost

    def _part(self, part: Text | Thinking | Media | ToolCall | ToolResult | Opaque, index: int) -> None:
        if type(part) is not Opaque:
            if part.native is not None:
                self._native(part.native, f"parts[{index}].")
        elif part.protocol != self._protocol:
            self._lose(f"parts[{index}]", _kind_of(part.raw))

    def _native(self, native: Native | None, where: str) -> None:
        if native is not None and native.protocol != self._protocol:
            for path in _paths(native.fields, where):
                self._lose(path, f"only {native.protocol} has it")

    def _lose(self, where: str, seen: str) -> None:
        self.lost.append(Deviation("untranslated", where, seen, "note"))


def _paths(fields: Fields, where: str) -> Iterator[str]:
    """The path of each field that says something."""
    for key, value in fields.items():
        path, inner = f"{where}{key}", None
        if key in _LISTS:
            entries = read_items(value)
            path, inner = f"{path}[0]", read_fields(entries[0]) if entries else None
        elif key in _OBJECTS:
            inner = read_fields(value)
        if inner:
            yield from _paths(inner, f"{path}.")
        elif len(value) > 4 or bytes(value) not in _NOTHING:
            yield path


def _kind_of(part: Raw) -> str:
    """What a part is called: its type, else its first field."""
    fields = read_fields(part) or {}
    return clip(read_text(fields.get("type")) or next(iter(fields), "part"))
