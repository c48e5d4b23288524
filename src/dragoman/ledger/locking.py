"""Locks on files, which the system takes back when their holder dies. On Windows by `msvcrt`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl


class FileLock:
    """An exclusive lock on a file of this path, which is made. No child process inherits it: take it after a fork."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self, *, waits: bool = False) -> bool:
        """Take it; whether it is ours now. `waits`: until it can be taken.

        Raises:
            OSError: the file cannot be made.
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
        """Nothing when it is not ours."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def _lock(descriptor: int, *, waits: bool) -> None:
    """Raises BlockingIOError: another has it."""
    if sys.platform == "win32":  # pragma: no cover
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)
        except OSError as problem:
            raise BlockingIOError(str(problem)) from None
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
