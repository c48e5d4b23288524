"""Files that the configuration consists of, read so that none of them can stop the reader."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from dragoman.errors import ConfigError

#: Bytes of a configuration; of a key.
LARGEST_CONFIG: Final = 1024 * 1024
LARGEST_SECRET: Final = 64 * 1024
#: Waits for nobody: opening a pipe that nobody writes to would wait for ever.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_file(file: Path, *, most: int) -> bytes:
    """The bytes of a regular file of at most `most` bytes.

    Raises:
        ConfigError: it is a device, a pipe or a folder, or larger.
        OSError: there is none, or it cannot be read.
    """
    number = os.open(file, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ConfigError("expected a regular file, found something else")
        with os.fdopen(number, "rb", closefd=False) as opened:
            data = opened.read(most + 1)
    finally:
        os.close(number)
    if len(data) > most:
        raise ConfigError(f"expected a file of at most {most} bytes")
    return data
