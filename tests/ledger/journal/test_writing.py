"""A journal keeps what was written whole, whatever happens to its end, and says when it can keep nothing."""

from __future__ import annotations

import asyncio
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.frames import HEADER, LARGEST, OVERHEAD, frame, read_frames
from dragoman.ledger.journal.reading import JournalReader
from dragoman.ledger.journal.records import (
    AttemptIds,
    Intent,
    PriceSnapshot,
    Settlement,
    clip_id,
    clip_name,
    decode_record,
    encode_record,
    started_of,
)
from dragoman.ledger.journal.syncing import GroupSync
from dragoman.ledger.journal.writing import (
    SEGMENT_SIZE,
    SETTLEMENT_SIZE,
    Journal,
    JournalFailed,
    segment_path,
    segments_of,
    waiting_bytes,
)
from dragoman.ledger.locking import FileLock
from dragoman.ledger.reports.checking import check
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.money import bounded_usage
from dragoman.types import TOKEN_KINDS, Usage
from ledger.histories import History, histories, intent, settlement
from profiles import examples

blobs = st.lists(st.binary(max_size=40), max_size=12)


def read_all(folder: Path) -> list[object]:
    """All records of all journals of a folder, in order."""
    found: list[object] = []
    for holder, numbers in segments_of(os.listdir(folder)).items():
        for number in numbers:
            data = segment_path(folder, holder, number).read_bytes()
            assert data.startswith(HEADER)
            frames = read_frames(data, len(HEADER), is_closed=True)
            assert frames.damaged == 0
            found += [decode_record(record) for _, record in frames.records]
    return found


# ---------------------------------------------------------------- frames


@given(blobs, st.integers(0, 60), st.integers(0, 600))
def test_a_cut_leaves_the_frames_before_it(records: list[bytes], zeros: int, cut: int) -> None:
    whole = b"".join(map(frame, records))
    data = whole[:cut] + bytes(zeros)
    kept = [record for place, record in read_frames(whole).records if place + OVERHEAD + len(record) <= cut]
    for is_closed in (False, True):
        found = [record for _, record in read_frames(data, is_closed=is_closed).records]
        # Zeros may be what was cut off.
        assert found[: len(kept)] == kept
        assert found == [record for _, record in read_frames(whole).records][: len(found)]


@given(blobs, blobs, st.binary(min_size=1, max_size=30))
def test_damage_costs_what_it_hits_and_no_more(before: list[bytes], after: list[bytes], noise: bytes) -> None:
    data = b"".join(map(frame, before)) + noise + b"".join(map(frame, after))
    found = read_frames(data, is_closed=True)
    records = [record for _, record in found.records]
    assert records[: len(before)] == before
    assert all(record in [*after, *before] for record in records[len(before) :])
    if after and not noise.startswith(b"\xd7") and b"\xd7\x1a" not in noise + b"\xd7":
        assert records[-len(after) :] == after
        assert found.damaged == len(noise)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_read(data: bytes, is_closed: bool) -> None:
    found = read_frames(data, is_closed=is_closed)
    assert 0 <= found.end <= len(data)
    assert all(decode_record(record) is None or True for _, record in found.records)


@given(blobs, st.data())
def test_a_bit_that_falls_over_is_noticed(records: list[bytes], data: st.DataObject) -> None:
    whole = bytearray(b"".join(map(frame, records)))
    if not whole:
        return
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    found = [record for _, record in read_frames(bytes(whole), is_closed=True).records]
    assert len(found) < len(records) or found == []
    assert all(record in records for record in found)


@settings(max_examples=examples(30))
@given(blobs, st.binary(max_size=30), st.integers(0, 200_000))
def test_the_filling_of_a_dead_writers_segment_is_no_damage_and_not_copied(
    records: list[bytes], noise: bytes, size: int
) -> None:
    written = b"".join(map(frame, records)) + noise
    segment = written + bytes(size)
    found = read_frames(segment, is_closed=True)
    bare = read_frames(written.rstrip(b"\0"), is_closed=True)
    if written[-1:] != b"\0":  # else a frame may end with zeros
        assert (found.records, found.damaged) == (bare.records, bare.damaged)
    assert found.end == len(segment)
    large = segment + bytes(SEGMENT_SIZE)
    tracemalloc.start()
    try:
        again = read_frames(large, is_closed=True)
        assert tracemalloc.get_traced_memory()[1] < SEGMENT_SIZE // 4
    finally:
        tracemalloc.stop()
    assert (again.records, again.damaged) == (found.records, found.damaged)


def test_a_record_has_a_largest_size() -> None:
    assert read_frames(frame(bytes(LARGEST))).records == [(0, bytes(LARGEST))]
    with pytest.raises(ValueError, match="at most 4096 bytes"):
        frame(bytes(LARGEST + 1))


# ---------------------------------------------------------------- records


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**48), min_size=2, max_size=50))
def test_ids_grow_and_say_their_time(holder: int, times: list[int]) -> None:
    ids = AttemptIds(holder)
    made = [ids.next(at) for at in times]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(id[6] >> 4 == 7 and id[8] >> 6 == 2 and len(id) == 16 for id in made)
    assert [started_of(id) for id in made] == [max(times[: number + 1]) // 1_000 * 1_000 for number in range(len(made))]


def test_two_holders_share_no_id() -> None:
    one, other = AttemptIds(1), AttemptIds(2)
    assert {one.next(5) for _ in range(100)}.isdisjoint(other.next(5) for _ in range(100))


@given(st.text(max_size=300))
def test_any_name_and_id_fits(text: str) -> None:
    name = clip_name(text)
    assert len(name) <= 200 and (name.isprintable() or not name)
    assert len(encode_record(intent(AttemptIds(1), target=name, client_request=clip_id(text)))) < LARGEST


@given(st.builds(Usage, *[st.none() | st.integers()] * 5))
def test_a_settlement_fits_what_was_set_apart_for_it(usage: Usage) -> None:
    bounded = bounded_usage(usage)
    record = Settlement(
        bytes(16), 2**62, "interrupted", 2**62, 2**62, *[getattr(bounded, name) for name in TOKEN_KINDS],
        True, "process_died", 599, "x" * 128,
    )  # fmt: skip
    assert len(frame(encode_record(record))) <= SETTLEMENT_SIZE
    assert decode_record(encode_record(record)) == record


@given(st.binary(max_size=60))
def test_no_record_is_read_of_other_bytes(data: bytes) -> None:
    record = decode_record(data)
    assert record is None or decode_record(encode_record(record)) == record


# ---------------------------------------------------------------- the journal


@given(histories(), st.integers(600, 4_000))
def test_what_is_written_is_read_over_any_number_of_segments(history: History, size: int) -> None:
    with TemporaryDirectory() as name:
        journal = Journal(Path(name), segment_size=size)
        for record in history.records:
            if type(record) is Intent:
                journal.intend(record)
            else:
                assert type(record) is Settlement
                journal.settle(record)
        assert journal.open_attempts == len(history.open)
        journal.close()
        assert read_all(Path(name)) == history.records


def test_an_intent_is_on_the_disk_when_it_is_recorded_where_power_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("write", "fdatasync", "fsync"):
        function = getattr(os, name)

        def call(*arguments: object, name: str = name, function: Callable[..., object] = function) -> object:
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(f"dragoman.ledger.journal.writing.os.{name}", call)
    for maps in (True, False):
        monkeypatch.setattr("dragoman.ledger.journal.segment._KEEPS_ROOM", (ANY,) if maps else ())
        record = [] if maps else ["write"]  # a mapped record is no call
        for syncs in (True, False):
            expected = ["fsync", "write", *record, "fdatasync", *record] if syncs else ["write", *record, *record]
            calls.clear()
            journal = Journal(tmp_path / f"{maps} {syncs}", syncs=syncs)
            opened = intent(journal.ids)
            journal.intend(opened)
            if syncs:
                journal.to_sync()()
                journal.to_sync()()  # nothing came meanwhile
            journal.settle(settlement(opened))
            assert calls == expected  # a segment's name and its head, the intent, its end
            journal.close()


def test_nothing_happens_before_the_first_record(tmp_path: Path) -> None:
    Journal(tmp_path / "journals").close()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_there_before_the_segment_and_goes_with_the_writer(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.intend(intent(journal.ids))
    other = FileLock(tmp_path / f"{journal.holder}.lock")
    assert not other.take()
    journal.close()
    assert other.take()
    other.give_back()
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {0o600}


def test_a_segment_has_its_size_from_the_beginning(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.intend(intent(journal.ids))
    [segment] = tmp_path.glob("*.journal")
    assert segment.stat().st_blocks * 512 >= 4 * 1024 * 1024
    journal.close()


def test_a_folder_that_cannot_be_made_is_told_and_tried_again(tmp_path: Path) -> None:
    now = 0.0
    (tmp_path / "in the way").write_text("a file")
    journal = Journal(tmp_path / "in the way", now=lambda: now)
    for _ in range(3):
        with pytest.raises(JournalFailed):
            journal.intend(intent(journal.ids))
    assert journal.problem
    (tmp_path / "in the way").unlink()
    with pytest.raises(JournalFailed):  # not at every request
        journal.intend(intent(journal.ids))
    now = 1.0
    journal.intend(intent(journal.ids))
    assert journal.problem == ""
    assert journal.open_attempts == 1
    journal.close()
    assert len(read_all(tmp_path / "in the way")) == 1


def test_an_attempt_that_is_open_can_be_settled_when_no_further_segment_can_be_made(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_size=2_048)
    going = []
    tmp_path.chmod(0o700)
    while True:
        if len(list(tmp_path.glob("*.journal"))) == 1 and len(going) == 1:
            # From here on nothing can be made: the name of the next segment is taken.
            segment_path(tmp_path, journal.holder, 2).mkdir()
        opened = intent(journal.ids, len(going))
        try:
            journal.intend(opened)
        except JournalFailed:
            break
        going.append(opened)
    assert len(going) > 2
    for opened in going:
        journal.settle(settlement(opened))
    journal.close()
    segment_path(tmp_path, journal.holder, 2).rmdir()
    assert len(read_all(tmp_path)) == 2 * len(going)


def test_a_folder_that_was_removed_is_noticed(tmp_path: Path) -> None:
    now = 0.0
    journal = Journal(tmp_path / "journals", now=lambda: now)
    journal.intend(intent(journal.ids))
    for path in (tmp_path / "journals").iterdir():
        path.unlink()
    (tmp_path / "journals").rmdir()
    now = 1.0
    journal.intend(intent(journal.ids, 1))
    assert [record.request for record in read_all(tmp_path / "journals")] == ["request-1"]  # type: ignore[attr-defined]
    assert not FileLock(tmp_path / "journals" / f"{journal.holder}.lock").take()
    journal.close()


def test_prices_stand_before_the_first_settlement_that_needs_them_in_each_segment(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_size=1_500)
    prices = PriceSnapshot(9, "lab/model", "user", "{}")
    for number in range(20):
        opened = intent(journal.ids, number)
        journal.intend(opened)
        journal.settle(settlement(opened, price=9), prices)
    journal.close()
    known = 0
    for number in segments_of(os.listdir(tmp_path))[journal.holder]:
        data = segment_path(tmp_path, journal.holder, number).read_bytes()
        kinds = [type(decode_record(record)) for _, record in read_frames(data, len(HEADER)).records]
        if Settlement in kinds:
            known += 1
            assert kinds.count(PriceSnapshot) == 1
            assert kinds.index(PriceSnapshot) < kinds.index(Settlement)
    assert known > 2


def test_while_the_store_is_away_so_many_journals_wait_and_no_more(tmp_path: Path) -> None:
    """Then nothing is recorded, and it is said why; what is delivered makes room."""
    folder = LedgerFolder(tmp_path)
    most = 40 * 1024
    clock = [1.0]
    journals = [Journal(folder.journals, segment_size=8 * 1024, most=most, now=lambda: clock[0]) for _ in range(2)]
    count = 0
    problem = ""
    for number in range(5_000):
        journal = journals[number % 2]
        opened = intent(journal.ids, number)
        try:
            journal.intend(opened)
        except JournalFailed as failed:
            problem = str(failed)
            break
        journal.settle(settlement(opened))
        count += 1
    assert "wait for the store" in problem
    assert most // 2 < waiting_bytes(folder.journals) <= most
    assert sum(path.stat().st_size for path in folder.journals.glob("*.journal")) <= most + 2 * 8 * 1024
    shipper = Shipper(folder, SqliteStore(folder.root), batch=64)
    shipper.round()
    assert waiting_bytes(folder.journals) == 0
    clock[0] += 2.0
    for journal in journals:
        opened = intent(journal.ids)
        journal.intend(opened)
        journal.settle(settlement(opened))
        journal.close()
    shipper.round()
    assert check(folder).attempts == count + 2


def test_one_sync_is_for_all_who_wait_and_the_loop_goes_on() -> None:
    """The next sync begins when the one before ends, for all who came meanwhile; a failure is told to its own."""
    release = threading.Event()
    begun: list[int] = []

    def sync() -> None:
        begun.append(len(begun))
        if not release.wait(20):
            raise AssertionError("the loop stood still")
        if len(begun) == 2:
            raise OSError(5, "the disk is broken")

    async def all_of_it() -> list[object]:
        group = GroupSync(lambda: sync)
        first = asyncio.create_task(group.wait())
        while not begun:
            await asyncio.sleep(0)
        later = [asyncio.create_task(group.wait()) for _ in range(50)]
        gone = asyncio.create_task(group.wait())
        await asyncio.sleep(0)
        gone.cancel()
        release.set()
        found = await asyncio.gather(first, *later, return_exceptions=True)
        await group.wait()
        return found

    first, *later = asyncio.run(all_of_it())
    assert first is None and all(isinstance(each, OSError) for each in later)
    assert len(begun) == 3


@pytest.mark.parametrize("problem", [RuntimeError("can't start new thread"), OSError(24, "too many open files")])
def test_a_sync_that_cannot_begin_is_told_and_the_next_one_goes_on(problem: Exception) -> None:
    """Whoever waited for it, and all after, waited for ever."""
    problems = [problem]

    def to_sync() -> Callable[[], None]:
        if problems:
            raise problems.pop()
        return lambda: None

    async def both() -> list[object]:
        group = GroupSync(to_sync)
        async with asyncio.timeout(20):
            return [(await asyncio.gather(group.wait(), return_exceptions=True))[0] for _ in range(2)]

    first, second = asyncio.run(both())
    assert isinstance(first, OSError)
    assert second is None


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="nothing is set apart there")
def test_an_end_is_read_though_a_further_segment_was_seen_that_could_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, segment_size=3_000)
    reader = JournalReader(tmp_path, journal.holder)
    attempt = intent(journal.ids, 0)
    journal.intend(attempt)

    def full(*_: object) -> None:
        reader.look(segments_of(os.listdir(tmp_path))[journal.holder], is_dead=False)
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(JournalFailed):
            journal.make_ready()
    journal.settle(settlement(attempt))
    look = reader.look(segments_of(os.listdir(tmp_path))[journal.holder], is_dead=False)
    assert [row.settlement.id for row in look.rows if row.settlement] == [attempt.id]
    journal.close()
    reader.close()
