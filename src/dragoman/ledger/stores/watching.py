"""Watch a SQLite file that other processes write, without reading it to notice a change."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.stores.files import read_file, serial_of


class WatchedFile:
    """A watched file. For one thread. `connection`: for reading; None: there is no file."""

    __slots__ = ("_file", "_serial", "_version", "connection")

    def __init__(self, file: Path) -> None:
        self._file = file
        self.connection: sqlite3.Connection | None = None
        self._serial = (0, 0)  # of the file that is open
        self._version = -1

    def has_changed(self) -> bool:
        """Look. Return whether the file may have changed since the last successful look. True while there is none.

        Raises:
            StoreAway: it cannot be read; the next look opens it again.
        """
        try:
            if self.connection is None or serial_of(self._file) != self._serial:
                self.close()  # somebody removed it, or put another in its place
                self._serial = serial_of(self._file)
                self.connection, self._version = read_file(self._file), -1
            if self.connection is None:
                return True
            [version] = self.connection.execute("PRAGMA data_version").fetchone()
        except (sqlite3.Error, StoreAway) as problem:
            self.close()
            raise StoreAway(str(problem)) from None
        before, self._version = self._version, version
        return bool(before != version)

    def close(self) -> None:
        """Close the file; the next look opens it again."""
        if self.connection is not None:
            connection, self.connection = self.connection, None
            connection.close()
