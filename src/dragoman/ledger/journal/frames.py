"""The frames of a journal's segment. Each carries its size and checksum, so that half a record never passes for a whole
one.

A segment begins with `HEADER`; frames follow; zeros fill the rest. It has its full size from the beginning, so a full
disk is noticed then. A frame is two marker bytes, the size of its record (2 bytes), the CRC-32 of size and record (4
bytes), all little-endian, then the record. A writer writes a frame's first bytes last: who is killed meanwhile leaves
none.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import Final, TypeAlias, final

import msgspec

#: A segment's bytes, in memory or mapped.
Bytes: TypeAlias = bytes | mmap.mmap

HEADER: Final = b"dragoman ledger journal, form 1\n"
#: Without it the checksum of nothing would be 0, and a mark before filling an empty record.
_SEED: Final = 0x5A17_0000
#: Bytes of the largest record.
LARGEST: Final = 4_096
_MARK: Final = b"\xd7\x1a"
_HEAD: Final = struct.Struct("<2sHI")
OVERHEAD: Final = _HEAD.size
_ZEROS: Final = bytes(65_536)


def head_of(record: bytes) -> bytes:
    """Return what a record's frame begins with. Raises `ValueError`: the record is larger than `LARGEST`."""
    size = len(record)
    if size > LARGEST:
        raise ValueError(f"expected a record of at most {LARGEST} bytes, got {size}")
    return _HEAD.pack(_MARK, size, zlib.crc32(record, _SEED ^ size))


def frame(record: bytes) -> bytes:
    """Return a record as a frame. Raises `ValueError`: the record is larger than `LARGEST`."""
    return head_of(record) + record


@final
class Found(msgspec.Struct, frozen=True):
    """The result of reading a segment.

    Attributes:
        records: each record with the offset of its frame.
        end: the offset up to which everything was read.
        damaged: the number of bytes before `end` that are neither frame nor filling.
        is_more: there are more records than were asked for.
    """

    records: list[tuple[int, bytes]]
    end: int
    damaged: int = 0
    is_more: bool = False


def read_frames(data: Bytes, start: int = 0, *, is_closed: bool = False, most: int = 1 << 30) -> Found:
    """Return the whole frames of a segment from `start` on.

    Args:
        is_closed: the segment has no writer any more, so bytes that are no frame are damage, and reading continues at
            the next frame.
        most: the number of records to read at most.
    """
    records: list[tuple[int, bytes]] = []
    place, damaged, filling = start, 0, -1
    while True:
        place = _read_on(data, place, records, most)
        if len(records) >= most:
            return Found(records, place, damaged, True)
        if not is_closed:
            return Found(records, place, damaged)
        if filling < 0:
            filling = _filling_of(data, place)
        following = _next_frame(data, place + 1, filling)
        if following is None:
            # A frame is there once its first byte is: of one that was cut before, nobody was told that it is recorded.
            is_cut = data[place : place + 1] == b"\0" and filling - place <= OVERHEAD + LARGEST
            return Found(records, len(data), damaged + (0 if is_cut else max(filling - place, 0)))
        damaged, place = damaged + following - place, following


def _read_on(data: Bytes, place: int, records: list[tuple[int, bytes]], most: int) -> int:
    """Read consecutive frames from `place` on. Return the offset behind them. Equal to repeated `_frame_at`, but
    faster.
    """
    unpack, checksum_of, total = _HEAD.unpack_from, zlib.crc32, len(data)
    for _ in range(most - len(records)):
        first = place + OVERHEAD
        if first > total:
            break
        mark, size, checksum = unpack(data, place)
        end = first + size
        record = data[first:end]
        if checksum_of(record, _SEED ^ size) != checksum or mark != _MARK or size > LARGEST or end > total:
            break
        records.append((place, record))
        place = end
    return place


def _frame_at(data: Bytes, place: int) -> bytes | None:
    if len(data) - place < OVERHEAD:
        return None
    mark, size, checksum = _HEAD.unpack_from(data, place)
    if mark != _MARK or size > LARGEST:
        return None
    record = data[place + OVERHEAD : place + OVERHEAD + size]
    return record if len(record) == size and _checksum(size, record) == checksum else None


def _filling_of(data: Bytes, place: int) -> int:
    """Return the offset from which on there are only zeros, `place` at least. Nearly all of a dead writer's last
    segment is filling, so it is compared in large parts.
    """
    end = len(data)
    while end > place:
        first = max(place, end - len(_ZEROS))
        part = data[first:end]
        if part != _ZEROS[: end - first]:
            return first + len(part.rstrip(b"\0"))
        end = first
    return place


def _next_frame(data: Bytes, place: int, end: int) -> int | None:
    """Return the offset of the next whole frame that begins before `end`."""
    while (place := data.find(_MARK, place, end)) >= 0:
        if _frame_at(data, place) is not None:
            return place
        place += 1
    return None


def _checksum(size: int, record: bytes) -> int:
    return zlib.crc32(record, _SEED ^ size)
