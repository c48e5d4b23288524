"""One segment of a journal, as its writer has it: a file that has all its bytes from the beginning.

Where a file system keeps the room that was set apart, the part that is written now is mapped into memory: a record is a
copy of its bytes, and no call of the system lies between a request and its record. The page cache has the bytes then as
after `write(2)`: they survive any end of this process, but not a power cut. What goes wrong with a mapped page ends the
process, so a file system that may need further room for it is written by `write(2)`, which says so.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from dragoman.ledger.journal.frames import OVERHEAD, head_of

#: Bytes that are mapped at once: what was written a moment ago needs no memory.
_WINDOW: Final = 256 * 1024
#: File systems that write where the room was set apart, and let no other file share it. Linux names them. There a sync
#: of the file includes what was mapped.
_KEEPS_ROOM: Final = (b"ext4", b"ext3", b"ext2", b"tmpfs")
_MOUNTS: Final = Path("/proc/self/mountinfo")


@final
class Segment:
    """The segment. `left`: bytes in which nothing stands yet. For one thread."""

    __slots__ = ("_behind", "_descriptor", "_mapped", "_size", "_window", "left")

    def __init__(self, path: Path, size: int, header: bytes, *, finish: Callable[[], None] = lambda: None) -> None:
        """Create the file, with all its bytes. `finish` is called before it has its header.

        Raises:
            OSError: there is no file.
        """
        self._window: mmap.mmap | None = None
        self._behind = self._mapped = 0  # bytes of the file from the window's first one on, and those of the window
        self._size = size
        self.left = size - len(header)
        self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if _set_apart(self._descriptor, size):
                self._map()
            finish()
            if os.write(self._descriptor, header) < len(header):  # from here on a reader leaves the one before
                raise OSError("the disk took half a header")
        except OSError:
            self.close()
            with contextlib.suppress(OSError):
                path.unlink()
            raise

    @property
    def is_mapped(self) -> bool:
        """Whether records are copied, not written."""
        return self._window is not None

    def write(self, record: bytes) -> None:
        """Write a record's frame behind the last one. Raises OSError: what stands there now is not known."""
        head, window, place = head_of(record), self._window, self._behind - self.left
        body = place + OVERHEAD
        end = body + len(record)
        if window is None:
            self._put(head + record)
        elif end > self._mapped:
            self._map()
            self.write(record)
            return
        else:
            window[body:end] = record
            window[place:body] = head  # last, so that who is killed meanwhile leaves no frame
        self.left = self._behind - end

    def is_good(self) -> bool:
        """Return whether the file is still found by its name, with what was set apart. Raises OSError."""
        found = os.fstat(self._descriptor)
        return found.st_nlink > 0 and (self._window is None or found.st_size >= self._size)

    def twin(self) -> int:
        """Return a descriptor of the file that outlives this. Raises OSError."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        self._unmap()
        self.left = 0
        os.close(self._descriptor)

    # ------------------------------------------------------------ inside

    def _put(self, data: bytes) -> None:
        size = len(data)
        if size > (first := mmap.PAGESIZE - (self._size - self.left) % mmap.PAGESIZE):
            # A kill ends a write between two pages: what stands on the first one comes last here too.
            os.lseek(self._descriptor, first, os.SEEK_CUR)
            self._write(data[first:])
            os.lseek(self._descriptor, -size, os.SEEK_CUR)
            self._write(data[:first])
            os.lseek(self._descriptor, size - first, os.SEEK_CUR)
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if os.write(self._descriptor, data) < len(data):  # only where the system does not keep what was set apart
            raise OSError("the disk took half a record")

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


def _set_apart(descriptor: int, size: int) -> bool:
    """Set room apart for a file. Return whether writing into it needs no further room. Raises OSError."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except AttributeError:  # macOS, Windows
        return False
    except OSError as problem:
        if problem.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        return False
    device = os.fstat(descriptor).st_dev
    place = b"%d:%d" % (os.major(device), os.minor(device))
    try:
        mounts = [line.split() for line in _MOUNTS.read_bytes().splitlines()]
    except OSError:
        return False
    return any(words[2] == place and words[words.index(b"-") + 1] in _KEEPS_ROOM for words in mounts)
