"""The shipper delivers all that was written, once, whoever dies, and sets aside what can never be a row."""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ledger import waking
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway, StoreAway
from dragoman.ledger.journal.frames import HEADER, frame
from dragoman.ledger.journal.records import AttemptIds, Intent, PriceSnapshot, Row, Settlement, encode_record
from dragoman.ledger.journal.writing import Journal, segment_path
from dragoman.ledger.locking import FileLock
from dragoman.ledger.reports.checking import check, list_journals
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.ledger.waking import Ringer, Sleeper
from dragoman.secret import Secret
from ledger.conformance import dump
from ledger.histories import HOLDER, START, History, histories, intent, settlement
from profiles import examples


@pytest.fixture
def folder(tmp_path: Path) -> LedgerFolder:
    return LedgerFolder(tmp_path / "ledger")


def shipper(folder: LedgerFolder, store: object = None, batch: int = 64) -> Shipper:
    return Shipper(folder, store or SqliteStore(folder.root), batch=batch)  # type: ignore[arg-type]


def closed(one: Shipper) -> None:
    """Let another one go on, as after its death."""
    for reader in one._readers.values():
        reader.close()
    one._store.close()


def write(journal: Journal, record: Intent | Settlement) -> None:
    if type(record) is Intent:
        journal.intend(record)
    else:
        assert type(record) is Settlement
        journal.settle(record)


@settings(max_examples=examples(30))
@given(histories(most=15), st.integers(700, 3_000), st.integers(1, 5), st.randoms(use_true_random=False))
def test_rounds_at_any_time_by_any_shipper_make_one_dump(
    tmp_path_factory: pytest.TempPathFactory, history: History, size: int, batch: int, chance: object
) -> None:
    folder = LedgerFolder(tmp_path_factory.mktemp("ledger"))
    journal = Journal(folder.journals, segment_size=size)
    one = shipper(folder, batch=batch)
    for record in history.records:
        write(journal, record)
        if chance.random() < 0.3:  # type: ignore[attr-defined]
            one.round()
        if chance.random() < 0.1:  # type: ignore[attr-defined]
            closed(one)
            one = shipper(folder, batch=batch)
    journal.close()
    while one.round():
        pass
    closed(one)
    found = check(folder)
    intents = sum(type(record) is Intent for record in history.records)
    assert (found.attempts, found.going_on, found.set_aside, found.differences) == (intents, 0, [], [])
    # Had nobody looked before the end, the same would stand there.
    before = dump(folder.root)
    for position in folder.journals.glob("*.delivered"):
        position.unlink()
    again = shipper(folder)
    again.round()
    closed(again)
    assert dump(folder.root) == before


def test_what_a_dead_writer_left_open_is_interrupted(folder: LedgerFolder) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from pathlib import Path
from dragoman.ledger.journal.writing import Journal, segment_path
from ledger.histories import intent, settlement
journal = Journal(Path({str(folder.journals)!r}))
first, second = intent(journal.ids), intent(journal.ids, 1)
journal.intend(first)
journal.intend(second)
journal.settle(settlement(first))
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    [journal] = list_journals(folder)
    assert (journal.is_live, journal.waiting, journal.going_on) == (False, 2, 1)
    one = shipper(folder)
    assert one.round() == 3
    assert one.round() == 0
    closed(one)
    states = sorted(row[18] for row in dump(folder.root) if row[1] == "attempt")
    assert states == ["interrupted", "settled"]
    assert check(folder).waiting == 0


def test_what_goes_on_is_left_alone_while_its_writer_lives(folder: LedgerFolder) -> None:
    journal = Journal(folder.journals)
    now = START / 1_000_000
    one = Shipper(folder, SqliteStore(folder.root), batch=64, now=lambda: now)
    opened = intent(journal.ids, started=START)
    journal.intend(opened)
    one.round()
    assert dump(folder.root) == []
    now += 61
    one.round()
    found = check(folder)
    assert (found.attempts, found.going_on) == (0, 1)
    journal.settle(settlement(opened))
    one.round()
    found = check(folder)
    assert (found.attempts, found.going_on, found.nano) == (1, 0, 7)
    journal.close()
    closed(one)


def test_a_record_that_is_refused_is_set_aside_and_the_rest_goes_on(folder: LedgerFolder) -> None:
    journal = Journal(folder.journals)
    for number in range(50):
        opened = intent(journal.ids, number)
        journal.intend(opened)
        journal.settle(settlement(opened, reason="in the provider's words" if number in (7, 8, 31) else ""))
    journal.close()
    with segment_path(folder.journals, journal.holder, 1).open("r+b") as file:
        data = file.read()
        end = len(data.rstrip(b"\0"))
        file.seek(end)
        file.write(frame(b"\xc3") + b"noise" + frame(encode_record(settlement(intent(AttemptIds(5))))))
    one = shipper(folder, batch=16)
    one.round()
    closed(one)
    found = check(folder)
    assert found.attempts == 47
    assert len(found.set_aside) == 3 + 1 + 1 + 1  # refused, not a record, noise, without an intent
    assert not any("words" in line for line in found.set_aside)
    assert one.shipped.rows == 47 and one.shipped.set_aside == 6


class Moody:
    """A store that is away as often as it is told to."""

    def __init__(self, folder: Path, away: int, *, after: bool = False) -> None:
        self.store = SqliteStore(folder)
        self.away = away
        self.after = after

    def deliver(self, rows: list[Row], snapshots: list[PriceSnapshot] = ()) -> None:  # type: ignore[assignment]
        if self.after and self.away:
            self.store.deliver(rows, snapshots)
        if self.away:
            self.away -= 1
            raise StoreAway("the disk is full")
        self.store.deliver(rows, snapshots)

    def settle(self, given: Settlement) -> bool:
        return self.store.settle(given)

    def set_aside(self, name: str, reason: str, data: bytes) -> None:
        self.store.set_aside(name, reason, data)

    def drop_before(self, day: str) -> list[str]:
        return self.store.drop_before(day)

    def look_back(self) -> None: ...

    def end_look_back(self) -> tuple[int, list[str]]:
        return 0, []

    def close(self) -> None:
        self.store.close()


@pytest.mark.parametrize("after", [False, True])
def test_while_the_store_is_away_the_journals_wait(folder: LedgerFolder, after: bool) -> None:
    journal = Journal(folder.journals)
    for number in range(10):
        opened = intent(journal.ids, number)
        journal.intend(opened)
        journal.settle(settlement(opened))
    one = shipper(folder, Moody(folder.root, 3, after=after), batch=4)
    for _ in range(3):
        with pytest.raises(StoreAway):
            one.round()
    one.round()
    journal.close()
    closed(one)
    found = check(folder)
    assert (found.attempts, found.is_sound, found.nano) == (10, True, 70)


def test_a_damaged_store_is_filled_again_from_what_journals_keep(folder: LedgerFolder) -> None:
    journal = Journal(folder.journals)
    for number in range(10):
        opened = intent(journal.ids, number)
        journal.intend(opened)
        journal.settle(settlement(opened))
    one = shipper(folder)
    one.round()
    closed(one)
    for file in folder.root.glob("attempts-*.sqlite"):
        file.write_bytes(b"no database" * 1_000)
    for path in folder.root.glob("attempts-*.sqlite-*"):
        path.unlink()
    journal.intend(opened := intent(journal.ids, 11))
    journal.settle(settlement(opened))
    with pytest.raises(StoreAway):
        one.round()
    one.round()
    journal.close()
    closed(one)
    assert check(folder).attempts == 11


# ---------------------------------------------------------------- its life


def running(folder: LedgerFolder) -> tuple[Shipper, threading.Thread]:
    one = shipper(folder)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    return one, thread


def wait_for(condition: object, seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)


def test_it_sleeps_until_somebody_rings(folder: LedgerFolder) -> None:
    one, thread = running(folder)
    journal, ringer = Journal(folder.journals), Ringer(folder)
    wait_for(lambda: folder.asleep.exists() and folder.asleep.read_bytes() == b"\x01")
    for number in range(3):
        opened = intent(journal.ids, number)
        journal.intend(opened)
        journal.settle(settlement(opened))
        ringer.ring()
        wait_for(lambda: check(folder).attempts == number + 1)  # noqa: B023
        wait_for(lambda: folder.asleep.read_bytes() == b"\x01")
    ringer.close()
    journal.close()
    one.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_who_gathers_is_woken_by_a_worker_that_begins_alone(folder: LedgerFolder) -> None:
    sleeper, ringer = Sleeper(folder), Ringer(folder)
    sleeper.wakes()
    ringer.ring()
    sleeper.sleep(0.0)
    ringer.ring(at_once=True)
    thread = threading.Thread(target=sleeper.sleep, args=(None,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    ringer.close()
    sleeper.close()


def test_what_many_writers_left_is_one_batch(folder: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch waits for the disk: ten workers that were killed, and their successors, are no twenty waits."""
    journals = [Journal(folder.journals) for _ in range(20)]
    for journal in journals:
        for number in range(3):
            opened = intent(journal.ids, number)
            journal.intend(opened)
            if number:
                journal.settle(settlement(opened))
    for journal in journals[:10]:
        journal.close()
    given: list[int] = []
    deliver = SqliteStore.deliver

    def counted(store: SqliteStore, rows: Sequence[Row], snapshots: Iterable[PriceSnapshot] = ()) -> None:
        given.append(len(rows))
        deliver(store, rows, snapshots)

    listed: list[object] = []

    def listdir(path: Path) -> list[str]:
        listed.append(path)
        return [entry.name for entry in os.scandir(path)]

    monkeypatch.setattr(SqliteStore, "deliver", counted)
    monkeypatch.setattr(os, "listdir", listdir)
    one = shipper(folder, batch=512)
    one.round()
    assert len(given) == 1
    assert listed.count(folder.journals) == 2, "the folder is listed once more for all dead writers together"
    for journal in journals[10:]:
        journal.close()
    one.round()
    assert len(given) == 2
    found = check(folder)
    assert (found.attempts, found.waiting, found.going_on) == (60, 0, 0)
    closed(one)


def test_a_ring_that_nobody_hears_costs_little(folder: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request rings: where a shipper was killed, its worker does not open the byte of all anew each time."""
    Sleeper(folder).close()
    mapped: list[LedgerFolder] = []
    first = waking._mapped

    def counted(of: LedgerFolder) -> mmap.mmap:
        mapped.append(of)
        return first(of)

    monkeypatch.setattr(waking, "_mapped", counted)
    ringer = Ringer(folder)
    for _ in range(5):
        ringer.ring()
    assert len(mapped) == 1
    sleeper = Sleeper(folder)
    sleeper.will_sleep()
    ringer.ring()
    began = time.monotonic()
    sleeper.sleep(30.0)
    assert time.monotonic() < began + 20, "it was not heard"
    sleeper.close()
    ringer.ring()
    ringer.close()


def test_one_a_folder_and_another_takes_its_place(folder: LedgerFolder) -> None:
    first, thread = running(folder)
    wait_for(folder.asleep.exists)
    second, waiting = running(folder)
    time.sleep(0.1)
    assert second._sleeper is None
    first.stop()
    thread.join(10)
    wait_for(lambda: second._sleeper is not None)
    journal = Journal(folder.journals)
    opened = intent(journal.ids)
    journal.intend(opened)
    journal.settle(settlement(opened))
    journal.close()
    second.stop()
    waiting.join(10)
    assert check(folder).attempts == 1
    assert FileLock(folder.shipper_lock).take()


def test_who_has_no_gateway_gives_way_to_who_has_one(folder: LedgerFolder) -> None:
    """The end of one gateway waited for the other's, and its shipper looked four times a second until then."""
    journal = Journal(folder.journals)  # of a worker of the other gateway
    opened = intent(journal.ids)
    journal.intend(opened)
    ended, parent = os.pipe()
    first = Shipper(folder, SqliteStore(folder.root), batch=8)
    thread = threading.Thread(target=first.run, kwargs={"parent": ended})
    thread.start()
    wait_for(lambda: first.has_begun)
    second, waiting = running(folder)
    os.close(parent)
    thread.join(20)
    assert not thread.is_alive()
    os.close(ended)
    wait_for(lambda: second.has_begun)
    journal.settle(settlement(opened))
    journal.close()
    second.stop()
    waiting.join(20)
    assert check(folder).attempts == 1


def test_who_waits_for_anothers_end_ends_with_its_gateway(
    folder: LedgerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start of a gateway that was killed left a process behind while another gateway of the folder lived."""
    monkeypatch.setattr("dragoman.ledger.shipper._PAUSES", (0.01, 0.01))
    folder.root.mkdir(parents=True, exist_ok=True)
    others = FileLock(folder.shipper_lock)
    assert others.take()
    for takes in (False, True):
        ended, parent = os.pipe()
        shipper = Shipper(folder, SqliteStore(folder.root), batch=8)
        thread = threading.Thread(target=shipper.run, kwargs={"parent": ended}, daemon=True)
        thread.start()
        if takes:
            others.give_back()
            wait_for(lambda shipper=shipper: shipper.has_begun)
        os.close(parent)
        thread.join(20)
        assert not thread.is_alive(), takes
        os.close(ended)
    wait_for(others.take)


def test_old_segments_go_and_leave_nothing(folder: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.ledger.shipper._TIDY_EVERY", 0.0)
    journal = Journal(folder.journals, segment_size=1_000)
    for number in range(30):
        opened = intent(journal.ids, number)
        journal.intend(opened)
        journal.settle(settlement(opened))
    one = shipper(folder)
    one.round()
    count = len(list(folder.journals.glob("*.journal")))
    assert count > 3
    long_ago = time.time() - 4_000
    for path in folder.journals.glob("*.journal"):
        os.utime(path, (long_ago, long_ago))
    one.round()
    assert len(list(folder.journals.glob("*.journal"))) == 1  # the one that is written
    journal.close()
    one.round()
    one.round()
    assert list(folder.journals.iterdir()) == []
    closed(one)


def test_a_segment_that_is_being_made_is_waited_for(folder: LedgerFolder) -> None:
    folder.journals.mkdir(parents=True)
    lock = FileLock(folder.journals / f"{HOLDER}.lock")
    assert lock.take()
    path = segment_path(folder.journals, HOLDER, 1)
    one = shipper(folder)
    for data in (b"", bytes(4_096), HEADER + bytes(4_096)):
        path.write_bytes(data)
        assert one.round() == 0
    opened = intent(AttemptIds(1))
    path.write_bytes(HEADER + frame(encode_record(opened)) + frame(encode_record(settlement(opened))) + bytes(999))
    assert one.round() == 2
    lock.give_back()
    closed(one)
    assert check(folder).is_sound


class Faulty(SqliteStore):
    """A store of which some calls fail, in a way that they should not."""

    faults: list[int]
    kind: type[Exception]

    def deliver(self, rows: Sequence[Row], snapshots: Iterable[PriceSnapshot] = ()) -> None:
        self.faults.append(1)
        if len(self.faults) in (1, 3, 6):
            raise self.kind("anything")
        super().deliver(rows, snapshots)


@pytest.mark.parametrize("kind", [StoreAway, OSError, RuntimeError, KeyError, MemoryError, EOFError])
def test_what_was_read_is_read_again_whatever_the_store_raises(tmp_path: Path, kind: type[Exception]) -> None:
    folder = LedgerFolder(tmp_path)
    journal = Journal(folder.journals)
    ids = AttemptIds(1)
    opened = [intent(ids, number) for number in range(9)]
    for each in opened[:8]:
        journal.intend(each)
        journal.settle(settlement(each), None)
    journal.intend(opened[8])
    journal.close()
    store = Faulty(tmp_path)
    store.faults, store.kind = [], kind
    one = Shipper(folder, store, batch=3)
    for _ in range(20):
        one._tried_round()
    store.close()
    found = check(folder)
    assert (found.attempts, found.is_sound) == (9, True)
    assert len(store.faults) > 6
    assert list_journals(folder)[0].waiting == 0


class Away(SqliteStore):
    """A store that cannot be reached."""

    def drop_before(self, day: str) -> list[str]:
        raise StoreAway("no answer in time")


def test_a_shipper_whose_store_is_away_ends_with_its_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.ledger.shipper._PAUSES", (0.01, 0.01))
    folder = LedgerFolder(tmp_path)
    journal = Journal(folder.journals)
    opened = intent(AttemptIds(1))
    journal.intend(opened)
    ended, parent = os.pipe()
    thread = threading.Thread(target=Shipper(folder, Away(tmp_path), batch=8).run, kwargs={"parent": ended})
    thread.start()
    os.close(parent)  # the gateway is gone, and one of its workers is not
    thread.join(0.5)
    assert thread.is_alive()
    journal.close()
    thread.join(60)
    assert not thread.is_alive()
    os.close(ended)
    after = Shipper(folder, SqliteStore(tmp_path), batch=8)
    assert after.round() == 1
    assert check(folder).attempts == 1


def test_who_rings_a_closed_bell_writes_into_nothing_else(folder: LedgerFolder) -> None:
    """The gateway's thread rings at its end, when the shipper's may have closed its files: their numbers are others'
    soon."""
    sleeper = Sleeper(folder)
    sleeper.close()
    with contextlib.ExitStack() as opened:
        others = [opened.enter_context((folder.root / f"other{number}").open("wb")) for number in range(20)]
        sleeper.ring()
        assert [os.fstat(each.fileno()).st_size for each in others] == [0] * 20


def test_a_shipper_takes_nobody_for_silent_before_those_that_were_cut_off_have_told(
    folder: LedgerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counters were away for all, everybody seemed silent, and what was set apart was given to others: also where
    they were away a second time before anybody could tell."""
    clock, away = [0], [False]
    found: list[tuple[int, bool]] = []

    def fold(expires: bool) -> None:
        if away[0]:
            raise CountersAway("cut off")
        found.append((clock[0], expires))

    monkeypatch.setattr("dragoman.ledger.shipper.time.monotonic", lambda: 1_000.0 + clock[0])
    shared = LedgerFolder(folder.root, Secret("postgresql://u@h/d"))
    shipper = Shipper(shared, SqliteStore(folder.root), batch=8, fold=fold)
    for second in range(300):
        clock[0], away[0] = second, 100 <= second < 200 or 203 <= second < 219
        shipper._has_ended = shipper._has_ended or second == 221  # who ends meanwhile makes it look again at once
        shipper._tried_round()
    assert [at for at, expires in found if not expires] == [0, 5, 10, 15, 200, 219, 221, 226, 231, 236]
    assert [at for at, expires in found if expires] == [20, 40, 60, 80, 241, 261, 281]


def test_a_shipper_of_several_machines_looks_for_the_silent_while_nothing_is_written(tmp_path: Path) -> None:
    """A machine that is lost may have what all others are refused for, so that nobody writes anything."""
    folds: list[float] = []
    for store, expected in ((None, None), (Secret("postgresql://u@h/d"), 20.25)):
        folder = LedgerFolder(tmp_path, store)
        shipper = Shipper(folder, SqliteStore(folder.root), batch=8, fold=lambda expires: folds.append(1.0))
        shipper.round()
        due = shipper._due_in()
        assert due is None if expected is None else due is not None and due <= expected
    assert len(folds) == 2


def test_nothing_waits_for_a_journal_that_cannot_be_read(folder: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk has a bad place, or it is another user's: it may stay so. The others are delivered, and leases of the
    silent are freed."""
    holders = []
    for seed in range(3):
        journal = Journal(folder.journals)
        opened = intent(AttemptIds(seed))
        write(journal, opened)
        write(journal, settlement(opened))
        journal.close()
        holders.append(journal.holder)
    clock, folds = [0], []
    monkeypatch.setattr("dragoman.ledger.shipper.time.monotonic", lambda: 1_000.0 + clock[0])
    shared = LedgerFolder(folder.root, Secret("postgresql://u@h/d"))
    one = Shipper(shared, SqliteStore(folder.root), batch=8, fold=lambda expires: folds.append((clock[0], expires)))
    bad = segment_path(folder.journals, sorted(holders)[1], 0)
    bad.mkdir()
    for clock[0] in range(0, 45, 5):
        one._tried_round()
        assert "Is a directory" in one.shipped.problem
        assert one.shipped.rows == 2
    assert [at for at, expires in folds if expires] == [20, 40]
    bad.rmdir()
    one._tried_round()
    assert (one.shipped.rows, one.shipped.problem) == (3, "")
    closed(one)
    assert check(folder).is_sound
