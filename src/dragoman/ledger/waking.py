"""Let the shipper sleep while nothing happens, and wake it with the next record.

A byte in a memory-mapped file says whether the shipper sleeps, so that workers do not ring while it is awake. It is set
before the shipper looks a last time, and read after a record is written: either the shipper sees the record, or the
worker sees the byte. On a system without FIFOs the shipper looks twice a second instead.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import select
import threading
from typing import Final

from dragoman.ledger.folder import LedgerFolder

_ASLEEP: Final = 1
#: Seconds between two looks where there is no FIFO.
_POLL: Final = 0.5
_HAS_FIFO: Final = hasattr(os, "mkfifo")


class Ringer:
    """A worker's side. It costs a look at one byte while the shipper is awake."""

    __slots__ = ("_descriptor", "_flag", "_folder")

    def __init__(self, folder: LedgerFolder) -> None:
        self._folder = folder
        self._flag: mmap.mmap | None = None
        self._descriptor = -1

    def ring(self, *, at_once: bool = False) -> None:
        """Wake the shipper if it sleeps. If there is none, the next one finds the record.

        Args:
            at_once: wake it also while it gathers what more comes.
        """
        if self._flag is not None and self._flag[0] != _ASLEEP and not at_once:
            return
        try:
            if self._flag is None:
                self._flag = _mapped(self._folder)
                self.ring(at_once=at_once)
                return
            if self._descriptor < 0:
                self._descriptor = os.open(self._folder.bell, os.O_WRONLY | os.O_NONBLOCK)
            os.write(self._descriptor, b".")
        except BlockingIOError:
            return  # it is full of rings
        except OSError as problem:
            if problem.errno != errno.ENXIO or self._descriptor >= 0:  # else there is no shipper now
                self.close()

    def close(self) -> None:
        """Close the files; the next ring opens them again."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        if self._flag is not None:
            flag, self._flag = self._flag, None
            flag.close()


class Sleeper:
    """The shipper's side."""

    __slots__ = ("_bell", "_flag", "_lock", "_told")

    def __init__(self, folder: LedgerFolder) -> None:
        """Create it. Raises OSError if the folder cannot be written."""
        folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._flag = _mapped(folder)
        self._flag[0] = 0
        self._told = threading.Event()
        self._lock = threading.Lock()  # no other file has the bell's number while it is rung
        self._bell = -1
        if _HAS_FIFO:
            with contextlib.suppress(OSError):  # some file systems have none
                if not folder.bell.is_fifo():
                    folder.bell.unlink(missing_ok=True)
                    os.mkfifo(folder.bell, 0o600)
                self._bell = os.open(folder.bell, os.O_RDWR | os.O_NONBLOCK)

    def will_sleep(self) -> None:
        """Ask workers to ring from now on. Look once more before `sleep`."""
        self._flag[0] = _ASLEEP

    def wakes(self) -> None:
        """Let workers write without ringing from now on."""
        self._flag[0] = 0

    def sleep(self, seconds: float | None, *also: int) -> bool:
        """Sleep until a ring, or for `seconds` (None: without limit). Return whether a descriptor of `also` is
        ready.
        """
        if self._bell < 0:
            self._told.wait(_POLL if seconds is None else min(seconds, _POLL))
            return bool(also and select.select(also, (), (), 0)[0])
        ready, _, _ = select.select((self._bell, *also), (), (), seconds)
        if self._bell in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._bell, 4_096)
        return any(descriptor in ready for descriptor in also)

    def ring(self) -> None:
        """Wake the sleeper from another thread."""
        self._told.set()
        with self._lock:
            if self._bell >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._bell, b".")

    def close(self) -> None:
        """Ask workers to ring from now on, for the next shipper."""
        self._flag[0] = _ASLEEP
        self._flag.close()
        with self._lock:
            if self._bell >= 0:
                descriptor, self._bell = self._bell, -1
                os.close(descriptor)


def _mapped(folder: LedgerFolder) -> mmap.mmap:
    descriptor = os.open(folder.asleep, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if os.fstat(descriptor).st_size < 1:
            os.ftruncate(descriptor, 1)
            os.pwrite(descriptor, bytes([_ASLEEP]), 0) if hasattr(os, "pwrite") else os.write(descriptor, b"\x01")
        return mmap.mmap(descriptor, 1)
    finally:
        os.close(descriptor)
