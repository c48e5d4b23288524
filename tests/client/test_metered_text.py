"""What the model wrote and what it is said to have used, counted of batches of events as of each alone."""

from __future__ import annotations

from types import SimpleNamespace

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
