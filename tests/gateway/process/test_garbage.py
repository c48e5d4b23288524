"""A look at all objects there are waits while a large answer has made many, for it holds every thread up."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from dragoman.gateway.process import garbage


class Circle:
    """Holds itself: only a look for garbage frees it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def usual() -> Iterator[None]:
    """The thresholds are as they were, behind the test."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_no_look_at_all_objects_comes_by_itself(usual: None) -> None:
    gc.set_threshold(
        *garbage._LOOKS
    )  # `look_seldom` without its freeze, which would hold other tests' objects for ever
    looks = gc.get_stats()[2]["collections"]
    kept = [[] for _ in range(200_000)]  # type: ignore[var-annotated]
    assert gc.get_stats()[2]["collections"] == looks
    assert len(kept) == 200_000


@pytest.mark.usefixtures("usual")
def test_garbage_is_found_when_few_objects_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def freed(most: int, seconds: float) -> bool:
        monkeypatch.setattr(garbage, "_MOST_OBJECTS", most)
        circle = weakref.ref(Circle())
        looking = asyncio.create_task(garbage.look_when_few(every=0.01, again=0.01))
        await asyncio.sleep(seconds)
        looking.cancel()
        return circle() is None

    gc.set_threshold(1_000_000, 1_000, 1_000_000)
    monkeypatch.setattr(garbage, "_MOST_PUT_OFF", 1_000_000)
    assert not asyncio.run(freed(0, 0.2))
    assert asyncio.run(freed(100_000_000, 2))
    monkeypatch.setattr(garbage, "_MOST_PUT_OFF", 2)
    assert asyncio.run(freed(0, 2))  # not for ever
