"""The signatures of all clients' conversations, in a file that all workers share and that survives a restart."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Final

from dragoman import _json
from dragoman._json import Malformed
from dragoman.gateway.storage.sqlite import Bounds, Database, StoreFailed, prune
from dragoman.history import Seal, keys_of, put_back
from dragoman.types import Request

BOUNDS: Final = Bounds(
    own_rows=100_000, own_size=128 * 1024 * 1024, rows=1_000_000, size=1024 * 1024 * 1024, age=30 * 86_400
)
_LOG: Final = logging.getLogger("dragoman.gateway")
#: Its name in the state folder.
FILE: Final = "seals.sqlite"
#: Of the file.
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS seal (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, key TEXT NOT NULL, seal BLOB NOT NULL, used INTEGER NOT NULL,
    size INTEGER NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS seal_key ON seal (owner, key);
CREATE INDEX IF NOT EXISTS seal_use ON seal (owner, used, size);
CREATE INDEX IF NOT EXISTS seal_age ON seal (used, size);
"""
#: A use is written down when the one before is so many seconds old.
_USE_SECONDS: Final = 3_600
#: Keys of one query.
_SLICE: Final = 500
#: Rows are counted after so many new ones.
_PRUNED_ROWS: Final = 256

decode_seal = _json.typed_decoder(Seal)


class SignatureStore:
    """A `Vault` in a file."""

    __slots__ = ("_bounds", "_database", "_log", "_new_rows", "_without")

    def __init__(self, file: Path | None, *, bounds: Bounds = BOUNDS, falls_back: bool = True) -> None:
        """Create it. `falls_back`: memory replaces a file that cannot be used."""
        self._log = None if file is None else f"{file}-wal"
        self._bounds = bounds
        self._database = Database(file, SCHEMA, table="seal", falls_back=falls_back)
        self._new_rows = 0
        self._without: object = None  # how the file looked when it held no seal

    async def restored(self, request: Request, owner: str) -> Request:
        """Return the request with what its answers lost. Providers without signatures cost no look-up."""
        if not any(message.role == "assistant" for message in request.messages):
            return request
        looks = self._looks()
        if looks is not None and looks == self._without:
            return request
        try:
            clock = self._database.clock
            found = await self._database.run(lambda connection: _with_seals(connection, owner, request, clock.now()))
        except StoreFailed as problem:
            _LOG.warning("seals cannot be read: %s", problem)
            return request
        self._without = looks if found is None else None
        return found or request

    def keep(self, owner: str, seals: Mapping[str, Seal]) -> Awaitable[None]:
        """Keep signatures, each by its key. All workers find them once the result was awaited."""
        self._without = None
        return asyncio.get_running_loop().create_task(self._keep(owner, dict(seals)))

    async def _keep(self, owner: str, seals: Mapping[str, Seal]) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            now = self._database.clock.now()
            rows = [(owner, key, data, now, len(data)) for key, seal in seals.items() if (data := _json.encode(seal))]
            connection.executemany(
                "INSERT OR REPLACE INTO seal (owner, key, seal, used, size) VALUES (?, ?, ?, ?, ?)", rows
            )
            first = self._new_rows == 0
            self._new_rows += len(rows)
            if first or self._new_rows >= _PRUNED_ROWS:
                prune(connection, "seal", owner, bounds=self._bounds, now=now)
                self._new_rows = 1

        try:
            await self._database.run(insert)
        except StoreFailed as problem:
            _LOG.warning("seals cannot be kept: %s", problem)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _looks(self) -> object:
        """Return a value that changes when a worker writes, or None if that cannot be seen."""
        if self._log is None:
            return None
        try:
            found = os.stat(self._log)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def _with_seals(connection: sqlite3.Connection, owner: str, request: Request, now: int) -> Request | None:
    """Return the request with its signatures, or None if there is none at all.

    In the database's thread, because a long conversation has many keys.
    """
    if connection.execute("SELECT 1 FROM seal LIMIT 1").fetchone() is None:
        return None
    found = _find(connection, owner, keys_of(request), now)
    return put_back(request, found.get) if found else request


def _find(connection: sqlite3.Connection, owner: str, keys: list[str], now: int) -> dict[str, Seal]:
    """Return the signatures of these keys."""
    found: dict[str, Seal] = {}
    old: list[tuple[int, int]] = []
    for start in range(0, len(keys), _SLICE):
        part = keys[start : start + _SLICE]
        marks = ", ".join("?" * len(part))
        rows = connection.execute(
            f"SELECT number, key, seal, used FROM seal WHERE owner = ? AND key IN ({marks})", (owner, *part)
        )
        for number, key, data, used in rows.fetchall():
            seal = decode_seal(data)
            if not isinstance(seal, Malformed):
                found[key] = seal
            if used < now - _USE_SECONDS:
                old.append((now, number))
    if old:
        connection.executemany("UPDATE seal SET used = ? WHERE number = ?", old)
    return found
