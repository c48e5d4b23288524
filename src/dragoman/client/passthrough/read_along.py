"""Decode what passes later and in larger pieces: decoding each chunk by itself takes longer than passing it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

#: Bytes that are read along at once.
_AT_ONCE: Final = 16 * 1024
#: Seconds after which they are, however few, and the same as a share of the clock for progress, which they wind.
_MOST_DELAY: Final = 0.5
_SHARE: Final = 0.05


@final
class ReadAlong:
    """Collects passed bytes until there are enough, some time is over, or one of them contains an error."""

    __slots__ = ("_delay", "_kept", "_loop", "_read", "_size", "_timer")

    def __init__(self, read: Callable[[bytes], None], *, progress: float) -> None:
        """Create it. `read` is called with the bytes; `progress`: seconds in which something must be read."""
        self._read = read
        self._delay = min(_MOST_DELAY, progress * _SHARE)
        self._loop = asyncio.get_running_loop()
        self._kept: list[bytes] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, data: bytes, *, is_plain: bool = False) -> None:
        """Take bytes that are on their way to the client. `is_plain`: they are known to contain no error."""
        self._kept.append(data)
        self._size += len(data)
        if self._size >= _AT_ONCE or (not is_plain and data.rfind(b'"error"') >= 0):
            self.catch_up()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._delay, self.catch_up)

    def catch_up(self) -> None:
        """Decode the collected bytes now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._kept:
            data = b"".join(self._kept)
            self._kept.clear()
            self._size = 0
            self._read(data)
