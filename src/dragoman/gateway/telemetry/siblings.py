"""The workers of one gateway: where each keeps its metrics, and how one gets the others' lines.

They share a folder that only their owner can enter. `metrics-N` has the metrics of worker N. A worker that wants all
lines binds a datagram socket `tail-…` there. The others send to each that they find, and wait for none.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: A file of this name for each worker whose responses from before the end go on: none closes its port before all can.
_DRAINING: Final = "draining-"
_LONGEST: Final = 64 * 1024  # bytes of a line


def begin_draining(folder: Path, slots: Iterable[int]) -> None:
    """Record that these workers are about to be told to end."""
    for slot in slots:
        _mark(folder, slot).touch()


def end_draining(folder: Path, slot: int) -> None:
    """Record that a worker is gone."""
    _mark(folder, slot).unlink(missing_ok=True)


def _mark(folder: Path, slot: int) -> Path:
    return folder / f"{_DRAINING}{slot}"


class Siblings:
    """One worker's view of the others."""

    __slots__ = ("_folder", "_heard", "_numbers", "_own", "_sender", "_slot")

    def __init__(self, folder: Path, slot: int) -> None:
        """Create it. `slot`: the worker's number, which its replacement inherits."""
        self._folder = folder
        self._slot = slot
        self._numbers = itertools.count()
        self._own: set[str] = set()
        self._heard: set[str] = set()
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)

    @property
    def metrics_file(self) -> Path:
        """The file of this worker's metrics."""
        return self._folder / f"metrics-{self._slot}"

    def others(self) -> list[Path]:
        """Return the files of the others' metrics."""
        return [file for file in self._folder.glob("metrics-*") if file != self.metrics_file]

    def drained(self) -> None:
        """Record that this worker's responses from before the order to end are over."""
        end_draining(self._folder, self._slot)

    def all_drained(self) -> bool:
        """Return whether those of all workers are: then no new connection is accepted anywhere."""
        return next(self._folder.glob(f"{_DRAINING}*"), None) is None

    def look(self) -> bool:
        """Return whether any of the others has a listener. Call it a few times a second."""
        self._heard = {file.path for file in os.scandir(self._folder) if file.name.startswith("tail-")} - self._own
        return bool(self._heard)

    def send(self, line: bytes) -> None:
        """Send a line to all others that listen; one that does not read loses it."""
        for path in tuple(self._heard):
            try:
                self._sender.sendto(line[:_LONGEST], path)
            except BlockingIOError:
                continue
            except OSError:
                self._heard.discard(path)

    @contextmanager
    def heard(self, take: Callable[[bytes], None]) -> Iterator[None]:
        """Pass the others' lines to `take` inside the block."""
        path = str(self._folder / f"tail-{self._slot}-{os.getpid()}-{next(self._numbers)}")
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        loop = asyncio.get_running_loop()

        def read() -> None:
            with contextlib.suppress(BlockingIOError):
                while True:
                    take(receiver.recv(_LONGEST))

        try:
            self._own.add(path)
            receiver.bind(path)
            loop.add_reader(receiver, read)
            yield
        finally:
            loop.remove_reader(receiver)
            receiver.close()
            with contextlib.suppress(OSError):
                os.unlink(path)
            self._own.discard(path)

    def close(self) -> None:
        """Stop sending."""
        self._sender.close()
