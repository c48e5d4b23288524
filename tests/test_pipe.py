"""Every stage sees what it asks for, however the events are batched."""

from __future__ import annotations

import itertools

import pytest

from dragoman._json import Raw
from dragoman.events import (
    Deviation,
    Event,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    fold,
    unfold,
)
from dragoman.pipe import Later, Reader
from dragoman.protocol import Stage
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.rescue.stage import Rescue
from dragoman.types import NO_USAGE, Part, Text, Thinking, Tool, ToolCall
from for_each import for_each


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


@for_each("sizes", [[1], [2], [7], [9], [22, 1], [23, 1, 1], [30, 1], [3, 1], [21, 1], [1, 40, 1], [100]])
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


SAID: list[Part] = [
    Text("hello"),
    Text("<think>a</think>b"),
    Text('<tool_call>{"name": "note", "arguments": {"n": 1}}</tool_call>'),
    Text('{"name": "note", "arguments": {"n": 3}}'),
    Thinking('<tool_call>{"name": "note", "arguments": {"n": 2}}</tool_call>'),
    ToolCall("a", "note", '{"n": 1}'),
    ToolCall("b", "note", '{"n": "1",}'),
    ToolCall("c", "functions.note", "{}"),
    ToolCall("d", "parallel", '{"tool_uses": [{"recipient_name": "note", "parameters": {"n": 1}}]}'),
]
FAILED = ToolCallFailed(9, "e", "note", "unreadable", "unreadable", '{"n": 1,}')


@for_each("parts", [*itertools.permutations(SAID, 1), *itertools.permutations(SAID, 2), ()])
@for_each("failed", [False, True])
def test_what_passes_by_stages_that_do_not_act_is_what_they_would_give(parts: tuple[Part, ...], failed: bool) -> None:
    reason = "tool_use" if any(type(part) is ToolCall for part in parts) else "stop"
    whole = unfold(Reply("r", "m", 1, parts, reason, None, NO_USAGE, None, None, (), ()))
    start = next(position for position, event in enumerate(whole) if type(event) is Start)
    whole = [*whole[start:-1], *([FAILED] if failed else []), whole[-1]]
    expected = whole
    for stage in stages():
        expected = stage.feed(expected)
    assert Reader(Given([whole]), stages()).feed(b"") == expected
    for size in (1, 3):
        given, expected = with_and_without_later([whole[at : at + size] for at in range(0, len(whole), size)])
        assert given == expected


def test_a_long_text_is_read_by_stages_that_are_made_at_its_start() -> None:
    said = '<tool_call>{"name": "note", "arguments": {"n": 1}}</tool_call>'
    text: list[Event] = [TextStart(0), *(TextDelta(0, each) for each in said), TextEnd(0)]
    given, expected = with_and_without_later([[Start()], text, [Finish("stop")]])
    assert unfold(fold(given)) == unfold(fold(expected)) and fold(given).tool_calls


def test_a_text_that_comes_at_once_is_looked_through_as_a_whole_behind_its_first_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of its deltas was taken by itself: half of what a short answer cost."""
    taken, delta = [], Rescue._delta

    def count(self: Rescue, event: TextDelta | ThinkingDelta) -> None:
        taken.append(event)
        delta(self, event)

    monkeypatch.setattr(Rescue, "_delta", count)
    batch: list[Event] = [Start(), TextStart(0), *(TextDelta(0, f" word{number}") for number in range(100))]
    assert Reader(Given([batch]), stages()).feed(b"") == batch
    assert len(taken) <= 2


def test_a_deviation_makes_stages_of_texts_only_if_it_tells_texts() -> None:
    call = ToolCall("c", "note", '{"n":1}')
    called = [ToolCallStart(0, "c", "note"), ToolCallDelta(0, call.arguments), ToolCallEnd(0, call)]
    for texts, is_made in ((None, False), ((None, "hi"), True), (("hi", ""), True)):
        batches = [
            [Start(), Deviation("missing-id"), *called],
            [Deviation("final-differs", texts=texts)],
            [Finish("stop")],
        ]
        given, expected = with_and_without_later(batches)
        assert given == expected
        (later,) = [stage for stage in stages() if type(stage) is Later]
        for batch in batches:
            later.feed(batch)
        assert bool(later.stages) is is_made


def stages() -> list[Stage]:
    ids = itertools.count()
    tool = Tool("note", "", Raw(b'{"type":"object","properties":{"n":{"type":"integer"}}}'))
    return stages_for((tool,), Policy(sequential=True), new_id=lambda: str(next(ids)))


def with_and_without_later(batches: list[list[Event]]) -> tuple[list[Event], list[Event]]:
    """What stages give that are made later, and what they would had they been there from the start."""
    reader = Reader(Given(batches), stages())
    given = [event for _ in batches for event in reader.feed(b"")]
    expected: list[Event] = []
    each = [made for stage in stages() for made in (stage._make() if type(stage) is Later else (stage,))]
    for batch in batches:
        for stage in each:
            batch = stage.feed(batch)
        expected += batch
    return given, expected


class Listener:
    """A stage that has heard enough after some text."""

    acts_on = frozenset({TextDelta})

    def __init__(self) -> None:
        self.handles: frozenset[type] = frozenset({TextDelta})
        self.asked = 0

    def feed(self, events: list[Event]) -> list[Event]:
        self.asked += 1
        if self.asked == 3:
            self.handles = frozenset()
        return events


def test_a_stage_that_has_seen_enough_is_soon_asked_no_more() -> None:
    listener = Listener()
    texts: list[list[Event]] = [[TextDelta(0, str(number))] for number in range(200)]
    reader = Reader(Given(texts), [listener])  # type: ignore[arg-type]
    assert [reader.feed(b"") for _ in texts] == texts
    assert 3 <= listener.asked <= 40


class Renamer:
    """A stage that gives the finder something to find."""

    handles = acts_on = frozenset({TextDelta})

    def feed(self, events: list[Event]) -> list[Event]:
        return [TextDelta(0, "begin") if type(event) is TextDelta else event for event in events]


def test_a_stage_of_a_kind_that_changed_nothing_is_asked_again_once_something_changed() -> None:
    """A second one of a kind is passed by in a whole answer, but for that."""
    reader = Reader(Given([[Start(), TextDelta(0, "a"), Finish("stop")]]), [Finder(), Renamer(), Finder()])  # type: ignore[arg-type]
    assert reader.feed(b"") == [Start(), TextStart(1), Finish("stop")]
