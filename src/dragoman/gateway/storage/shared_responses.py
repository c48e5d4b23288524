"""The stored responses of several machines, in the PostgreSQL of their ledger.

While it is away new ones stay in this machine's file, from which they are moved when it is back (`moving`). A response
that is found in neither may be on another machine; then the error says so, and not that it does not exist.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.gateway.storage.machines import id_of, nothing_waits, tag_in
from dragoman.gateway.storage.postgresql import SharedDatabase
from dragoman.gateway.storage.postgresql_tables import INSERT_RESPONSE, NOW, digest_of
from dragoman.gateway.storage.pruning import prune_owner
from dragoman.gateway.storage.responses import (
    BOUNDS,
    LONGEST,
    Kept,
    NotKept,
    Responses,
    Round,
    TooLong,
    input_of,
    is_text,
    items_of,
    named_items,
    output_of,
    size_of,
)
from dragoman.gateway.storage.sqlite import StoreUnreachable
from dragoman.ledger.stores.postgresql_connection import Connection

#: A use is written down when the one before is so many seconds old.
_USE_SECONDS: Final = 3_600
#: Rows of an owner are counted after so many new ones, or so many new bytes.
_PRUNED_ROWS: Final = 64
_PRUNED_SIZE: Final = 8 * 1024 * 1024
#: Of a conversation, what is read at once: bytes, and responses.
_PART_SIZE: Final = 8 * 1024 * 1024
_PART_ROWS: Final = 256
#: Ids of ours are shorter.
_LONGEST_ID: Final = 200
_CHAIN: Final = f"""
WITH RECURSIVE chain AS (
  SELECT number, previous, size AS total, 1 AS place FROM response WHERE owner = $1 AND id = $2
  UNION ALL SELECT response.number, response.previous, chain.total + response.size, place + 1
  FROM chain JOIN response ON response.owner = $1 AND response.id = chain.previous
  WHERE chain.total < {_PART_SIZE} AND place < {_PART_ROWS})
SELECT response.id, response.previous, input, response, number, {NOW} - used > {_USE_SECONDS}
FROM chain JOIN response USING(number) ORDER BY place
"""
_USED: Final = f"UPDATE response SET used = {NOW} WHERE number = ANY($1::bigint[])"
_PLACES: Final = (
    "SELECT response_item.id, number, octet_length(response.response) FROM response_item "
    "JOIN response ON number = response_item.response "
    "WHERE response_item.owner = $1 AND response_item.id = ANY($2::bytea[])"
)
_ANSWERS: Final = "SELECT number, response FROM response WHERE number = ANY($1::bigint[])"


class SharedResponses:
    """A `ResponseStore` in PostgreSQL. For one event loop. `works`: whether the last response could be stored."""

    __slots__ = ("_database", "_file", "_new", "_tag", "works")

    def __init__(self, database: SharedDatabase, file: Responses, *, tag: str) -> None:
        """Create it. `file`: this machine's, for waiting responses; `tag`: names the machine."""
        self._database = database
        self._file = file
        self._tag = tag
        self._new: dict[str, tuple[int, int]] = {}  # by owner, rows and bytes since they were counted
        self.works = True

    def new_id(self) -> str:
        return id_of(self._tag)

    async def find(self, owner: str, id: str) -> Kept:
        return (await self._chain(owner, id))[0]

    async def conversation(self, owner: str, id: str, *, with_answer: bool = True) -> list[Raw]:
        rounds: list[Round] = []
        size = 0
        previous: str | None = id
        while previous is not None:
            for kept in await self._chain(owner, previous):
                answered = output_of(kept.response)
                rounds.append((kept.input, answered))
                size += sum(memoryview(item).nbytes for item in (*kept.input, *answered))
                if size > LONGEST:
                    raise TooLong
                previous = kept.previous
        rounds.reverse()
        return items_of(rounds, with_answer=with_answer)

    async def items(self, owner: str, ids: list[str]) -> dict[str, Raw]:
        wanted = list(dict.fromkeys(ids))
        found = await self._items(owner, wanted)
        for id in wanted:
            if id not in found:
                raise NotKept(id, is_item=True)
        if size_of(found, ids) > LONGEST:
            raise TooLong
        return found

    async def keep(self, owner: str, kept: Kept) -> None:
        size = 0

        def insert(connection: Connection) -> None:
            nonlocal size
            data = _json.encode(kept.input)
            size = len(data) + len(kept.response)
            ids = [digest_of(id) for id in named_items(kept.response)]
            connection.execute(INSERT_RESPONSE, owner, kept.id, kept.previous, data, kept.response, size, ids)

        try:
            await self._database.run(insert)
        except StoreUnreachable:
            await self._file.keep(owner, kept)
            return
        rows, total = self._new.get(owner, (_PRUNED_ROWS, 0))
        if rows + 1 < _PRUNED_ROWS and total + size < _PRUNED_SIZE:
            self._new[owner] = rows + 1, total + size
            return
        if len(self._new) >= 10_000:
            self._new.clear()
        self._new[owner] = 0, 0
        try:
            await self._database.run(lambda connection: prune_owner(connection, "response", owner, BOUNDS))
        except StoreUnreachable:
            del self._new[owner]  # it is kept; who comes next counts

    async def delete(self, owner: str, id: str) -> None:
        if not _fits(id):
            raise NotKept(id)

        def delete(connection: Connection) -> int:
            return connection.execute("DELETE FROM response WHERE owner = $1 AND id = $2", owner, id)

        if self._database.is_away:
            raise StoreUnreachable("the database gave no answer")
        # First here: what is just moved is there before it is gone here.
        was_here = await self._forgotten(owner, id)
        if await self._database.run(delete) or was_here:
            return
        await self._nothing_waits(id)
        if not await self._database.run(delete):
            raise NotKept(id)

    def close(self) -> None:
        self._file.close()

    # ------------------------------------------------------------ inside

    async def _forgotten(self, owner: str, id: str) -> bool:
        try:
            await self._file.delete(owner, id)
        except NotKept:
            return False
        return True

    async def _chain(self, owner: str, id: str) -> list[Kept]:
        """Return a response and some of its predecessors, the newest first.

        Raises:
            NotKept: there is no such response.
            StoreUnreachable, StoreFailed: the database failed.
        """
        if not _fits(id):
            raise NotKept(id)
        ask = partial(_chain_of, owner=owner, id=id)
        try:
            found = await self._database.run(ask)
        except StoreUnreachable as problem:
            try:
                return [await self._file.find(owner, id)]
            except NotKept:
                raise problem from None
        if found:
            return found
        try:
            return [await self._file.find(owner, id)]
        except NotKept:
            await self._nothing_waits(id)
        if found := await self._database.run(ask):  # what was moved meanwhile
            return found
        raise NotKept(id)

    async def _items(self, owner: str, ids: list[str]) -> dict[str, Raw]:
        """Return those that exist; all machines were asked for the others."""
        try:
            found = await self._database.run(partial(_items_of, owner=owner, ids=ids))
        except StoreUnreachable:
            found = await self._file.some_items(owner, ids)
            if len(found) < len(ids):
                raise
            return found
        if missing := [id for id in ids if id not in found]:
            found |= await self._file.some_items(owner, missing)
        if missing := [id for id in missing if id not in found]:
            await nothing_waits(self._database, None, except_for=self._tag)  # their ids name no machine
            found |= await self._database.run(partial(_items_of, owner=owner, ids=missing))
        return found

    async def _nothing_waits(self, id: str) -> None:
        """Wait until a response with this id is in the database, or nowhere. Raises StoreUnreachable."""
        tag = tag_in(id)
        if tag is not None and tag != self._tag:
            await nothing_waits(self._database, tag, except_for=self._tag)


def _fits(id: str) -> bool:
    """Return whether it can be an id at all: the database accepts no other texts."""
    return len(id) <= _LONGEST_ID and id.isascii() and id.isprintable()


def _chain_of(connection: Connection, owner: str, id: str) -> list[Kept]:
    rows = connection.fetch(_CHAIN, owner, id)
    if old := [row[4] for row in rows if row[5]]:
        connection.execute(_USED, old)
    return [Kept(id, previous, input_of(said), response) for id, previous, said, response, _, _ in rows]


def _items_of(connection: Connection, owner: str, ids: list[str]) -> dict[str, Raw]:
    """Return the items that exist.

    Each response that has some of these items is read once, and all together no more than of a conversation.

    Raises:
        TooLong: they are larger.
    """
    by_digest = {digest_of(id): id for id in filter(is_text, ids)}
    places = connection.fetch(_PLACES, owner, list(by_digest))
    if sum({number: size for _, number, size in places}.values()) > LONGEST:
        raise TooLong
    names: dict[int, list[str]] = {}
    for digest, number, _ in places:
        names.setdefault(number, []).append(by_digest[digest])
    found: dict[str, Raw] = {}
    for number, response in connection.fetch(_ANSWERS, list(names)):
        items = named_items(response)
        found |= {id: items[id] for id in names[number] if id in items}
    return found
