"""The SQLite files of the ledger's folder: opening, preparing, setting damaged ones aside."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.ledger.interfaces import StoreAway, StoreDamaged
from dragoman.ledger.journal.records import started_of
from dragoman.ledger.stores.schema import MONTH, MONTH_STEPS, VERSION

MAIN_FILE: Final = "ledger.sqlite"
#: This machine's copy of keys and quotas of a PostgreSQL.
REPLICA_FILE: Final = "replica.sqlite"
#: What SQLite has beside a file.
BESIDE: Final = ("-wal", "-shm")
#: Which file stands at a path: device and number.
Serial: TypeAlias = tuple[int, int]
_MONTH_FILE: Final = re.compile(r"attempts-(\d{4}-\d{2})\.sqlite")
#: Milliseconds that a transaction waits for another process's.
_PATIENCE: Final = 5_000
#: WAL: who reads and the one who writes do not wait for each other. FULL: what is committed survives a power cut, for
#: the journals are dropped after it. A file's cache takes 1 MiB at most.
_SETTINGS: Final = f"""
PRAGMA busy_timeout = {_PATIENCE};
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA cache_size = -1024;
"""
#: 31 December 9999, in days since 1970: an id has room for later ones, a calendar has not.
_LAST_DAY: Final = 2_932_896
#: Held while a file is made.
_MAKING: Final = threading.Lock()
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def month_of(id: bytes) -> str:
    """Return the partition of an attempt: `2026-11`, in UTC."""
    return _month_of_day(min(started_of(id) // 86_400_000_000, _LAST_DAY))


@lru_cache(maxsize=64)
def _month_of_day(day: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m")


def month_file(folder: Path, month: str) -> Path:
    """Return the path of a month's file."""
    return folder / f"attempts-{month}.sqlite"


def months_in(folder: Path) -> list[str]:
    """Return the months that have a file, in order. Empty if the folder does not exist."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(found[1] for name in names if (found := _MONTH_FILE.fullmatch(name)))


def serial_of(file: Path) -> Serial:
    """Return the identity of a file, which changes when another file takes its place. (0, 0): there is none."""
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def make_file(file: Path) -> None:
    """Create a file for SQLite that only its owner reads, if there is none. SQLite's other files take its mode.

    One that stands there is not opened: to close a descriptor of it takes back all locks that this process has on it
    (POSIX). Another process then takes its own connection for the last one and deletes the log into which this one
    writes on, so that what is committed here is lost.

    Raises:
        OSError: it cannot be created.
    """
    with _MAKING, contextlib.suppress(FileExistsError):  # nor is one locked here before its descriptor is closed
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def open_file(file: Path, schema: str) -> sqlite3.Connection:
    """Open a file of the ledger for writing; create it if there is none. `schema` is `MAIN` or `MONTH`.

    Raises:
        StoreAway: it cannot be written, or a later dragoman wrote it.
        sqlite3.DatabaseError: it is damaged.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_file(file)
    except OSError as problem:
        raise StoreAway(f"{file.name}: {problem.strerror}") from None
    # The shipper's thread opens it, and the gateway's closes it when that one has ended.
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    until = time.monotonic() + _PATIENCE / 1000
    try:
        while True:
            try:
                connection.executescript(_SETTINGS)
                _prepare(connection, schema, file)
                return connection
            except sqlite3.OperationalError as problem:
                # Two that turn one new file to WAL do not wait for each other: SQLite refuses one at once.
                if not is_busy(problem) or time.monotonic() > until:
                    raise
                if connection.in_transaction:
                    connection.rollback()
                time.sleep(0.005)
    except BaseException:
        connection.close()
        raise


def is_busy(problem: sqlite3.Error) -> bool:
    """Return whether the error means that another process has the file locked."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _prepare(connection: sqlite3.Connection, schema: str, file: Path) -> None:
    if version_of(connection) >= VERSION:
        _refuse_later(connection, file)
        return
    connection.execute("BEGIN IMMEDIATE")
    version = version_of(connection)  # another process may have been quicker
    if version < VERSION:
        steps = range(version + 1, VERSION + 1) if version and schema is MONTH else ()
        before = "".join(MONTH_STEPS.get(step, "") for step in steps)
        for statement in _statements(f"{before}{schema}PRAGMA user_version = {VERSION};"):
            connection.execute(statement)
    connection.execute("COMMIT")
    _refuse_later(connection, file)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file's tables; 0 if it has none yet."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _refuse_later(connection: sqlite3.Connection, file: Path) -> None:
    if version_of(connection) > VERSION:
        raise StoreAway(f"{file.name}: a later dragoman has written it")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def renew_month(file: Path) -> None:
    """Bring a month's file of an earlier dragoman up to the current tables.

    Raises:
        StoreAway, sqlite3.DatabaseError: as `open_file`.
    """
    connection = read_file(file)
    if connection is not None:
        version = version_of(connection)
        connection.close()
        if version < VERSION:
            open_file(file, MONTH).close()


def read_file(file: Path) -> sqlite3.Connection | None:
    """Open a file of the ledger for reading. Return None if there is none, or it is being created.

    Raises:
        StoreAway: it cannot be read.
        StoreDamaged: it is not a valid SQLite file.
    """
    if not file.exists():
        return None
    # The gateway's end closes it from another thread than its loop's.
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as problem:
        connection.close()
        kind = StoreDamaged if is_damage(problem) else StoreAway
        raise kind(f"{file.name}: {problem}") from None
    if version > VERSION:
        connection.close()
        raise StoreAway(f"{file.name}: a later dragoman has written it")
    if not version:
        connection.close()
        return None
    return connection


def is_damage(problem: sqlite3.Error) -> bool:
    """Return whether the error means that the file is damaged."""
    code: int = getattr(problem, "sqlite_errorcode", 0)
    return code & 0xFF in _DAMAGE


def damaged_in(folder: Path) -> list[str]:
    """Return the names of files that were set aside."""
    try:
        return sorted(
            name for name in os.listdir(folder) if ".sqlite.damaged-" in name and not name.endswith(("m", "l"))
        )
    except OSError:
        return []
