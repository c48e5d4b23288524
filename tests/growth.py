"""How the work of a reader grows with its input: lines of our code that run are counted, so no clock decides.

What one call of the C library does (a search, a copy) counts as one line; `make soak` and the row H6 of
`make reliability` measure that by processor time.
"""

from __future__ import annotations

import gc
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import dragoman
import dragoman._json

_OURS = os.path.dirname(dragoman.__file__) + os.sep
#: What twice the input may cost: an exponent of 1.2, as the issue has it.
MOST_EXPONENT = 1.2


@contextmanager
def naming(text: str) -> Iterator[None]:
    """What is raised within says by which text."""
    try:
        yield
    except Exception as error:
        error.add_note(f"by {text!r}")
        raise


def steps_of(run: Callable[[], object]) -> int:
    """Lines of our code that ran, those of our generators and comprehensions among them."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line(frame, event, argument) if frame.f_code.co_filename.startswith(_OURS) else None

    before = sys.gettrace()
    gc.disable()  # a finalizer of another test is no work of this one
    sys.settrace(call)
    try:
        run()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def calls_made(action: Callable[[], object]) -> int:
    """How many functions, Python's and C's, an action calls: its work, told without a clock.

    It runs once before: what is made at first use does not count.
    """
    count = 0
    action()

    def note(frame: FrameType, kind: str, argument: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def exponent(run: Callable[[int], object], size: int) -> float:
    """By which power of the size the work grows from `size` to twice of it, and, where that is too much, from there to
    four times; the smaller of the two powers, so that work that is done once, where a bound is reached, counts as what
    it is."""
    for number in (size, 1):
        run(number)  # caches fill
    one, two = steps_of(lambda: run(size)), steps_of(lambda: run(2 * size))
    grown = math.log2(max(two, 1) / max(one, 1))
    if grown <= MOST_EXPONENT:
        return grown
    return min(grown, math.log2(max(steps_of(lambda: run(4 * size)), 1) / max(two, 1)))


_JSON = os.path.join(_OURS, "_json.py")


def json_bytes_of(run: Callable[[], object]) -> tuple[int, int]:
    """Bytes that the JSON library was given, and that it gave: what it does is one line, however long the text is."""
    given = made = 0

    def call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal given, made
        if event in ("call", "return") and (code := frame.f_code).co_filename == _JSON and code.co_argcount:
            text = argument if event == "return" else frame.f_locals.get(code.co_varnames[0])
            if isinstance(text, bytes | str | dragoman._json.Raw):
                if event == "call":
                    given += len(text)
                else:
                    made += len(text)

    before = sys.getprofile()
    sys.setprofile(call)
    try:
        run()
    finally:
        sys.setprofile(before)
    return given, made
