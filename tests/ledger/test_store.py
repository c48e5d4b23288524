"""The store takes rows again and in any order; a final row stands; its sums are those of its rows."""

from __future__ import annotations

import math
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Claim, Facts, Refused, StoreAway, StoreDamaged
from dragoman.ledger.journal.records import STATES, AttemptIds, PriceSnapshot, Row
from dragoman.ledger.limits.accounts import is_concurrent, is_recorded
from dragoman.ledger.limits.seeding import read_spent
from dragoman.ledger.reports.checking import check
from dragoman.ledger.reports.exporting import export_csv
from dragoman.ledger.reports.usage import read_usage
from dragoman.ledger.stores.files import MAIN_FILE, month_file, month_of
from dragoman.ledger.stores.schema import CHARGES, COLUMNS
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.ledger.stores.values import read_row, row_values
from ledger.conformance import dump, rows_of, sums
from ledger.histories import HOLDER, START, History, histories, intent, settlement
from profiles import examples


@pytest.fixture
def folder(tmp_path: Path) -> LedgerFolder:
    return LedgerFolder(tmp_path)


def test_an_id_that_is_none_makes_no_month(folder: LedgerFolder) -> None:
    store = SqliteStore(folder.root)
    ids = AttemptIds(1)
    opened = intent(ids)
    store.deliver([Row(HOLDER, opened, settlement(opened))])
    before = sorted(path.name for path in folder.root.glob("attempts-*"))
    for first in (0, 1, 127, 255):
        id = bytes([first]) + bytes(15)
        with pytest.raises(Refused, match="no such attempt"):
            store.adjust(id, 5, reason="wrong", actor="me")
        with pytest.raises(Refused, match="no such attempt"):
            store.take_corrections([(id, id, 5, 0, "wrong", "me", 1)])
        assert store.accounts_of(id) == []
        assert store.settle(settlement(intent(AttemptIds(first), started=first))) is False
    assert sorted(path.name for path in folder.root.glob("attempts-*")) == before
    store.close()


#: Opens 50 new files, each at the moment at which another process does.
OPENING = """
import sys, time
from pathlib import Path
from dragoman.ledger.stores.files import open_file
from dragoman.ledger.stores.schema import MAIN
folder, start = Path(sys.argv[1]), float(sys.argv[2])
for number in range(50):
    time.sleep(max(0, start + number / 100 - time.time()))
    open_file(folder / str(number) / "ledger.sqlite", MAIN).close()
"""


def test_all_that_open_a_new_file_at_once_have_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OPENING, str(tmp_path), str(time.time() + 1)]
    processes = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [("", 0)] * 3


def delivered(folder: Path, batches: list[list[Row]]) -> list[tuple[object, ...]]:
    store = SqliteStore(folder)
    for batch in batches:
        store.deliver(batch)
    store.close()
    assert check(LedgerFolder(folder)).differences == []
    return dump(folder)


@settings(max_examples=examples(40))
@given(histories(most=12), st.integers(0, 2**32))
def test_redelivery_shuffling_and_half_batches_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, history: History, seed: int
) -> None:
    rows = rows_of(history.records)
    once = delivered(tmp_path_factory.mktemp("once"), [rows])
    tenfold = rows * 10
    random.Random(seed).shuffle(tenfold)
    shuffled = tmp_path_factory.mktemp("shuffled")
    assert delivered(shuffled, [tenfold]) == once
    halves = [[*rows[: len(rows) // 2]], [*rows[len(rows) // 4 :]], rows, *([row] for row in reversed(rows))]
    assert delivered(tmp_path_factory.mktemp("halves"), halves) == once
    assert delivered(shuffled, halves) == once


@pytest.mark.parametrize("is_older", [False, True])
def test_sums_of_a_batch_are_those_of_its_rows_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, *, is_older: bool
) -> None:
    """Also where a file of an earlier dragoman counts each row by itself, and where some of a batch stood there."""
    ids, chance = AttemptIds(3), random.Random(5)
    rows = []
    for number in range(400):
        accounts, state, size = chance.choice([(), (4,), (4, 5), (4, 4)]), chance.choice(STATES[1:]), number
        charged, cached, started = chance.choice([None, 0, 50]), number % 3, START + chance.randrange(10**10)
        if is_alike := (number - 1) // 64 % 2 == 1:  # a whole statement's, of one hour or two
            accounts, state, size, charged, cached = (4, 5), "settled", 0, (None, 0)[(number - 1) // 192], 1
            started = START + 3_600_000_000 * (number % 2 if number > 300 else 0)
        opened = intent(ids, size, started=started, accounts=accounts, client_request=f"{number}")
        nano = chance.choice([None, 0, 10**12])
        end = settlement(opened, state, nano, cache_read=cached, charged_tokens=charged)
        rows.append(Row(HOLDER, opened, None if number % 7 == 0 and not is_alike else end))
    folders = [tmp_path_factory.mktemp("store") for _ in "12"]
    for folder in folders:
        delivered(folder, [rows[:1]])
        if is_older:
            connection = sqlite3.connect(next(folder.glob("attempts-*")), isolation_level=None)
            for name in ("attempt_counts", "attempt_ends"):
                text = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
                connection.execute(f"DROP TRIGGER {name}")
                connection.execute(text.replace(" AND NOT EXISTS (SELECT 1 FROM summing)", ""))
            connection.close()
    ended = [row for row in rows if row.settlement is None]
    ended = [Row(HOLDER, row.intent, settlement(row.intent, nano=3)) for row in ended]
    whole = delivered(folders[0], [rows[1:], rows[50:], ended])
    assert whole == delivered(folders[1], [[row] for row in [*rows, *ended]])
    assert {row[1] for row in whole} >= {"attempt", "usage_hour", "spend"}
    assert "summing" not in {row[1] for row in whole}


def test_rows_of_many_keys_take_few_calls(folder: LedgerFolder) -> None:
    """A statement whose rows differ in key and target made columns of each anew: 68 calls and 60 µs a row."""
    ids, store = AttemptIds(8), SqliteStore(folder.root)
    opened = [intent(ids, number, key=f"key-{number % 50}", target=f"lab/{number % 20}") for number in range(1_024)]
    rows = [Row(HOLDER, each, settlement(each)) for each in opened]
    store.deliver(rows[:64])
    count = 0

    def watch(_frame: object, event: str, _of: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(watch)
    try:
        store.deliver(rows[64:])
    finally:
        sys.setprofile(None)
    store.close()
    assert count < 12 * len(rows[64:]), count / len(rows[64:])


#: What is told of an intent otherwise than before, and in which of two ways.
_told = st.tuples(st.integers(0, 1), st.sampled_from(["", "key", "owner", "accounts", "started", "holder"]))
#: Of each: which attempt, what is told of it, and whether it has ended.
_deliveries = st.lists(st.lists(st.tuples(st.integers(0, 23), _told, st.booleans()), max_size=30), max_size=2)


@settings(max_examples=examples(25))
@given(_deliveries, st.integers(0, 24), st.lists(_told, min_size=24, max_size=24))
def test_sums_are_those_of_single_rows_also_where_an_end_tells_of_another_intent(
    tmp_path_factory: pytest.TempPathFactory, deliveries: list[list[tuple[int, tuple[int, str], bool]]],
    open_first: int, told: list[tuple[int, str]],
) -> None:  # fmt: skip
    """An end comes with its intent once more: what was said of that first stands, and is what the sums count."""
    ids = AttemptIds(3)
    intents = [intent(ids, number, accounts=(4, number)) for number in range(24)]

    def row(number: int, twin: int, changed: str, *, ends: bool) -> Row:
        opened, other = intents[number], intents[(number + twin) % 24]
        holder, started = HOLDER, opened.started + 10**10 * twin
        if changed == "holder":
            holder = ("00000000000000cd", HOLDER)[twin]
        elif changed == "started":
            opened = msgspec.structs.replace(opened, started=started)
        elif changed:
            value = other.accounts if changed == "accounts" else f"another {twin}"
            opened = msgspec.structs.replace(opened, **{changed: value})
        return Row(holder, opened, settlement(opened, nano=10 + number) if ends else None)

    # Many that are open, and one batch of all their ends; then what comes as it likes.
    batches = [
        [row(number, 0, "", ends=False) for number in range(open_first)],
        [row(number, *told[number], ends=True) for number in range(open_first)],
        *([row(number, *how, ends=ends) for number, how, ends in batch] for batch in deliveries),
    ]
    whole = delivered(tmp_path_factory.mktemp("whole"), batches)
    assert whole == delivered(tmp_path_factory.mktemp("single"), [[row] for batch in batches for row in batch])


def test_a_final_row_is_frozen_and_nothing_is_deleted(folder: LedgerFolder) -> None:
    opened, going = intent(AttemptIds(1)), intent(AttemptIds(2))
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, opened, settlement(opened)), Row(HOLDER, going)])
    assert store.adjust(opened.id, -2, reason="invoice", actor="me")
    store.close()
    connection = sqlite3.connect(month_file(folder.root, month_of(opened.id)), isolation_level=None)
    for statement in (
        "UPDATE attempt SET nano = 1 WHERE state = 'settled'",
        "UPDATE attempt SET state = 'reserved', ended = NULL WHERE state = 'settled'",
        "UPDATE attempt SET id = zeroblob(16) WHERE state = 'reserved'",
        "DELETE FROM attempt",
        "UPDATE adjustment SET nano = 1",
        "DELETE FROM adjustment",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    main = sqlite3.connect(folder.root / MAIN_FILE, isolation_level=None)
    for statement in ("UPDATE audit SET actor = 'you'", "DELETE FROM audit"):
        with pytest.raises(sqlite3.IntegrityError):
            main.execute(statement)
    connection.close()
    main.close()


#: What an intent and a settlement may leave out, with something that is not nothing: 0 is known.
_MAY_BE_EMPTY = (
    {"owner": "anna", "team": "core", "client_request": "c-1", "accounts": (5, 8), "reserved": 0, "expected": 9,
     "reserved_tokens": 0},
    {"cache_read": 0, "cache_write": 3, "reasoning": 0, "provider_request": "p-1", "charged_tokens": 0,
     "status": 200, "reason": "late"},
)  # fmt: skip


@settings(max_examples=examples(25))
@given(st.data())
def test_each_row_is_kept_as_it_is_whatever_the_rows_beside_it_leave_out(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Nothing, unknown and 0 stay three things where a column has nothing in all rows, in some, or in none."""
    ids = AttemptIds(1)
    of_intent, of_end = _MAY_BE_EMPTY
    has = st.sets(st.sampled_from([*of_intent, *of_end]))
    often, count = data.draw(has), data.draw(st.sampled_from((1, 4, 16, 64, 71)))
    others = data.draw(st.dictionaries(st.integers(0, count - 1), has, max_size=3))
    rows = []
    for number in range(count):
        names = others.get(number, often)
        opened = intent(ids, number, **{name: of_intent[name] for name in of_intent if name in names})
        end = settlement(opened, **{name: of_end[name] for name in of_end if name in names})
        rows.append(Row(HOLDER, opened, end if number % 5 or count == 4 else None))
    folder = tmp_path_factory.mktemp("rows")
    delivered(folder, [rows])
    connection = sqlite3.connect(month_file(folder, month_of(rows[0].intent.id)))
    found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM attempt ORDER BY id").fetchall()
    connection.close()
    assert found == [row_values(row) for row in rows]
    assert [read_row(values) for values in found] == rows


def test_unknown_is_not_zero(folder: LedgerFolder) -> None:
    ids = AttemptIds(1)
    opened = [intent(ids, number) for number in range(3)]
    store = SqliteStore(folder.root)
    store.deliver(
        [Row(HOLDER, each, settlement(each, nano=nano)) for each, nano in zip(opened, (None, 0, 5), strict=True)]
    )
    store.close()
    found = check(folder)
    assert (found.attempts, found.nano, found.unpriced) == (3, 5, 1)
    assert sums(folder)["unpriced"] == 1


def test_a_late_settlement_is_an_adjustment_once(folder: LedgerFolder) -> None:
    known, unknown = intent(AttemptIds(1), expected=10), intent(AttemptIds(2))
    closed = [
        Row(HOLDER, known, settlement(known, "interrupted", 10, reason="process_died")),
        Row(HOLDER, unknown, settlement(unknown, "interrupted", None, reason="process_died")),
    ]
    late = [Row(HOLDER, known, settlement(known, nano=7)), Row(HOLDER, unknown, settlement(unknown, nano=0))]
    store = SqliteStore(folder.root)
    for batch in (closed, late, late, closed, late * 10):
        store.deliver(batch)
    assert store.settle(settlement(known, nano=7))
    store.close()
    found = check(folder)
    assert (found.attempts, found.nano, found.unpriced, found.adjustments) == (2, 7, 0, 2)
    assert found.is_sound


def test_an_adjustment_moves_the_sums_and_stands_in_the_audit(folder: LedgerFolder) -> None:
    opened, going = intent(AttemptIds(1)), intent(AttemptIds(2))
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, opened, settlement(opened, nano=None)), Row(HOLDER, going)])
    assert store.adjust(opened.id, 100, reason="invoice 7", actor="me")
    assert not store.adjust(opened.id, 100, reason="invoice 7", actor="me")  # the same once more
    assert store.adjust(opened.id, -40, reason="invoice 8", actor="me")
    for id, words in ((going.id, "has ended"), (bytes(16), "no such attempt")):
        with pytest.raises(Refused, match=words):
            store.adjust(id, 1, reason="", actor="me")
    store.close()
    found = check(folder)
    assert (found.nano, found.unpriced, found.adjustments, found.is_sound) == (60, 0, 2, True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE usage_hour SET nano = nano + 1",
        "DELETE FROM usage_hour",
        "INSERT INTO usage_hour SELECT 1, key, owner, team, route, target, state, 1,0,0,0,0,0,0,1 FROM attempt",
        "DROP TRIGGER attempt_frozen; UPDATE attempt SET nano = nano + 1",
    ],
)
def test_a_check_finds_what_was_changed_by_hand(folder: LedgerFolder, statement: str) -> None:
    opened = intent(AttemptIds(1))
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, opened, settlement(opened))])
    store.close()
    assert check(folder).is_sound
    connection = sqlite3.connect(month_file(folder.root, month_of(opened.id)), isolation_level=None)
    connection.executescript(statement)
    connection.close()
    assert check(folder).differences


@pytest.mark.parametrize("change", ["actor = 'you'", "digest = zeroblob(32)", "id = id + 1"])
def test_a_check_finds_an_audit_that_was_changed(folder: LedgerFolder, change: str) -> None:
    store = SqliteStore(folder.root)
    for number in range(3):
        store.audit("me", "new", f"key-{number}", {"team": "a"})
    store.close()
    assert check(folder).is_sound
    main = sqlite3.connect(folder.root / MAIN_FILE, isolation_level=None)
    main.executescript(f"DROP TRIGGER audit_frozen; UPDATE audit SET {change} WHERE id = 3")
    main.close()
    assert check(folder).differences


def test_a_row_that_breaks_a_rule_is_refused_and_nothing_of_its_batch_is_taken(folder: LedgerFolder) -> None:
    good, bad = intent(AttemptIds(1)), intent(AttemptIds(2))
    store = SqliteStore(folder.root)
    for row in (
        Row(HOLDER, bad, settlement(bad, reason="the provider's own words")),
        Row(HOLDER, bad, settlement(bad, nano=-1)),
        Row(HOLDER, bad, settlement(bad, nano=2**70)),
    ):
        with pytest.raises(Refused):
            store.deliver([Row(HOLDER, good, settlement(good)), row])
    assert [row[1] for row in dump(folder.root) if row[1] == "attempt"] == []
    store.deliver([Row(HOLDER, good, settlement(good))])
    store.close()
    assert check(folder).attempts == 1


def test_attempts_of_two_months_stand_in_two_files(folder: LedgerFolder) -> None:
    month = 31 * 86_400 * 1_000_000
    old, new = intent(AttemptIds(1), started=START), intent(AttemptIds(2), started=START + month)
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, each, settlement(each)) for each in (old, new)])
    store.close()
    assert sorted(path.name for path in folder.root.glob("attempts-*.sqlite")) == [
        "attempts-2026-11.sqlite",
        "attempts-2026-12.sqlite",
    ]
    assert check(folder).attempts == 2
    assert {path.stat().st_mode & 0o777 for path in folder.root.glob("*.sqlite*")} == {0o600}


def test_old_months_go_and_their_sums_stay(folder: LedgerFolder) -> None:
    month = 31 * 86_400 * 1_000_000
    old, new = intent(AttemptIds(1), started=START), intent(AttemptIds(2), started=START + month)
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, each, settlement(each)) for each in (old, new)])
    before = read_usage(folder, ("month", "key"))
    assert store.drop_before("2026-11-30") == []
    assert store.drop_before("2026-12-01") == ["2026-11"]
    assert store.drop_before("2026-12-01") == []
    with pytest.raises(Refused, match="were dropped"):
        store.deliver([Row(HOLDER, old, settlement(old))])
    store.close()
    assert not month_file(folder.root, "2026-11").exists()
    assert read_usage(folder, ("month", "key")) == before
    assert (check(folder).attempts, check(folder).is_sound) == (1, True)


def test_a_damaged_file_is_put_aside_and_told(folder: LedgerFolder) -> None:
    opened = intent(AttemptIds(1))
    file = month_file(folder.root, month_of(opened.id))
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, opened, settlement(opened))])
    store.close()
    file.write_bytes(b"no database at all" * 500)
    with pytest.raises(StoreDamaged, match="is damaged; it was kept as"):
        store.deliver([Row(HOLDER, opened, settlement(opened))])
    store.deliver([Row(HOLDER, opened, settlement(opened))])
    store.close()
    found = check(folder)
    assert found.attempts == 1 and len(found.damaged) == 1 and not found.is_sound


def test_a_folder_that_cannot_be_written_is_away(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    opened = intent(AttemptIds(1))
    with pytest.raises(StoreAway):
        SqliteStore(tmp_path / "file" / "ledger").deliver([Row(HOLDER, opened, settlement(opened))])


def test_a_file_of_a_later_version_is_left_alone(folder: LedgerFolder) -> None:
    store = SqliteStore(folder.root)
    store.audit("me", "new", "key", {})
    store.close()
    main = sqlite3.connect(folder.root / MAIN_FILE)
    main.execute("PRAGMA user_version = 99")
    main.close()
    with pytest.raises(StoreAway, match="a later dragoman"):
        store.audit("me", "new", "key", {})
    with pytest.raises(StoreAway, match="a later dragoman"):
        check(folder)


def test_costs_are_checked_against_tokens_and_prices(folder: LedgerFolder) -> None:
    ids = AttemptIds(1)
    right, wrong = intent(ids), intent(ids, 1)
    body = '{"input":3,"output":4,"cache_read":3,"cache_write":3,"nano_dollars_for_tokens":1}'
    store = SqliteStore(folder.root)
    prices = PriceSnapshot(9, "lab/model", "user", body)
    store.deliver([Row(HOLDER, right, settlement(right, nano=5 * 3 + 2 * 4, price=9))], [prices, prices])
    store.close()
    assert check(folder).is_sound
    store.deliver([Row(HOLDER, wrong, settlement(wrong, nano=24, price=9))])
    store.close()
    assert len(check(folder).differences) == 1


def charged(store: SqliteStore) -> list[Row]:
    ids = AttemptIds(7)
    opened = [intent(ids, number, accounts=(4, 5), reserved_tokens=90) for number in range(3)]
    ends = [
        settlement(opened[0], nano=10),
        settlement(opened[1], "interrupted", 20, charged_tokens=90),
        settlement(opened[2], nano=None),
    ]
    rows = [Row(HOLDER, each, end) for each, end in zip(opened, ends, strict=True)]
    store.deliver(rows)
    store.adjust(opened[0].id, 5, reason="invoice", actor="me")
    store.close()
    return rows


def test_what_accounts_are_charged_is_what_the_rows_make_and_check_sees_when_not(folder: LedgerFolder) -> None:
    rows = charged(SqliteStore(folder.root))
    assert check(folder).is_sound
    assert read_spent(folder, (4, 5)) == {4: {HOLDER: 30, "adjusted": 5}, 5: {HOLDER: 104, "adjusted": 0}}
    file = month_file(folder.root, month_of(rows[0].intent.id))
    for statement in (
        "UPDATE spend SET nano = nano + 1 WHERE account = 4 AND holder = 'adjusted'",
        "UPDATE spend SET tokens = tokens - 1 WHERE account = 5 AND tokens",
        "INSERT INTO spend VALUES(8, 'x', 1, 0)",
    ):
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute(statement)
        connection.execute("COMMIT")
        connection.close()
        [told] = check(folder).differences
        assert "account" in told
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("DELETE FROM spend")
        connection.execute(f"INSERT INTO spend {CHARGES}")
        connection.close()
        assert check(folder).is_sound


def test_a_month_of_an_earlier_dragoman_is_renewed_with_what_it_has(folder: LedgerFolder) -> None:
    rows = charged(SqliteStore(folder.root))
    file = month_file(folder.root, month_of(rows[0].intent.id))
    connection = sqlite3.connect(file, isolation_level=None)
    for name in ("attempt_counts", "attempt_ends", "adjustment_charges"):
        connection.execute(f"DROP TRIGGER {name}")
    text = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'attempt'").fetchone()[0]
    older = text.replace(" reserved_tokens INTEGER, charged_tokens INTEGER CHECK (charged_tokens >= 0),", "")
    assert older != text
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'attempt'", (older,))
    connection.execute("DELETE FROM spend")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    store = SqliteStore(folder.root)
    store.drop_before("2026-01-01")
    store.deliver(rows)
    store.close()
    assert check(folder).is_sound
    assert read_spent(folder, (4,)) == {4: {HOLDER: 30, "adjusted": 5}}
    assert "charged_tokens" in next(iter(export_csv(folder)))


def test_while_a_month_is_dropped_its_spend_counts_once(folder: LedgerFolder) -> None:
    """The file is still there when its sums stand elsewhere already."""
    rows = charged(SqliteStore(folder.root))
    file = month_file(folder.root, month_of(rows[0].intent.id))
    kept = file.read_bytes()
    before = read_spent(folder, (4, 5))
    store = SqliteStore(folder.root)
    assert store.drop_before("2027-01-01")
    assert read_spent(folder, (4, 5)) == before
    file.write_bytes(kept)
    assert read_spent(folder, (4, 5)) == before
    store.close()


_OTHER = """
import sys
from pathlib import Path
from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.stores.sqlite import SqliteStore

store = SqliteStore(Path(sys.argv[1]))
store.audit("other", "look", "", {})
store.close()
counters = SqliteCounters(
    Path(sys.argv[1]) / "counters.sqlite", seeds=lambda accounts: {}, adjusted=lambda account: 0, live=set, leasing=set
)
counters.look()
counters.close()
"""


def test_another_process_that_closes_a_file_takes_nothing_from_who_has_it_open(tmp_path: Path) -> None:
    """Two of this process opened it: the second took back the first one's locks, so the other deleted its log."""

    def counters() -> SqliteCounters:
        file = tmp_path / "counters.sqlite"
        return SqliteCounters(file, seeds=lambda accounts: {}, adjusted=lambda account: 0, live=set, leasing=set)

    stores, counted = [SqliteStore(tmp_path) for _ in "12"], [counters() for _ in "12"]
    for store in stores:
        store.audit("a", "look", "", {})
    for each in counted:
        each.look()
    subprocess.run([sys.executable, "-c", _OTHER, str(tmp_path)], check=True)
    for store in stores:
        store.audit("b", "look", "", {})
    account = next(number for number in range(4, 8) if not is_recorded(number) and not is_concurrent(number))
    claim = Claim(account, "a" * 16, 1, Facts(5, 0), 0, 0, 10, 1, counted[0].epoch, math.inf)
    assert counted[0].take(claim).outcome == "granted"
    with closing(sqlite3.connect(tmp_path / MAIN_FILE)) as main:
        assert main.execute("SELECT count(*) FROM audit").fetchone() == (5,)
    with closing(sqlite3.connect(tmp_path / "counters.sqlite")) as file:
        assert file.execute("SELECT sum(amount) FROM share").fetchone() == (5,)
    for closed in (*stores, *counted):
        closed.close()
