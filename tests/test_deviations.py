"""What a deviation shows of what was seen."""

from __future__ import annotations

import pytest

from dragoman.deviations import SEEN_LIMIT, clip


@pytest.mark.parametrize(("seen", "shown"), [("ä", "ä"), (3, "3"), ("a\ud800b", "a?b"), ("", "")])
def test_short_values_are_shown(seen: object, shown: str) -> None:
    assert clip(seen) == shown


def test_long_values_are_clipped_between_characters() -> None:
    shown = clip("ä" * 1_000)
    assert len(shown.encode()) <= SEEN_LIMIT
    assert shown == "ä" * (len(shown) - 1) + "…"
