"""The backlog of a client: its size, when to stop adding to it, and when the client is given up.

A client that reads slowly is distinguished from one that reads nothing by what the kernel says the other side has not
taken yet (SIOCOUTQ, Linux). Our own buffer would not tell: the kernel takes more of it in steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

#: Of the kernel's buffer, what has not been sent; more of it waits with us, where it can be bounded and seen.
_UNSENT: Final = 32 * 1024
#: Looks at what waits, in the time that a client has.
_LOOKS: Final = 30
#: Where the kernel is not asked, one that reads slowly looks like one that reads nothing, for this many times as long.
_BLIND: Final = 4
_IS_BLIND: Final = sys.platform != "linux"


def hold_little(listeners: Iterable[Any]) -> None:
    """Limit what the kernel buffers beyond what it can send, on all connections that these sockets accept.

    Otherwise it would hold megabytes for each slow client. Data in flight is not limited, so a fast client loses
    nothing.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is None:
        return
    for listener in listeners:
        with contextlib.suppress(OSError):  # a system that knows the name alone
            listener.setsockopt(socket.IPPROTO_TCP, option, _UNSENT)


def waiting(transport: asyncio.Transport) -> int:
    """Return the bytes that the other side has not taken, the kernel's included; 0 if our own buffer is empty."""
    size = transport.get_write_buffer_size()
    if not size or _IS_BLIND:
        return size
    import fcntl
    import termios

    try:
        answer = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:  # it is just being closed
        return size
    return size + int.from_bytes(answer, sys.byteorder)


class Backpressure:
    """A gate that is shut while a client's backlog is too large. `is_shut`: whether to wait before more is written."""

    __slots__ = ("_go_on", "_opened", "_seconds", "_timer", "_transport", "_until", "_waits", "is_shut")

    def __init__(self, seconds: float) -> None:
        """Create it. `seconds`: how long a client may take nothing of its backlog."""
        self._opened: asyncio.Event | None = None  # None while nobody had to wait, as with nearly every client
        self._seconds = seconds * _BLIND if _IS_BLIND else seconds
        self._transport: asyncio.Transport | None = None  # None while it is open
        self.is_shut = False
        self._waits = 0
        self._until = 0.0
        self._go_on: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def shut(self, transport: asyncio.Transport) -> None:
        """Shut it, because the transport asks to pause. If the client takes nothing, the transport is closed."""
        self._transport = transport
        self.is_shut = True
        self._waits = sys.maxsize
        self._look()

    def _look(self) -> None:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        waits = waiting(self._transport)
        if waits < self._waits:
            self._until = loop.time() + self._seconds
        elif loop.time() >= self._until:
            self._transport.abort()
            return
        self._waits = waits
        self._timer = loop.call_later(self._seconds / _LOOKS, self._look)

    def open(self) -> None:
        """Open it, because the transport has room, or is closed."""
        if self._transport is None:
            return
        self._transport = None
        self.is_shut = False
        if self._timer is not None:
            self._timer.cancel()
        if self._opened is not None:
            self._opened.set()
        go_on, self._go_on = self._go_on, None
        if go_on is not None:
            go_on()

    async def opened(self) -> None:
        """Wait until it is open."""
        while self._transport is not None:
            if self._opened is None or self._opened.is_set():
                self._opened = asyncio.Event()
            await self._opened.wait()

    def when_open(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when it opens next. It replaces an earlier callback."""
        self._go_on = go_on
