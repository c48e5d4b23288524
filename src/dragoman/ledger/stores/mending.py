"""Repair a damaged file of the ledger: keep it under another name, and replace it with one that has all readable rows.

The replacement is atomic: a gateway that found no file would find no keys and no quotas, and would admit everyone. The
data that belongs to no month (keys, quotas, sums of dropped months) has a copy, made at each change and once a day.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from dragoman.ledger.locking import FileLock
from dragoman.ledger.stores.files import BESIDE, MAIN_FILE, Serial, is_busy, open_file, serial_of
from dragoman.ledger.stores.salvage import salvage
from dragoman.ledger.stores.schema import MAIN, MONTH

COPY_FILE: Final = f"{MAIN_FILE}.copy"
_LOCK: Final = "mending.lock"
#: Tables of a month that the triggers of its rows fill, and the one that stops them.
_DERIVED: Final = ("usage_hour", "spend", "summing")


def mend(file: Path, serial: Serial) -> str:
    """Replace a damaged file. Return the new name of the damaged one, or "" if another process has replaced it.

    Args:
        serial: the identity of the file that was found damaged.

    Raises:
        OSError, sqlite3.Error, StoreAway: nothing has changed.
    """
    with _alone(file.parent):
        if serial_of(file) != serial:
            return ""
        with _nobody_writing(file):
            return _replaced(file)


def _replaced(file: Path) -> str:
    aside = _kept(file)
    new = file.with_name(f"{file.name}.new")
    _remove(new)
    is_main = file.name == MAIN_FILE
    with closing(open_file(new, MAIN if is_main else MONTH)) as connection:
        connection.execute("BEGIN")
        salvage(aside, connection, without=() if is_main else _DERIVED)
        if is_main and (copy := file.with_name(COPY_FILE)).exists():
            salvage(copy, connection)  # what stands there already is newer
        connection.execute("COMMIT")
    for suffix in BESIDE:
        Path(f"{file}{suffix}").unlink(missing_ok=True)  # its log would be taken for that of the new one
    os.replace(new, file)
    return aside.name


def keep_copy(main: sqlite3.Connection, folder: Path) -> None:
    """Copy the data that belongs to no month. A damaged page is never copied; then the previous copy stays.

    Raises:
        OSError, sqlite3.Error: the previous copy stays.
    """
    with _alone(folder):
        new = folder / f"{COPY_FILE}.new"
        _remove(new)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        main.execute("VACUUM INTO ?", (str(new),))
        os.replace(new, folder / COPY_FILE)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    lock = FileLock(folder / _LOCK)
    lock.take(waits=True)
    try:
        yield
    finally:
        lock.give_back()


@contextmanager
def _nobody_writing(file: Path) -> Iterator[None]:
    """Keep writers out of the file, so that no row is written to the old file only. They find the new file
    afterwards.
    """
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as problem:
            if is_busy(problem):
                raise  # somebody writes for long: the next who finds the damage mends it
        yield  # whatever else is wrong: nobody can write


def _kept(file: Path) -> Path:
    """Give the file a second name and return it."""
    aside = file.with_name(f"{file.name}.damaged-{time.time_ns() // 1_000}")
    for suffix in ("", *BESIDE):
        source, target = f"{file}{suffix}", f"{aside}{suffix}"
        with contextlib.suppress(FileNotFoundError):
            try:
                os.link(source, target)
            except FileNotFoundError:
                raise
            except OSError:  # the file system has no second names
                import shutil

                shutil.copy2(source, target)
    return aside


def _remove(file: Path) -> None:
    for suffix in ("", *BESIDE):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
