"""The responses that clients go on from (`previous_response_id`) or ask for again: kept by client key, bounded.

A row has what its request said and what was answered; what came before stands in the rows before it. Another key's
response is not there at all: the owner is part of every look-up.
https://platform.openai.com/docs/api-reference/responses (read 2026-11-22).
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.gateway.storage.sqlite import Bounds, Database, prune

BOUNDS: Final = Bounds(
    own_rows=20_000, own_size=512 * 1024 * 1024, rows=200_000, size=2 * 1024 * 1024 * 1024, age=30 * 86_400
)
#: Bytes that are kept of a conversation; a longer one has to be sent whole.
LONGEST: Final = 32 * 1024 * 1024
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS response (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, previous TEXT, input BLOB NOT NULL,
    response BLOB NOT NULL, used INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS response_id ON response (owner, id);
CREATE INDEX IF NOT EXISTS response_use ON response (owner, used, size);
CREATE INDEX IF NOT EXISTS response_age ON response (used, size);
CREATE TABLE IF NOT EXISTS item (
    owner TEXT NOT NULL, id TEXT NOT NULL, response INTEGER NOT NULL REFERENCES response (number) ON DELETE CASCADE,
    PRIMARY KEY (owner, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS item_response ON item (response);
"""
#: A use is written down when the one before is so many seconds old.
_USE_SECONDS: Final = 3_600
#: Rows are counted after so many new ones, or so many new bytes.
_PRUNED_ROWS: Final = 64
_PRUNED_SIZE: Final = 8 * 1024 * 1024


class NotKept(Exception):
    """There is no such response, or item of one, of this owner; `id` is the one that was asked for."""

    def __init__(self, id: str, *, is_item: bool = False) -> None:
        super().__init__(id)
        self.id = id
        self.is_item = is_item


class TooLong(Exception):
    """A conversation of more than `LONGEST` bytes."""


@final
class Kept(msgspec.Struct, frozen=True):
    """A response. `input`: the items of its own request, those of the requests before not among them."""

    id: str
    previous: str | None
    input: tuple[Raw, ...]
    response: bytes


class _Output(msgspec.Struct):
    output: list[Raw] = []


class _Named(msgspec.Struct):
    id: Json = None


_decode_output = _json.typed_decoder(_Output)
_decode_items = _json.typed_decoder(tuple[Raw, ...])
_decode_named = _json.typed_decoder(_Named)


class Responses:
    """The stored responses of all clients. All methods wait for the database's thread, never for the event loop.

    All of them raise `StoreFailed` when the database cannot be used, and `NotKept` for what is not there;
    `conversation` and `items` raise `TooLong` too.

    Attributes:
        works: whether the last response could be kept.
    """

    __slots__ = ("_bounds", "_database", "_new_rows", "_new_size", "works")

    def __init__(self, file: Path | None, *, bounds: Bounds = BOUNDS) -> None:
        self._database = Database(file, _SCHEMA, table="response")
        self._bounds = bounds
        self._new_rows = self._new_size = 0
        self.works = True

    async def find(self, owner: str, id: str) -> Kept:
        """One response."""
        return await self._database.run(lambda connection: _find(connection, owner, id))

    async def conversation(self, owner: str, id: str, *, with_answer: bool = True) -> list[Raw]:
        """All items up to a response: what was said and answered before it, and what its own request said; with its
        answer unless that is not wanted. The conversation counts as used."""

        def collect(connection: sqlite3.Connection) -> list[Raw]:
            rounds = _rounds(connection, owner, id, now=self._database.clock.now())
            if not with_answer:
                rounds[-1] = rounds[-1][0], []
            return [item for said, answered in rounds for item in (*said, *answered)]

        return await self._database.run(collect)

    async def items(self, owner: str, ids: list[str]) -> dict[str, Raw]:
        """Single items of answers, by their ids; an id may come again, and counts each time."""

        def collect(connection: sqlite3.Connection) -> dict[str, Raw]:
            found = _items(connection, owner, list(dict.fromkeys(ids)))
            if size_of(found, ids) > LONGEST:
                raise TooLong
            return found

        return await self._database.run(collect)

    async def keep(self, owner: str, kept: Kept) -> None:
        """Keep a response; other workers find it when this returns."""

        def insert(connection: sqlite3.Connection) -> None:
            now = self._database.clock.now()
            size = _insert(connection, owner, kept, now=now)
            self._new_rows, self._new_size = self._new_rows + 1, self._new_size + size
            if self._new_rows == 1 or self._new_rows >= _PRUNED_ROWS or self._new_size >= _PRUNED_SIZE:
                prune(connection, "response", owner, bounds=self._bounds, now=now)
                self._new_rows, self._new_size = 1, 0

        await self._database.run(insert)

    async def delete(self, owner: str, id: str) -> None:
        """Forget a response. What went on from it cannot go on any more."""

        def delete(connection: sqlite3.Connection) -> None:
            if not connection.execute("DELETE FROM response WHERE owner = ? AND id = ?", (owner, id)).rowcount:
                raise NotKept(id)

        await self._database.run(delete)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def size_of(items: Mapping[str, Raw], ids: Sequence[str]) -> int:
    """Bytes of the items that are named, each as often as it is. Nothing is copied, and one that is named again and
    again is looked at once: a short request may name a large item 50,000 times."""
    return sum(memoryview(items[id]).nbytes * times for id, times in Counter(ids).items())


def output_of(response: bytes) -> list[Raw]:
    """The output items of a response."""
    found = _decode_output(response)
    return [] if isinstance(found, Malformed) else [Raw(bytes(raw)) for raw in found.output]


def _find(connection: sqlite3.Connection, owner: str, id: str) -> Kept:
    found = connection.execute(
        "SELECT previous, input, response FROM response WHERE owner = ? AND id = ?", (owner, id)
    ).fetchone()
    if found is None:
        raise NotKept(id)
    items = _decode_items(found[1])
    return Kept(id, found[0], () if isinstance(items, Malformed) else items, found[2])


def _rounds(connection: sqlite3.Connection, owner: str, id: str, *, now: int) -> list[tuple[Sequence[Raw], list[Raw]]]:
    """What was said and answered in each round of a conversation, the first one first."""
    rounds: list[tuple[Sequence[Raw], list[Raw]]] = []
    ids: list[str] = []
    size = 0
    previous: str | None = id
    while previous is not None:
        kept = _find(connection, owner, previous)
        answered = output_of(kept.response)
        rounds.append((kept.input, answered))
        ids.append(previous)
        size += sum(memoryview(item).nbytes for item in (*kept.input, *answered))
        if size > LONGEST:
            raise TooLong
        previous = kept.previous
    connection.executemany(
        "UPDATE response SET used = ? WHERE owner = ? AND id = ? AND used < ?",
        [(now, owner, one, now - _USE_SECONDS) for one in ids],
    )
    rounds.reverse()
    return rounds


def _items(connection: sqlite3.Connection, owner: str, ids: list[str]) -> dict[str, Raw]:
    """Each response that has some of these items is read once, and of all together no more than of a conversation."""
    wanted: dict[int, list[str]] = {}
    for id in ids:
        place = connection.execute("SELECT response FROM item WHERE owner = ? AND id = ?", (owner, id)).fetchone()
        if place is None:
            raise NotKept(id, is_item=True)
        wanted.setdefault(place[0], []).append(id)
    found: dict[str, Raw] = {}
    size = 0
    for number, names in wanted.items():
        [response] = connection.execute("SELECT response FROM response WHERE number = ?", (number,)).fetchone()
        size += len(response)
        if size > LONGEST:
            raise TooLong
        items = {_id(raw): raw for raw in reversed(output_of(response))}
        for id in names:
            if id not in items:
                raise NotKept(id, is_item=True)
            found[id] = items[id]
    return found


def _insert(connection: sqlite3.Connection, owner: str, kept: Kept, *, now: int) -> int:
    data = _json.encode(kept.input)
    size = len(data) + len(kept.response)
    row = (owner, kept.id, kept.previous, data, kept.response, now, size)
    inserted = connection.execute(
        "INSERT INTO response (owner, id, previous, input, response, used, size) VALUES (?, ?, ?, ?, ?, ?, ?)", row
    )
    ids = [(owner, id, inserted.lastrowid) for raw in output_of(kept.response) if (id := _id(raw))]
    connection.executemany("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", ids)
    return size


def _id(item: Raw) -> str:
    found = _decode_named(bytes(item))
    return found.id if not isinstance(found, Malformed) and isinstance(found.id, str) else ""
