"""Read a usual whole answer at once: at most a thought and a text, then calls of offered tools, each key once.

A protocol decodes such a body by Structs that forbid all else, so that nothing needs to be looked for in it
(`PlainAnswer`). What does not fit is read by its decoder, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from dragoman.bounds import AnswerBounds
from dragoman.codec.framing.plain_keys import with_plain_keys
from dragoman.codec.parts.open_calls import made_id
from dragoman.codec.parts.response_end import ResponseEnd
from dragoman.events import (
    Deviation,
    Event,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from dragoman.protocol import NewId, ReadWhole
from dragoman.types import Native, ToolCall

#: Calls of such an answer are fewer.
_MOST_CALLS: Final = 16
#: Where the counts stand among the events: behind the start, behind the parts, or before the end of a text that has
#: none of its own on the wire.
CountsPlace: TypeAlias = Literal["start", "end", "text"]


class PlainCall(NamedTuple):
    """A call. `id`: "" if the wire has none; `arguments`: an object that is not empty, no key twice.

    `early`, `notes`: deviations that are told before the part before it ends, and behind that.
    """

    id: str
    name: str
    arguments: str
    signature: str | None = None
    native: Native | None = None
    early: Sequence[Deviation] = ()
    notes: Sequence[Deviation] = ()


class PlainAnswer(NamedTuple):
    """An answer. `text`, `thinking`: "" for none; `end`: all that its end tells."""

    start: Start
    text: str
    calls: Sequence[PlainCall]
    end: ResponseEnd
    counts: UsageUpdate | None
    thinking: str = ""
    text_native: Native | None = None


def whole_reader(read: Callable[[bytes], PlainAnswer | None], *, counts: CountsPlace) -> ReadWhole:
    """Return a protocol's `ReadWhole`. `read`: returns the answer of a body, or None if it may have something else."""

    def read_whole(
        data: bytes, *, offered_names: Collection[str], bounds: AnswerBounds, new_id: NewId
    ) -> list[Event] | None:
        answer = read(with_plain_keys((data, b""))[0])
        if answer is None or not (answer.text or answer.calls) or not _are_usual(answer.calls, offered_names, bounds):
            return None
        return _events_of(answer, counts, new_id)

    return read_whole


def _are_usual(calls: Sequence[PlainCall], offered_names: Collection[str], bounds: AnswerBounds) -> bool:
    """Return whether each call is one of an offered tool, under an id of its own, or all are without."""
    longest = min(bounds.arguments, bounds.argument_values)
    for call in calls:
        if not (call.name in offered_names and call.name.isascii() and len(call.arguments) <= longest):
            return False
    count, ids = len(calls), {call.id for call in calls}
    if count >= min(_MOST_CALLS, bounds.calls, bounds.parts - 1):
        return False
    return ids == {""} or (len(ids) == count and "" not in ids)


def _events_of(answer: PlainAnswer, counts: CountsPlace, new_id: NewId) -> list[Event]:
    thinking, text, update = answer.thinking, answer.text, answer.counts
    events: list[Event] = [answer.start]
    if counts == "start" and update is not None:
        events.append(update)
    if thinking:
        events += (ThinkingStart(0), ThinkingDelta(0, thinking), ThinkingEnd(0))
    behind = 1 if thinking else 0
    if text:
        events += (TextStart(behind, answer.text_native), TextDelta(behind, text), TextEnd(behind))
        behind += 1
    is_open = counts == "text" and behind > 0  # its end is the last event so far
    made: set[str] = set()
    for index, (id, name, arguments, signature, native, early, notes) in enumerate(answer.calls, behind):
        if early:
            events[len(events) - is_open : len(events) - is_open] = early
        is_open = False
        if not id:
            id = made_id(new_id, made, index)
            made.add(id)
        events += notes
        events += (
            ToolCallStart(index, id, name, "function", native),
            ToolCallDelta(index, arguments),
            ToolCallEnd(index, ToolCall(id, name, arguments, "function", signature, native)),
        )
    if counts != "start" and update is not None:
        events.insert(len(events) - is_open, update)
    events.append(answer.end.finish(usable_calls=len(answer.calls), failed_calls=0))
    return events
