"""Stored responses that clients continue (`previous_response_id`) or fetch: by client key, bounded.

A row has its request's items and the answer; earlier items stand in earlier rows. Another key's response does not
exist: the owner is part of every look-up. https://platform.openai.com/docs/api-reference/responses (read 2026-11-22).
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.gateway.storage.sqlite import Bounds, Database, prune
from dragoman.ids import new_id
from dragoman.secret import name_alone

_LOG: Final = logging.getLogger("dragoman.gateway")
BOUNDS: Final = Bounds(
    own_rows=20_000, own_size=512 * 1024 * 1024, rows=200_000, size=2 * 1024 * 1024 * 1024, age=30 * 86_400
)
#: Bytes that are kept of a conversation; a longer one has to be sent whole.
LONGEST: Final = 32 * 1024 * 1024
#: Its name in the state folder.
FILE: Final = "responses.sqlite"
#: Rows have a checksum since form 2: who knows form 1 alone would take them for rows without items.
FORM: Final = 2
#: Of the file.
SCHEMA: Final = """
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
_SELECT: Final = "SELECT previous, input, response FROM response WHERE"
#: A use is written down when the one before is so many seconds old.
_USE_SECONDS: Final = 3_600
#: Rows are counted after so many new ones, or so many new bytes.
_PRUNED_ROWS: Final = 64
_PRUNED_SIZE: Final = 8 * 1024 * 1024


class NotKept(Exception):
    """This owner has no such response or item; `id` is the one asked for."""

    def __init__(self, id: str, *, is_item: bool = False) -> None:
        super().__init__(id)
        self.id = id
        self.is_item = is_item


class TooLong(Exception):
    """A conversation of more than `LONGEST` bytes."""


@final
class Kept(msgspec.Struct, frozen=True):
    """A response. `input`: the items of its own request, without those of earlier requests."""

    __repr__ = name_alone

    id: str
    previous: str | None
    input: tuple[Raw, ...]
    response: bytes


#: What was said and what was answered.
Round: TypeAlias = tuple[Sequence[Raw], list[Raw]]


class _Output(msgspec.Struct):
    output: list[Raw] = []


class _Named(msgspec.Struct):
    id: Json = None


_decode_output = _json.typed_decoder(_Output)
_decode_items = _json.typed_decoder(tuple[Raw, ...])
_decode_named = _json.typed_decoder(_Named)


class ResponseStore(Protocol):
    """The stored responses of all clients. All methods wait for the database's thread, never for the event loop.

    All of them raise `StoreFailed` if the database cannot be used, and `NotKept` for what does not exist;
    `conversation` and `items` raise `TooLong` too.

    Attributes:
        works: whether the last response could be stored.
    """

    works: bool

    def new_id(self) -> str:
        """Return the id of a new response."""
        ...

    async def find(self, owner: str, id: str) -> Kept:
        """Return one response."""
        ...

    async def conversation(self, owner: str, id: str, *, with_answer: bool = True) -> list[Raw]:
        """Return all items up to a response, those of its own request included, and its answer unless `with_answer` is
        False.

        The conversation counts as used.
        """
        ...

    async def items(self, owner: str, ids: list[str]) -> dict[str, Raw]:
        """Return single items of answers by id. A repeated id counts each time."""
        ...

    async def keep(self, owner: str, kept: Kept) -> None:
        """Store a response; others find it when this returns."""
        ...

    async def delete(self, owner: str, id: str) -> None:
        """Delete a response. What continued it cannot be continued any more."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...


class Responses:
    """A `ResponseStore` in a file that all workers of this machine share.

    Attributes:
        works: whether the last response could be stored.
    """

    __slots__ = ("_bounds", "_database", "_new_rows", "_new_size", "works")

    def __init__(self, file: Path | None, *, bounds: Bounds = BOUNDS, falls_back: bool = True) -> None:
        """Create it. `falls_back`: memory replaces a file that cannot be used."""
        self._database = Database(file, SCHEMA, table="response", form=FORM, falls_back=falls_back)
        self._bounds = bounds
        self._new_rows = self._new_size = 0
        self.works = True

    def new_id(self) -> str:
        return f"resp_{new_id()}"

    async def find(self, owner: str, id: str) -> Kept:
        return await self._database.run(lambda connection: _find(connection, owner, id))

    async def conversation(self, owner: str, id: str, *, with_answer: bool = True) -> list[Raw]:
        def collect(connection: sqlite3.Connection) -> list[Raw]:
            return items_of(_rounds(connection, owner, id, now=self._database.clock.now()), with_answer=with_answer)

        return await self._database.run(collect)

    async def items(self, owner: str, ids: list[str]) -> dict[str, Raw]:
        def collect(connection: sqlite3.Connection) -> dict[str, Raw]:
            found = _items(connection, owner, list(dict.fromkeys(ids)))
            for id in ids:
                if id not in found:
                    raise NotKept(id, is_item=True)
            if size_of(found, ids) > LONGEST:
                raise TooLong
            return found

        return await self._database.run(collect)

    async def some_items(self, owner: str, ids: list[str]) -> dict[str, Raw]:
        """Return those of these items that are here."""
        return await self._database.run(lambda connection: _items(connection, owner, ids))

    async def keep(self, owner: str, kept: Kept) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            now = self._database.clock.now()
            size = _insert(connection, owner, kept, now=now)
            self._new_rows, self._new_size = self._new_rows + 1, self._new_size + size
            if self._new_rows == 1 or self._new_rows >= _PRUNED_ROWS or self._new_size >= _PRUNED_SIZE:
                prune(connection, "response", owner, bounds=self._bounds, now=now)
                self._new_rows, self._new_size = 1, 0

        await self._database.run(insert)

    async def delete(self, owner: str, id: str) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            statement = "DELETE FROM response WHERE owner = ? AND id = ?"
            if not is_text(id) or not connection.execute(statement, (owner, id)).rowcount:
                raise NotKept(id)

        await self._database.run(delete)

    def close(self) -> None:
        self._database.close()


def size_of(items: Mapping[str, Raw], ids: Sequence[str]) -> int:
    """Return the bytes of the named items, each as often as it is named.

    Nothing is copied, and a repeated item is looked at once: a short request may name a large item 50,000 times.
    """
    return sum(memoryview(items[id]).nbytes * times for id, times in Counter(ids).items())


def output_of(response: bytes) -> list[Raw]:
    """Return the output items of a response."""
    found = _decode_output(response)
    return [] if isinstance(found, Malformed) else [Raw(bytes(raw)) for raw in found.output]


def items_of(rounds: list[Round], *, with_answer: bool) -> list[Raw]:
    """Return the items of all rounds; those of the last answer only if `with_answer`."""
    if not with_answer:
        rounds[-1] = rounds[-1][0], []
    return [item for said, answered in rounds for item in (*said, *answered)]


def named_items(response: bytes) -> dict[str, Raw]:
    """Return the output items of a response by id; of two with one id the first."""
    return {id: raw for raw in reversed(output_of(response)) if (id := _id(raw))}


def input_of(data: bytes) -> tuple[Raw, ...]:
    """Return the stored items of a request."""
    items = _decode_items(data)
    return () if isinstance(items, Malformed) else items


def sealed(items: bytes, previous: str | None, response: bytes) -> bytes:
    """Return the items as a file has them: with a checksum of the row, behind a zero byte, which JSON never has."""
    return b"%s\0%s" % (items, _checksum(items, previous, response))


def unsealed(previous: object, stored: object, response: object) -> bytes | None:
    """Return the items of a row, or None if it is damaged: SQLite does not notice damage inside a text."""
    if not (isinstance(stored, bytes) and isinstance(response, bytes)):
        return None
    if stored[-9:-8] != b"\0":
        return None if isinstance(_decode_items(stored), Malformed) else stored  # of an earlier dragoman
    items = stored[:-9]
    return items if stored[-8:] == _checksum(items, previous, response) else None


def _checksum(items: bytes, previous: object, response: bytes) -> bytes:
    return b"%08x" % zlib.crc32(response, zlib.crc32(items, zlib.crc32(f"{previous}".encode())))


def is_text(id: str) -> bool:
    """Return whether a database can store the id: it cannot store lone surrogates, so nothing has such an id."""
    try:
        id.encode()
    except UnicodeEncodeError:
        return False
    return True


def _find(connection: sqlite3.Connection, owner: str, id: str) -> Kept:
    if not is_text(id):
        raise NotKept(id)
    found = _sound(connection.execute(f"{_SELECT} owner = ? AND id = ?", (owner, id)))
    if found is None:
        raise NotKept(id)
    previous, items, response = found
    return Kept(id, previous, input_of(items), response)


def _sound(rows: sqlite3.Cursor) -> tuple[str | None, bytes, bytes] | None:
    """Return the row that was asked for by `_SELECT`, unsealed, or None if there is none or it is damaged."""
    row = rows.fetchone()
    if row is None:
        return None
    items = unsealed(*row)
    if items is None:
        _tell_damaged(hash(row))
        return None
    return row[0], items, row[2]


@lru_cache(maxsize=1024)
def _tell_damaged(row: int) -> None:
    """Log that a row is damaged, once, however often it is asked for. `row`: its hash."""
    _LOG.warning("a stored response is damaged, and so it is not found")


def _rounds(connection: sqlite3.Connection, owner: str, id: str, *, now: int) -> list[Round]:
    """Return the items of each round of a conversation, the first one first."""
    rounds: list[Round] = []
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
    """Return those that exist.

    Each response that has some of these items is read once, and all together no more than of a conversation.
    """
    wanted: dict[int, list[str]] = {}
    for id in filter(is_text, ids):
        place = connection.execute("SELECT response FROM item WHERE owner = ? AND id = ?", (owner, id)).fetchone()
        if place is not None:
            wanted.setdefault(place[0], []).append(id)
    found: dict[str, Raw] = {}
    size = 0
    for number, names in wanted.items():
        row = _sound(connection.execute(f"{_SELECT} number = ?", (number,)))
        if row is None:
            continue
        size += len(row[2])
        if size > LONGEST:
            raise TooLong
        items = named_items(row[2])
        found |= {id: items[id] for id in names if id in items}
    return found


def _insert(connection: sqlite3.Connection, owner: str, kept: Kept, *, now: int) -> int:
    data = _json.encode(kept.input)
    size = len(data) + len(kept.response)
    row = (owner, kept.id, kept.previous, sealed(data, kept.previous, kept.response), kept.response, now, size)
    inserted = connection.execute(
        "INSERT INTO response (owner, id, previous, input, response, used, size) VALUES (?, ?, ?, ?, ?, ?, ?)", row
    )
    ids = [(owner, id, inserted.lastrowid) for id in named_items(kept.response)]
    connection.executemany("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", ids)
    return size


def _id(item: Raw) -> str:
    found = _decode_named(bytes(item))
    return found.id if not isinstance(found, Malformed) and isinstance(found.id, str) and is_text(found.id) else ""
