"""This machine's copy of the keys and quotas of a PostgreSQL: like it while it is in reach, and as old as it is."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from reliability.r33_replica import _FILE_KEY, Fleet, fleet

from dragoman.config.quotas import Quota
from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Head
from dragoman.ledger import key_ring
from dragoman.ledger.counters.roster import machine_of
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook, QuotaWatch, read_stored
from dragoman.ledger.replica.age import Moment, seconds_between
from dragoman.ledger.replica.refreshing import ReplicaKeeper
from dragoman.ledger.stores.files import REPLICA_FILE
from dragoman.ledger.stores.postgresql import PostgresqlStore
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.secret import Secret
from ledger.engines import Engines

DAY = 86_400.0


class Machine:
    """One machine: its folder, its copy, and a clock that is set by hand."""

    def __init__(self, folder: LedgerFolder) -> None:
        self.folder = folder
        self.moment = Moment("boot", 1_000.0, 1e9)
        self.keeper = ReplicaKeeper(folder, moment=lambda: self.moment)

    def ring(self, of_file: dict[bytes, VirtualKey] | None = None) -> KeyRing:
        """That of a worker which has just begun."""
        return KeyRing(self.folder, of_file or {}, max_age=DAY, now=lambda: 1e9, moment=lambda: self.moment)

    def passes(self, seconds: float, *, wall: float | None = None, boot: str | None = None) -> None:
        """Time; `wall`: what its clock makes of it, `boot`: it was off meanwhile."""
        ticks = self.moment.ticks + seconds if boot is None else 5.0
        self.moment = Moment(boot or self.moment.boot, ticks, self.moment.wall + (seconds if wall is None else wall))


def digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_ring, "_LOOK", 0.0)


@pytest.fixture
def machine(engines: Engines, tmp_path: Path) -> Iterator[Machine]:
    with engines.open("postgresql", tmp_path / "here") as (folder, _):
        machine = Machine(folder)
        yield machine
        machine.keeper.close()


@pytest.fixture
def book(machine: Machine) -> Iterator[KeyBook]:
    book = KeyBook(machine.folder, actor="me")
    yield book
    book.close()


def found(ring: KeyRing, *names: str) -> list[str | None]:
    return [None if (key := ring.find(digest(name))) is None else key.name for name in names]


def test_every_change_of_the_store_reaches_the_copy(machine: Machine, book: KeyBook) -> None:
    ring, keeper = machine.ring(), machine.keeper
    assert ring.has_any and ring.is_too_old  # nothing was heard yet, and there may be keys
    keeper.refresh()
    assert not ring.has_any and not ring.is_too_old
    for number in range(3):
        book.add(VirtualKey(name=f"key-{number}", team="research"), digest(f"key-{number}"))
    keeper.refresh()
    assert found(ring, "key-0", "key-1", "key-2", "other") == ["key-0", "key-1", "key-2", None]
    book.disable("key-0", at=1)
    book.rotate("key-1", digest("new"), keep_seconds=-int(2e9))
    book.alter("key-2", lambda key: msgspec.structs.replace(key, team="sales"))
    keeper.refresh()
    assert found(ring, "key-0", "key-1", "new") == [None, None, "key-1"]
    key = ring.find(digest("key-2"))
    assert key is not None and key.team == "sales"
    assert stat.S_IMODE((machine.folder.root / REPLICA_FILE).stat().st_mode) == 0o600


def test_quotas_reach_the_copy_beside_those_of_the_machine(machine: Machine, tmp_path: Path) -> None:
    here = QuotaBook(LedgerFolder(machine.folder.root), actor="me")
    here.set(Quota("all", "", "usd", 1))
    here.set(Quota("team", "a", "usd", 2))
    here.close()
    watch, book = QuotaWatch(machine.folder), QuotaBook(machine.folder, actor="me")
    assert watch.has_changed() and watch.are_known
    book.set(Quota("all", "", "usd", 3))
    machine.keeper.refresh()
    assert watch.has_changed() and [(each.place, each.amount) for each in watch.quotas] == [("all", 3), ("team:a", 2)]
    assert read_stored(machine.folder) == watch.quotas and [each.place for each in book.of_machine()] == ["team:a"]
    machine.keeper.refresh()
    assert not watch.has_changed()
    for quota in watch.quotas:
        book.remove(quota)  # of the store, and of this machine
    machine.keeper.refresh()
    assert watch.has_changed() and watch.quotas == [] and not book.of_machine()
    with pytest.raises(Refused):
        book.remove(Quota("all", "", "usd", 3))
    watch.close()
    book.close()


def test_a_store_that_was_put_back_is_copied_anew(
    machine: Machine, book: KeyBook, engines: Engines, tmp_path: Path
) -> None:
    """A standby that lacks the last commits, a backup, another store: the digests of the audit differ."""
    ring = machine.ring()
    book.add(VirtualKey(name="one"), digest("one"))
    book.add(VirtualKey(name="lost"), digest("lost"))
    machine.keeper.refresh()
    assert found(ring, "one", "lost") == ["one", "lost"]
    with engines.open("postgresql", tmp_path / "here"):  # it is empty again
        for names in (["one"], ["one", "other", "third"]):
            for name in names:
                if name not in {key.name for key in book.list()}:
                    book.add(VirtualKey(name=name), digest(name))
            machine.keeper.refresh()
            assert found(ring, "one", "lost") == ["one", None]
    assert found(ring, "third") == ["third"]


def test_what_is_not_a_change_of_a_key_may_be_one(machine: Machine, book: KeyBook) -> None:
    """Somebody copies keys into the store and says so in one entry of the audit."""
    book.add(VirtualKey(name="one"), digest("one"))
    machine.keeper.refresh()
    assert machine.folder.store is not None
    store = PostgresqlStore(machine.folder.store)
    with store.changing() as change:
        change.execute("INSERT INTO key_digest VALUES(?,?,NULL)", digest("two"), "one")
        change.note("me", "copy", "keys", {})
    store.close()
    machine.keeper.refresh()
    assert found(machine.ring(), "two") == ["one"]


def test_a_copy_that_is_too_old_lets_nobody_in_by_a_key_of_the_store(machine: Machine, book: KeyBook) -> None:
    here = KeyBook(LedgerFolder(machine.folder.root), actor="me")
    here.add(VirtualKey(name="here"), digest("here"))
    here.add(VirtualKey(name="store"), digest("old secret"))  # a name of the store stands over it
    here.close()
    with pytest.raises(Refused, match="on this machine"):
        book.add(VirtualKey(name="store"), digest("store"))
    elsewhere = KeyBook(LedgerFolder(machine.folder.root / "elsewhere", machine.folder.store), actor="me")
    elsewhere.add(VirtualKey(name="store"), digest("store"))
    elsewhere.close()
    assert [key.name for key in book.of_machine()] == ["here"]
    machine.keeper.refresh()
    ring = machine.ring({digest("file"): VirtualKey(name="file")})
    names = ("file", "store", "here", "old secret")
    assert found(ring, *names) == ["file", "store", "here", None] and not ring.is_too_old
    machine.passes(DAY - 1, wall=-1e8)  # a clock that is put back makes nothing young
    assert found(ring, *names) == ["file", "store", "here", None] and ring.seconds() == DAY - 1
    machine.passes(2, wall=-1e8)
    assert found(ring, *names) == ["file", None, "here", None] and ring.is_too_old
    machine.keeper.refresh()
    assert found(ring, *names) == ["file", "store", "here", None] and ring.seconds() == 0
    book.disable("here", at=1)  # it stands on this machine alone, and is changed here
    assert found(ring, "here") == [None]


def test_how_old_it_is_stays_known_while_the_store_is_away_and_the_machine_off(
    machine: Machine, book: KeyBook, tmp_path: Path
) -> None:
    book.add(VirtualKey(name="one"), digest("one"))
    machine.keeper.refresh()
    away = Machine(LedgerFolder(machine.folder.root, Secret("postgresql://u:p@127.0.0.1:1/none")))
    away.moment = machine.moment
    for _ in range(3):
        away.passes(3_600)
        with pytest.raises(StoreAway):
            away.keeper.refresh()
    away.passes(3_600, boot="another")  # by the wall's clock, from the last note on
    assert away.ring().seconds() == 4 * 3_600 and found(away.ring(), "one") == ["one"]
    with pytest.raises(StoreAway):
        away.keeper.refresh()
    away.passes(60, wall=-DAY, boot="a third")  # a clock that went back says nothing
    assert away.ring().seconds() == float("inf") and found(away.ring(), "one") == [None]
    away.keeper.close()


@pytest.mark.usefixtures("warm_gateways")
def test_a_disabled_key_ends_on_all_machines(engines: Engines, tmp_path: Path) -> None:
    """L12: two gateways, and a key that is disabled from a third machine; never served after."""

    async def drill() -> tuple[list[int], set[int]]:
        async with fleet(engines.server, age=DAY, workers=1) as each:
            await each.until(200, each.secrets["ci"], 30)
            await each.disable(at=1)
            await each.until(401, each.secrets["ci"], 30)
            ended = [(await each.ask(gateway, each.secrets["ci"]))[0] for gateway in each.gateways]
            others = {(await each.ask(gateway, each.secrets["load"]))[0] for gateway in each.gateways}
            return ended, others

    with engines.open("postgresql", tmp_path):
        ended, others = asyncio.run(drill())
        assert ended == [401] * 2 and others == {200}


@pytest.mark.usefixtures("warm_gateways")
def test_a_gateway_serves_while_the_store_is_away_until_its_copy_is_too_old(engines: Engines, tmp_path: Path) -> None:
    """L12, out of reach: then 503 with Retry-After in the client's form; keys of the file go on, and all do when it is
    back."""

    async def drill(each: Fleet) -> None:
        for gateway in each.gateways:
            await each.until(200, each.secrets["ci"], 30)
            await asyncio.to_thread(engines.server.freeze)
            assert (await each.ask(gateway, each.secrets["ci"]))[0] == 200
            await each.until(503, each.secrets["ci"], 30)
            _, answer = await each.ask(gateway, each.secrets["ci"])
            head, _, body = answer.partition(b"\r\n\r\n")
            assert b"retry-after: 30" in head.lower() and b'"keys_away"' in body
            assert (await each.ask(gateway, _FILE_KEY))[0] == 200
            for _ in range(600):  # it looks once a second
                if b"its keys let nobody in" in (page := await each.look(gateway, "/readyz")):
                    break
                await asyncio.sleep(0.05)
            assert page.startswith(b"HTTP/1.1 200") and b"heard" in page
            await asyncio.to_thread(engines.server.thaw)
            await each.until(200, each.secrets["ci"], 30)

    async def main() -> None:
        async with fleet(engines.server, age=3.0, workers=1, machines=1) as each:
            try:
                await drill(each)
            finally:
                engines.server.thaw()

    with engines.open("postgresql", tmp_path):
        asyncio.run(main())


@pytest.mark.usefixtures("warm_gateways")
def test_a_worker_that_others_take_for_ended_makes_room_for_another(engines: Engines, tmp_path: Path) -> None:
    """Its machine was cut off for a day: under its name it would get no lease until somebody began the gateway anew."""

    async def drill(each: Fleet, connection: Connection) -> tuple[set[str], set[str], set[int]]:
        [gateway], [folder] = each.gateways, each.folders
        await each.until(200, each.secrets["load"], 30)
        statement = "SELECT id FROM holder WHERE machine = $1 AND ended IS NULL"
        live = partial(connection.fetch, statement, machine_of(folder))
        first = await asyncio.to_thread(live)
        await asyncio.to_thread(connection.execute, "UPDATE holder SET ended = clock_timestamp()")
        seen = set()
        async with asyncio.timeout(60):
            while not (second := await asyncio.to_thread(live)):
                seen.add((await each.ask(gateway, each.secrets["load"]))[0])
        await each.until(200, each.secrets["load"], 30)
        return {id for (id,) in first}, {id for (id,) in second}, seen

    async def main() -> tuple[set[str], set[str], set[int]]:
        quota = '[[quotas]]\nscope = "all"\nrequests = 1000000\nper = "day"\n'
        async with fleet(engines.server, age=DAY, workers=1, machines=1, more=quota) as each:
            return await drill(each, connection)

    with engines.open("postgresql", tmp_path):
        connection = Connection(Secret(engines.server.address))
        try:
            first, second, seen = asyncio.run(main())
        finally:
            connection.close()
    assert len(first) == len(second) == 1 and first != second and seen <= {200, 503}


def test_a_machine_that_never_heard_the_store_lets_in_by_its_file_alone(tmp_path: Path) -> None:
    """Whether there are keys in the store nobody can say; the file's are keys all the same."""
    folder = LedgerFolder(tmp_path, Secret("postgresql://u:p@127.0.0.1:1/none"))
    ring = KeyRing(folder, {digest("file"): VirtualKey(name="file")})
    assert ring.is_too_old and ring.has_any and found(ring, "file", "other") == ["file", None]
    assert KeyRing(folder).has_any and KeyRing(folder).seconds() == float("inf")
    guard = Guard(allowed_hosts=(), keys=(), ring=KeyRing(folder))
    for headers in ({}, {"authorization": "Bearer something"}):
        failure = guard.judge(Head("GET", "/v1/models", {"host": "localhost", **headers}))
        assert failure is not None and (failure.status, failure.retry_after) == (503, 30.0)


@pytest.mark.parametrize(
    ("then", "later", "seconds"),
    [
        (Moment("a", 5, 100), Moment("a", 9, 50), 4),
        (Moment("a", 5, 100), Moment("b", 1, 160), 60),
        (Moment("a", 5, 100), Moment("b", 1, 97), float("inf")),
        (Moment("", 5, 100), Moment("", 6, 100), 0),
        (Moment("", 5, 100), Moment("", 6, 99), 0),
    ],
)
def test_time_between_two_moments(then: Moment, later: Moment, seconds: float) -> None:
    assert seconds_between(then, later) == seconds


@pytest.mark.parametrize("what", ["noise", "gone", "torn"])
def test_a_copy_that_is_damaged_is_made_anew(machine: Machine, book: KeyBook, what: str) -> None:
    book.add(VirtualKey(name="one"), digest("one"))
    machine.keeper.refresh()
    ring = machine.ring()
    assert found(ring, "one") == ["one"]
    machine.keeper.close()
    file = machine.folder.root / REPLICA_FILE
    data = file.read_bytes()
    for suffix in ("-wal", "-shm"):
        file.with_name(f"{REPLICA_FILE}{suffix}").unlink(missing_ok=True)
    if what == "gone":
        file.unlink()
    else:
        file.write_bytes(b"noise" * 2_000 if what == "noise" else data[: len(data) // 2])
    machine.keeper.refresh()
    assert found(machine.ring(), "one") == ["one"]
    assert found(ring, "one") == ["one"]


def test_two_who_keep_one_copy_do_not_harm_it(machine: Machine, book: KeyBook) -> None:
    other = ReplicaKeeper(machine.folder, moment=lambda: machine.moment)
    for number in range(6):
        book.add(VirtualKey(name=f"key-{number}"), digest(f"key-{number}"))
        (machine.keeper if number % 2 else other).refresh()
    other.refresh()
    names = [f"key-{number}" for number in range(6)]
    assert found(machine.ring(), *names) == names
    other.close()
