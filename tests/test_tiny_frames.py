"""Frames that hold no key cost little: they may come by the thousand at once."""

from __future__ import annotations

from dragoman.protocols import PROTOCOLS
from for_each import for_each
from growth import steps_of
from places import reader_of

#: How a body begins, and a frame that comes again and again → lines of code that one may take.
FRAMES = {("[", "#,"): 140, ("[", "1,"): 120, ('{"a":1}\n', "x\n"): 115, ("", "data: {\n\n"): 165}
FEW, MANY = 40, 120


@for_each("name", PROTOCOLS)
def test_a_frame_without_a_key_takes_few_steps(name: str) -> None:
    for (first, frame), most in FRAMES.items():
        steps_for(name, first + 2 * frame)  # what is made once
        few, many = (steps_for(name, first + frame * count) for count in (FEW, MANY))
        assert (many - few) / (MANY - FEW) <= most, frame


def steps_for(name: str, body: str) -> int:
    return steps_of(lambda: reader_of(name).feed(body.encode()))
