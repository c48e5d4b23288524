"""Runs work on large request bodies in a thread, away from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
#: Bytes that are worked on at once: some milliseconds.
LARGE: Final = 256 * 1024
#: Bytes that hold few enough values, whatever they are, and the objects and lists of a larger body that are worked on
#: at once: written in another protocol each may take 10 µs.
_SMALL: Final = 16 * 1024
MANY: Final = 2_000
_FEW: Final = 50


def weight_of(body: bytes) -> int:
    """The bytes that a body counts as: one of many small values takes as long as a large one."""
    size = len(body)
    if _SMALL < size <= LARGE and (_has_many(body, b"{") or _has_many(body, b"[")):
        return LARGE + size
    return size


def _has_many(body: bytes, byte: bytes) -> bool:
    """Whether a byte stands there often. A few are searched one by one, as memory is; to take more of them out finds
    each so, but copies the body. `count` takes a step a byte."""
    place = -1
    for _ in range(_FEW):
        place = body.find(byte, place + 1)
        if place < 0:
            return False
    return len(body) - len(body.replace(byte, b"", MANY + 1)) > MANY


async def run_sized(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes: at once when they are few, else in a thread, so that no stream has to wait for it."""
    if size <= LARGE:
        return work()
    return await asyncio.to_thread(work)
