"""A PostgreSQL is restored from an older dump: what journals have comes again, and what they lack is named."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.ledger.counters.roster import machine_of
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.reports.checking import check
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.brought import read_mark
from dragoman.ledger.stores.opening import open_store
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.secret import Secret
from ledger.engines import Engines
from ledger.histories import intent, settlement


class Machine:
    """A journal, a shipper, and the database that it delivers into."""

    def __init__(self, engines: Engines, root: Path) -> None:
        self._server = engines.server
        self.name = "restored"
        self.folder = LedgerFolder.of(root, Secret(self._server.address_of(self.name)))
        self.journal = Journal(self.folder.journals)
        self._count = 0
        self.begin()

    def begin(self) -> None:
        """Another life of the shipper."""
        self.shipper = Shipper(self.folder, open_store(self.folder, ships=True), batch=64)

    def write(self, count: int) -> None:
        for _ in range(count):
            opened = intent(self.journal.ids, self._count, started=time.time_ns() // 1_000, accounts=(4,))
            self._count += 1
            self.journal.intend(opened)
            self.journal.settle(settlement(opened), None)

    def ship(self) -> int:
        """Rounds until one succeeds. Return how many failed."""
        for failed in range(5):
            self.shipper._fold_at = 0.0
            try:
                self.shipper.round()
            except StoreAway:
                continue
            return failed
        raise AssertionError("the store stays away")

    def admin(self, *statements: str) -> None:
        connection = Connection(Secret(self._server.address))
        for statement in statements:
            connection.execute(statement)
        connection.close()

    def dump(self) -> None:
        self.close()
        self.admin(f"CREATE DATABASE dumped TEMPLATE {self.name}")
        self.begin()

    def restore(self) -> None:
        self.admin(f"DROP DATABASE {self.name} WITH (FORCE)", f"ALTER DATABASE dumped RENAME TO {self.name}")

    def forget(self) -> None:
        """All segments that are written to their end are older than is kept."""
        self.journal.close()
        self.journal = Journal(self.folder.journals)
        for _ in range(2):
            self.ship()
        for path in self.folder.journals.glob("*.journal"):
            os.utime(path, (1, 1))
        self.shipper._tidy_at = 0.0
        self.ship()
        assert not list(self.folder.journals.glob("*.journal"))

    def close(self) -> None:
        self.shipper._store.close()
        for reader in self.shipper._readers.values():
            reader.close()


@pytest.fixture
def machine(engines: Engines, tmp_path: Path) -> Iterator[Machine]:
    server = Connection(Secret(engines.server.address))
    for name in ("restored", "dumped"):
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    server.execute("CREATE DATABASE restored")
    server.close()
    machine = Machine(engines, tmp_path)
    yield machine
    machine.close()


@pytest.mark.parametrize("is_begun_anew", [False, True])
def test_what_the_journals_have_comes_again(machine: Machine, is_begun_anew: bool) -> None:
    machine.write(30)
    assert machine.ship() == 0
    machine.dump()
    machine.write(100)
    assert machine.ship() == 0
    if is_begun_anew:
        machine.close()
    machine.restore()
    if is_begun_anew:
        machine.begin()
    machine.write(7)  # that the store never had
    assert 1 <= machine.ship() <= 3
    found = check(machine.folder)
    assert (found.attempts, found.is_sound, machine.shipper.shipped.missing) == (137, True, 0)
    assert ["lacks 100 attempts" in line for line in machine.shipper.shipped.notices] == [True, False]
    assert "nothing is missing" in machine.shipper.shipped.notices[-1]
    machine.shipper.shipped.notices.clear()
    machine.write(5)
    assert (machine.ship(), machine.shipper.shipped.notices) == (0, [])
    machine.close()
    assert read_mark(machine.folder.root).count == 142


def test_what_no_journal_has_is_named(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.write(30)
    machine.ship()
    machine.dump()
    machine.write(100)
    machine.forget()
    machine.write(20)
    machine.ship()
    machine.restore()
    machine.write(3)
    machine.ship()
    found = check(machine.folder)
    assert (found.attempts, found.is_sound, machine.shipper.shipped.missing) == (53, False, 100)
    [told] = found.set_aside
    assert f"100 attempts that machine {machine_of(machine.folder)} had brought between 20" in told
    assert "no journal has them" in machine.shipper.shipped.notices[-1]
    config = machine.folder.root / "dragoman.toml"
    store = machine._server.address_of(machine.name)
    state = machine.folder.root.parent
    config.write_text(f'[server]\nstate = "{state}"\n[ledger]\nstore = "{store}"\n')
    main(["ledger", "status", "--config", str(config)])
    assert "100 attempts that machine" in capsys.readouterr().out
    machine.shipper.shipped.notices.clear()
    machine.ship()
    assert machine.shipper.shipped.notices == []


def test_one_that_ends_while_it_delivers_again_goes_on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write(10)
    machine.ship()
    machine.dump()
    machine.write(150)
    machine.forget()
    machine.write(200)
    machine.ship()
    machine.restore()
    real, calls = machine.shipper._store.deliver, []

    def deliver(*given: object) -> None:
        calls.append(given)
        if len(calls) > 2:
            raise StoreAway("away")
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(type(machine.shipper._store), "deliver", lambda self, *given: deliver(*given))
    with pytest.raises(AssertionError, match="stays away"):
        machine.ship()
    monkeypatch.undo()
    machine.close()
    machine.begin()
    machine.ship()
    found = check(machine.folder)
    assert found.attempts == 210
    [told] = found.set_aside
    assert "150 attempts" in told


def test_a_mark_that_is_gone_is_one_of_nothing(machine: Machine) -> None:
    machine.dump()
    machine.write(40)
    machine.ship()
    connection = Connection(machine.folder.store or Secret(""))
    connection.execute("DELETE FROM brought")
    connection.close()
    machine.write(1)
    assert machine.ship() > 0
    assert "lacks 40 attempts" in machine.shipper.shipped.notices[0]
    # Rows that stand there still are not missing: they only move nothing.
    assert check(machine.folder).attempts == 41


def test_another_store_is_said_and_lacks_nothing(machine: Machine) -> None:
    machine.write(12)
    machine.ship()
    machine.close()
    machine.admin("DROP DATABASE restored WITH (FORCE)", "CREATE DATABASE restored")
    machine.begin()
    machine.write(2)
    assert machine.ship() == 0
    assert "is not the one that this machine brought 12 attempts to" in machine.shipper.shipped.notices[0]
    assert (check(machine.folder).attempts, check(machine.folder).is_sound) == (2, True)
