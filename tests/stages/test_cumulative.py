"""Servers that say all of a text again with each piece: each piece then says what is new, and no other text changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import (
    Deviation,
    Event,
    Finish,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    UsageUpdate,
)
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.cumulative import Cumulative
from dragoman.types import NO_USAGE
from grammar import check

SAID = "According to the forecast, it will rain in Lisbon on Friday."


def events_of(pieces: list[str]) -> list[Event]:
    deltas = [TextDelta(0, piece) for piece in pieces if piece]
    return [Start(None, None), TextStart(0), *deltas, TextEnd(0), Finish("stop")]


def passed(events: list[Event], size: int = 1) -> list[Event]:
    stage = Cumulative()
    out: list[Event] = []
    for at in range(0, len(events), size):
        some = events[at : at + size]
        out += some if stage.handles.isdisjoint(map(type, some)) else stage.feed(some)
    return out


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if type(event) is TextDelta)


def grown(text: str, cuts: list[int]) -> list[str]:
    """All of a text up to each cut."""
    return [text[:cut] for cut in sorted({*(cut for cut in cuts if cut <= len(text)), len(text)})]


@given(cuts=st.lists(st.integers(1, len(SAID)), min_size=4), size=st.sampled_from([1, 3, 100]))
def test_what_is_said_again_is_told_once(cuts: list[int], size: int) -> None:
    pieces = grown(SAID, cuts)
    told = passed(events_of(pieces), size)
    if len(pieces) >= 4 and len(pieces[-2]) >= 16:
        assert text_of(told) == SAID
        assert [event.code for event in told if type(event) is Deviation] == ["cumulative-text"]
    assert [type(event) for event in told if type(event) not in (TextDelta, Deviation)] == [
        Start, TextStart, TextEnd, Finish
    ]  # fmt: skip


@given(pieces=st.lists(st.text(alphabet="abcdef \n-", min_size=1, max_size=6), max_size=12), size=st.integers(1, 9))
def test_no_other_text_changes(pieces: list[str], size: int) -> None:
    chain = 0
    while chain + 1 < len(pieces) and pieces[chain + 1].startswith(pieces[chain]):
        chain += 1
    told = passed(events_of(pieces), size)
    if chain < 2:
        assert told == events_of(pieces)
    assert [event for event in told if type(event) is not TextDelta and type(event) is not Deviation] == [
        event for event in events_of(pieces) if type(event) is not TextDelta
    ]


def in_turns(first: list[str], second: list[str]) -> list[Event]:
    """Pieces of thinking and of text in turns, each in a part of its own."""
    out: list[Event] = [Start(None, None)]
    for at, (thought, said) in enumerate(zip(first, second, strict=True)):
        out += [ThinkingStart(2 * at), ThinkingDelta(2 * at, thought), ThinkingEnd(2 * at)]
        out += [TextStart(2 * at + 1), TextDelta(2 * at + 1, said), TextEnd(2 * at + 1)]
    return [*out, Finish("stop")]


THOUGHT = "I look the forecast of the week up, then I name the day."


@given(
    cuts=st.lists(st.integers(1, 50), min_size=5, max_size=8, unique=True),
    is_constant=st.booleans(),
    size=st.sampled_from([1, 3, 100]),
)
def test_thinking_and_text_that_are_said_again_in_turns_are_told_once(
    cuts: list[int], is_constant: bool, size: int
) -> None:
    said, thought = grown(SAID, cuts), grown(THOUGHT, cuts)
    told = passed(in_turns([THOUGHT] * len(said) if is_constant else thought, said), size)
    if len(said[-2]) >= 16 and len(thought[-2]) >= 16:
        assert text_of(told) == SAID
        assert "".join(event.text for event in told if type(event) is ThinkingDelta) == THOUGHT
        check([event for event in told if type(event) is not Deviation])


@given(
    cuts=st.lists(st.integers(1, 50), min_size=4, max_size=8, unique=True),
    others=st.lists(st.integers(1, 50), max_size=8, unique=True),
    order=st.lists(st.booleans(), min_size=18, max_size=18),
    twice=st.lists(st.booleans(), min_size=18, max_size=18),
    size=st.sampled_from([1, 3, 100]),
)
def test_thinking_and_text_in_any_order_are_told_once(
    cuts: list[int], others: list[int], order: list[bool], twice: list[bool], size: int
) -> None:
    """The proof of one is that of the other, and nothing overtakes what waited for it."""
    thought, said = grown(THOUGHT, cuts), grown(SAID, others)
    left = [(True, piece) for piece in thought], [(False, piece) for piece in said]
    sent: list[tuple[bool, str]] = []
    for is_text, is_twice in zip(order, twice, strict=True):
        if from_one := left[is_text] or left[not is_text]:
            sent += [from_one.pop(0)] * (1 + is_twice)
    events: list[Event] = [Start(None, None)]
    for at, (is_thinking, piece) in enumerate(sent):
        if is_thinking:
            events += [ThinkingStart(at), ThinkingDelta(at, piece), ThinkingEnd(at)]
        else:
            events += [TextStart(at), TextDelta(at, piece), TextEnd(at)]
    told = passed([*events, Finish("stop")], size)
    check([event for event in told if type(event) is not Deviation])
    if len(thought[-2]) >= 16:
        assert "".join(event.text for event in told if type(event) is ThinkingDelta) == THOUGHT
        assert text_of(told) == SAID


@given(
    cuts=st.lists(st.integers(1, len(SAID)), min_size=4, max_size=8, unique=True),
    twice=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_pieces_that_come_twice_are_told_once(cuts: list[int], twice: list[bool]) -> None:
    pieces = grown(SAID, cuts)
    sent = [piece for piece, is_twice in zip(pieces, twice, strict=False) for _ in range(1 + is_twice)]
    if len(pieces) >= 4 and len(pieces[-2]) >= 16:
        assert text_of(passed(events_of(sent))) == SAID


@given(st.lists(st.tuples(st.sampled_from(["a", "ab", "b ", "\n"]), st.sampled_from(["c", "ca", "d "])), max_size=6))
def test_no_other_thinking_and_text_in_turns_changes(pairs: list[tuple[str, str]]) -> None:
    """What they say again is too short to be words."""
    events = in_turns([one for one, _ in pairs], [other for _, other in pairs])
    assert passed(events) == events


def test_few_pieces_and_lines_of_dashes_are_what_they_seem() -> None:
    for pieces in (["Hel", "Hello"], ["-", "--", "----", "--------"], ["a", "and", "and"], ["ha", "haha", "hahaha"],
                   [" s", " st", " str", " stri", " strin", " string", " has"], ["\n", "\n\n", "\n\nHello there"],
                   ["\n", "\n\n", "\n\n\n", "\n\n\n# A title"], ["0", "01", "010", "0100 is four"]):  # fmt: skip
        assert text_of(passed(events_of(pieces))) == "".join(pieces)


def test_pieces_wait_for_three_at_most_and_counts_pass_them() -> None:
    stage, told = Cumulative(), list[str]()
    for piece in grown(SAID, [4, 9, 14, 19, 24]):
        told.append(text_of(stage.feed([TextDelta(0, piece)])))
        counts: list[Event] = [UsageUpdate(NO_USAGE)]
        assert stage.handles.isdisjoint(map(type, counts)) or stage.feed(counts) == counts
    assert told == [SAID[:4], "", "", SAID[4:19], SAID[19:24], SAID[24:]]


def test_after_two_pieces_nothing_of_a_usual_text_is_seen() -> None:
    stage = Cumulative()
    stage.feed([TextDelta(0, "Good ")])
    stage.feed([TextDelta(0, "morning")])
    assert TextDelta not in stage.handles


def test_it_comes_before_all_that_reads_texts() -> None:
    assert isinstance(stages_for((), Policy(sequential=True), new_id=lambda: "x")[0], Cumulative)


def test_a_part_behind_a_call_goes_on_where_the_first_ended() -> None:
    pieces = grown(SAID, [4, 9, 14, 19])
    events = [*events_of(pieces)[:-1], TextStart(1), TextDelta(1, SAID + " Bring"), TextEnd(1), Finish("stop")]
    assert text_of(passed(events)) == SAID + " Bring"


def test_a_part_that_begins_anew_is_read_as_the_first_was() -> None:
    first, second = grown(SAID, [4, 9, 14, 19]), grown("Now I see that it is dry.", [3, 5, 9, 14])
    deltas = [TextDelta(1, piece) for piece in second]
    told = passed([*events_of(first)[:-1], TextStart(1), *deltas, TextEnd(1), Finish("stop")])
    assert text_of(told) == SAID + second[-1]


@given(
    rest=st.lists(st.sampled_from([SAID[:1], SAID[:3], SAID[:9], "A", "**", " so", "\n"]), max_size=9),
    size=st.integers(1, 9),
)
def test_what_is_new_alone_is_told_whatever_the_text_begins_with(rest: list[str], size: int) -> None:
    assert text_of(passed(events_of([*grown(SAID, [4, 9, 14, 19]), *rest]), size)) == SAID + "".join(rest)


def test_an_old_piece_among_those_that_say_all_again_is_told_once() -> None:
    pieces = grown(SAID, [4, 9, 14, 19, 24])
    assert text_of(passed(events_of([*pieces[:5], pieces[3], pieces[1], pieces[5]]))) == SAID


def test_pieces_that_say_what_is_new_are_not_added_up_for_each() -> None:
    watch = Cumulative()
    for piece in grown(SAID, [4, 9, 14, 19]):
        watch.feed([TextDelta(0, piece)])
    for _ in range(1000):
        watch.feed([TextDelta(0, " so")])
    assert len(watch._text._total) == len(SAID) and len(watch._text._new.pieces) < 1000


def test_lines_that_begin_with_their_line_end_are_no_repetition() -> None:
    """A list of names may grow so, line by line."""
    pieces = ["\n", "\n  make", "\n  make install", "\n  make install-docs", "\n  make install-docs-html"]
    assert text_of(passed(events_of(pieces))) == "".join(pieces)
