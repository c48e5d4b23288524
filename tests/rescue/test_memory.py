"""What the tracking of code keeps of an answer does not grow with it."""

from __future__ import annotations

import tracemalloc

import pytest

from dragoman.stages.rescue.code import Code


@pytest.mark.parametrize("length", [5, 120, 20_000])
def test_prose_is_not_kept(length: int) -> None:
    code = Code()
    tracemalloc.start()
    for number in range(2_000_000 // length):
        code.feed(f"{number} ".ljust(length, "w"))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000
    assert not code.is_inside()
