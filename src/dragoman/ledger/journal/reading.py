"""Read one holder's journal, segment by segment, and remember up to where it was delivered."""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.ledger.journal.frames import HEADER, Bytes, read_frames
from dragoman.ledger.journal.merging import Merging, Place
from dragoman.ledger.journal.records import Row, decode_records
from dragoman.ledger.journal.writing import position_file, read_position, segment_path
from dragoman.ledger.locking import FileLock

#: Records of one look.
_MOST: Final = 2_048
#: Seconds between two notes of how far a journal is delivered, while more comes: one costs as much as twenty rows.
_WRITE_EVERY: Final = 1.0


@final
class Odd(msgspec.Struct, frozen=True):
    """Bytes in a journal that are not a record. `name` gives the journal, the segment and the offset."""

    name: str
    reason: str
    data: bytes


@final
class Look(msgspec.Struct):
    """The result of one look. `is_more`: another look now finds more."""

    rows: list[Row] = []
    odd: list[Odd] = []
    count: int = 0
    is_more: bool = False


@final
class JournalReader:
    """Reads one journal from the place up to which it was delivered.

    Attributes:
        merging: the open attempts.
        is_finished: the writer is dead, and everything is delivered.
    """

    __slots__ = (
        "_delivered", "_folder", "_lock", "_position_file", "_reached", "_write_at", "holder", "is_finished", "merging",
    )  # fmt: skip

    def __init__(self, folder: Path, holder: str) -> None:
        self.holder = holder
        self._folder = folder
        self._lock = FileLock(folder / f"{holder}.lock")
        self._position_file = position_file(folder, holder)
        position = read_position(folder, holder)
        place, self.is_finished = (position.segment, position.place), position.is_finished
        self._delivered = self._reached = place, self.is_finished
        self._write_at = 0.0
        self.merging = Merging(holder, place)

    def is_dead(self) -> bool:
        """Return whether the journal has no writer. Then it cannot get one any more. Ask this before reading to the
        end.

        Raises:
            OSError: the lock cannot be looked at.
        """
        if not self._lock.take():
            return False
        with contextlib.suppress(OSError):
            os.truncate(self._lock.path, 0)  # a dead process uses no lease: nobody waits for it
        return True

    def look(self, numbers: list[int], *, is_dead: bool) -> Look:
        """Read on.

        Args:
            numbers: the journal's segments, listed before this call. A segment that has a later one is not written any
                more.

        Raises:
            OSError: a segment cannot be read.
        """
        found = Look()
        number, place = self.merging.is_at
        if not is_dead and len(numbers) > 1 and number < numbers[-1] and not self._is_made(numbers[-1]):
            numbers = numbers[:-1]  # where it cannot be made, the segment before it is written on
        for segment in numbers:
            if segment < number:
                continue
            if segment > number:
                number, place = segment, len(HEADER)
            self._read(found, segment, max(place, len(HEADER)), is_closed=is_dead or segment != numbers[-1])
            if found.is_more:
                break
        return found

    def _is_made(self, segment: int) -> bool:
        """Return whether a segment's writer uses it, or will: it gets its header when it has all its bytes."""
        try:
            with open(segment_path(self._folder, self.holder, segment), "rb") as file:
                return file.read(len(HEADER)) == HEADER
        except FileNotFoundError:
            return False

    def _read(self, found: Look, segment: int, start: int, *, is_closed: bool) -> None:
        with _mapped(segment_path(self._folder, self.holder, segment)) as mapped:
            if mapped[: len(HEADER)] != HEADER:
                if is_closed and mapped[:].strip(b"\0"):
                    found.odd.append(Odd(self._name(segment, 0), "not a journal of this version", b""))
                return  # it is being made, or its maker died over it
            frames = read_frames(mapped, start, is_closed=is_closed, most=_MOST)
        records, unread = decode_records(frames.records)
        found.count += len(frames.records)
        found.rows += self.merging.take(segment, records)
        found.odd += [Odd(self._name(segment, place), "not a record of this version", data) for place, data in unread]
        if frames.damaged:
            found.odd.append(Odd(self._name(segment, start), f"damaged: {frames.damaged} bytes", b""))
        found.is_more = frames.is_more
        self.merging.is_at = segment, frames.end

    def _name(self, segment: int, place: int) -> str:
        return f"{self.holder}.{segment}.{place}"

    # ------------------------------------------------------------ how far it is delivered

    def delivered(self, *, is_finished: bool = False) -> None:
        """Record that all rows returned so far are in the store.

        The position is written every second while there are more rows, and when there are none. Losing it costs a
        second delivery, which changes nothing.
        """
        self.is_finished = is_finished
        state = (self.merging.is_at if is_finished else self.merging.oldest()), is_finished
        goes_on, self._reached = state != self._reached, state
        if state == self._delivered or (goes_on and not is_finished and time.monotonic() < self._write_at):
            return
        _write_position(self._position_file, *state)
        self._delivered, self._write_at = state, time.monotonic() + _WRITE_EVERY

    def forget(self) -> None:
        """Read everything that is kept again, because the store lost what it had."""
        with contextlib.suppress(OSError):
            self._position_file.unlink(missing_ok=True)
        self._delivered = self._reached = ((0, 0), False)
        self.is_finished = False
        self.merging = Merging(self.holder)

    def tidy(self, numbers: list[int], keep_seconds: float) -> bool:
        """Drop segments that were delivered `keep_seconds` ago. Return whether nothing is left of the journal."""
        (oldest, _), is_finished = self._delivered
        before = time.time() - keep_seconds
        left = []
        for number in numbers:
            path = segment_path(self._folder, self.holder, number)
            if (is_finished or number < oldest) and _is_older(path, before):
                path.unlink(missing_ok=True)
            else:
                left.append(number)
        if left or not is_finished:
            return False
        self._position_file.unlink(missing_ok=True)
        self._lock.path.unlink(missing_ok=True)
        self.close()
        return True

    def close(self) -> None:
        """Release the lock if this reader holds it."""
        self._lock.give_back()


@contextmanager
def _mapped(path: Path) -> Iterator[Bytes]:
    """Map a file into memory. Raises OSError."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _is_older(path: Path, before: float) -> bool:
    try:
        return path.stat().st_mtime < before
    except OSError:
        return True


def _write_position(path: Path, place: Place, is_finished: bool) -> None:
    """Write the position file atomically. Raises OSError."""
    new = path.with_suffix(".new")
    new.write_text(f"{place[0]} {place[1]} {'finished' if is_finished else 'open'}\n", encoding="ascii")
    os.replace(new, path)
