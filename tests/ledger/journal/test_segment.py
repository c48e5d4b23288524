"""A segment holds what was written, mapped or not, and a process that is killed takes nothing of it."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest

from dragoman.ledger.journal.frames import HEADER, LARGEST, OVERHEAD, read_frames
from dragoman.ledger.journal.records import AttemptIds, decode_record, encode_record
from dragoman.ledger.journal.segment import Segment
from dragoman.ledger.journal.writing import Journal, JournalFailed, segment_path, segments_of
from ledger.histories import intent

_SEGMENT = "dragoman.ledger.journal.segment"
#: Bytes of a part, and parts of a segment.
_WINDOW = 3 * mmap.ALLOCATIONGRANULARITY
_PARTS = 4
#: A worker that tells of each record once it is recorded.
_WRITER = """
import sys
from pathlib import Path
from dragoman.ledger.journal import segment
from dragoman.ledger.journal.writing import Journal
from ledger.histories import intent
segment._WINDOW = int(sys.argv[2])
journal = Journal(Path(sys.argv[1]), segment_size=100_000)
for number in range(10**9):
    journal.intend(intent(journal.ids, number))
    journal.open_attempts = 0  # which need no room here
    print(number, flush=True)
"""


#: The list of mounts with a file system of this kind for a device.
_MOUNT = "51 27 {device} / / rw,relatime shared:1 - {kind} /dev/vda rw,errors=remount-ro\n"


def requests_in(folder: Path) -> list[str]:
    """The requests of all whole records of a folder's journals, in order."""
    found = []
    for holder, numbers in segments_of(os.listdir(folder)).items():
        for number in numbers:
            frames = read_frames(segment_path(folder, holder, number).read_bytes(), len(HEADER))
            found += [decode_record(record) for _, record in frames.records]
    return [record.request for record in found]  # type: ignore[union-attr]


@pytest.fixture(params=[True, False], ids=["mapped", "written"])
def is_mapped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Segments are mapped, in the smallest parts, or written."""
    monkeypatch.setattr(f"{_SEGMENT}._KEEPS_ROOM", (ANY,) if request.param else ())
    monkeypatch.setattr(f"{_SEGMENT}._WINDOW", _WINDOW)
    return bool(request.param)


def test_others_read_at_once_what_is_written_and_no_more(tmp_path: Path, is_mapped: bool) -> None:
    dice, size = random.Random(7), _PARTS * _WINDOW + 777
    segment = Segment(tmp_path / "segment", size, HEADER)
    assert segment.is_mapped is is_mapped
    written: list[bytes] = []
    while True:
        # Small ones stand over the ends of parts; a part has room for the largest.
        record = dice.randbytes(dice.choice((0, 30, 300, LARGEST)))
        if OVERHEAD + len(record) > segment.left:
            break
        segment.write(record)
        written.append(record)
        if len(written) % 20 == 0:
            found = read_frames((tmp_path / "segment").read_bytes(), len(HEADER), is_closed=True)
            assert [each for _, each in found.records] == written and found.damaged == 0
    segment.close()
    found = read_frames((tmp_path / "segment").read_bytes(), len(HEADER), is_closed=True)
    assert [each for _, each in found.records] == written and found.damaged == 0
    assert (tmp_path / "segment").stat().st_size == size


def test_a_segment_that_cannot_be_finished_never_looks_as_if_it_were_used(tmp_path: Path, is_mapped: bool) -> None:
    """A reader that saw its header took the one before for closed, and read nothing further in it."""
    seen = []

    def finish() -> None:
        seen.append((tmp_path / "segment").read_bytes()[: len(HEADER)].strip(b"\0"))
        raise OSError("the folder cannot be synced")

    with pytest.raises(OSError, match="cannot be synced"):
        Segment(tmp_path / "segment", 9_999, HEADER, finish=finish)
    assert seen == [b""] and not (tmp_path / "segment").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is mapped")
def test_a_worker_that_is_killed_takes_nothing_that_it_had_recorded(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _WRITER, str(tmp_path), str(_WINDOW)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as worker:
        assert worker.stdout is not None
        last = [worker.stdout.readline() for _ in range(2_000)][-1]  # over the ends of parts and of a segment
        worker.send_signal(signal.SIGKILL)
        told = [last, *worker.stdout.read().splitlines(keepends=True)]
    last = [line for line in told if line.endswith("\n")][-1]  # the last one may be cut
    requests = requests_in(tmp_path)
    assert len(list(tmp_path.glob("*.journal"))) > 1
    assert requests == [f"request-{number}" for number in range(len(requests))]
    assert len(requests) > int(last)


class _Cut(Exception):
    """The writer was killed."""


class _Window:
    """A mapped part, which a copy reaches byte by byte: `most` of them, then the writer is killed."""

    def __init__(self, most: int) -> None:
        self.data, self.most = bytearray(_WINDOW), most

    def __setitem__(self, place: slice, data: bytes) -> None:
        size = min(len(data), self.most)
        self.data[place.start : place.start + size] = data[:size]
        self.most -= size
        if size < len(data):
            raise _Cut

    def close(self) -> None:
        """As of a mapped part."""


def test_a_record_that_a_kill_cut_is_none_and_no_damage(tmp_path: Path) -> None:
    """A page that the system had just written may hold a copy up for milliseconds."""
    told = [intent(AttemptIds(7), number) for number in range(2)]
    records = [encode_record(each) for each in told]
    head = len(records[1])  # all but the head, which the copy of 8 bytes writes at once
    for most in range(OVERHEAD + len(records[0]), OVERHEAD + len(records[0]) + head + 1):
        segment = Segment(tmp_path / str(most), _WINDOW, HEADER)
        segment._unmap()
        segment._behind = segment._mapped = _WINDOW
        segment._window = window = _Window(most)  # type: ignore[assignment]
        window.data[: len(HEADER)] = HEADER
        segment.write(records[0])
        with pytest.raises(_Cut):
            segment.write(records[1])
        found = read_frames(bytes(window.data), len(HEADER), is_closed=True)
        assert [decode_record(record) for _, record in found.records] == told[:1]
        assert found.damaged == 0 and found.end == _WINDOW
        segment.close()


def test_a_write_that_a_kill_cut_between_two_pages_is_no_record_and_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{_SEGMENT}._KEEPS_ROOM", ())
    monkeypatch.setattr("mmap.PAGESIZE", 4_096)
    write = os.write
    most = 0  # bytes until the kill

    def cut(descriptor: int, data: bytes) -> int:
        nonlocal most
        most -= len(data)
        if most >= 0:
            return write(descriptor, data)
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        write(descriptor, data[: max(0, (place + len(data) + most) // mmap.PAGESIZE * mmap.PAGESIZE - place)])
        raise _Cut

    last = b"\xff" * (mmap.PAGESIZE // 3)
    for before in (*range(1, OVERHEAD + 2), 99, len(last) + OVERHEAD - 1):  # bytes of it on the first page
        path = tmp_path / str(before)
        record = bytes(mmap.PAGESIZE - len(HEADER) - OVERHEAD - before)
        for until_cut in (0, before - 1, before, len(last) - 9, len(last) + OVERHEAD):
            segment = Segment(path, 2 * mmap.PAGESIZE, HEADER)
            segment.write(record)
            most = until_cut
            with monkeypatch.context() as patch, contextlib.suppress(_Cut):
                patch.setattr("os.write", cut)
                segment.write(last)
            segment.close()
            found = read_frames(path.read_bytes(), len(HEADER), is_closed=True)
            whole = [record, last] if until_cut == len(last) + OVERHEAD else [record]
            assert ([each for _, each in found.records], found.damaged) == (whole, 0), (before, until_cut)
            path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is mapped")
def test_only_file_systems_that_keep_what_was_set_apart_are_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of btrfs that was written before needs further room to be written again: SIGBUS on a full disk."""
    own, mounts = tmp_path.stat().st_dev, tmp_path / "mounts"
    monkeypatch.setattr(f"{_SEGMENT}._MOUNTS", mounts)
    for kind in ("ext4", "tmpfs", "btrfs", "xfs", "overlay", "nfs4"):
        rows = [(os.minor(own) + 1, "tmpfs"), (os.minor(own), kind), (os.minor(own) + 2, "ext4")]
        mounts.write_text(
            "".join([_MOUNT.format(device=f"{os.major(own)}:{minor}", kind=kind) for minor, kind in rows])
        )
        segment = Segment(tmp_path / kind, 9_999, HEADER)
        assert segment.is_mapped is (kind in ("ext4", "tmpfs")), kind
        segment.close()
    mounts.unlink()
    segment = Segment(tmp_path / "segment", 9_999, HEADER)
    assert not segment.is_mapped
    segment.close()


def test_a_file_system_that_sets_no_room_apart_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, refuses in ((errno.EOPNOTSUPP, False), (errno.EINVAL, False), (errno.ENOSPC, True)):

        def set_apart(*_: object, number: int = number) -> None:
            raise OSError(number, "")

        monkeypatch.setattr("os.posix_fallocate", set_apart, raising=False)
        journal = Journal(tmp_path / str(number))
        with pytest.raises(JournalFailed) if refuses else contextlib.nullcontext():
            journal.intend(intent(journal.ids, 0))
        journal.close()
        assert requests_in(tmp_path / str(number)) == ([] if refuses else ["request-0"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is mapped")
def test_a_file_that_was_cut_meanwhile_is_left_before_a_page_of_it_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(f"{_SEGMENT}._KEEPS_ROOM", (ANY,))
    journal = Journal(tmp_path, now=lambda: now)
    journal.intend(intent(journal.ids, 0))
    os.truncate(segment_path(tmp_path, journal.holder, 1), 0)  # as by copying another file over it
    now = 1.0
    journal.intend(intent(journal.ids, 1))
    journal.close()
    assert requests_in(tmp_path) == ["request-1"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is mapped")
def test_where_files_cannot_be_mapped_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_SEGMENT}._KEEPS_ROOM", (ANY,))
    monkeypatch.setattr(f"{_SEGMENT}._WINDOW", _WINDOW)

    def refused(*_: object, **__: object) -> None:
        raise OSError("no such device")

    for is_first in (True, False):  # from the beginning, or when the second part is to be mapped
        folder = tmp_path / str(is_first)
        journal = Journal(folder)
        with monkeypatch.context() as patched:
            if not is_first:
                journal.intend(intent(journal.ids, 0))
            patched.setattr(f"{_SEGMENT}.mmap.mmap", refused)
            for number in range(int(not is_first), 200):
                journal.intend(intent(journal.ids, number))
            journal.close()
        assert requests_in(folder) == [f"request-{number}" for number in range(200)]
