"""Leases: nothing is overspent and nothing is stuck, whatever becomes of messages, holders, counters and clocks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.leases_model import FAULTS, Fault, World, Wrong
from profiles import IS_SOAK, examples

HISTORIES = 100_000
_steps = st.tuples(st.integers(0, 15), st.integers(0, 7), st.integers(0, 839))


@settings(max_examples=examples(300))
@given(st.lists(_steps, min_size=5, max_size=60))
def test_nothing_is_overspent_and_nothing_is_stuck(steps: list[tuple[int, int, int]]) -> None:
    World().play(steps)


def made_up(number: int) -> list[tuple[int, int, int]]:
    """A history of its number."""
    chance = random.Random(number)
    return [(chance.randrange(16), chance.randrange(8), chance.randrange(840)) for _ in range(chance.randrange(5, 120))]


@pytest.mark.soak
def test_nothing_is_overspent_and_nothing_is_stuck_in_many_histories() -> None:
    for number in range(HISTORIES if IS_SOAK else 1_000):
        try:
            World().play(made_up(number))
        except Wrong as problem:
            raise AssertionError(f"history {number}: {problem}") from None


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_that_was_put_back_is_found(fault: Fault) -> None:
    """Those that the design's review reproduced: the model must notice each, or it would notice nothing."""
    for number in range(6_000):
        try:
            World(fault).play(made_up(number))
        except Wrong:
            return
    raise AssertionError(f"6,000 histories, and nobody noticed: {fault}")
