"""PostgreSQL away, frozen, killed, changed by hand: nothing is lost, nothing counts twice, no password is told."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest
from reliability.engines import PASSWORD, PostgreSQL

from dragoman.cli.main import main
from dragoman.config.quotas import Quota
from dragoman.ledger.counters.apart import Database
from dragoman.ledger.counters.roster import SharedRoster, machine_of
from dragoman.ledger.counting import fold_ended, open_counters, read_totals
from dragoman.ledger.folder import LedgerFolder, place_of
from dragoman.ledger.interfaces import Claim, CountersAway, Facts, Refused, StoreAway
from dragoman.ledger.journal.records import AttemptIds, Row
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook, read_stored
from dragoman.ledger.reports.checking import check
from dragoman.ledger.stores import postgresql_connection
from dragoman.ledger.stores.postgresql import PostgresqlStore
from dragoman.ledger.stores.postgresql_reading import open_postgresql
from dragoman.ledger.stores.postgresql_schema import LOCK, STEPS, VERSION
from dragoman.secret import Secret
from ledger.counting_engines import COUNTER_TABLES, CountingEngines
from ledger.engines import Engines, dump
from ledger.histories import HOLDER, START, intent, settlement
from ledger.test_copying import fill
from warm_programs import Popen

MONTH = 31 * 86_400 * 1_000_000


@pytest.fixture
def opened(engines: Engines, tmp_path: Path) -> Iterator[tuple[LedgerFolder, PostgresqlStore]]:
    with engines.open("postgresql", tmp_path) as (folder, store):
        assert isinstance(store, PostgresqlStore)
        yield folder, store


def test_the_doctor_says_whether_the_database_answers(
    engines: Engines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said `RuntimeError` of each: it read the database within the loop that asks the servers."""
    address = engines.server.address
    for store, is_there in ((address, True), (address.replace(f":{engines.server.port}/", ":9/"), False)):
        config = tmp_path / "dragoman.toml"
        config.write_text(f'[server]\nstate = "{tmp_path}"\n[ledger]\nstore = "{store}"\n')
        main(["doctor", "--local", "--config", str(config)])
        said = capsys.readouterr().out
        assert f"{'✓' if is_there else '✗'} ledger: {place_of(Secret(store))}" in said
        assert is_there or "Connect call failed" in said


def test_a_damaged_file_of_keys_is_mended_before_the_gateway_serves(engines: Engines, tmp_path: Path) -> None:
    """It ended with a traceback."""
    folder = LedgerFolder.of(tmp_path)
    book = QuotaBook(folder, actor="somebody")
    book.set(Quota("all", "", "usd", 1))
    book.close()
    for suffix in ("", "-wal", "-shm"):
        (folder.root / f"ledger.sqlite{suffix}").unlink(missing_ok=True)
    (folder.root / "ledger.sqlite").write_bytes(b"no database" * 1_000)
    config = tmp_path / "dragoman.toml"
    store = engines.server.address
    config.write_text(f'[server]\nstate = "{tmp_path}"\n[ledger]\nstore = "{store}"\n')
    program = Popen(
        [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--config", str(config)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        lines: list[str] = []
        while not lines or (lines[-1] and "listening on" not in lines[-1]):
            lines.append(program.stdout.readline())
        assert "listening on" in lines[-1], lines
        assert [quota.amount for quota in read_stored(folder)] == [1]
    finally:
        program.kill()
        program.communicate()


def rows(count: int) -> list[Row]:
    ids = AttemptIds(1)
    intents = [intent(ids, number, accounts=(4,)) for number in range(count)]
    return [Row(HOLDER, each, settlement(each)) for each in intents]


def test_a_killed_server_takes_the_same_again(engines: Engines, opened: tuple[LedgerFolder, PostgresqlStore]) -> None:
    folder, store = opened
    given = rows(60)
    store.deliver(given[:40])
    engines.server.kill()
    with pytest.raises(StoreAway) as away:
        store.deliver(given)
    with pytest.raises(StoreAway):
        check(folder)
    engines.server.start()
    store.deliver(given)
    store.deliver(given)
    assert (check(folder).attempts, check(folder).nano, check(folder).is_sound) == (60, 420, True)
    assert PASSWORD not in str(away.value) and "127.0.0.1" in str(away.value)


def test_a_frozen_server_is_away_and_what_it_took_counts_once(
    engines: Engines, opened: tuple[LedgerFolder, PostgresqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = opened
    monkeypatch.setattr(postgresql_connection, "CONNECT_SECONDS", 0.2)
    store = PostgresqlStore(Secret(engines.server.address))
    given = rows(20)
    store.deliver(given[:1])
    store._connection._patience = -postgresql_connection._GRACE + 0.2
    engines.server.freeze()
    try:
        for _ in range(2):  # by the connection that it has, then by a new one
            with pytest.raises(StoreAway, match="no answer in time"):
                store.deliver(given)
    finally:
        engines.server.thaw()
    monkeypatch.undo()
    store._connection._patience = 10.0
    store.deliver(given)
    store.close()
    assert (check(folder).attempts, check(folder).is_sound) == (20, True)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://dragoman:wrong-canary@127.0.0.1:{port}/postgres", "password authentication failed"),
        ("postgresql://dragoman:pg%20p%40ss%2Fw0rd%3Acanary@127.0.0.1:{port}/none", "does not exist"),
        ("postgresql://dragoman:pw-canary@127.0.0.1:1/postgres", "127.0.0.1:1"),
        ("postgresql://dragoman:pw-canary@localhost.invalid/postgres?sslmode=disable", "localhost.invalid"),
    ],
)
def test_an_address_that_does_not_serve_is_said_without_its_password(
    engines: Engines, address: str, words: str
) -> None:
    secret = Secret(address.format(port=engines.server.port))
    store = PostgresqlStore(secret)
    with pytest.raises(StoreAway, match=words) as away:
        store.deliver(rows(1))
    store.close()
    for text in (str(away.value), repr(away.value), repr(LedgerFolder(Path("x"), secret)), place_of(secret)):
        assert "canary" not in text


def test_final_rows_are_frozen_and_nothing_is_deleted(opened: tuple[LedgerFolder, PostgresqlStore]) -> None:
    folder, store = opened
    ended, going = intent(AttemptIds(1)), intent(AttemptIds(2))
    store.deliver([Row(HOLDER, ended, settlement(ended)), Row(HOLDER, going)])
    store.adjust(ended.id, -2, reason="invoice", actor="me")
    before = dump(folder)
    for statement in (
        "UPDATE attempt SET nano = 1 WHERE state = 'settled'",
        "UPDATE attempt SET state = 'reserved', ended = NULL WHERE state = 'settled'",
        "UPDATE attempt_2026_11 SET nano = 1",
        "UPDATE attempt SET id = gen_random_uuid() WHERE state = 'reserved'",
        "DELETE FROM attempt",
        "UPDATE adjustment SET nano = 1",
        "DELETE FROM adjustment",
        "UPDATE audit SET actor = 'you'",
        "DELETE FROM audit",
    ):
        with pytest.raises(Refused), store._writing() as connection:
            connection.execute(statement)
    assert dump(folder) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE usage_hour SET nano = nano + 1",
        "DELETE FROM usage_hour",
        "INSERT INTO usage_hour SELECT 1, '', '', '', '', '', '', '2026-11', 1, 0, 0, 0, 0, 0, 0, 1",
        "INSERT INTO audit VALUES(1, 1, 'me', 'new', 'key', '{}', '', '')",
    ],
)
def test_a_check_finds_what_was_changed_by_hand(opened: tuple[LedgerFolder, PostgresqlStore], statement: str) -> None:
    folder, store = opened
    store.deliver(rows(3))
    assert check(folder).is_sound
    with store._writing() as connection:
        connection.execute(statement)
    assert check(folder).differences


def test_partitions_are_made_ahead_and_when_a_row_asks_for_one(engines: Engines, tmp_path: Path) -> None:
    now = START / 1_000_000
    with engines.open("postgresql", tmp_path) as (folder, _):
        assert folder.store is not None
        store = PostgresqlStore(folder.store, now=lambda: now + 400 * 86_400)
        store.audit("me", "new", "key", {})
        with open_postgresql(folder.store, patience=60.0) as reading:
            assert {"2027-12", "2028-01", "2028-02"} <= set(reading.months())
        late = intent(AttemptIds(1), started=START + 30 * MONTH)
        store.deliver([Row(HOLDER, late, settlement(late))])
        store.close()
        assert check(folder).attempts == 1


def test_tables_of_a_later_version_are_left_alone(opened: tuple[LedgerFolder, PostgresqlStore]) -> None:
    folder, store = opened
    with store._writing() as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    store.close()
    try:
        with pytest.raises(StoreAway, match="a later dragoman"):
            store.deliver(rows(1))
        with pytest.raises(StoreAway, match="a later dragoman"):
            check(folder)
    finally:
        with store._connection.transaction():
            store._connection.execute(f"UPDATE meta SET value = '{VERSION}' WHERE name = 'version'")


def test_tables_of_an_earlier_version_are_brought_up(engines: Engines, tmp_path: Path) -> None:
    """In a database of its own, by two at once; what stood there stands."""
    with engines.database("earlier") as address:
        connection = postgresql_connection.Connection(Secret(address))
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            connection.execute("CREATE SCHEMA dragoman")
            connection.execute(STEPS[0])
            connection.execute("INSERT INTO price VALUES(1, 'lab/m', 's', '{}')")
        with ThreadPoolExecutor(2) as pool:
            books = [KeyBook(LedgerFolder(tmp_path, Secret(address)), actor="me") for _ in "12"]
            list(
                pool.map(
                    lambda each: each[1].add(VirtualKey(name=f"key-{each[0]}"), bytes([each[0]]) * 32), enumerate(books)
                )
            )
        assert [key.name for key in books[0].list()] == ["key-0", "key-1"]
        assert connection.fetch("SELECT value FROM meta WHERE name = 'version'") == [(str(VERSION),)]
        assert connection.fetch("SELECT target FROM price") == [("lab/m",)]
        for each in (connection, *books):
            each.close()


def test_commands_read_and_write_it(
    engines: Engines, opened: tuple[LedgerFolder, PostgresqlStore], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    _, store = opened
    given = rows(3)
    store.deliver(given)
    monkeypatch.setenv("DRAGOMAN_TEST_STORE", engines.server.address)
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path}"\n[ledger]\nstore = "env:DRAGOMAN_TEST_STORE"\n')
    where = ["--config", str(file)]
    assert main(["ledger", "adjust", given[0].intent.id.hex(), "--usd", "0.000000001", "--reason", "r", *where]) == 0
    assert main(["ledger", "check", *where]) == 0
    assert main(["ledger", "status", *where]) == 0
    assert main(["ledger", "export", "-", *where]) == 0
    assert main(["spend", "--by", "month", "--json", *where]) == 0
    said = capsys.readouterr()
    assert "3 attempts cost 0.000000022 US dollars" in said.out and '"nano":22' in said.out.replace(" ", "")
    assert f"postgresql://127.0.0.1:{engines.server.port}/postgres" in said.out
    assert "canary" not in said.out + said.err
    assert main(["budget", "set", "all", "5/month", *where]) == 0
    assert main(["budget", "list", *where]) == 0
    assert capsys.readouterr().out == "all  5/month usd  bound  (ledger)\n"
    assert main(["budget", "remove", "all", *where]) == 0


def test_the_command_copies_and_says_what_it_did(
    engines: Engines, opened: tuple[LedgerFolder, PostgresqlStore], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    there, _ = opened
    here = LedgerFolder.of(tmp_path)
    fill(here)
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstate = "{tmp_path}"\n')
    monkeypatch.setenv("DRAGOMAN_TEST_STORE", engines.server.address)
    where = ["--config", str(file)]
    assert main(["ledger", "migrate", "--store", "env:DRAGOMAN_TEST_STORE", *where]) == 0
    assert main(["ledger", "copy", "--to", "env:DRAGOMAN_TEST_STORE", *where]) == 0
    assert main(["ledger", "check", "--json", *where]) == 1  # of what was set aside
    assert main(["ledger", "check", "--json", "--store", "env:DRAGOMAN_TEST_STORE", *where]) == 1
    said = capsys.readouterr()
    ours, theirs = [line for line in said.out.splitlines() if line.startswith("{")]
    assert ours == theirs
    assert "13 attempts and 6 corrections stand there now" in said.out and "canary" not in said.out + said.err
    file.write_text(f'[server]\nstate = "{tmp_path}"\n[ledger]\nstore = "env:DRAGOMAN_TEST_STORE"\n')
    assert main(["ledger", "copy", "--to", "sqlite", *where]) == 0
    assert dump(here) == dump(there)


def test_a_server_ends_with_who_started_it() -> None:
    with PostgreSQL() as server:
        process = server._process
        assert process is not None and process.poll() is None
    assert process.poll() is not None
    until = time.monotonic() + 30
    while server._folder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not server._folder.exists()


def test_counters_are_of_one_life_whatever_the_time_zone_of_who_asks(engines: Engines, tmp_path: Path) -> None:
    address = engines.server.address
    there = f"{address}{'&' if '?' in address else '?'}timezone=Asia/Kathmandu"
    here, far = (open_counters(LedgerFolder(tmp_path, Secret(each)), has_time=True) for each in (address, there))
    epoch = here.look()
    assert far.look() == epoch == here.look()
    here.close()
    far.close()


def test_counters_are_away_where_the_system_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread, no descriptor, no name for the machine: what the quotas say of an outage holds."""
    address = Secret("postgresql://u@127.0.0.1:1/d")

    def no_room(*given: object, **named: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    def no_descriptor() -> NoReturn:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("concurrent.futures.thread.threading.Thread.start", no_room)
        database = Database(address, "", version="1", patience=1.0)
        for _ in range(2):
            with pytest.raises(CountersAway):
                database.do(lambda connection: connection.fetch("SELECT 1"))
    with monkeypatch.context() as patched:
        patched.setattr("asyncio.new_event_loop", no_descriptor)
        with pytest.raises(CountersAway):
            database.do(lambda connection: connection.fetch("SELECT 1"))
        with pytest.raises(StoreAway):
            postgresql_connection.Connection(address).fetch("SELECT 1")
    (tmp_path / "file").touch()
    with pytest.raises(CountersAway):
        SharedRoster(LedgerFolder(tmp_path / "file"), database).join("x")
    database.close()


@pytest.mark.parametrize("left", [None, "", "0123", "\ufffd" * 16])
def test_a_machine_has_one_name_whatever_a_power_cut_left_of_it(tmp_path: Path, left: str | None) -> None:
    """Of no name all machines would be one, and each would take the others' workers for ended."""
    folder = LedgerFolder(tmp_path / "ledger")
    if left is not None:
        folder.root.mkdir()
        (folder.root / "machine").write_text(left)
    with ThreadPoolExecutor(8) as pool:
        [name] = set(pool.map(lambda _: machine_of(folder), range(16)))
    assert re.fullmatch("[0-9a-f]{16}", name) and (folder.root / "machine").read_text() == name
    assert sorted(path.name for path in folder.root.iterdir()) == ["machine", "machine.lock"]


def test_many_machines_count_and_sweep_at_once(counting: CountingEngines, engines: Engines, tmp_path: Path) -> None:
    """T8: each goes through the accounts in an order of its own; nobody locks another one up, and nothing is lost. T9:
    each has one connection."""
    machines, accounts, turns = 6, range(40_000, 40_080, 4), 5  # of which no row of other tests tells
    database = counting.database()
    database.do(lambda connection: connection.execute(f"TRUNCATE holder, {COUNTER_TABLES}"))

    def count(number: int) -> tuple[set[str], int]:
        name = f"machine-{number}"
        address = engines.server.address
        folder = LedgerFolder(
            tmp_path / name, Secret(f"{address}{'&' if '?' in address else '?'}application_name={name}")
        )
        journal, counters, watching = (
            Journal(folder.journals),
            open_counters(folder, has_time=True),
            counting.database(),
        )
        epoch = counters.greet(journal.holder)
        journal.say_leasing()
        counters.join(journal.holder)
        order, said = list(accounts), set()
        for turn in range(1, turns + 1):
            random.Random(number * turns + turn).shuffle(order)
            for account in order:
                claim = Claim(account, journal.holder, turn, Facts(turn), 0, 0, 1_000, 1, epoch)
                said.add(counters.take(claim).outcome)
            fold_ended(folder, True)
        open_now = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
        until = time.monotonic() + 10  # those of the sweeps end
        while (found := watching.do(lambda connection: connection.fetch(open_now, name))[0][0]) > 1:
            assert time.monotonic() < until
            time.sleep(0.05)
        for each in (watching, counters, journal):
            each.close()
        return said, found

    with ThreadPoolExecutor(machines) as pool:
        assert list(pool.map(count, range(machines))) == [({"granted"}, 1)] * machines
    folder = LedgerFolder(tmp_path / "reader", Secret(engines.server.address))
    assert read_totals(folder, accounts) == dict.fromkeys(accounts, machines * turns)
    database.close()
