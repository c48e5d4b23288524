"""Which machine created an id, and whether its data may still wait there for the database.

Data that cannot be written to the database stays in a file of its machine until it can. So a missing row does not yet
mean that there is none. Each machine reports about twice a second, by the database's clock, that nothing waits on it. A
report after a question means that what is asked for is in the database or nowhere.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Final

from dragoman.gateway.storage.postgresql import SharedDatabase
from dragoman.gateway.storage.sqlite import StoreUnreachable
from dragoman.ids import new_id
from dragoman.ledger.stores.postgresql_connection import Connection

_PREFIX: Final = "resp_"
_TAG: Final = 8
_CHECK: Final = 4
_LENGTH: Final = len(_PREFIX) + _TAG + _CHECK + len(new_id())
#: Seconds that a question waits for a machine's word, seconds between two looks for it, and how old the last one is
#: when it is not waited for.
_WAIT: Final = 2.0
_LOOK: Final = 0.1
_SILENT: Final = 5.0
#: After so many seconds without a word a machine has ended for the others.
_GONE: Final = 86_400
_CLEAR: Final = (
    "SELECT tag, clear >= $1::timestamptz, clock_timestamp() - clear > interval '1 second' * $2::float8, "
    "clock_timestamp() - clear > interval '1 second' * $3::float8 FROM state_machine WHERE $4::text IS NULL OR tag = $4"
)


def tag_of(machine: str) -> str:
    """Return a machine's tag for ids, which reveals nothing of it."""
    return hashlib.sha256(f"machine {machine}".encode()).hexdigest()[:_TAG]


def id_of(tag: str) -> str:
    """Return a new response's id."""
    return f"{_PREFIX}{tag}{_check(tag)}{new_id()}"


def tag_in(id: str) -> str | None:
    """Return the tag of the machine that created an id, or None if no machine of this fleet can have."""
    rest = id[len(_PREFIX) :]
    if len(id) != _LENGTH or not id.startswith(_PREFIX) or not rest.isascii() or not rest.isalnum():
        return None
    tag, check = rest[:_TAG], rest[_TAG : _TAG + _CHECK]
    return tag if check == _check(tag) else None


async def nothing_waits(database: SharedDatabase, tag: str | None, *, except_for: str) -> None:
    """Wait until nothing waits on this machine (None: on any but one) of what existed when this was called.

    Raises:
        StoreUnreachable: that is unknown.
        StoreFailed: the database failed.
    """
    asked = await database.run(lambda connection: connection.fetch("SELECT clock_timestamp()")[0][0])
    loop = asyncio.get_running_loop()
    until = loop.time() + _WAIT
    while True:
        rows = await database.run(lambda connection: _standing(connection, asked, tag))
        if tag is not None and not rows:
            raise StoreUnreachable("a machine that was not heard yet")
        open_ones = [row for row in rows if not row[1] and not row[3] and row[0] != except_for]
        if not open_ones:
            return
        if loop.time() > until or any(is_silent for _, _, is_silent, _ in open_ones):
            raise StoreUnreachable("a machine that may have it is not heard")
        await asyncio.sleep(_LOOK)


def _standing(connection: Connection, asked: object, tag: str | None) -> list[tuple[Any, ...]]:
    return connection.fetch(_CLEAR, asked, _SILENT, _GONE, tag)


def _check(tag: str) -> str:
    return hashlib.sha256(f"check {tag}".encode()).hexdigest()[:_CHECK]
