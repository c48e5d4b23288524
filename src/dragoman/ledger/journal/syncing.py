"""Group commit: one sync of the disk serves all who wait. The next sync begins when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class GroupSync:
    """The syncs of one worker's journal. For one event loop, which continues while the disk works."""

    __slots__ = ("_next", "_task", "_to_sync")

    def __init__(self, to_sync: Callable[[], Callable[[], None]]) -> None:
        """Create it with a function that returns the sync of everything written so far. The sync is called in a
        thread.
        """
        self._to_sync = to_sync
        self._next: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Wait until everything that is written now is on the disk. Raises `OSError`: the sync failed."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        waiting = self._next
        if self._task is None:
            self._task = asyncio.create_task(self._go())
        await asyncio.shield(waiting)

    async def _go(self) -> None:
        while self._next is not None:
            waiting, self._next = self._next, None
            try:
                await asyncio.to_thread(self._to_sync())
            except (OSError, RuntimeError) as problem:  # RuntimeError: there is no room for a thread
                waiting.set_exception(problem if isinstance(problem, OSError) else OSError(str(problem)))
                waiting.exception()  # told, also where nobody waits any more
            else:
                waiting.set_result(None)
        self._task = None
