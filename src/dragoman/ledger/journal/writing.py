"""Write a worker's journal: intents and settlements, written inline before anything is sent.

A journal belongs to one holder, which is one life of one worker. The holder keeps it locked: a lock that can be taken
means that the writer is dead. The journal is a sequence of segments `HOLDER.NUMBER.journal` in one folder, beside
`HOLDER.lock`. The system has a record's bytes when it is recorded (`segment`), so they survive any end of this process,
but not a power cut.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.ledger.journal.frames import HEADER, LARGEST, OVERHEAD
from dragoman.ledger.journal.records import AttemptIds, Intent, PriceSnapshot, Settlement, encode_record
from dragoman.ledger.journal.segment import Segment
from dragoman.ledger.locking import FileLock

SEGMENT_SIZE: Final = 4 * 1024 * 1024
#: Bytes that a settlement may take, with its frame: an attempt that is open has so many set apart.
SETTLEMENT_SIZE: Final = 384
#: Seconds without another try after a segment could not be made, and between two looks whether the file is still there.
_PAUSE: Final = 1.0
_SEGMENT: Final = re.compile(r"([0-9a-f]{16})\.(\d{8})\.journal")
_HOLDER_BYTES: Final = 8
_LEASING: Final = b"has leases\n"
#: Bytes that the attempts of a request have room in, at least.
_READY: Final = 16 * (LARGEST + SETTLEMENT_SIZE)


class JournalFailed(Exception):
    """Nothing can be recorded now: the disk is full or the folder cannot be written. Nothing was written."""


class Journal:
    """Writes a journal. For one thread of one process.

    Attributes:
        holder: 16 hexadecimal digits.
        open_attempts: the number of intents without a settlement.
        problem: why the last record failed; "" if it did not.
    """

    __slots__ = (
        "_folder", "_is_synced", "_lock", "_look_at", "_most", "_next_try", "_now", "_number", "_segment",
        "_segment_size", "_snapshots", "_syncs", "holder", "ids", "open_attempts", "problem",
    )  # fmt: skip

    def __init__(
        self,
        folder: Path,
        *,
        segment_size: int = SEGMENT_SIZE,
        syncs: bool = False,
        most: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it; the first record creates the folder and the first segment.

        Args:
            syncs: senders wait until an intent is on the disk (`to_sync`).
            most: the bytes of journals that may wait for the store, over all writers.
        """
        self.holder = secrets.token_hex(_HOLDER_BYTES)
        self.ids = AttemptIds(int(self.holder, 16))
        self.open_attempts = 0
        self.problem = ""
        self._folder = folder
        self._segment_size = segment_size
        self._syncs = syncs
        self._is_synced = True
        self._most = most
        self._now = now
        self._lock = FileLock(folder / f"{self.holder}.lock")
        self._segment: Segment | None = None
        self._number = 0
        self._next_try = self._look_at = 0.0
        self._snapshots: set[int] = set()  # that stand in this segment

    def intend(self, intent: Intent) -> None:
        """Record an intent. From then on there is room for its settlement.

        Raises:
            JournalFailed: it is not recorded, so nothing may be sent.
        """
        record, opened = encode_record(intent), self.open_attempts + 1
        size = len(record)
        if size > LARGEST:  # of more quotas than anybody has
            raise JournalFailed("an attempt is charged to more accounts than its record has room for")
        needed = OVERHEAD + size + opened * SETTLEMENT_SIZE
        segment = self._segment
        if segment is None or needed > segment.left or self._now() >= self._look_at:
            segment = self._make_room(needed)
        try:
            segment.write(record)
        except OSError as problem:
            raise self._broken(problem) from None
        self._is_synced = False
        self.open_attempts = opened

    def make_ready(self) -> None:
        """Ensure that there is room for some intents. Raises `JournalFailed`: there is none."""
        segment, needed = self._segment, _READY + self.open_attempts * SETTLEMENT_SIZE
        if segment is None or needed > segment.left or self._now() >= self._look_at:
            self._make_room(needed)

    def settle(self, settlement: Settlement, snapshot: PriceSnapshot | None = None) -> None:
        """Record how an attempt ended. `snapshot` has the prices by which it was counted.

        Raises:
            JournalFailed: the disk failed; the attempt will be closed as `interrupted`.
        """
        record = encode_record(settlement)
        if snapshot is not None and snapshot.id not in self._snapshots:
            with contextlib.suppress(JournalFailed):  # then the prices are left out; the settlement has its room
                self._write_prices(snapshot)
        self.open_attempts -= 1
        segment = self._segment
        if segment is None:
            segment = self._make_room(OVERHEAD + len(record) + self.open_attempts * SETTLEMENT_SIZE)
        try:
            segment.write(record)
        except OSError as problem:
            raise self._broken(problem) from None

    def say_leasing(self) -> None:
        """Mark the journal's writer as one that may have leases, so that new counters wait for its report.

        Raises:
            JournalFailed: the journal cannot be created.
        """
        self.make_ready()
        try:
            self._lock.path.write_bytes(_LEASING)
        except OSError as problem:
            raise self._failed(problem) from None

    def close(self) -> None:
        """Stop writing and release the lock to the shipper."""
        self._end_segment()
        self._lock.give_back()

    # ------------------------------------------------------------ inside

    def _write_prices(self, snapshot: PriceSnapshot) -> None:
        prices = encode_record(snapshot)
        needed = OVERHEAD + len(prices) + self.open_attempts * SETTLEMENT_SIZE
        segment = self._segment
        if segment is None or needed > segment.left:
            segment = self._make_room(needed)
        try:
            segment.write(prices)
        except OSError as problem:
            raise self._broken(problem) from None
        self._snapshots.add(snapshot.id)

    def to_sync(self) -> Callable[[], None]:
        """Return a function that syncs everything recorded so far. It may run in any thread and raises OSError."""
        if self._is_synced or self._segment is None:
            return lambda: None
        self._is_synced = True
        return partial(_sync_and_close, self._segment.twin())

    def _broken(self, problem: OSError) -> JournalFailed:
        self._end_segment()  # what stands there now is not known: the next record begins a segment
        return self._failed(problem)

    def _failed(self, problem: OSError) -> JournalFailed:
        self._next_try = self._now() + _PAUSE
        self.problem = problem.strerror or str(problem) or type(problem).__name__
        return JournalFailed(self.problem)

    def _make_room(self, needed: int) -> Segment:
        """Ensure that `needed` bytes fit into a segment that the shipper still finds by its name. Return it."""
        now, segment = self._now(), self._segment
        if segment is not None and needed <= segment.left and segment.is_good():
            self._look_at = now + _PAUSE
            return segment
        if now < self._next_try:
            raise JournalFailed(self.problem)
        size = max(self._segment_size, 2 * (needed + len(HEADER)))
        try:
            self._sync_before_the_next()
            segment = self._made(size)
        except OSError as problem:
            raise self._failed(problem) from None
        self._end_segment()
        self._segment = segment
        self._look_at = now + _PAUSE
        self._snapshots.clear()
        self.problem = ""
        return segment

    def _sync_before_the_next(self) -> None:
        """Sync a full segment now, because a closed segment is not synced later. Raises OSError."""
        if self._syncs and not self._is_synced:
            sync = self.to_sync()
            self._is_synced = False
            sync()
            self._is_synced = True

    def _made(self, size: int) -> Segment:
        """Create the next segment with all its bytes. The lock is taken before the first segment gets its name."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._most is not None and waiting_bytes(self._folder) + size > self._most:
            raise OSError(f"{self._most >> 20} MiB of journals wait for the store, which is all that may")
        if not self._lock.path.exists():
            self._lock.give_back()
        if not self._lock.take():
            raise OSError("somebody else has the journal")
        self._number += 1
        path = segment_path(self._folder, self.holder, self._number)
        return Segment(path, size, HEADER, finish=partial(sync_folder, self._folder) if self._syncs else lambda: None)

    def _end_segment(self) -> None:
        if self._segment is not None:
            segment, self._segment = self._segment, None
            segment.close()


def _sync_and_close(descriptor: int) -> None:
    try:
        getattr(os, "fdatasync", os.fsync)(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a new file's name durable. Raises OSError."""
    if os.name == "nt":  # its folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def segments_of(names: Iterable[str]) -> dict[str, list[int]]:
    """Return the segment numbers of each holder, in order, from the names of a folder."""
    found: dict[str, list[int]] = {}
    for name in names:
        if matched := _SEGMENT.fullmatch(name):
            found.setdefault(matched[1], []).append(int(matched[2]))
    for numbers in found.values():
        numbers.sort()
    return found


def waiting_bytes(folder: Path) -> int:
    """Return the bytes of all segments that are full and not wholly in the store.

    Raises:
        OSError: the folder cannot be read.
    """
    total = 0
    for holder, numbers in segments_of(os.listdir(folder)).items():
        place = read_position(folder, holder)
        for number in numbers[:-1]:
            if not place.is_finished and number >= place.segment:
                with contextlib.suppress(FileNotFoundError):
                    total += segment_path(folder, holder, number).stat().st_size
    return total


@final
class Position(msgspec.Struct, frozen=True):
    """The place up to which a journal is delivered. `is_finished`: its writer is dead, and everything is delivered."""

    segment: int = 0
    place: int = 0
    is_finished: bool = False


def position_file(folder: Path, holder: str) -> Path:
    """Return the path of a journal's position file."""
    return folder / f"{holder}.delivered"


def read_position(folder: Path, holder: str) -> Position:
    """Return a journal's position, or its beginning if the position cannot be read."""
    try:
        words = position_file(folder, holder).read_text(encoding="ascii").split()
        return Position(int(words[0]), int(words[1]), words[2] == "finished")
    except (OSError, ValueError, IndexError):
        return Position()


def segment_path(folder: Path, holder: str, number: int) -> Path:
    """Return the path of a segment."""
    return folder / f"{holder}.{number:08d}.journal"
