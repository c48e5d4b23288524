"""The board of circuit breakers in the ledger's PostgreSQL, if limits are counted there too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.gateway.storage.breaker_board import MOST_OPENINGS, NEWS_SECONDS, Opening
from dragoman.gateway.storage.postgresql import SharedDatabase
from dragoman.ledger.stores.postgresql_connection import Connection

_POST: Final = (
    "INSERT INTO breaker SELECT key, $1, number, clock_timestamp() FROM unnest($2::text[], $3::bigint[]) "
    "AS given(key, number) ORDER BY key ON CONFLICT(key, worker) DO UPDATE "
    "SET number = excluded.number, at = excluded.at WHERE breaker.number <> excluded.number"
)
_READ: Final = (
    "SELECT key, worker, number, extract(epoch FROM clock_timestamp() - at)::float8 FROM breaker "
    f"WHERE key = ANY($1::text[]) AND worker <> $2 AND at > clock_timestamp() - interval '{NEWS_SECONDS} seconds' "
    f"ORDER BY at DESC LIMIT {MOST_OPENINGS}"
)


class PostgresqlBoard:
    """A `Board` that uses the worker's connection."""

    __slots__ = ("_database",)

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database

    async def exchange(self, worker: str, opened: dict[str, int], keys: Sequence[str]) -> list[Opening]:
        def work(connection: Connection) -> list[Opening]:
            if opened:
                connection.execute(_POST, worker, list(opened), list(opened.values()))
            return [Opening(*row) for row in connection.fetch(_READ, list(keys), worker)]

        return await self._database.run(work)

    def close(self) -> None:
        pass  # it is the database's owner who closes it
