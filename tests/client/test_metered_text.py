"""What the model wrote and what it is said to have used, counted of batches of events as of each alone."""

from __future__ import annotations

import sys
from types import FrameType, SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import EVERY_KIND, Event, TextDelta, TextStart, ThinkingDelta, ToolCallDelta, UsageUpdate
from dragoman.routing.metering import count_text
from dragoman.types import Usage

_texts = st.text(min_size=1, max_size=5)
_events = st.one_of(
    st.builds(TextDelta, index=st.just(0), text=_texts),
    st.builds(ThinkingDelta, index=st.just(0), text=_texts),
    st.builds(ToolCallDelta, index=st.just(0), text=_texts),
    st.builds(TextStart, index=st.just(0)),
    st.builds(UsageUpdate, usage=st.builds(Usage, output=st.integers(0, 9))),
)


@given(st.lists(st.lists(_events, max_size=12), max_size=5))
def test_a_batch_counts_as_its_events_do(batches: list[list[Event]]) -> None:
    meter = SimpleNamespace(grown=0, usage=None)
    for batch in batches:
        count_text(meter, batch)  # type: ignore[arg-type]
    events = [event for batch in batches for event in batch]
    said = [event.usage for event in events if isinstance(event, UsageUpdate)]
    assert meter.grown == sum(
        len(event.text) for event in events if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta)
    )
    assert meter.usage == (said[-1] if said else None)


def test_no_other_event_has_a_text() -> None:
    assert {kind for kind in EVERY_KIND if hasattr(kind, "text")} == {TextDelta, ThinkingDelta, ToolCallDelta}


def test_what_stands_around_texts_costs_them_nothing() -> None:
    """A batch with the end of an answer took each of its events through a loop: three times the steps."""
    events: list[Event] = [TextStart(0), *[TextDelta(0, "word")] * 100, UsageUpdate(Usage(output=3))]
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    meter = SimpleNamespace(grown=0, usage=None)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        count_text(meter, events)  # type: ignore[arg-type]
    finally:
        sys.settrace(before)
    assert (meter.grown, meter.usage) == (400, Usage(output=3))
    assert steps < 1_000
