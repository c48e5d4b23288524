"""What begins a call, again and again with no call behind it, costs in proportion, whole and in deltas."""

from __future__ import annotations

import math
import time

import pytest

from dragoman.events import Event, Finish, Start, TextDelta, TextEnd, TextStart
from dragoman.stages.rescue import FAMILIES, Rescue
from growth import MOST_EXPONENT, exponent
from places import TOOLS, counter, pieces

OPENERS = sorted({(family.name, opener) for family in FAMILIES for opener in family.openers})
#: Characters of a text of which lines are counted, by the size of a delta: the first 2,048 of a whole text are passed
#: at once, where openers follow each other.
CHARACTERS = {48: 1500, 1 << 30: 6500}
#: Openers of a text of which `make soak` takes the time.
MANY = 20_000
#: Processor time of an opener, in seconds: more than ten times what one takes on a slow machine.
MOST_SECONDS = 1e-3


def read(text: str, size: int) -> None:
    """All families read a text in deltas of so many characters."""
    stage = Rescue(TOOLS, FAMILIES, new_id=counter())
    middle: list[Event] = [TextDelta(0, piece) for piece in pieces(text, size)]
    for event in (Start(), TextStart(0), *middle, TextEnd(0), Finish("stop")):
        stage.feed([event])


@pytest.mark.parametrize("size", CHARACTERS, ids=["deltas", "whole"])
@pytest.mark.parametrize(("family", "opener"), OPENERS)
def test_the_work_grows_with_the_openers(family: str, opener: str, size: int):
    def run(count: int) -> None:
        read(opener * count, size)

    assert exponent(run, CHARACTERS[size] // len(opener)) <= MOST_EXPONENT, family


@pytest.mark.soak
@pytest.mark.parametrize("size", CHARACTERS, ids=["deltas", "whole"])
@pytest.mark.parametrize(("family", "opener"), OPENERS)
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
