"""Counters of several machines with the ledger that they share: what one machine used, another one knows."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from reliability.engine_valkey import Valkey
from reliability.engines import PostgreSQL

from dragoman.config import load_config
from dragoman.config.quotas import Quota
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.record import Observer
from dragoman.ledger.counters.apart import Database
from dragoman.ledger.counters.postgresql_schema import TABLES, VERSION
from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.counters.roster import SharedRoster
from dragoman.ledger.counters.valkey import ValkeyPlace
from dragoman.ledger.counting import correct_counters, fold_ended, open_counters, read_totals, read_used
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Claim, CountersAway, Facts, Seed
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.limits.accounts import Charge, charge_of
from dragoman.ledger.limits.budgets import Budgets, Need, Refusal
from dragoman.ledger.limits.leases import PARTS, SILENT_SECONDS
from dragoman.ledger.limits.quotas import QuotaBook
from dragoman.ledger.replica.file import ReplicaWatch
from dragoman.ledger.replica.refreshing import ReplicaKeeper
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.opening import open_store
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.ledger.stores.postgresql_schema import SCHEMA
from dragoman.secret import Secret
from ledger.counting_engines import REMOTE, CountingEngines
from ledger.histories import intent, settlement
from ledger.slow_lines import slow_line

QUOTA = Quota("all", "", "usd", 1, "month", generation=1)  # 1,000 nano-dollars
pytestmark = pytest.mark.parametrize("kind", REMOTE)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    with Valkey() as valkey:
        yield valkey


@pytest.fixture
def engines_of(kind: str, server: PostgreSQL, valkey: Valkey) -> tuple[PostgreSQL, Valkey | None]:
    """Engines without anything, which this test may kill: the next one begins them again."""
    server.start()
    connection = Connection(Secret(server.address))
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    connection.close()
    if kind == "postgresql":
        return server, None
    valkey.kill()
    valkey.start(is_empty=True)
    return server, valkey


class Machine:
    """A state folder, a worker and a shipper."""

    def __init__(self, root: Path, engines: tuple[PostgreSQL, Valkey | None]) -> None:
        server, valkey = engines
        counters = None if valkey is None else Secret(valkey.address)
        self.folder = LedgerFolder(root, Secret(server.address), counters)
        self.journal = Journal(self.folder.journals)
        self.counters = open_counters(self.folder, has_time=True)
        self.now = 1.0
        self.replica = ReplicaWatch(self.folder)
        assert isinstance(self.counters, RemoteCounters)
        self.budgets = Budgets(
            self.counters, self.journal.holder, begin=self._begin, holders=self.replica.holders,
            divide=partial(self.counters.divide, self.journal.holder), was_used=self.counters.was_used,
            now=lambda: self.now,
        )  # fmt: skip
        self.store = open_store(self.folder)
        self.shipper = Shipper(self.folder, self.store, batch=64, fold=partial(fold_ended, self.folder))

    def _begin(self) -> None:
        self.journal.say_leasing()
        self.counters.join(self.journal.holder)

    def spend(self, charge: Charge, nano: int, *, ends: bool = True) -> Refusal | None:
        """One request. `ends`: and its answer."""
        need = Need(charge, nano)
        self.now += 0.2  # a refusal is remembered for less
        refusal = self.budgets.admit([need])
        if refusal is None:
            opened = intent(self.journal.ids, accounts=(charge.account,), reserved=nano, started=_micros())
            self.journal.intend(opened)
            if ends:
                self.journal.settle(settlement(opened, nano=nano))
                self.budgets.settle(need, nano)
        return refusal

    def close(self) -> None:
        self.counters.close()
        self.store.close()
        self.journal.close()


def _micros() -> int:
    return int(time.time() * 1_000_000)


@pytest.fixture
def machines(tmp_path: Path, engines_of: tuple[PostgreSQL, Valkey | None]) -> Iterator[list[Machine]]:
    machines = [Machine(tmp_path / name, engines_of) for name in ("one", "two")]
    yield machines
    for machine in machines:
        machine.close()


def lose(engines: tuple[PostgreSQL, Valkey | None], *, is_empty: bool) -> None:
    """The counters' server is killed, and begins again."""
    server, valkey = engines
    if valkey is None:
        server.kill()
        server.start()
    else:
        valkey.kill()
        valkey.start(is_empty=is_empty)
    time.sleep(0.6)  # one try a second


def test_what_is_served_while_the_counters_are_away_is_the_overdraft(
    engines_of: tuple[PostgreSQL, Valkey | None], tmp_path: Path
) -> None:
    """L9: of two machines together; one that begins meanwhile has no part of it."""
    server, valkey = engines_of
    machines = [Machine(tmp_path / name, engines_of) for name in ("here", "there")]
    charge = charge_of(msgspec.structs.replace(QUOTA, on_outage="serve", overdraft=1), "", time.time())
    strict = charge_of(msgspec.structs.replace(QUOTA, zone="Asia/Tokyo"), "", time.time())
    for each in machines:
        assert each.spend(charge, 500) is None
    for each in machines:
        keeper = ReplicaKeeper(each.folder)
        keeper.refresh()
        keeper.close()
    for each in machines:  # who came first had the whole
        each.now += 2
        each.budgets.tick(time.time())
    (server if valkey is None else valkey).kill()
    machines.append(Machine(tmp_path / "late", engines_of))
    served = {each.folder.root.name: 0 for each in machines}
    for each in machines:
        assert each.spend(strict, 1) == Refusal(strict, "away")
        while each.spend(charge, 100) is None:
            served[each.folder.root.name] += 100
    assert served == {"here": 500, "there": 500, "late": 0}
    for each in machines:
        each.close()


def test_a_part_of_an_overdraft_is_given_once(machines: list[Machine]) -> None:
    """What somebody has is its own until it gives it up, or has ended and the counters know what it used."""
    one, two = machines
    rosters = []
    for each in machines:
        each.folder.journals.mkdir(parents=True, exist_ok=True)
        assert isinstance(each.counters, RemoteCounters)
        each.journal.make_ready()
        each.counters.join(each.journal.holder)
        rosters.append(partial(each.counters.divide, each.journal.holder))
    first, second = rosters
    assert (first(PARTS), second(PARTS // 2)) == (PARTS, 0)
    assert (first(PARTS // 2), second(PARTS)) == (PARTS // 2, PARTS // 2)
    one.journal.close()
    one.shipper.round()  # all of its rows are there: it is swept
    assert second(PARTS) == PARTS
    assert isinstance(one.counters, RemoteCounters) and one.counters.divide("nobody", PARTS) == 0
    assert two.counters.was_used(4) is False  # type: ignore[union-attr]


@pytest.mark.parametrize("is_empty", [True, False])
def test_two_machines_have_one_budget_also_when_the_counters_lose_their_memory(
    machines: list[Machine], engines_of: tuple[PostgreSQL, Valkey | None], *, is_empty: bool
) -> None:
    one, two = machines
    charge = charge_of(QUOTA, "", time.time())
    assert one.spend(charge, 300) is None and two.spend(charge, 200) is None
    if engines_of[1] is not None:
        engines_of[1].save()
    assert one.spend(charge, 250) is None  # neither a row nor the snapshot has it
    lose(engines_of, is_empty=is_empty)
    two.now += 5
    refused = two.spend(charge, 100)
    assert refused is not None and refused.cause in ("settling", "away")  # one may use its lease still
    one.now += 5
    one.budgets.tick(time.time())
    one.now += 5
    one.budgets.tick(time.time())
    two.now += 5
    assert two.spend(charge, 251) == Refusal(charge, "spent")
    assert two.spend(charge, 250) is None
    assert one.spend(charge, 1) == Refusal(charge, "spent")
    for machine in machines:
        machine.budgets.tick(time.time())
        machine.shipper.round()
    assert read_totals(one.folder, [charge.account]) == {charge.account: 1_000}
    assert read_used(two.folder, [charge.account]) == {charge.account: 1_000}


def test_who_ended_is_folded_by_what_its_rows_say_and_corrections_are_felt(machines: list[Machine]) -> None:
    one, two = machines
    charge = charge_of(QUOTA, "", time.time())
    assert one.spend(charge, 300) is None
    assert one.spend(charge, 400, ends=False) is None
    assert two.spend(charge, 301) == Refusal(charge, "spent")
    one.journal.close()  # it died: what it left open costs what is known of it, nothing
    two.shipper.round()
    assert two.spend(charge, 301) == Refusal(charge, "spent")  # another machine's journals are not to be read
    one.shipper.round()
    used = read_used(two.folder, [charge.account])[charge.account]
    assert read_totals(two.folder, [charge.account]) == {charge.account: used}
    assert two.spend(charge, 1_000 - used) is None
    two.budgets.tick(time.time())
    two.shipper.round()
    store = open_store(two.folder)
    [attempt] = [row for row in _attempts(two.folder) if row[1] == 300]
    assert store.adjust(attempt[0], -100, reason="invoice", actor="me")
    correct_counters(two.folder, store.accounts_of(attempt[0]))
    store.close()
    assert read_totals(two.folder, [charge.account]) == {charge.account: 900}
    late = Claim(charge.account, one.journal.holder, 99, Facts(0), 0, 0, 1_000, 1, two.counters.look())
    two.counters.greet("x")
    assert two.counters.take(late).outcome == "stale"


def _attempts(folder: LedgerFolder) -> list[tuple[bytes, int]]:
    from dragoman.ledger.stores.opening import open_reading

    with open_reading(folder) as reading:
        return [row for month in reading.months() for row in reading.select(month, "SELECT id, nano FROM :attempt")]


def test_who_tells_what_it_used_while_an_account_is_read_stays_known(
    tmp_path: Path, counting: CountingEngines, kind: str
) -> None:
    """Of two that begin at once one reads the ledger before the other has joined."""
    read = Seed(100, {"early": 30}, frozenset({"gone"}))
    with counting.open(kind, tmp_path, lambda account: read, lambda: {"early"}, lambda: 1.0, set) as counters:
        assert isinstance(counters, RemoteCounters)
        epoch = counters.greet("late", [Claim(4, who, 1, Facts(used), 0, 0, 1_000, 1, "") for who, used in
                                        (("late", 7), ("early", 20), ("gone", 90))])  # fmt: skip
        taken = counters.take(Claim(4, "third", 1, Facts(), 1, 1, 1_000, 1, epoch))
        assert (taken.outcome, taken.others) == ("granted", 100 + 30 + 7)
        assert counters.take(Claim(4, "late", 2, Facts(8), 1, 1, 1_000, 1, epoch)).outcome == "granted"
        assert counters.take(Claim(4, "gone", 2, Facts(90), 0, 0, 1_000, 1, epoch)).outcome == "stale"


def test_a_machine_that_never_comes_back_keeps_what_it_used_and_no_lease(
    tmp_path: Path, engines_of: tuple[PostgreSQL, Valkey | None], kind: str
) -> None:
    server, valkey = engines_of
    clock = [1_000.0]
    folder = LedgerFolder(tmp_path, Secret(server.address))
    database = Database(Secret(server.address), TABLES, version=VERSION, patience=30)
    roster = SharedRoster(folder, database)
    if valkey is None:
        from dragoman.ledger.counters.postgresql import PostgresqlPlace

        counters = RemoteCounters(PostgresqlPlace(database, now=lambda: clock[0]), roster)
    else:
        counters = RemoteCounters(ValkeyPlace(Secret(valkey.address), patience=5, now=lambda: clock[0]), roster)
    epoch = counters.greet("lost")
    counters.join("lost")
    lease = counters.take(Claim(4, "lost", 1, Facts(30, 5), 600, 1, 1_000, 1, epoch))
    assert (lease.outcome, lease.amount) == ("granted", 635)
    counters.sweep(roster.spent)
    assert counters.totals([4]) == {4: 635}
    clock[0] += SILENT_SECONDS
    counters.sweep(roster.spent)
    assert counters.totals([4]) == {4: 35}
    assert counters.take(Claim(4, "lost", 2, Facts(40), 0, 0, 1_000, 1, epoch)).amount == 40  # it was only cut off
    database.do(lambda connection: connection.execute("UPDATE holder SET seen = seen - interval '2 days'"))
    roster.tidy()
    counters.sweep(roster.spent)
    assert counters.totals([4]) == {4: 0}  # nothing of it reached the store
    counters.close()


def test_counters_that_do_not_answer_are_away_and_come_back(
    machines: list[Machine], engines_of: tuple[PostgreSQL, Valkey | None]
) -> None:
    server, valkey = engines_of
    folder = machines[0].folder
    hasty = open_counters(folder)
    first = answer_of(lambda: hasty.greet("x"))
    engine = valkey or server
    engine.freeze()
    for _ in range(3):
        with pytest.raises(CountersAway):
            hasty.look()
    engine.thaw()
    assert answer_of(hasty.look) == first
    hasty.close()


def behind_a_slow_line(folder: LedgerFolder, engines: tuple[PostgreSQL, Valkey | None], port: int) -> LedgerFolder:
    """The same folder, with counters behind another port."""
    server, valkey = engines
    store, counters = server.address, None if valkey is None else valkey.address
    if counters is None:
        store = store.replace(f":{server.port}/", f":{port}/")
    else:
        counters = counters.replace(f":{valkey.port if valkey else 0}/", f":{port}/")
    return LedgerFolder(folder.root, Secret(store), None if counters is None else Secret(counters))


def test_a_connection_that_begins_slowly_begins_and_holds_nobody_up(
    machines: list[Machine], engines_of: tuple[PostgreSQL, Valkey | None]
) -> None:
    """A worker waits a quarter of a second for an answer; a connection of a busy machine may take longer to begin."""
    folder = machines[0].folder
    first = machines[0].counters.greet("x")
    with slow_line((engines_of[1] or engines_of[0]).port, 1.0) as port:
        hasty = open_counters(behind_a_slow_line(folder, engines_of, port))
        begun, held, asked = time.monotonic(), 0.0, 0
        while True:
            before = time.monotonic()
            try:
                found = hasty.look()
                break
            except CountersAway:
                asked, held = asked + 1, held + time.monotonic() - before
                assert before < begun + 30, "no answer within 30 s"
                time.sleep(0.02)
        assert found == first
        assert time.monotonic() - before < 0.6, "all that is asked shares the connection that has begun"
        assert asked >= 3 and held < 0.6, "who asks while it begins does not wait a second time"
        if engines_of[1] is not None:  # a connection that ended is begun anew in no other way
            engines_of[1].ask("CLIENT", "KILL", "TYPE", "normal")
            begun = time.monotonic()
            with suppress(CountersAway):
                hasty.look()
            assert time.monotonic() - begun < 0.9
            assert answer_of(hasty.look) == first
        hasty.close()


def test_the_first_greeting_waits_longer_than_what_follows(
    tmp_path: Path, machines: list[Machine], engines_of: tuple[PostgreSQL, Valkey | None]
) -> None:
    machines[0].counters.greet("x")
    observer = Observer()
    with slow_line((engines_of[1] or engines_of[0]).port, 1.0) as port:
        ledger = Ledger(behind_a_slow_line(machines[0].folder, engines_of, port), observer, ships=False)
        ledger.pricing = Pricing(load_config(None, environ={}, home=tmp_path))
        requests = Quota("all", "", "requests", 5, "minute")
        ledger.limit([requests])
        asyncio.run(ledger.greet())
        assert ledger.admission is not None
        budgets = ledger.admission.budgets
        assert budgets.has_begun
        (engines_of[1] or engines_of[0]).freeze()
        before = time.monotonic()
        refusal = budgets.admit([Need(charge_of(requests, "", time.time()), 1)])
        assert refusal is not None and refusal.cause == "away" and time.monotonic() - before < 2
        ledger.tick()
        assert "counters" in observer.notices
        (engines_of[1] or engines_of[0]).thaw()
        while observer.notices:
            assert time.monotonic() < before + 30, "no answer within 30 s"
            time.sleep(0.1)
            ledger.tick()
        ledger.close()


@pytest.mark.parametrize("loses", [False, True], ids=["warm", "begun anew"])
def test_the_first_quota_of_a_gateway_that_runs_meets_counters_that_it_knows(
    tmp_path: Path, machines: list[Machine], engines_of: tuple[PostgreSQL, Valkey | None], loses: bool
) -> None:
    """A request that comes with it is not refused because a connection begins."""
    server, valkey = engines_of
    one = machines[0].folder
    machines[0].counters.greet("x")
    with slow_line((valkey or server).port, 1.0) as port:
        ledger = Ledger(behind_a_slow_line(one, engines_of, port), Observer(), ships=False)
        ledger.pricing = Pricing(load_config(None, environ={}, home=tmp_path))
        ledger.limit([])
        asyncio.run(ledger.greet())
        if loses:  # its connections, which whoever asks next hears of
            machines[0].counters.close()
            for engine in filter(None, (server, valkey)):
                engine.kill()
                engine.start()
            epoch, until, met = answer_of(machines[0].counters.look), time.monotonic() + 30, 0
            while met < 3:  # in whole, the ledger's rows too
                assert time.monotonic() < until, "not met within 30 s"
                ledger.tick()
                assert isinstance(ledger._counters, RemoteCounters) and ledger._meeting is not None
                ledger._meeting.join()
                met += ledger._counters.epoch == epoch
        quota = Quota("all", "", "requests", 5, "month")
        book = QuotaBook(one, actor="test")
        book.set(quota)
        book.close()
        keeper = ReplicaKeeper(one)
        keeper.refresh()
        keeper.close()
        ledger.look()  # as whoever finds a key that is new to it
        assert ledger.admission is not None
        assert ledger.admission.budgets.admit([Need(charge_of(quota, "", time.time()), 1)]) is None
        ledger.close()


def answer_of(ask: Callable[[], str]) -> str:
    """What hasty counters say as soon as the engine answers in time."""
    until = time.monotonic() + 30
    while True:
        try:
            return ask()
        except CountersAway:
            assert time.monotonic() < until, "no answer within 30 s"
            time.sleep(0.1)


def test_a_replica_that_takes_over_is_another_life(
    tmp_path: Path, engines_of: tuple[PostgreSQL, Valkey | None], kind: str
) -> None:
    server, valkey = engines_of
    if valkey is None:  # of PostgreSQL's lives the server's start tells, which no replica shares
        assert kind == "postgresql"
        return
    with Valkey(of=valkey) as replica:
        until = time.monotonic() + 30
        while "master_link_status:up" not in replica.ask("INFO", "replication") and time.monotonic() < until:
            time.sleep(0.05)
        counters = open_counters(LedgerFolder(tmp_path, Secret(server.address), Secret(valkey.address)), has_time=True)
        epoch = counters.greet("x")
        assert counters.take(Claim(4, "x", 1, Facts(), 5, 5, 1_000, 1, epoch)).outcome == "granted"
        assert "1" in valkey.ask("WAIT", "1", "5000")
        counters.close()
        valkey.kill()
        replica.promote()
        other = open_counters(LedgerFolder(tmp_path, Secret(server.address), Secret(replica.address)), has_time=True)
        assert other.greet("y") != epoch
        other.close()


def test_a_valkey_must_show_a_certificate_for_its_own_name(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    seen: list[tuple[str, bool, ssl.VerifyMode]] = []

    def look(context: ssl.SSLContext, *given: object, **named: object) -> NoReturn:
        seen.append((kind, context.check_hostname, context.verify_mode))
        raise OSError("seen")

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", look)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Secret(f"valkeys://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(CountersAway):
            ValkeyPlace(address, patience=5).epoch()
    assert seen == [(kind, True, ssl.CERT_REQUIRED)]
