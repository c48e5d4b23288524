"""The tables that machines share beside the ledger, in the same schema of the same PostgreSQL.

They are those of the SQLite files, with two more: when each machine reported that nothing of it waits, and since when
there are signatures at all.
"""

from __future__ import annotations

import hashlib
from typing import Final

from dragoman.ledger.stores.postgresql import prepare
from dragoman.ledger.stores.postgresql_connection import Connection

#: Of what stands here; a database of a later one is used as it is.
VERSION: Final = 3

#: Items are named by the SHA-256 of their ids, which may be of any length. `clear`: at that time of the server's clock
#: nothing waited on the machine, `infinity`: and nothing will, for it has ended.
TABLES: Final = """
CREATE TABLE IF NOT EXISTS response(
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner text NOT NULL, id text NOT NULL, previous text,
  input bytea NOT NULL, response bytea NOT NULL, used bigint NOT NULL, size bigint NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS response_id ON response(owner, id);
CREATE INDEX IF NOT EXISTS response_use ON response(owner, used, size);
CREATE INDEX IF NOT EXISTS response_age ON response(used, size);
CREATE TABLE IF NOT EXISTS response_item(
  owner text NOT NULL, id bytea NOT NULL, response bigint NOT NULL REFERENCES response ON DELETE CASCADE,
  PRIMARY KEY(owner, id));
CREATE INDEX IF NOT EXISTS response_item_response ON response_item(response);
CREATE TABLE IF NOT EXISTS seal(
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner text NOT NULL, key text NOT NULL, seal bytea NOT NULL,
  used bigint NOT NULL, size bigint NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS seal_key ON seal(owner, key);
CREATE INDEX IF NOT EXISTS seal_use ON seal(owner, used, size);
CREATE INDEX IF NOT EXISTS seal_age ON seal(used, size);
CREATE TABLE IF NOT EXISTS seal_begun(is_one boolean PRIMARY KEY CHECK (is_one), at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS proof(
  target text NOT NULL, protocol text NOT NULL, endpoint text NOT NULL, suite text NOT NULL, at bigint NOT NULL,
  proof text NOT NULL, PRIMARY KEY(target, protocol, endpoint, suite));
CREATE UNLOGGED TABLE IF NOT EXISTS breaker(
  key text NOT NULL, worker text NOT NULL, number bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY(key, worker));
CREATE TABLE IF NOT EXISTS state_machine(tag text PRIMARY KEY, clear timestamptz NOT NULL);
"""
#: The server's seconds, as rows are stamped.
NOW: Final = "extract(epoch FROM clock_timestamp())::bigint"
#: A response that comes again changes nothing.
INSERT_RESPONSE: Final = f"""
WITH kept AS (
  INSERT INTO response(owner, id, previous, input, response, used, size) VALUES($1, $2, $3, $4, $5, {NOW}, $6)
  ON CONFLICT DO NOTHING RETURNING number)
INSERT INTO response_item SELECT $1, given, number FROM kept, unnest($7::bytea[]) AS given
ON CONFLICT(owner, id) DO UPDATE SET response = excluded.response
"""
#: From now on workers look for seals.
BEGIN_SEALS: Final = "INSERT INTO seal_begun VALUES(true, clock_timestamp()) ON CONFLICT DO NOTHING"
INSERT_SEALS: Final = f"""
INSERT INTO seal(owner, key, seal, used, size)
SELECT owner, key, seal, {NOW}, octet_length(seal)
FROM unnest($1::text[], $2::text[], $3::bytea[]) AS given(owner, key, seal) ORDER BY owner, key
ON CONFLICT(owner, key) DO UPDATE SET seal = excluded.seal, used = excluded.used, size = excluded.size
"""


def digest_of(id: str) -> bytes:
    """Return the digest that names an item."""
    return hashlib.sha256(id.encode()).digest()


def prepare_shared(connection: Connection) -> None:
    """Create the tables if there are none.

    Raises:
        StoreAway, Refused: they cannot be created now, or a later dragoman has the ledger.
    """
    if _has_tables(connection):
        return
    with connection.transaction():
        prepare(connection)  # takes the lock of who changes tables
        if not _has_tables(connection):
            connection.execute(TABLES)
            connection.execute(
                "INSERT INTO meta VALUES('shared', $1) ON CONFLICT(name) DO UPDATE SET value = $1", str(VERSION)
            )


def _has_tables(connection: Connection) -> bool:
    if connection.fetch("SELECT to_regclass('meta') IS NULL")[0][0]:
        return False
    return bool(connection.fetch("SELECT 1 FROM meta WHERE name = 'shared' AND value::int >= $1::int", VERSION))
