"""Interleaved parts are put one after the other, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import (
    Failure,
    Finish,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    fold,
)
from dragoman.response_stages import Policy, Sequencer, stages_for
from dragoman.types import Media, ToolCall
from grammar import check, check_sequential


def part(index: int, kind: str) -> list:
    if kind == "text":
        return [TextStart(index), TextDelta(index, f"t{index}"), TextDelta(index, "!"), TextEnd(index)]
    if kind == "media":
        return [PartEvent(index, Media("image", url=f"https://example.org/{index}"))]
    call_id = f"call_{index}"
    opened = [ToolCallStart(index, call_id, "f"), ToolCallDelta(index, '{"n":')]
    if kind == "failed":
        return [*opened, ToolCallFailed(index, call_id, "f", "cut", "cut")]
    return [*opened, ToolCallDelta(index, f"{index}}}"), ToolCallEnd(index, ToolCall(call_id, "f", f'{{"n":{index}}}'))]


@st.composite
def interleaved(draw):
    kinds = draw(st.lists(st.sampled_from(["text", "call", "failed", "media"]), max_size=5))
    queues = [part(index, kind) for index, kind in enumerate(kinds)]
    events, opened = [], 0
    while any(queues):
        ready = [queue for queue in queues[: opened + 1] if queue]
        queue = draw(st.sampled_from(ready))
        if opened < len(queues) and queue is queues[opened]:
            opened += 1
        events.append(queue.pop(0))
    return [Start(), *events, Finish("stop")]


@given(interleaved(), st.integers(1, 4))
def test_the_sum_is_the_same_and_one_part_is_open_at_a_time(events, size):
    stage = Sequencer()
    out = []
    for start in range(0, len(events), size):
        out += stage.feed(events[start : start + size])
    assert fold(check_sequential(out)) == fold(check(events))


def test_the_first_part_is_live():
    stage = Sequencer()
    assert stage.feed([Start(), *part(0, "text")[:2]])[-1] == TextDelta(0, "t0")
    assert stage.feed(part(1, "call")) == []
    assert stage.feed([TextDelta(0, "!"), TextEnd(0)]) == [TextDelta(0, "!"), TextEnd(0), *part(1, "call")]


def test_what_waits_is_bounded():
    stage = Sequencer(limit=10)
    stage.feed([Start(), TextStart(0), ToolCallStart(1, "call_1", "f")])
    out = stage.feed([ToolCallDelta(1, "x" * 11), ToolCallDelta(1, "x")])
    assert [type(event) for event in out] == [Failure]
    assert stage.feed([TextEnd(0)]) == []


def test_strict_ends_at_the_first_deviation():
    from dragoman.events import Deviation

    *_, strict = stages_for((), Policy(strict=True), new_id=str)
    out = strict.feed([Start(), Deviation("missing-id", "tool_calls[0]"), TextStart(0)])
    assert [type(event) for event in out] == [Start, Deviation, Failure]
    assert "missing-id" in out[-1].message
    assert strict.feed([Finish("stop")]) == []
