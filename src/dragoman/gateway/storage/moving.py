"""Move waiting data from this machine's files into the shared PostgreSQL, and report when nothing waits.

It runs beside the ledger's shipper, in its process. The data was kept while the database was away, or before there was
one.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, Final

from dragoman.gateway.storage import responses, signatures
from dragoman.gateway.storage.machines import tag_of
from dragoman.gateway.storage.postgresql_tables import (
    BEGIN_SEALS,
    INSERT_RESPONSE,
    INSERT_SEALS,
    digest_of,
    prepare_shared,
)
from dragoman.gateway.storage.pruning import prune_all
from dragoman.gateway.storage.sqlite import Database, StoreFailed
from dragoman.ledger.counters.roster import machine_of
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.postgresql_connection import Connection

_LOG: Final = logging.getLogger("dragoman.gateway")
#: Seconds between two rounds, and between two looks for what is too old.
_EVERY: Final = 0.5
_PRUNE_EVERY: Final = 600.0
#: Seconds for a statement: workers that want to write into the file wait meanwhile.
_PATIENCE: Final = 4.0
#: What is moved at once: rows of seals, and bytes of responses.
_SEALS: Final = 500
_SIZE: Final = 4 * 1024 * 1024
_SAY: Final = "INSERT INTO state_machine VALUES($1, $2) ON CONFLICT(tag) DO UPDATE SET clear = excluded.clear"
_END: Final = "UPDATE state_machine SET clear = 'infinity' WHERE tag = $1"
#: How long a machine is remembered that says nothing.
_FORGET: Final = "DELETE FROM state_machine WHERE clear < clock_timestamp() - interval '60 days'"
_FORGET_BREAKERS: Final = "DELETE FROM breaker WHERE at < clock_timestamp() - interval '1 hour'"


class Mover:
    """Moves waiting data. For one thread."""

    __slots__ = ("_connection", "_folder", "_is_ready", "_pruned", "_responses", "_seals", "_state")

    def __init__(self, state: Path, folder: LedgerFolder) -> None:
        """Create it. `state`: the gateway's state folder; `folder`: its ledger's."""
        assert folder.store is not None
        self._state = state
        self._folder = folder
        self._connection = Connection(folder.store, patience=_PATIENCE)
        self._is_ready = False
        self._pruned = time.monotonic()
        self._responses = Database(
            state / responses.FILE, responses.SCHEMA, table="response", form=responses.FORM, falls_back=False
        )
        self._seals = Database(state / signatures.FILE, signatures.SCHEMA, table="seal", falls_back=False)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set. While the database or the folder cannot be reached, try again."""
        while not stop.is_set():
            with contextlib.suppress(StoreAway, Refused, StoreFailed, OSError, sqlite3.Error):
                self.round()
            stop.wait(_EVERY)
        with contextlib.suppress(StoreAway, Refused, StoreFailed, OSError, sqlite3.Error):
            self.round()
            self._connection.execute(_END, tag_of(machine_of(self._folder)))
        self.close()

    def round(self) -> None:
        """Move everything that waits, and report that nothing does.

        Raises:
            StoreAway, Refused, StoreFailed, OSError, sqlite3.Error: something still waits, or it was not reported.
        """
        tag = tag_of(machine_of(self._folder))
        connection = self._connection
        if not (self._is_ready and connection.is_open):
            self._is_ready = False
            prepare_shared(connection)
            self._is_ready = True
        # What is kept here later than this is not what is said to be none.
        at = connection.fetch("SELECT clock_timestamp()")[0][0]
        for file, table, move in (
            (self._responses, "response", self._move_responses),
            (self._seals, "seal", self._move_seals),
        ):
            while _has_rows(file, table):
                file.do(move)
        connection.execute(_SAY, tag, at)
        if time.monotonic() - self._pruned > _PRUNE_EVERY:
            self._pruned = time.monotonic()
            prune_all(connection)
            connection.execute(_FORGET)
            connection.execute(_FORGET_BREAKERS)

    def close(self) -> None:
        """Close everything; the next round opens it again."""
        self._connection.close()
        self._responses.shut()
        self._seals.shut()

    # ------------------------------------------------------------ inside

    def _move_responses(self, file: sqlite3.Connection) -> None:
        """Move responses. A deletion waits meanwhile, so a response is never in transit when it is deleted."""
        file.execute("BEGIN IMMEDIATE")
        rows: list[Any] = []
        size = 0
        for row in file.execute(
            "SELECT number, owner, id, previous, input, response, size FROM response ORDER BY number"
        ):
            if rows and size + row[-1] > _SIZE:
                break
            rows.append(row)
            size += row[-1]
        for number, *values, taken in rows:
            items = responses.unsealed(*values[2:])
            if items is None:
                _LOG.warning("a stored response is left out, for it is damaged")
            else:
                ids = [digest_of(id) for id in responses.named_items(values[-1])]
                try:
                    self._connection.execute(INSERT_RESPONSE, *values[:3], items, values[-1], taken, ids)
                except Refused as problem:
                    _LOG.warning("a stored response is left out, for the database does not take it: %s", problem)
            file.execute("DELETE FROM response WHERE number = ?", (number,))

    def _move_seals(self, file: sqlite3.Connection) -> None:
        file.execute("BEGIN IMMEDIATE")
        rows = file.execute("SELECT number, owner, key, seal FROM seal ORDER BY number LIMIT ?", (_SEALS,)).fetchall()
        if rows:
            numbers, owners, keys, seals = zip(*rows, strict=True)
            self._connection.execute(BEGIN_SEALS)
            self._connection.execute(INSERT_SEALS, owners, keys, seals)
            file.executemany("DELETE FROM seal WHERE number = ?", [(number,) for number in numbers])


def _has_rows(file: Database, table: str) -> bool:
    return file.do(lambda connection: connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None)
