"""Run work on large request bodies in a thread, away from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from dragoman.codec.framing.outline import room_left

T = TypeVar("T")
#: Bytes that are worked on at once: some milliseconds.
LARGE: Final = 256 * 1024
#: Bytes that hold few enough values, whatever they are, and the objects and lists of a larger body that are worked on
#: at once: written in another protocol each may take 10 µs.
_SMALL: Final = 16 * 1024
MANY: Final = 2_000


def weight_of(body: bytes) -> int:
    """Return the bytes that a body counts as: one of many small values takes as long as a large one."""
    size = len(body)
    if _SMALL < size <= LARGE and (room_left(body, (b"{",), MANY) < 0 or room_left(body, (b"[",), MANY) < 0):
        return LARGE + size
    return size


async def run_sized(size: int, work: Callable[[], T]) -> T:
    """Run work on `size` bytes: inline if they are few, else in a thread, so that no stream waits for it."""
    if size <= LARGE:
        return work()
    return await asyncio.to_thread(work)
