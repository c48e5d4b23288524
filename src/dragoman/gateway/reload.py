"""The configuration's file, watched: a change is in force within a tenth of a second, a wrong file changes nothing.

The file is looked at every 50 milliseconds, which works on every file system, for renames and for editors that write in
place. It is read when it has stood still for 10 more, so that half a file is not.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.config import Config
from dragoman.errors import DragomanError
from dragoman.gateway.metrics import GENERATION, RELOADS
from dragoman.gateway.observe import Observer

_SECONDS: Final = 0.05
#: How long a file that changed must stand still.
_SETTLED_SECONDS: Final = 0.01
#: What tells one state of a file from another: device, inode, size, time of change. None: there is no file.
_Sight: TypeAlias = tuple[int, int, int, int] | None


class Reload:
    """Watches one file."""

    __slots__ = ("_file", "_load", "_observer", "_read", "_seen", "_take", "generation")

    def __init__(
        self, file: Path, *, load: Callable[[], Config], take: Callable[[Config], None], observer: Observer
    ) -> None:
        """`load` reads the configuration anew, `take` puts it in force; both may raise `DragomanError`."""
        self._file = file
        self._load = load
        self._take = take
        self._observer = observer
        self._seen = _look_at(file)
        self._read = _digest(file)
        self.generation = 1

    async def watch(self) -> None:
        """Until it is cancelled."""
        taken = self._seen
        while True:
            await asyncio.sleep(_SECONDS if self._seen == taken else _SETTLED_SECONDS)
            sight = _look_at(self._file)
            if sight == self._seen and sight != taken:
                taken = sight
                self.read()
            self._seen = sight

    def again(self) -> None:
        """Read the file now, for what it refers to may be another."""
        self._read = b""
        self.read()

    def read(self) -> None:
        """Read the file now, if its bytes are not those that were read last."""
        digest = _digest(self._file)
        if digest == self._read:
            return
        self._read = digest
        metrics = self._observer.metrics
        try:
            self._take(self._load())
        except DragomanError as problem:
            metrics.add(RELOADS, ("refused",))
            self._observer.tell("config", f"not taken, the one before stays in force: {problem}")
            return
        self.generation += 1
        metrics.add(RELOADS, ("taken",))
        metrics.set(GENERATION, self.generation)
        self._observer.tell("config", f"{self._file} is in force")


def _look_at(file: Path) -> _Sight:
    try:
        seen = os.stat(file)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _digest(file: Path) -> bytes:
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return b""
