"""Read the PostgreSQL store, all of it as one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, final

from dragoman.ledger.stores.postgresql import months_of, read_version
from dragoman.ledger.stores.postgresql_connection import Connection, numbered
from dragoman.ledger.stores.postgresql_schema import CHARGES, partition_of
from dragoman.secret import Secret

#: Tables of all months, which say of each row of which it is.
_SUMS: Final = ("usage_hour", "spend")


@contextmanager
def open_postgresql(address: Secret, *, patience: float) -> Iterator[PostgresqlReading]:
    """Open the store for reading. Raises StoreAway if it cannot be read."""
    connection = Connection(address, patience=patience)
    try:
        with connection.transaction(is_reading=True):
            yield PostgresqlReading(connection, is_empty=read_version(connection) is None)
    finally:
        connection.close()


@final
class PostgresqlReading:
    """`StoreReading` over PostgreSQL."""

    __slots__ = ("_connection", "_is_empty")

    def __init__(self, connection: Connection, *, is_empty: bool) -> None:
        self._connection = connection
        self._is_empty = is_empty

    def months(self) -> list[str]:
        return [] if self._is_empty else months_of(self._connection)

    def select(self, month: str | None, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        if self._is_empty:
            return iter(())
        if month is not None:
            for name in ("attempt", "adjustment"):
                statement = statement.replace(f":{name}", f"{partition_of(name, month)} AS {name}")
            for name in _SUMS:
                statement = statement.replace(f":{name}", f"(SELECT * FROM {name} WHERE month = '{month}') AS {name}")
        return self._connection.fetch_each(numbered(statement), *values)

    def sums(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        for name in _SUMS:
            statement = statement.replace(f":{name}", name)
        return self.select(None, statement, *values)

    def dropped(self) -> list[str]:
        older = "SELECT '' WHERE EXISTS (SELECT 1 FROM usage_hour WHERE month = '')"
        return [month for (month,) in self.select(None, f"{older} UNION SELECT month FROM dropped ORDER BY 1")]

    def dropped_sums(self, month: str, statement: str) -> Iterator[tuple[Any, ...]]:
        for name in _SUMS:
            statement = statement.replace(f":{name}", name)
        return self.select(None, f"{statement} WHERE month = ?", month)

    def charges(self, month: str) -> Iterator[tuple[Any, ...]]:
        return self.select(month, CHARGES)

    def sizes(self) -> dict[str, int]:
        statement = "SELECT pg_total_relation_size(CAST(? AS text)::regclass)"
        return {month: next(self.select(None, statement, partition_of("attempt", month)))[0] for month in self.months()}
