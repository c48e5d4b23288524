"""What begins a call, again and again with no call behind it, costs in proportion, whole and in deltas."""

from __future__ import annotations

import math
import random
import statistics
import time

import pytest

from dragoman.events import Event, Finish, Start, TextDelta, TextEnd, TextStart, fold
from dragoman.stages.rescue import scan
from dragoman.stages.rescue.contexts import open_text
from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.stage import Rescue
from for_each import for_each
from growth import MOST_EXPONENT, calls_made, exponent, steps_of
from places import TOOLS, counter, pieces
from profiles import IS_SOAK, one

OPENERS = sorted({(family.name, opener) for family in FAMILIES for opener in family.openers if opener})
#: Characters of a text of which lines are counted, by the size of a delta: the first 2,048 of a whole text are passed
#: at once, where openers follow each other.
CHARACTERS = {48: 900, 1 << 30: 6500}
#: Each opener in deltas and whole; `make test` takes turns.
WAYS = [(*opener, size) for size in CHARACTERS for opener in OPENERS]
WAYS = WAYS if IS_SOAK else WAYS[: len(OPENERS) : 2] + WAYS[len(OPENERS) + 1 :: 2]
#: Openers of a text of which `make soak` takes the time.
MANY = 20_000
#: Processor time of an opener, in seconds: more than ten times what one takes on a slow machine.
MOST_SECONDS = 1e-3
#: What an opener may cost in deltas: so many times the median of all.
MOST_TIMES = 3
_CALL = '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"}}</tool_call>'

#: What a line of code has.
PIECES = ["'", '"', "`", "```", "f", "rb", "-e", "a ", "=", "(", "[ ", "\\", "\\'", ",", ": ", "x", "0x", "print(", "é"]


def read(text: str, size: int) -> list[Event]:
    """All families read a text in deltas of so many characters."""
    stage = Rescue(TOOLS, FAMILIES, new_id=counter(), most_values=1 << 16)
    middle: list[Event] = [TextDelta(0, piece) for piece in pieces(text, size)]
    events = (Start(), TextStart(0), *middle, TextEnd(0), Finish("stop"))
    return [out for event in events for out in stage.feed([event])]


@for_each(("family", "opener", "size"), WAYS)
def test_the_work_grows_with_the_openers(family: str, opener: str, size: int):
    def run(count: int) -> None:
        read(opener * count, size)

    assert exponent(run, CHARACTERS[size] // len(opener)) <= MOST_EXPONENT, family


def test_no_opener_costs_much_more_than_the_others():
    read(OPENERS[0][1] * 64, 49)  # caches fill
    # 49 characters: an even number may end, delta by delta, right before the end of every other opener
    costs = {opener: steps_of(lambda opener=opener: read(opener * 64, 49)) / 64 for _, opener in OPENERS}
    most = max(costs, key=costs.__getitem__)
    assert costs[most] <= MOST_TIMES * statistics.median(costs.values()), (most, costs[most])


def test_quotation_marks_before_openers_are_read_once():
    """Each opener asked of all of its line what is quoted there."""
    read("''</think>)", 49)  # caches fill
    plain, quoted = (steps_of(lambda text=text: read(text * 250 + "</think>)" * 50, 49)) for text in ("aa", "''"))
    assert quoted <= 2 * plain


def test_words_behind_a_head_cost_no_more_than_a_search():
    """Each of their 400 characters was asked for each mark that closes an argument."""
    text = '<invoke name="f">a' * 40
    assert calls_made(lambda: read(f"<function_calls>{text}", 48)) < 500 * 40


def test_marks_of_a_line_are_looked_for_from_where_the_last_look_ended():
    chance = random.Random(1)
    for _ in range(2000):
        line = "".join(chance.choices(PIECES, k=chance.randrange(1, 14)))
        place: list[int] = []
        for end in sorted({*chance.choices(range(1, len(line) + 1), k=5), len(line)}):
            mark, *place = open_text(line[:end], *place)
            assert (mark, place[0]) == open_text(line[:end])[:2], line
    assert open_text("'0" * 500)[2] > 990


@for_each("opener", sorted({opener for _, opener in OPENERS}))
def test_what_was_no_call_before_is_read_as_if_it_were_new(opener: str):
    texts = [opener * 7 + _CALL + opener * 5, (opener + " a\n") * 5 + opener + _CALL, (_CALL + opener) * 3]
    ways = [(text, size) for text in texts for size in one((1, 7, 48, 1 << 30), text)]
    seen = [fold(read(text, size)) for text, size in ways]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_MOST_KNOWN", 0)  # nothing is known again
        assert seen == [fold(read(text, size)) for text, size in ways]


@pytest.mark.soak
@for_each("size", CHARACTERS, ids=["deltas", "whole"])
@for_each(("family", "opener"), OPENERS)
def test_the_time_grows_with_the_openers(family: str, opener: str, size: int):
    def seconds(count: int) -> float:
        text = opener * count
        begun = time.process_time()
        read(text, size)
        return time.process_time() - begun

    few, many = (min(seconds(count) for _ in range(2)) for count in (MANY // 4, MANY))
    assert many <= MANY * MOST_SECONDS, family
    # Below a tenth of a second the clock measures the machine.
    assert many < 0.1 or math.log(many / few, 4) <= MOST_EXPONENT, (family, few, many)
