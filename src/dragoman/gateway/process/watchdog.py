"""Detect workers whose event loop stands still, report where they stand, and end them.

Each worker beats once a second from its event loop. A regular expression or a C function that runs on holds the
interpreter, so nothing inside the process could notice. So the parent does, and asks for the stack by a signal that is
handled in C.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

#: Seconds without a beat after which a worker is ended.
STANDING_SECONDS: Final = 10.0
#: Looks further apart than this mean that the parent, and so most likely the machine, stood still itself.
_AWAKE_SECONDS: Final = 2.5
#: Seconds to wait for a stack, and how many of its frames are logged.
_STACK_SECONDS: Final = 1.0
_FRAMES: Final = 8
_BYTES: Final = 8
_FRAME: Final = re.compile(r'File "([^"\n]{1,400})", line (\d{1,9}) in (\S{1,200})')


class Pulse:
    """A count of beats for each worker, in memory that parent and workers share. Created before they are forked."""

    __slots__ = ("_counts", "_memory")

    def __init__(self, slots: int) -> None:
        self._memory = mmap.mmap(-1, slots * _BYTES)
        self._counts = memoryview(self._memory).cast("Q")

    def beat(self, slot: int) -> None:
        """Record that the worker's event loop runs."""
        self._counts[slot] += 1

    def count(self, slot: int) -> int:
        """Return its beats so far."""
        return self._counts[slot]

    def begin(self, slot: int) -> None:
        """Record that another worker takes the slot. It counts as starting until its first beat."""
        self._counts[slot] = 0


class Watchdog:
    """Decides which workers stand still, from looks about a second apart."""

    __slots__ = ("_last", "_pulse", "_seen")

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._last: float | None = None  # when was looked
        self._seen: dict[int, tuple[int, float]] = {}  # by slot: its beats, the seconds without another

    def look(self, slots: Iterable[int], now: float) -> list[int]:
        """Return the workers that stand still. `now`: seconds of a clock.

        Time in which the parent did not look either, because the machine slept or both were stopped, does not count.
        """
        passed = 0.0 if self._last is None else now - self._last
        self._last = now
        if passed > _AWAKE_SECONDS:
            self._seen.clear()
            return []
        standing = []
        for slot in slots:
            count = self._pulse.count(slot)
            before, still = self._seen.get(slot, (count, 0.0))
            still = still + passed if count == before else 0.0
            self._seen[slot] = count, still
            if count and still >= STANDING_SECONDS:
                standing.append(slot)
                del self._seen[slot]
        return standing


def tell_stack(file: Path) -> None:
    """In the worker: let SIGUSR2 write the stack to this file, whatever runs."""
    if hasattr(signal, "SIGUSR2"):
        faulthandler.register(signal.SIGUSR2, file=file.open("w"), all_threads=True, chain=False)


def stack_of(process: int, file: Path) -> str:
    """In the parent: return where a worker stands, the innermost frames of ours first, without values."""
    until = time.monotonic() + _STACK_SECONDS
    try:
        os.kill(process, signal.SIGUSR2)
    except (ProcessLookupError, AttributeError):
        return "nowhere"
    text = ""
    while time.monotonic() < until and "line" not in text:
        time.sleep(0.05)
        text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    frames = [
        f"{Path(place).name}:{line} in {name}" for place, line, name in _FRAME.findall(text) if "dragoman" in place
    ]
    return ", ".join(frames[:_FRAMES]) or "outside of dragoman's code"
