"""File locks that the system releases when their holder dies. On Windows they use `msvcrt`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl


class FileLock:
    """An exclusive lock on a file, which is created. Child processes do not inherit it: take it after a fork."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self, *, waits: bool = False) -> bool:
        """Take the lock. Return whether it is held now. `waits`: wait until it is free.

        Raises:
            OSError: the file cannot be created.
        """
        if self._descriptor is not None:
            return True
        descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _lock(descriptor, waits=waits)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def give_back(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def _lock(descriptor: int, *, waits: bool) -> None:
    """Lock a descriptor. Raises BlockingIOError if another process holds the lock."""
    if sys.platform == "win32":  # pragma: no cover
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)
        except OSError as problem:
            raise BlockingIOError(str(problem)) from None
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
