"""One memory budget for the bodies of all current requests."""

from __future__ import annotations

from typing import Final

from dragoman.events import Failure
from dragoman.gateway.server.request_heads import BrokenRequest

#: What a body takes while it is read and worked on: its bytes, and the same again for what is made of them.
_SHARE: Final = 2
#: When a client that was refused may try again, in seconds.
_WAIT: Final = 2.0


class BodyMemory:
    """Counts the memory in use. A single request is always admitted: its own limit bounds it. `used`: bytes."""

    __slots__ = ("_most", "used")

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0

    def has_room(self, size: int, own: int = 0) -> bool:
        """Return whether `size` bytes may be taken. `own`: what the request has taken so far."""
        return self.used <= own or self.used + size <= self._most

    def take(self, size: int, own: int = 0) -> bool:
        """Take `size` bytes. False: there is no room, nothing is taken. `own` as for `has_room`."""
        if not self.has_room(size, own):
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        self.used -= size


class Charge:
    """The memory that one request has taken. `covered`: the size of the body that it suffices for, in bytes."""

    __slots__ = ("_memory", "_own", "covered")

    def __init__(self, memory: BodyMemory, beside: int = 0) -> None:
        """Create it. `beside`: the size of a body of the same request that another charge covers."""
        self._memory = memory
        self._own = _SHARE * beside
        self.covered = 0

    def check(self, body: int) -> None:
        """Check that there is room for a body of this size. Nothing is taken: it may never come. Raises as `cover`."""
        if not self._memory.has_room(_SHARE * body):
            raise _refused()

    def cover(self, body: int) -> None:
        """Take what a body of this size needs beyond what was taken.

        Raises:
            BrokenRequest: the current requests use all memory.
        """
        if body <= self.covered:
            return
        if not self._memory.take(_SHARE * (body - self.covered), self._own + _SHARE * self.covered):
            raise _refused()
        self.covered = body

    def release(self, _: object = None) -> None:
        """Give all of it back. A repeated call does nothing. Usable as a callback with one argument."""
        if self.covered:
            self._memory.give(_SHARE * self.covered)
            self.covered = 0


def _refused() -> BrokenRequest:
    message = "too many large requests are under way; try again"
    return BrokenRequest(Failure("overloaded", message, 503, retry_after=_WAIT))
