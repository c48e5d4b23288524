"""A damaged file of the ledger costs no key, no quota, and of a month no row that can still be read."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from dragoman.config.quotas import Quota
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway, StoreDamaged
from dragoman.ledger.journal.records import AttemptIds, Row
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook, QuotaWatch, read_stored
from dragoman.ledger.reports.checking import check
from dragoman.ledger.stores.files import MAIN_FILE, month_file, month_of, months_in, serial_of
from dragoman.ledger.stores.mending import COPY_FILE, mend
from dragoman.ledger.stores.salvage import salvage
from dragoman.ledger.stores.sqlite import SqliteStore
from ledger.histories import HOLDER, intent, settlement

PAGE = 4096
QUOTAS = [Quota("team", f"team-{number:04}", "usd", 1_000_000, "month", "UTC") for number in range(150)]
KEYS = [f"key-{number:04}" for number in range(150)]


@pytest.fixture
def folder(tmp_path: Path) -> LedgerFolder:
    return LedgerFolder(tmp_path)


def digest_of(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys, one of them disabled, and quotas."""
    folder = LedgerFolder(tmp_path_factory.mktemp("full"))
    book, keys = QuotaBook(folder, actor="somebody"), KeyBook(folder, actor="somebody")
    for quota in QUOTAS:
        book.set(quota)
    for name in KEYS:
        keys.add(VirtualKey(name=name), digest_of(name))
    keys.disable(KEYS[3], at=1)
    book.close()
    keys.close()
    return folder.root


@pytest.fixture
def filled(tmp_path: Path, full: Path) -> LedgerFolder:
    """A copy of it."""
    shutil.copytree(full, tmp_path, dirs_exist_ok=True)
    return LedgerFolder(tmp_path)


def overwrite(file: Path, pages: Callable[[int], list[int]]) -> None:
    """Make noise of pages, by their numbers from 0; the argument is how many there are."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    with file.open("r+b") as opened:
        for number in pages(os.path.getsize(file) // PAGE):
            opened.seek(number * PAGE)
            opened.write(random.Random(number).randbytes(PAGE))


def all_of_them(count: int) -> list[int]:
    return list(range(count))


def all_but_the_first(count: int) -> list[int]:
    return list(range(1, count))


def one_in_three(count: int) -> list[int]:
    return list(range(2, count, 3))


def known(folder: LedgerFolder) -> tuple[set[str], set[str], bool]:
    """The quotas' names; the keys that let somebody in; whether clients need one."""
    ring = KeyRing(folder)
    found = {name for name in KEYS if ring.find(digest_of(name)) is not None}
    ring.close()
    return {quota.name for quota in read_stored(folder)}, found, ring.has_any


@pytest.mark.parametrize("pages", [all_of_them, all_but_the_first, one_in_three])
def test_keys_and_quotas_outlive_a_damaged_file(filled: LedgerFolder, pages: Callable[[int], list[int]]) -> None:
    """The next look of the shipper finds the damage."""
    before = known(filled)
    assert before == ({quota.name for quota in QUOTAS}, set(KEYS) - {KEYS[3]}, True)
    overwrite(filled.root / MAIN_FILE, pages)
    store = SqliteStore(filled.root)
    with pytest.raises(StoreDamaged, match=r"ledger\.sqlite is damaged; it was kept as"):
        store.drop_before("2020-01-01")
    assert store.drop_before("2020-01-01") == []
    store.close()
    assert known(filled) == before
    assert (filled.root / COPY_FILE).stat().st_mode & 0o077 == 0
    assert len(check(filled).damaged) == 1


def test_the_last_quota_that_is_removed_stays_away(folder: LedgerFolder) -> None:
    book = QuotaBook(folder, actor="somebody")
    book.set(QUOTAS[0])
    book.remove(QUOTAS[0])
    book.close()
    overwrite(folder.root / MAIN_FILE, all_of_them)
    store = SqliteStore(folder.root)
    with pytest.raises(StoreDamaged):
        store.look()
    store.close()
    assert read_stored(folder) == []


def test_a_damaged_file_lets_nobody_in_until_it_is_mended(filled: LedgerFolder) -> None:
    """A gateway that begins on it knows of no keys."""
    overwrite(filled.root / MAIN_FILE, all_of_them)
    ring, watch = KeyRing(filled), QuotaWatch(filled)
    watch.has_changed()
    assert ring.has_any
    assert ring.find(digest_of(KEYS[0])) is None
    assert not watch.are_known


def test_a_file_that_takes_the_place_of_another_is_seen(filled: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has the one before open would never hear of a key that is disabled, nor of a quota that is changed."""
    monkeypatch.setattr("dragoman.ledger.key_ring._LOOK", 0.0)
    ring, watch = KeyRing(filled), QuotaWatch(filled)
    watch.has_changed()
    assert ring.find(digest_of(KEYS[0])) is not None
    mend(filled.root / MAIN_FILE, serial_of(filled.root / MAIN_FILE))
    keys, book = KeyBook(filled, actor="somebody"), QuotaBook(filled, actor="somebody")
    keys.disable(KEYS[0], at=1)
    book.remove(QUOTAS[0])
    assert ring.find(digest_of(KEYS[0])) is None
    assert watch.has_changed()
    assert QUOTAS[0].name not in {quota.name for quota in watch.quotas}
    for each in (ring, watch, keys, book):
        each.close()


def test_nobody_meets_a_moment_without_keys(filled: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.ledger.key_ring._LOOK", 0.0)
    is_over = threading.Event()
    seen: set[bool] = set()

    def look() -> None:
        while not is_over.is_set():
            ring = KeyRing(filled)
            seen.add(ring.has_any)
            ring.close()

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(5):
        overwrite(filled.root / MAIN_FILE, all_but_the_first)
        mend(filled.root / MAIN_FILE, serial_of(filled.root / MAIN_FILE))
    is_over.set()
    thread.join()
    assert seen == {True}


def test_two_who_find_the_damage_mend_it_once(filled: LedgerFolder) -> None:
    file = filled.root / MAIN_FILE
    overwrite(file, one_in_three)
    serial = serial_of(file)
    assert mend(file, serial).startswith(f"{MAIN_FILE}.damaged-")
    assert mend(file, serial) == ""
    assert len(check(filled).damaged) == 1


def give_each(store: SqliteStore, rows: list[Row]) -> None:
    for row in rows:
        store.deliver([row])


def test_a_month_keeps_its_readable_rows(folder: LedgerFolder) -> None:
    """No journal has those of before an hour any more."""
    ids = AttemptIds(1)
    rows = [Row(HOLDER, opened, settlement(opened)) for opened in (intent(ids, number) for number in range(400))]
    store = SqliteStore(folder.root)
    store.deliver(rows)
    store.close()
    file = month_file(folder.root, month_of(rows[0].intent.id))
    overwrite(file, lambda count: [count // 2])
    with pytest.raises(StoreDamaged):
        give_each(store, rows)
    store.close()
    found = check(folder)
    assert found.differences == []
    assert 200 <= found.attempts < 400
    store.deliver(rows)
    store.close()
    found = check(folder)
    assert (found.attempts, found.differences, found.nano) == (400, [], 400 * 7)


def test_the_damage_of_one_file_is_not_put_to_another(filled: LedgerFolder) -> None:
    """Whether a month was dropped stands in the main file, which is read when the month's is opened."""
    opened = intent(AttemptIds(1))
    store = SqliteStore(filled.root)
    store.deliver([Row(HOLDER, opened, settlement(opened))])
    store.close()
    overwrite(filled.root / MAIN_FILE, all_of_them)
    with pytest.raises(StoreDamaged, match=r"^ledger\.sqlite is damaged"):
        store.deliver([Row(HOLDER, opened, settlement(opened))])
    assert months_in(filled.root) == [month_of(opened.id)]
    assert check(filled).attempts == 1


def test_what_has_no_room_stays_as_it_is(filled: LedgerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the rows in the place of all that can be read would be a loss."""
    file = filled.root / MAIN_FILE
    overwrite(file, one_in_three)
    before = file.read_bytes()

    def small(path: Path, schema: str) -> sqlite3.Connection:
        from dragoman.ledger.stores.files import open_file

        connection = open_file(path, schema)
        size = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {size}")
        return connection

    monkeypatch.setattr("dragoman.ledger.stores.mending.open_file", small)
    with pytest.raises(StoreAway, match="full"):
        SqliteStore(filled.root).drop_before("2020-01-01")
    assert file.read_bytes() == before


def test_what_is_written_while_a_file_is_mended_stands_in_the_new_one(
    filled: LedgerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may not meet the damage, and writes while the rows are read."""
    late = Quota("team", "late", "usd", 1_000_000, "month", "UTC")
    book = QuotaBook(filled, actor="somebody")
    book.set(QUOTAS[0])
    writer = threading.Thread(target=book.set, args=(late,))

    def read(damaged: Path, into: sqlite3.Connection, *, without: Collection[str] = ()) -> int:
        count = salvage(damaged, into, without=without)
        if writer.ident is None:
            writer.start()
            writer.join(0.5)  # time to write, if nothing holds it up
        return count

    monkeypatch.setattr("dragoman.ledger.stores.mending.salvage", read)
    assert mend(filled.root / MAIN_FILE, serial_of(filled.root / MAIN_FILE))
    writer.join()
    book.close()
    assert {quota.name for quota in read_stored(filled)} == {quota.name for quota in (*QUOTAS, late)}


def test_keys_that_cannot_be_read_let_nobody_in(filled: LedgerFolder) -> None:
    """Whatever the cause: here a later dragoman wrote the file."""
    connection = sqlite3.connect(filled.root / MAIN_FILE)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    ring = KeyRing(filled)
    assert ring.has_any
    assert ring.find(digest_of(KEYS[0])) is None
    ring.close()
