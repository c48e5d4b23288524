"""The inside of a string is read in runs; character by character it comes to the same."""

from __future__ import annotations

import random

import pytest

from dragoman.stages.argument_repair.string_text import _RUNS, StringText, Unreadable
from growth import steps_of

_UNITS = ["\\", "\\\\", "\\u", "\\u00", "\\u0041", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\n", "\\'", '\\"', "\\q",
          "\\x", "\\”", "\n", "\x01", "\ud83d", "\ude00", "é", "a", "4", "'", "”", "“", "u", "d"]  # fmt: skip


def read(text: str, closers: str, size: int) -> tuple[str, str, list[str], int]:
    """What a string comes to in pieces of this size: its text, what is open, what was noted, where it closes."""
    notes: list[str] = []
    string = StringText(notes.append)
    string.begin(closers)
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        try:
            place = string.read(piece, 0)
        except Unreadable:
            return "", "unreadable", [], 0
        if place < len(piece):
            return string.taken(), string.escape, list(dict.fromkeys(notes)), start + place
    return string.taken(), string.escape, list(dict.fromkeys(notes)), -1


@pytest.mark.parametrize("closers", _RUNS)
def test_a_string_is_read_alike_in_runs_and_in_characters(closers: str) -> None:
    chance = random.Random(closers)
    texts = ["".join(chance.choices(_UNITS, k=chance.randrange(1, 9))) for _ in range(3_000)]
    assert sum(read(text, closers, 1)[1] == "unreadable" for text in texts) < 2_000
    for text in texts:
        alone = read(text, closers, 1)
        for size in (len(text), 3):
            assert read(text, closers, size) == alone, repr(text)


@pytest.mark.parametrize("closers", _RUNS)
def test_a_quote_that_closes_is_found_behind_anything(closers: str) -> None:
    chance = random.Random(closers)
    for _ in range(1_000):
        text = "".join(chance.choices(_UNITS, k=chance.randrange(1, 6))) + closers[0] + " and more"
        assert read(text, closers, len(text)) == read(text, closers, 1), repr(text)


def test_halves_of_pairs_and_other_marks_are_mended_at_once() -> None:
    for mark in ("\\ud83d", "\\udc00", "\\q", "\\u", "\\'"):

        def run(mark: str = mark) -> None:
            string = StringText(lambda note: None)
            string.begin('"')
            string.read(mark[:-1], 0)
            string.read(mark[-1:] + mark * 500, 0)

        assert steps_of(run) < 1_500, mark
