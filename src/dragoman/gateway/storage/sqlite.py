"""A SQLite file that all workers share. Each database has a thread, so that the event loop never waits for a disk.

A damaged file is set aside under another name, and a new one begins with its readable rows. A file that cannot be
written is replaced by memory. Both are logged once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, final

import msgspec

from dragoman.ledger.stores.files import make_file
from dragoman.ledger.stores.salvage import salvage

T = TypeVar("T")
#: What is done in one transaction. It may run twice, when the file turns out to be damaged on the way.
Work: TypeAlias = Callable[[sqlite3.Connection], T]

_LOG: Final = logging.getLogger("dragoman.gateway")
_MEMORY: Final = ":memory:"
#: Milliseconds that a transaction waits for another worker's.
_PATIENCE: Final = 5_000
#: Seconds that count of a time in which nobody had the file open.
_LONGEST_GAP: Final = 86_400
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
#: WAL: readers and the one writer do not wait for each other. NORMAL: what a power cut takes is the last moments, never
#: the file. Deleted rows are overwritten, as they were somebody's conversation. A file's cache takes 512 KiB at most.
_SETTINGS: Final = f"""
PRAGMA busy_timeout = {_PATIENCE};
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA secure_delete = ON;
PRAGMA foreign_keys = ON;
PRAGMA cache_size = -512;
"""


class Clock:
    """The seconds by which rows age: the wall clock's when the file is opened, counted monotonically from then on.

    A jump of the wall clock would make everything old at once. So while a file is open its time follows the process's
    clock, and a time in which no process had it open counts as one day at most: rows only age by time that a process
    has seen pass.
    """

    __slots__ = ("_began", "_now")

    def __init__(self) -> None:
        self._now = time.time()
        self._began = time.monotonic()

    def begin(self, newest: int | None) -> None:
        """Start when a file is opened. `newest`: the stamp of its newest row, or None."""
        wall = time.time()
        self._now = wall if newest is None else min(max(wall, newest), newest + _LONGEST_GAP)
        self._began = time.monotonic()

    def now(self) -> int:
        """Return the time to stamp a row with."""
        return int(self._now + time.monotonic() - self._began)


class StoreFailed(Exception):
    """The file cannot be read or written now: the disk is full, or another process holds it."""


class StoreUnreachable(StoreFailed):
    """A database of several machines gave no answer: what is asked for may exist, and a change may have been made."""


class Database:
    """One file. `run` may be called from one event loop. Nothing is opened before the first call.

    Attributes:
        clock: stamps and ages rows; for use inside `run`.
    """

    __slots__ = ("_connection", "_executor", "_falls_back", "_file", "_form", "_identity", "_schema", "_table", "clock")

    def __init__(self, file: Path | None, schema: str, *, table: str, form: int = 1, falls_back: bool = True) -> None:
        """Create it.

        Args:
            file: None keeps everything in memory.
            schema: statements that may be repeated (`IF NOT EXISTS`).
            table: the one whose rows are stamped, in a column `used`.
            form: of tables and rows. It reads earlier forms too; a file of a later one is left alone.
            falls_back: memory replaces a file that cannot be used.
        """
        self._file = file
        self._form = form
        self._falls_back = falls_back
        self._schema = schema
        self._table = table
        self.clock = Clock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="dragoman-state")

    async def run(self, work: Work[T]) -> T:
        """Run work in one transaction, in the database's own thread; return when it is committed.

        Raises:
            StoreFailed: nothing was changed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._executor, self.do, work)

    def close(self) -> None:
        """Wait for the given work, and close the file."""
        self._executor.submit(self.shut)
        self._executor.shutdown()

    def do(self, work: Work[T]) -> T:
        """As `run`, in the calling thread, for a caller that uses nothing else but `shut`.

        Raises:
            StoreFailed: nothing was changed.
        """
        try:
            try:
                return self._once(work)
            except sqlite3.DatabaseError as problem:
                if _code(problem) not in _DAMAGE:
                    raise
                aside = self._put_aside()
            if aside is not None:
                self._take_over(aside)
            return self._once(work)
        except sqlite3.OperationalError as problem:
            raise StoreFailed(str(problem)) from None

    def _take_over(self, aside: Path) -> None:
        """Copy the readable rows of the damaged file into the new one. Other workers wait for it."""
        try:
            count = self._once(lambda connection: salvage(aside, connection))
        except sqlite3.Error as problem:
            _LOG.warning("nothing could be taken over from %s: %s", aside.name, problem)
        else:
            _LOG.warning("%s rows were taken over from %s", count, aside.name)

    def _once(self, work: Work[T]) -> T:
        if self._connection is not None and self._file is not None and _identity(self._file) != self._identity:
            self.shut()  # another worker has put it aside, or somebody has removed it
        if self._connection is None:
            self._connection = self._open()
        with self._connection as connection:
            return work(connection)

    def _open(self) -> sqlite3.Connection:
        until = time.monotonic() + _PATIENCE / 1_000
        while self._file is not None:
            try:
                return self._open_file(self._file)
            except (OSError, sqlite3.OperationalError) as problem:
                # SQLite does not wait where two workers begin a file at once.
                if (
                    isinstance(problem, sqlite3.OperationalError)
                    and _code(problem) in _BUSY
                    and time.monotonic() < until
                ):
                    time.sleep(0.01)
                    continue
                if not self._falls_back:
                    raise StoreFailed(str(problem)) from None
                _LOG.warning("%s cannot be used, so its contents stay in memory: %s", self._file, problem)
                self._file = None
        return self._prepared(sqlite3.connect(_MEMORY))

    def _open_file(self, file: Path) -> sqlite3.Connection:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_file(file)
        connection = sqlite3.connect(file)
        self._identity = _identity(file)
        try:
            return self._prepared(connection)
        except BaseException:
            connection.close()
            raise

    def _prepared(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.executescript(_SETTINGS)
        connection.text_factory = _text
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > self._form:
            raise sqlite3.OperationalError("a newer dragoman has written it")
        connection.executescript(self._schema)
        if version < self._form:
            connection.execute(f"PRAGMA user_version = {self._form}")
        self.clock.begin(connection.execute(f"SELECT max(used) FROM {self._table}").fetchone()[0])
        return connection

    def _put_aside(self) -> Path | None:
        """Rename a damaged file, unless another worker has. Return its new name."""
        self.shut()
        file = self._file
        if file is None or _identity(file) != self._identity:
            return None
        aside = file.with_name(f"{file.name}.damaged-{int(time.time())}")
        with contextlib.suppress(FileNotFoundError):
            os.replace(file, aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{file}{suffix}", f"{aside}{suffix}")
            _LOG.warning("%s is damaged; it was kept as %s, and a new one begun", file, aside.name)
            return aside
        return None

    def shut(self) -> None:
        """Close the file; the next work opens it again."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def _code(problem: sqlite3.Error) -> int:
    """Return SQLite's own error code; 0 for an error of Python's module."""
    code: int = getattr(problem, "sqlite_errorcode", 0)
    return code & 0xFF


def _text(data: bytes) -> str:
    """Return a text of a damaged row, too: whoever reads it sees that it is not what was written."""
    return data.decode(errors="replace")


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:  # it is gone, or its folder is
        return None
    return found.st_dev, found.st_ino


@final
class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a table: rows and bytes, of one client key (`own_…`) and of all; seconds since the last use."""

    own_rows: int
    own_size: int
    rows: int
    size: int
    age: int


def prune(connection: sqlite3.Connection, table: str, owner: str, *, bounds: Bounds, now: int) -> None:
    """Delete what is too old, then the longest unused rows, first of the owner, then of all.

    `table` has the columns owner, used (seconds of `now`, which is a `Clock`'s) and size (bytes).
    """
    connection.execute(f"DELETE FROM {table} WHERE used < ?", (now - bounds.age,))
    _trim(connection, f"{table} WHERE owner = ?", (owner,), rows=bounds.own_rows, size=bounds.own_size)
    _trim(connection, table, (), rows=bounds.rows, size=bounds.size)


def _trim(connection: sqlite3.Connection, of: str, names: tuple[str, ...], *, rows: int, size: int) -> None:
    count, total = connection.execute(f"SELECT count(*), coalesce(sum(size), 0) FROM {of}", names).fetchone()
    if count <= rows and total <= size:
        return
    doomed = []
    for number, taken in connection.execute(f"SELECT rowid, size FROM {of} ORDER BY used, rowid", names):
        if count <= rows and total <= size:
            break
        count, total = count - 1, total - taken
        doomed.append((number,))
    table = of.partition(" ")[0]
    connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", doomed)
