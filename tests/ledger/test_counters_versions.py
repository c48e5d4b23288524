"""Counters in PostgreSQL that gateways of two versions use at once, as in a rolling upgrade and on the way back."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.ledger.counters.apart import Database
from dragoman.ledger.counters.postgresql_schema import TABLES, VERSION
from dragoman.ledger.counters.roster import SharedRoster
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.secret import Secret
from ledger.engines import Engines

#: What gateways of version 4 ask, with values.
ASKED_BY_4 = (
    "SELECT counter_begin('e', '{}'::text[], NULL)",
    "SELECT outcome FROM counter_take(counter_epoch(), 4, 'a', 1, 10, 50, 0, 1000, 1, 'infinity', true, false, NULL)",
    "SELECT counter_expire(4, 'a', 5, NULL)",
    "SELECT counter_fold(4, 'a', 10, NULL)",
    "INSERT INTO holder(id, machine) VALUES('a', 'one') ON CONFLICT DO NOTHING",
    "SELECT account, holder, amount, seen, told FROM counter_share",
)
#: What version 4 had and later ones have not, or have otherwise.
AS_IN_4 = """
ALTER TABLE holder DROP COLUMN part;
DROP FUNCTION counter_expire(bigint, text, bigint, float8, float8);
CREATE FUNCTION counter_expire(which bigint, who text, used bigint, given float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN UPDATE counter_share SET amount = used WHERE account = which AND holder = who AND seen <= given; END $$;
UPDATE meta SET value = '4' WHERE name = 'counters';
INSERT INTO holder(id, machine) VALUES('b', 'two');
"""


def _databases(address: str, count: int) -> list[Database]:
    return [Database(Secret(address), TABLES, version=VERSION, patience=30) for _ in range(count)]


def test_another_text_of_the_tables_is_another_version() -> None:
    """Else a database that has this version already never gets it: raise `VERSION` when this fails."""
    assert (VERSION, hashlib.sha256(TABLES.encode()).hexdigest()[:16]) == ("6", "3a076f726d28cea8")


def test_what_an_earlier_version_asks_is_answered(engines: Engines) -> None:
    """Of tables that a later one made: its shipper said a problem for ever."""
    with engines.database("later") as address:
        [database] = _databases(address, 1)
        for statement in ASKED_BY_4:
            database.do(lambda connection, statement=statement: connection.execute(statement))
        assert database.fetch("SELECT closed FROM counter_account") == [(10,)]
        database.close()


def test_counters_of_an_earlier_version_are_brought_up_while_it_goes_on(engines: Engines, tmp_path: Path) -> None:
    """By two at once, and what stood there stands."""
    with engines.database("four") as address:
        first, *both = _databases(address, 3)
        earlier = Connection(Secret(address))
        first.do(lambda connection: connection.execute(AS_IN_4))
        for statement in ASKED_BY_4[:3]:
            earlier.fetch(statement)
        folder = LedgerFolder(tmp_path, Secret(address))
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda each: SharedRoster(folder, each).divide("b", 1_000), both))
        assert found == [1_000, 1_000]
        assert earlier.fetch("SELECT value FROM meta WHERE name = 'counters'") == [(VERSION,)]
        for statement in ASKED_BY_4[2:]:
            earlier.execute(statement)
        assert earlier.fetch("SELECT closed FROM counter_account") == [(10,)]
        for each in (first, *both, earlier):
            each.close()
