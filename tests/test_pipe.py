"""Every stage sees what it asks for, however the events are batched."""

from __future__ import annotations

import itertools

import pytest

from dragoman.events import Event, Start, TextDelta, TextStart
from dragoman.pipe import Reader


class Given:
    """A decoder that gives batches of events, one for each call."""

    ended = False

    def __init__(self, batches: list[list[Event]]) -> None:
        self._batches = iter(batches)

    def feed(self, data: bytes) -> list[Event]:
        return next(self._batches)


class Finder:
    """A stage that finds in the text where a part begins."""

    handles = acts_on = frozenset({TextDelta})

    def feed(self, events: list[Event]) -> list[Event]:
        out = [TextStart(1) if type(event) is TextDelta and event.text == "begin" else event for event in events]
        return events if out == events else out


class Sleeper:
    """A stage that asks for text only once a part has begun, which it renames."""

    acts_on = frozenset({TextStart})

    def __init__(self) -> None:
        self.handles: frozenset[type] = frozenset({TextStart})
        self.seen: list[str] = []

    def feed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) is TextStart:
                self.handles = frozenset({TextStart, TextDelta})
                event = TextStart(7)
            elif type(event) is TextDelta and TextDelta in self.handles:
                self.seen.append(event.text)
            out.append(event)
        return events if out == events else out


TEXTS = [f"{number}" for number in range(40)]
EVENTS: list[Event] = [Start(), *(TextDelta(0, text) for text in (*TEXTS[:20], "begin", *TEXTS[20:]))]


@pytest.mark.parametrize(
    "sizes", [[1], [2], [7], [9], [22, 1], [23, 1, 1], [30, 1], [3, 1], [21, 1], [1, 40, 1], [100]]
)
def test_batches_make_no_difference(sizes: list[int]) -> None:
    rest, batches = list(EVENTS), []
    for size in itertools.cycle(sizes):
        if not rest:
            break
        batches.append(rest[:size])
        rest = rest[size:]
    sleeper = Sleeper()
    reader = Reader(Given(batches), [Finder(), sleeper])
    events = [event for _ in batches for event in reader.feed(b"")]
    assert events == [Start(), *EVENTS[1:21], TextStart(7), *EVENTS[22:]]
    assert sleeper.seen == TEXTS[20:]
