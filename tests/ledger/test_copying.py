"""L16: a ledger comes into another store whole, twice, under way, and back; what two have changed stays and is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cli.main import main
from dragoman.config.quotas import Quota
from dragoman.ledger.copying import copy_ledger
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.journal.records import AttemptIds, PriceSnapshot, Row
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook
from dragoman.ledger.limits.seeding import read_spent
from dragoman.ledger.reports.checking import check
from dragoman.ledger.reports.usage import read_usage
from dragoman.ledger.stores.files import MAIN_FILE, month_file, months_in
from dragoman.ledger.stores.migrating import Migrated, migrate
from dragoman.ledger.stores.opening import open_reading, open_store
from dragoman.ledger.stores.schema import GROUPS, MAIN, SUMS, VERSION
from dragoman.ledger.stores.values import read_row, row_values
from ledger.engines import KINDS, Engines, dump, now
from ledger.histories import HOLDER, START, histories, intent
from ledger.test_managing import change_all
from ledger.test_stores import ENDS, MONTH, row

WAYS = [("sqlite", "files"), *([("sqlite", "postgresql"), ("postgresql", "files")] if "postgresql" in KINDS else [])]


@pytest.fixture(params=WAYS, ids=" to ".join)
def ways(
    request: pytest.FixtureRequest, engines: Engines, tmp_path: Path
) -> Iterator[tuple[LedgerFolder, LedgerFolder]]:
    """A source and a target, both empty."""
    with ExitStack() as stack:
        yield tuple(  # type: ignore[misc]
            stack.enter_context(engines.open("sqlite" if kind == "files" else kind, tmp_path / kind))[0]
            for kind in request.param
        )


def whole(folder: LedgerFolder) -> dict[str, Any]:
    """All that stands in a store, with keys and quotas."""
    found: dict[str, Any] = dict(dump(folder))
    with open_reading(folder) as reading:
        for table in ("virtual_key", "key_digest", "quota"):
            found[table] = sorted(reading.select(None, f"SELECT * FROM {table}"))
    return found


def fill(folder: LedgerFolder, first: int = 1) -> list[Row]:
    """Some of everything."""
    ids = AttemptIds(first)
    opened = [
        intent(ids, number, started=START + number * MONTH // 7, accounts=(4, 9)[: number % 3], team=f"t{first}")
        for number in range(len(ENDS))
    ]
    rows = [row(each, *end) for each, end in zip(opened, ENDS, strict=True)]
    with closing(open_store(folder)) as store:
        store.deliver(rows, [PriceSnapshot(first, "lab/model", "user", '{"input": 1}')])
        store.deliver([row(each, "settled", 99) for each in opened])  # those that were interrupted are corrected
        for each in rows[1:4]:
            store.adjust(each.intent.id, 5, reason="invoice", actor="me")
        store.set_aside(f"odd-{first}", "a reason", b"\x00\xff")
    return rows


def test_a_row_is_read_as_it_was_written() -> None:
    ids = AttemptIds(1)
    for number, end in enumerate(ENDS):
        opened = intent(ids, number, accounts=(4, 9)[: number % 3], reserved=5, expected=4, reserved_tokens=3)
        given = row(opened, *end)
        assert read_row(row_values(given)) == given


def test_a_ledger_comes_over_whole_twice_and_back(ways: tuple[LedgerFolder, LedgerFolder], tmp_path: Path) -> None:
    source, target = ways
    fill(source)
    change_all(source)
    told = copy_ledger(source, target)
    assert (told.attempts, told.problems, told.keys, told.quotas) == (len(ENDS), [], 2, 2)
    assert whole(target) == whole(source)
    again = copy_ledger(source, target)
    assert (again.keys, again.quotas, again.changes, again.problems) == (0, 0, 0, [])
    fill(target, 2)
    with closing(KeyBook(target, actor="me")) as book:
        book.disable("ci", at=5)
        book.add(VirtualKey(name="later"), b"7" * 32)
    back = copy_ledger(target, source)
    assert (back.keys, back.quotas, back.changes, back.problems) == (2, 0, 5, [])
    assert whole(target) == whole(source)
    checks = [check(each) for each in ways]
    assert checks[0] == checks[1] and checks[0].differences == []


def test_what_comes_meanwhile_comes_the_next_time(ways: tuple[LedgerFolder, LedgerFolder]) -> None:
    """Gateways write to both: some of it to one, some to the other, some to both, in other orders."""
    source, target = ways
    ids = AttemptIds(5)
    opened = [intent(ids, number, accounts=(4,)) for number in range(40)]
    rows = [row(each, "settled", 7) for each in opened]
    with closing(open_store(source)) as store:
        store.deliver([row(each, "reserved", None) for each in opened[:20]])
        copy_ledger(source, target)
        store.deliver(rows[5:15])
    with closing(open_store(target)) as store:
        store.deliver(rows[25:0:-1])
        assert copy_ledger(source, target).problems == []
        store.deliver(rows[10:])
    assert copy_ledger(source, target).problems == []
    found = check(target)
    assert (found.attempts, found.nano, found.going_on) == (39, 39 * 7, 1) and found.is_sound


def test_two_ledgers_come_into_one(ways: tuple[LedgerFolder, LedgerFolder], tmp_path: Path) -> None:
    first, target = ways
    other = LedgerFolder(tmp_path / "other")
    for number, each in enumerate((first, other), 1):
        fill(each, number)
        with closing(KeyBook(each, actor="me", now=now)) as book:
            book.add(VirtualKey(name=f"key-{number}"), bytes([number]) * 32)
        copy_ledger(each, target)
        assert copy_ledger(each, target).changes == 0
    checks = [check(each) for each in (first, other, target)]
    assert checks[2].nano == checks[0].nano + checks[1].nano and checks[2].differences == []
    assert checks[2].attempts == checks[0].attempts + checks[1].attempts
    with closing(KeyBook(target, actor="me")) as book:
        assert [key.name for key in book.list()] == ["key-1", "key-2"]


def test_what_both_have_changed_stays_and_is_told(ways: tuple[LedgerFolder, LedgerFolder]) -> None:
    source, target = ways
    change_all(source)
    copy_ledger(source, target)
    for folder, at in ((source, 5), (target, None)):
        with closing(KeyBook(folder, actor="me")) as book, closing(QuotaBook(folder, actor="me")) as quotas:
            book.disable("ci", at=at)
            quotas.set(Quota("all", "", "usd", 1 if at else 2, "month"))
    with closing(KeyBook(source, actor="me")) as book, closing(QuotaBook(source, actor="me")) as quotas:
        book.disable("b", at=None)
        book.add(VirtualKey(name="new"), b"9" * 32)
        quotas.set(Quota("team", "x", "usd", 1, "month"))
        quotas.remove(Quota("team", "x", "usd", 1, "month"))
    before = whole(target)
    for keys in (2, 0):
        told = copy_ledger(source, target)
        assert [problem.partition(":")[0] for problem in told.problems] == ["key ci", "quota all usd per month"]
        assert told.keys == keys
    after = whole(target)
    assert [row for row in after["virtual_key"] if row[0] == "ci"] == [
        row for row in before["virtual_key"] if row[0] == "ci"
    ]
    assert after["quota"] == before["quota"]
    with closing(KeyBook(target, actor="me")) as book:
        assert {key.name: key.disabled for key in book.list()} == {"b": None, "ci": None, "new": None}
    assert check(target).is_sound


def test_a_secret_that_another_key_has_there_stays_its_own(ways: tuple[LedgerFolder, LedgerFolder]) -> None:
    source, target = ways
    for folder, name in ((source, "mine"), (target, "theirs")):
        with closing(KeyBook(folder, actor="me")) as book:
            book.add(VirtualKey(name=name), b"1" * 32)
    [problem] = copy_ledger(source, target).problems
    assert "theirs" in problem
    with open_reading(target) as reading:
        assert list(reading.select(None, "SELECT key FROM key_digest")) == [("theirs",)]


def test_sums_of_months_without_attempts_come_too(ways: tuple[LedgerFolder, LedgerFolder]) -> None:
    source, target = ways
    fill(source)
    with closing(open_store(source)) as store:
        assert store.drop_before("2026-12-01") == ["2026-11"]
    for _ in range(2):
        assert copy_ledger(source, target).problems == []
    assert whole(target) == whole(source)
    with closing(open_store(target)) as store:  # a later month goes there alone
        assert store.drop_before("2027-01-01") == ["2026-12"]
    sums = read_usage(target, ("month", "key", "state"))
    assert copy_ledger(source, target).problems == []
    assert read_usage(target, ("month", "key", "state")) == sums == read_usage(source, ("month", "key", "state"))
    assert copy_ledger(target, source).problems == []
    assert read_usage(source, ("month", "key", "state")) == sums
    late = intent(AttemptIds(8), started=START + MONTH)
    with closing(open_store(source)) as store:
        store.deliver([row(late, "settled", 1)])
    assert [problem[:7] for problem in copy_ledger(source, target).problems] == ["2026-12"]  # it is there no more


@settings(max_examples=4)
@given(st.lists(histories(8), min_size=1, max_size=4), st.data())
def test_random_histories_end_as_one(
    engines: Engines, tmp_path_factory: pytest.TempPathFactory, told: list[Any], data: st.DataObject
) -> None:
    """Whatever is written where in which order, and however often it is copied which way: both have all at the end."""
    root = tmp_path_factory.mktemp("copying")
    with ExitStack() as stack:
        folders = [
            stack.enter_context(engines.open(kind, root / str(place)))[0]
            for place, kind in enumerate(("sqlite", KINDS[-1]))
        ]
        opened = {}
        for history in told:
            for record in history.records:
                place = data.draw(st.integers(0, 2))
                if hasattr(record, "request"):
                    opened[record.id] = record
                    given = Row(HOLDER, record)
                else:
                    given = Row(HOLDER, opened[record.id], record)
                for folder in folders[:2] if place == 2 else folders[place : place + 1]:
                    with closing(open_store(folder)) as store:
                        store.deliver([given])
                if data.draw(st.integers(0, 5)) == 0:
                    way = data.draw(st.sampled_from((1, -1)))
                    assert copy_ledger(*folders[::way]).problems == []
        for way in (1, -1):
            assert copy_ledger(*folders[::way]).problems == []
        assert whole(folders[0]) == whole(folders[1])
        assert check(folders[0]).differences == []


# ---------------------------------------------------------------- the commands


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["copy"], 2), (["copy", "--to", "sqlite"], 2), (["copy", "--to", "mysql://u:canary@h/d"], 2),
        (["copy", "--to", "env:NOT_THERE"], 1), (["check", "--store", "postgresql://u:canary@h"], 2),
        (["copy", "--to", "canary"], 2),
    ],
)  # fmt: skip
def test_no_store_is_said_without_its_password(
    words: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path}"\n')
    assert main(["ledger", *words, "--config", str(file)]) == status
    assert "canary" not in "".join(capsys.readouterr())


# ---------------------------------------------------------------- earlier and later versions


def older_main(file: Path, version: int) -> None:
    """As an earlier dragoman has left it: sums of the months that it dropped, of which nobody knows the month."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(MAIN)
        for table in ("dropped_usage", "dropped_spend"):
            connection.execute(f"DROP TABLE {table}")
        marks = ",".join("?" * len((*GROUPS, *SUMS)))
        connection.execute(f"INSERT INTO usage_hour VALUES({marks})", (400_000, *["x"] * 6, 70, *[1] * 7))
        connection.execute("INSERT INTO spend VALUES(4, 'h', 70, 9)")
        connection.execute("INSERT INTO dropped VALUES('2015-08', 1)")
        connection.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_earlier_ledger_is_brought_up_and_keeps_its_sums(engines: Engines, tmp_path: Path, version: int) -> None:
    folder = LedgerFolder(tmp_path / "old")
    fill(folder)
    older_main(tmp_path / MAIN_FILE, version)
    for suffix in ("", "-wal", "-shm"):
        (folder.root / f"{MAIN_FILE}{suffix}").unlink(missing_ok=True)
    (tmp_path / MAIN_FILE).rename(folder.root / MAIN_FILE)
    before = read_usage(folder, ("key",)), read_spent(folder, (4,))
    assert before[1][4]["h"] == 70
    files = [MAIN_FILE, *(month_file(folder.root, month).name for month in months_in(folder.root))]
    first, again = migrate(folder), migrate(folder)
    assert first[0] == Migrated(MAIN_FILE, version, VERSION) and [each.name for each in first] == files
    assert all((each.before, each.now) == (VERSION, VERSION) for each in again)
    assert (read_usage(folder, ("key",)), read_spent(folder, (4,))) == before
    with closing(open_store(folder)) as store:
        store.drop_before("2026-12-01")
    assert (read_usage(folder, ("key",)), read_spent(folder, (4,))) == before
    with engines.open(KINDS[-1], tmp_path / "new") as (target, _):
        assert copy_ledger(folder, target).problems == []
        assert copy_ledger(folder, target).problems == []
        assert read_usage(target, ("key",)) == before[0]
        assert dump(target)["spend"] == dump(folder)["spend"]
        other = LedgerFolder(tmp_path / "other")  # whose sums of months that nobody knows are others
        older_main(other.root / MAIN_FILE, version)
        with closing(sqlite3.connect(other.root / MAIN_FILE)) as connection:
            connection.execute("UPDATE spend SET nano = 71")
            connection.commit()
        assert [problem[:14] for problem in copy_ledger(other, target).problems] == ["earlier months"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_ledger_is_left_alone(engines: Engines, tmp_path: Path, kind: str) -> None:
    with engines.open(kind, tmp_path / kind) as (folder, _):
        fill(folder)
        if folder.store is None:
            with closing(sqlite3.connect(folder.root / MAIN_FILE, isolation_level=None)) as connection:
                connection.execute("PRAGMA user_version = 99")
            restore = lambda: None  # noqa: E731
        else:
            from dragoman.ledger.stores.postgresql_connection import Connection
            from dragoman.ledger.stores.postgresql_schema import VERSION as theirs

            connection = Connection(folder.store)  # type: ignore[assignment]
            connection.execute("UPDATE meta SET value = '99' WHERE name = 'version'")

            def restore() -> None:
                connection.execute(f"UPDATE meta SET value = '{theirs}' WHERE name = 'version'")
                connection.close()

        try:
            for act in (
                lambda: migrate(folder),
                lambda: copy_ledger(folder, LedgerFolder(tmp_path / "new")),
                lambda: copy_ledger(LedgerFolder(tmp_path / "new"), folder),
            ):
                with pytest.raises(StoreAway, match="a later dragoman"):
                    act()
        finally:
            restore()
