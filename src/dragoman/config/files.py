"""Read the files of the configuration so that none of them can block the reader."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from dragoman.errors import ConfigError

#: Bytes of a configuration; of a key.
LARGEST_CONFIG: Final = 1024 * 1024
LARGEST_SECRET: Final = 64 * 1024
_NO_WAITING: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_file(file: Path, *, most: int) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes. A pipe is not opened, because that would wait for a
    writer.

    Raises:
        ConfigError: it is a device, a pipe or a folder, or larger.
        OSError: there is none, or it cannot be read.
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise ConfigError("expected a regular file, found something else")
    # It may be another one by now; and some that the kernel calls regular wait until there is news (/proc/kmsg).
    with open(os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | _NO_WAITING), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ConfigError("expected a regular file, found something else")
        data = opened.read(most + 1) or b""
    if len(data) > most:
        raise ConfigError(f"expected a file of at most {most} bytes")
    return data


def reason_of(problem: Exception) -> str:
    """Return why a file could not be read, without its path."""
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
