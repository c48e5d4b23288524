"""Work that is as large as a request's body, kept away from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
#: Bytes that are worked on at once: some milliseconds.
LARGE: Final = 256 * 1024


async def run_sized(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes: at once when they are few, else in a thread, so that no stream has to wait for it."""
    if size <= LARGE:
        return work()
    return await asyncio.to_thread(work)
