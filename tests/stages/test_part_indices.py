"""Part indices behind the stages: unique and in order, however many parts there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import (
    Event,
    Finish,
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
)
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.part_indices import PartIndices, of_kinds
from dragoman.types import Tool, ToolCall
from grammar import check


def through_stages(events: list[Event]) -> list[Event]:
    for stage in stages_for([Tool("ping")], Policy(), new_id=lambda: "0" * 24):
        events = stage.feed(events)
    return events


def test_parts_behind_an_added_one_move_on() -> None:
    indices = PartIndices()
    assert [indices.of(0), indices.add(0), indices.add(0), indices.of(1), indices.of(0)] == [0, 1, 2, 3, 0]


def test_a_part_that_opened_late_gets_a_place_of_its_own() -> None:
    indices = PartIndices()
    assert [indices.of(0), indices.of(2), indices.add(0), indices.of(1)] == [0, 2, 3, 4]


def test_many_calls_keep_their_indices() -> None:
    number = 5_000
    events: list[Event] = [Start()]
    for index in range(number):
        call = ToolCall(f"c{index}", "ping", "{}")
        events += [ToolCallStart(index, call.id, "ping"), ToolCallDelta(index, "{}"), ToolCallEnd(index, call)]
    out = check(through_stages([*events, Finish("tool_use")]))
    assert [event.index for event in out if isinstance(event, ToolCallEnd)] == list(range(number))


def test_thinking_and_text_in_turns_keep_their_indices() -> None:
    number = 5_000
    events: list[Event] = [Start()]
    for index in range(0, number, 2):
        events += [ThinkingStart(index), ThinkingDelta(index, "t"), ThinkingEnd(index)]
        events += [TextStart(index + 1), TextDelta(index + 1, "a"), TextEnd(index + 1)]
    out = check(through_stages([*events, Finish("stop")]))
    assert [event.index for event in out if isinstance(event, ThinkingEnd | TextEnd)] == list(range(number))


KINDS = st.sampled_from(
    [Start(), TextStart(0), TextDelta(0, "a"), TextEnd(0), ToolCallStart(1, "a", "ping"), Finish("stop")]
)


@given(st.lists(KINDS, max_size=8), st.sets(st.sampled_from([Start, TextStart, TextDelta, ToolCallStart, Finish])))
def test_events_of_kinds_are_those_in_their_order(events: list[Event], kinds: set[type]) -> None:
    wanted = frozenset(kinds)
    assert list(of_kinds(events, wanted)) == [event for event in events if type(event) in wanted]
