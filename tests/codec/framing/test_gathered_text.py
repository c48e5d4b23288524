"""Text in pieces is kept whole, in few of them."""

from __future__ import annotations

import gc
import sys

import pytest

from dragoman.gathered import GatheredText


@pytest.mark.parametrize("count", [0, 1, 2, 32, 33, 34, 500])
def test_nothing_is_lost(count: int) -> None:
    pieces = [f"{number}," for number in range(count)]
    gathered = GatheredText()
    for piece in pieces:
        gathered.add(piece)
    assert gathered.text() == "".join(pieces)
    assert gathered.last_two() == "".join(pieces)[-2:]


def test_many_pieces_take_little_more_than_their_text() -> None:
    gathered = GatheredText()
    for number in range(10_000):
        gathered.add(f"{number:04}")
    kept = [piece for owned in gc.get_referents(gathered) if isinstance(owned, list) for piece in owned]
    assert sum(map(sys.getsizeof, kept)) < 2 * len(gathered.text())
