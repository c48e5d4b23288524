"""Copy the readable rows of a damaged SQLite file into a new one: a damaged page costs only the rows that stand on it.

A table's rows are read by row id, skipping unreadable places; a table without row ids is read from both ends. Inserting
rebuilds the indexes. Damage inside a text cannot be detected.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

#: What no damage is: the new file takes no more.
_NO_ROOM: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
#: Rows of one query.
_SLICE: Final = 100
#: A head names this page size, in bytes, as 1. https://www.sqlite.org/fileformat.html, section 1.3 (read 2026-11-28)
_LARGEST_PAGE: Final = 65_536
#: How many times as long as what is left a file may have been: beyond that, the size in its head is taken for damage.
_MOST_CUT: Final = 16


class _Table(NamedTuple):
    name: str
    columns: list[str]
    key: list[str]  # [] where rows have numbers


def salvage(damaged: Path, into: sqlite3.Connection, *, without: Collection[str] = ()) -> int:
    """Copy the rows of all tables and columns that both files have. Return the number of rows.

    Does nothing if the damaged schema cannot be read. A row whose key exists already is left out.

    Args:
        without: tables to leave out.

    Raises:
        sqlite3.Error: the new file has no room.
    """
    count = 0
    with contextlib.suppress(OSError):
        _restore_size(damaged)
    try:
        with contextlib.closing(_opened(damaged)) as source:
            for table in _tables(into, source):
                if table.name in without:
                    continue
                names = ", ".join(table.columns)
                insert = f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(table.columns))})"
                for row in _rows(source, table):
                    # A row that another one must stand beside may be lost with that.
                    with contextlib.suppress(sqlite3.IntegrityError):
                        into.execute(insert, row)
                        count += 1
    except sqlite3.Error as problem:
        if getattr(problem, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM:
            raise
    return count


def _restore_size(file: Path) -> None:
    """Fill up a file that was cut with zeros, to the size in its head: SQLite reads no page of one that is shorter."""
    with file.open("r+b") as opened:
        head = opened.read(32)
        page, count = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
        size, left = (_LARGEST_PAGE if page == 1 else page) * count, opened.seek(0, 2)
        if left < size <= _MOST_CUT * left:
            opened.truncate(size)


def _opened(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)  # its log is read too
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _tables(connection: sqlite3.Connection, source: sqlite3.Connection) -> list[_Table]:
    """Return the tables that `source` has too, in order of creation, so that each follows the tables it refers to."""
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    ).fetchall()
    tables = []
    for name, sql in found:
        known = {column[1] for column in source.execute(f"PRAGMA table_info({name})")}
        columns = [column for column in connection.execute(f"PRAGMA table_info({name})") if column[1] in known]
        if not columns:
            continue
        key = [column[1] for column in columns if column[5]] if "WITHOUT ROWID" in sql.upper() else []
        tables.append(_Table(name, [column[1] for column in columns], key))
    return tables


def _rows(source: sqlite3.Connection, table: _Table) -> Iterator[tuple[Any, ...]]:
    if not table.key:
        yield from _numbered(source, table)
        return
    order = ", ".join(table.key)
    backwards = ", ".join(f"{column} DESC" for column in table.key)
    seen: set[tuple[Any, ...]] = set()
    for by in (order, backwards):
        with contextlib.suppress(sqlite3.DatabaseError):
            rows = source.execute(f"SELECT {', '.join(table.columns)} FROM {table.name} NOT INDEXED ORDER BY {by}")
            for row in rows:
                key = tuple(row[table.columns.index(column)] for column in table.key)
                if key in seen:
                    return
                seen.add(key)
                yield row


def _numbered(source: sqlite3.Connection, table: _Table) -> Iterator[tuple[Any, ...]]:
    """Yield all readable rows by row id."""
    query = f"SELECT rowid, {', '.join(table.columns)} FROM {table.name} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"

    def read(first: int, most: int) -> list[tuple[Any, ...]] | None:
        """Return rows from a row id on, or None if they cannot be read, or if damaged pages give them in no order."""
        try:
            rows = source.execute(f"{query} LIMIT {most}", (first,)).fetchall()
        except sqlite3.DatabaseError:
            return None
        numbers = [row[0] for row in rows]
        return rows if min(numbers, default=first) >= first and all(map(int.__lt__, numbers, numbers[1:])) else None

    first = -(2**63)
    while True:
        rows, most = read(first, _SLICE), _SLICE
        while rows is None and most > 1:
            most //= 2
            rows = read(first, most)
        if rows is None:
            following = _next_readable(first, lambda number: read(number, 1) is not None)
            if following is None:
                return
            first = following
            continue
        if not rows:
            return
        for row in rows:
            yield row[1:]
        first = rows[-1][0] + 1


def _next_readable(damaged: int, can_read: Any) -> int | None:
    """Return the next row id from which rows can be read, or None. Steps double, then halve again."""
    low, step = max(damaged, 0), 1
    while not can_read(low + step):
        low, step = low + step, step * 2
        if low + step >= 2**62:
            return None
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if can_read(middle):
            high = middle
        else:
            low = middle
    return high
