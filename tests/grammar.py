"""The grammar of `dragoman.events` as one automaton, run over every stream that any test sees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dragoman._json import Malformed, decode_object
from dragoman.deviations import DEVIATIONS
from dragoman.events import (
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

OPENS = {TextStart: "text", ThinkingStart: "thinking", ToolCallStart: "call"}
GROWS = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "call"}
CLOSES = {TextEnd: "text", ThinkingEnd: "thinking", ToolCallEnd: "call"}


def check(events: Iterable[Event], *, whole: bool = True) -> list[Event]:
    """Assert that events are in the grammar; gives them as a list.

    Args:
        events: a decoder's output, in order.
        whole: the terminal event is required.
    """
    seen = list(events)
    _walk(seen, sequential=False, whole=whole)
    return seen


def check_sequential(events: Iterable[Event], *, whole: bool = True) -> list[Event]:
    """The same with one part open at a time: what encoders take."""
    seen = list(events)
    _walk(seen, sequential=True, whole=whole)
    return seen


class _Place(NamedTuple):
    """Which event an assertion is about: written only where one fails, since thousands hold."""

    position: int
    event: Event

    def __str__(self) -> str:
        return f"event {self.position}: {self.event!r:.200}"


def _walk(events: list[Event], *, sequential: bool, whole: bool) -> None:
    started, ended = False, False
    open_parts: dict[int, str] = {}
    used: set[int] = set()
    ids: set[str] = set()
    starts: dict[int, ToolCallStart] = {}
    arguments: dict[int, list[str]] = {}
    for position, event in enumerate(events):
        kind = type(event)
        place = _Place(position, event)
        assert not ended, f"after the terminal event: {place}"
        if kind is Deviation:
            assert event.code in DEVIATIONS, f"undeclared deviation code: {place}"
            assert len(event.seen.encode("utf-8", "replace")) <= 200, place
            continue
        if kind is Failure:
            assert event.message, place
            ended = True
            continue
        if kind is Start:
            assert not started, f"second Start: {place}"
            started = True
            continue
        assert started, f"before Start: {place}"
        if kind is Finish:
            assert not open_parts, f"open parts {open_parts} at Finish"
            ended = True
        elif kind is UsageUpdate or kind is NativeEvent:
            pass
        elif kind in OPENS:
            assert event.index not in used, f"index used again: {place}"
            assert not (sequential and open_parts), f"part opened in part: {place}"
            used.add(event.index)
            open_parts[event.index] = OPENS[kind]
            if kind is ToolCallStart:
                assert event.id, f"call without id: {place}"
                assert event.id not in ids, f"call id used again: {place}"
                assert event.name, f"call without name: {place}"
                ids.add(event.id)
                starts[event.index] = event
                arguments[event.index] = []
        elif kind in GROWS:
            assert open_parts.get(event.index) == GROWS[kind], f"part not open: {place}"
            assert event.text, f"empty delta: {place}"
            event.text.encode("utf-8")  # no lone surrogates leave a decoder
            if kind is ToolCallDelta:
                arguments[event.index].append(event.text)
        elif kind in CLOSES:
            assert open_parts.pop(event.index, None) == CLOSES[kind], f"part not open: {place}"
            if kind is ToolCallEnd:
                _check_call(event, starts[event.index], "".join(arguments[event.index]), place)
        elif kind is ToolCallFailed:
            if event.index in open_parts:
                assert open_parts.pop(event.index) == "call", place
            else:
                assert not event.name and event.index not in used, f"failed call that was not open: {place}"
                used.add(event.index)
            assert event.message, place
        elif kind is PartEvent:
            assert event.index not in used, f"index used again: {place}"
            assert not (sequential and open_parts), f"part in part: {place}"
            used.add(event.index)
        else:
            raise AssertionError(f"not an event: {place}")
    assert ended or not whole, "no terminal event"


def _check_call(event: ToolCallEnd, start: ToolCallStart, deltas: str, place: _Place) -> None:
    call = event.call
    assert (call.id, call.name, call.kind) == (start.id, start.name, start.kind), place
    assert deltas == call.arguments, f"deltas {deltas!r:.100} are not the arguments {call.arguments!r:.100}"
    if call.kind == "function":
        assert not isinstance(decode_object(call.arguments), Malformed), f"arguments are no object: {place}"
