"""One segment of a journal, as its writer has it: a file that has all its bytes from the beginning.

On Linux the part that is written now is mapped into memory: a record is a copy of its bytes, and no call of the system
lies between a request and its record. The page cache has the bytes then as after `write(2)`: they survive any end of
this process, but not a power cut. What goes wrong with a mapped page ends the process, so a file system that is nearly
full is written by `write(2)`, which says so. What was set apart has its room, whatever else fills the disk.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

#: Bytes that are mapped at once: what was written a moment ago needs no memory.
_WINDOW: Final = 256 * 1024
#: Bytes that a file system must have free for a segment to be mapped.
_ROOM: Final = 256 * 1024 * 1024
#: Elsewhere a sync of the file need not include what was mapped.
_MAPS: Final = sys.platform == "linux"


@final
class Segment:
    """The segment. `left`: bytes in which nothing stands yet. For one thread."""

    __slots__ = ("_behind", "_descriptor", "_mapped", "_size", "_window", "left")

    def __init__(self, path: Path, size: int, header: bytes, *, finish: Callable[[], None] = lambda: None) -> None:
        """Create the file, with all its bytes. `finish` is called last. Raises OSError; then there is no file."""
        self._window: mmap.mmap | None = None
        self._behind = self._mapped = 0  # bytes of the file from the window's first one on, and those of the window
        self._size = size
        self.left = size - len(header)
        self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, 0, size)
            if os.write(self._descriptor, header) < len(header):
                raise OSError("the disk took half a header")
            if _MAPS and self._has_room():
                self._map()
            finish()
        except OSError:
            self.close()
            with contextlib.suppress(OSError):
                path.unlink()
            raise

    @property
    def is_mapped(self) -> bool:
        """Whether records are copied, not written."""
        return self._window is not None

    def write(self, data: bytes) -> None:
        """Write a record behind the last one. Raises OSError: what stands there now is not known."""
        window, left, size = self._window, self.left, len(data)
        if window is not None:
            place = self._behind - left
            if place + size > self._mapped:
                window = self._map()
                if window is None:
                    return self.write(data)
                place = self._behind - left
            window[place : place + size] = data
        elif os.write(self._descriptor, data) < size:  # only where the system does not keep what was set apart
            raise OSError("the disk took half a record")
        self.left = left - size

    def is_good(self) -> bool:
        """Return whether the file is still found by its name, with what was set apart. Raises OSError.

        Where the disk is nearly full by now, records are written from here on: this file may be the last that has room.
        """
        found = os.fstat(self._descriptor)
        if self._window is None:
            return found.st_nlink > 0
        if not self._has_room():
            self._unmap()
        return found.st_nlink > 0 and found.st_size >= self._size

    def twin(self) -> int:
        """Return a descriptor of the file that outlives this. Raises OSError."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        self._unmap()
        self.left = 0
        os.close(self._descriptor)

    # ------------------------------------------------------------ inside

    def _map(self) -> mmap.mmap | None:
        """Map the part in which the next record stands. Raises OSError: there is no such part any more.

        Return None where the system maps no file, or no further one; records are written from here on then.
        """
        self._unmap()
        first = (self._size - self.left) // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        self._behind = self._size - first
        self._mapped = min(_WINDOW, self._behind)
        try:
            self._window = mmap.mmap(self._descriptor, self._mapped, offset=first)
        except ValueError as problem:  # the file is shorter than it was made
            raise OSError(str(problem)) from None
        except OSError:
            return None
        return self._window

    def _unmap(self) -> None:
        """Let the next record be written where it stands."""
        if self._window is not None:
            window, self._window = self._window, None
            window.close()
            os.lseek(self._descriptor, self._size - self.left, os.SEEK_SET)

    def _has_room(self) -> bool:
        found = os.fstatvfs(self._descriptor)
        return found.f_bavail * found.f_frsize >= _ROOM
