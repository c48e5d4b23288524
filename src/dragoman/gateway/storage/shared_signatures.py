"""The signatures of several machines' conversations, in the PostgreSQL of their ledger.

Fleets without signatures pay nothing: until the first one is kept, workers ask once a second whether there is any, and
only for requests that might have some. A worker that keeps one of the first waits until no worker believes any more
that there is none. While the database is away signatures stay in this machine's file, and requests go on with what is
there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Final

from dragoman import _json
from dragoman._json import Malformed
from dragoman.gateway.storage.postgresql import SharedDatabase
from dragoman.gateway.storage.postgresql_tables import BEGIN_SEALS, INSERT_SEALS, NOW
from dragoman.gateway.storage.pruning import prune_owner
from dragoman.gateway.storage.signatures import BOUNDS, SignatureStore, decode_seal
from dragoman.gateway.storage.sqlite import StoreFailed, StoreUnreachable
from dragoman.history import Seal, keys_of, put_back
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.types import Message, Request, Text, Thinking

_LOG: Final = logging.getLogger("dragoman.gateway")
#: A use is written down when the one before is so many seconds old.
_USE_SECONDS: Final = 3_600
#: Rows of an owner are counted after so many new ones.
_PRUNED_ROWS: Final = 256
#: Seconds for which a worker believes that there is no seal, with what clocks may differ by; and after how many all
#: workers have looked since the first one was kept.
_BELIEVED: Final = 1.0
_MARGIN: Final = 0.1
_OLD: Final = 60
_BEGUN: Final = f"SELECT clock_timestamp() - at > interval '{_OLD} seconds' FROM seal_begun"
_FIND: Final = (
    f"SELECT number, key, seal, {NOW} - used > {_USE_SECONDS} FROM seal WHERE owner = $1 AND key = ANY($2::text[])"
)
_USED: Final = f"UPDATE seal SET used = {NOW} WHERE number = ANY($1::bigint[])"


class SharedSeals:
    """A `Vault` in PostgreSQL. For one event loop."""

    __slots__ = ("_are_begun", "_are_old", "_database", "_file", "_looked", "_new_rows", "_works")

    def __init__(self, database: SharedDatabase, file: SignatureStore) -> None:
        """Create it. `file`: this machine's, for waiting signatures."""
        self._database = database
        self._file = file
        self._are_begun = False  # there is a seal, or was
        self._are_old = False  # all workers know that
        self._looked = -_BELIEVED  # when it was asked last, by the loop's clock
        self._new_rows: dict[str, int] = {}  # by owner, since they were counted
        self._works = True

    async def restored(self, request: Request, owner: str) -> Request:
        """Return the request with what its answers lost. One without calls and signatures costs no look-up."""
        if not any(message.role == "assistant" and _may_have_seals(message) for message in request.messages):
            return request
        request = await self._file.restored(request, owner)  # where nothing waits, that is one look at a file's time
        try:
            if not await self._any():
                return request
            found = await self._database.run(lambda connection: _with_seals(connection, owner, request))
        except StoreFailed as problem:
            self._say(f"seals cannot be read: {problem}")
            return request
        self._say("")
        return found

    def keep(self, owner: str, seals: Mapping[str, Seal]) -> Awaitable[None]:
        """Keep signatures, each by its key. All machines find them once the result was awaited."""
        return asyncio.get_running_loop().create_task(self._keep(owner, dict(seals)))

    # ------------------------------------------------------------ inside

    async def _any(self) -> bool:
        """Return whether there may be signatures. Raises StoreFailed."""
        if self._are_begun:
            return True
        now = asyncio.get_running_loop().time()
        if now < self._looked + _BELIEVED:
            return False
        self._are_begun = await self._database.run(lambda connection: bool(connection.fetch(_BEGUN)))
        self._looked = now
        return self._are_begun

    async def _keep(self, owner: str, seals: Mapping[str, Seal]) -> None:
        keys = list(seals)

        def insert(connection: Connection) -> bool:
            if not self._are_old:
                connection.execute(BEGIN_SEALS)  # first: who finds no beginning now finds no seal of this answer either
            data = [_json.encode(seals[key]) for key in keys]
            connection.execute(INSERT_SEALS, [owner] * len(keys), keys, data)
            return self._are_old or bool(connection.fetch(_BEGUN)[0][0])

        try:
            self._are_old = await self._database.run(insert)
        except StoreUnreachable:
            await self._file.keep(owner, seals)
            return
        except StoreFailed as problem:
            self._say(f"seals cannot be kept: {problem}")
            return
        self._are_begun = True
        self._say("")
        if not self._are_old:
            await asyncio.sleep(_BELIEVED + _MARGIN)
        await self._prune(owner, len(keys))

    async def _prune(self, owner: str, rows: int) -> None:
        count = self._new_rows.get(owner, _PRUNED_ROWS) + rows
        if len(self._new_rows) >= 10_000:
            self._new_rows.clear()
        self._new_rows[owner] = count if count < _PRUNED_ROWS else 0
        if count >= _PRUNED_ROWS:
            try:
                await self._database.run(lambda connection: prune_owner(connection, "seal", owner, BOUNDS))
            except StoreFailed:
                del self._new_rows[owner]  # they are kept; who comes next counts

    def _say(self, problem: str) -> None:
        """Report a problem once, and once more when it is over."""
        if problem and self._works:
            _LOG.warning("%s", problem)
        elif not problem and not self._works:
            _LOG.warning("seals are read and kept again")
        self._works = not problem


def _may_have_seals(message: Message) -> bool:
    """Return whether a look-up may find something for an answer: it has calls, or signatures that tell its origin."""
    return bool(message.tool_calls) or any(
        isinstance(part, Thinking | Text) and bool(part.signature or (isinstance(part, Thinking) and part.redacted))
        for part in message.parts
    )


def _with_seals(connection: Connection, owner: str, request: Request) -> Request:
    """Return the request with its signatures. In the database's thread, because a long conversation has many keys."""
    found: dict[str, Seal] = {}
    old: list[int] = []
    for number, key, data, is_old in connection.fetch(_FIND, owner, keys_of(request)):
        seal = decode_seal(data)
        if not isinstance(seal, Malformed):
            found[key] = seal
        if is_old:
            old.append(number)
    if old:
        connection.execute(_USED, old)
    return put_back(request, found.get) if found else request
