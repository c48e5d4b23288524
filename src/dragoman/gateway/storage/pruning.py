"""Bounds of the shared tables: as of the files, by owner and in all. A row's age is by the server's clock."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.gateway.storage import responses, signatures
from dragoman.gateway.storage.postgresql_tables import NOW
from dragoman.gateway.storage.sqlite import Bounds
from dragoman.ledger.stores.postgresql_connection import Connection

#: How much more all owners together may have than in the file of one machine.
_FLEET: Final = 10
#: Of all owners, by table. Of one owner, see the files' own.
BOUNDS: Final = {
    table: msgspec.structs.replace(bounds, rows=bounds.rows * _FLEET, size=bounds.size * _FLEET)
    for table, bounds in (("response", responses.BOUNDS), ("seal", signatures.BOUNDS))
}
#: One machine at a time prunes.
_LOCK: Final = 0x647261_7072756E


def prune_owner(connection: Connection, table: str, owner: str, bounds: Bounds) -> None:
    """Delete an owner's excess rows, the longest unused first."""
    statement = f"SELECT count(*), coalesce(sum(size), 0)::bigint FROM {table} WHERE owner = $1"
    count, total = connection.fetch(statement, owner)[0]
    if count > bounds.own_rows or total > bounds.own_size:
        connection.execute(_trim(table, "WHERE owner = $3"), bounds.own_rows, bounds.own_size, owner)


def prune_all(connection: Connection) -> None:
    """Delete what is too old, and what exceeds the bounds."""
    with connection.transaction():
        if not connection.fetch("SELECT pg_try_advisory_xact_lock($1)", _LOCK)[0][0]:
            return
        for table, bounds in BOUNDS.items():
            connection.execute(f"DELETE FROM {table} WHERE used < {NOW} - $1::bigint", bounds.age)
            count, total = connection.fetch(f"SELECT count(*), coalesce(sum(size), 0)::bigint FROM {table}")[0]
            if count > bounds.rows or total > bounds.size:
                connection.execute(_trim(table, ""), bounds.rows, bounds.size)


def _trim(table: str, where: str) -> str:
    """Return a statement that keeps the rows used last, up to a number and a size."""
    return (
        f"DELETE FROM {table} WHERE number IN (SELECT number FROM (SELECT number, row_number() OVER newest AS place, "
        f"sum(size) OVER newest AS total FROM {table} {where} "
        "WINDOW newest AS (ORDER BY used DESC, number DESC)) AS counted WHERE place > $1 OR total > $2)"
    )
