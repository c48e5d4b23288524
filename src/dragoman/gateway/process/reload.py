"""Watch the configuration file: a change applies within a tenth of a second, an invalid file changes nothing.

The file is looked at every 50 milliseconds, which works on every file system, for renames and for editors that write in
place. It is read once it has not changed for 10 more, so that a half-written file is not read. It is read in a thread,
so that a slow disk or a large file stops no stream.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.config import LARGEST_CONFIG, read_file, reason_of
from dragoman.errors import ConfigError, DragomanError
from dragoman.gateway.telemetry.log import place_of
from dragoman.gateway.telemetry.metrics import GENERATION, RELOADS
from dragoman.gateway.telemetry.record import Observer

_SECONDS: Final = 0.05
#: How long a file that changed must stand still.
_SETTLED_SECONDS: Final = 0.01
#: What tells one state of a file from another: device, inode, size, time of change. None: there is no file.
_Sight: TypeAlias = tuple[int, int, int, int] | None


class Reload:
    """Watches one file. `generation`: the number of configurations applied, the first one included."""

    __slots__ = ("_file", "_is_asked", "_observer", "_prepare", "_read", "_refused", "_seen", "generation")

    def __init__(
        self, file: Path, *, prepare: Callable[[], Callable[[], None]], observer: Observer, read: object = None
    ) -> None:
        """Create it.

        Args:
            prepare: reads the configuration, in a thread, and returns the function that applies it, in the event loop.
                Both may raise `DragomanError`.
            read: `state_of` the configuration in force; None: of the file now.
        """
        self._file = file
        self._prepare = prepare
        self._observer = observer
        self._seen = _look_at(file)
        self._read = state_of(file) if read is None else read
        self._refused: tuple[object, str] | None = None  # the last state that was, and why, until one is taken
        self._is_asked = read is not None
        self.generation = 1

    async def watch(self) -> None:
        """Watch until cancelled."""
        taken = self._seen
        while True:
            await asyncio.sleep(_SECONDS if self._seen == taken else _SETTLED_SECONDS)
            sight = _look_at(self._file)
            if self._is_asked or (sight == self._seen and sight != taken):
                self._is_asked, taken = False, sight
                await self._read_anew()
            self._seen = sight

    def again(self) -> None:
        """Read the file at the next look, because what it refers to may have changed."""
        self._read = self._refused = None
        self._is_asked = True

    async def _read_anew(self) -> None:
        """Read the file if it has changed. Refuse and report an invalid one."""
        state = await asyncio.to_thread(state_of, self._file)
        if state == self._read:
            return
        self._read = state
        try:
            if isinstance(state, str):
                raise ConfigError(f"{self._file}: {state}")
            put_in_force = await asyncio.to_thread(self._prepare)
            put_in_force()
        except DragomanError as problem:
            self._refuse(str(problem))
        except Exception as problem:  # a fault of ours must not end the watching; its message may quote the file
            self._refuse(f"{self._file}: {place_of(problem)}")
        else:
            self._refused = None
            self._observer.notices.pop("config", None)
            self.generation += 1
            self._observer.metrics.add(RELOADS, ("taken",))
            self._observer.metrics.set(GENERATION, self.generation)
            self._observer.tell("config", f"{self._file} is in force")

    def _refuse(self, problem: str) -> None:
        """Report once why a file is refused.

        The same bytes written again are read again: a key file that they name may be right by now.
        """
        refused, self._read = (self._read, problem), None
        if refused == self._refused:
            return
        self._refused = refused
        self._observer.notices["config"] = "the file was refused; the configuration before it is in force"
        self._observer.metrics.add(RELOADS, ("refused",))
        self._observer.tell("config", f"not taken, the one before stays in force: {problem}")


def _look_at(file: Path) -> _Sight:
    try:
        seen = os.stat(file)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def state_of(file: Path) -> bytes | str:
    """Return the digest of the file's bytes, or why it cannot be a meant configuration.

    An editor that writes in place truncates the file first, and a missing file says nothing.
    """
    try:
        data = read_file(file, most=LARGEST_CONFIG)
    except FileNotFoundError:
        return "expected a configuration file, found none"
    except (ConfigError, OSError) as problem:
        return reason_of(problem)
    return hashlib.sha256(data).digest() if data.strip() else "expected a configuration, found an empty file"
