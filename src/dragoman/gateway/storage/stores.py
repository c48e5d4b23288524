"""Data that outlives a request: stored responses and signatures, in two files of the state folder, or in the PostgreSQL
of a shared ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.gateway.storage import responses, signatures
from dragoman.gateway.storage.breaker_board import Board
from dragoman.gateway.storage.responses import Responses, ResponseStore
from dragoman.gateway.storage.signatures import SignatureStore
from dragoman.history.signature_vault import Vault
from dragoman.ledger.folder import LedgerFolder

#: Seconds for an answer of a Valkey.
_PATIENCE: Final = 1.0


class Stores:
    """The stores of one worker.

    Attributes:
        responses: None if the configuration stores none.
        ledger: its place, or None.
        breakers: the board of circuit breakers, or None without other machines.
    """

    __slots__ = ("_close", "breakers", "ledger", "responses", "seals")

    def __init__(self, config: Config, ledger: LedgerFolder | None = None) -> None:
        """Create them. Raises ConfigError if the name of this machine cannot be kept."""
        self.ledger = ledger
        folder = config.server.state
        is_shared = ledger is not None and ledger.store is not None and folder is not None
        seals = SignatureStore(_file(folder, signatures.FILE), falls_back=not is_shared)
        kept = None
        if config.server.store_responses:
            kept = Responses(_file(folder, responses.FILE), falls_back=not is_shared)
        self.seals: Vault = seals
        self.responses: ResponseStore | None = kept
        self.breakers: Board | None = None
        self._close = [seals.close] if kept is None else [seals.close, kept.close]
        if is_shared and ledger is not None:
            self._share(ledger, seals, kept)

    def close(self) -> None:
        """Close the files."""
        for close in self._close:
            close()

    def _share(self, ledger: LedgerFolder, seals: SignatureStore, kept: Responses | None) -> None:
        from dragoman.gateway.storage.machines import tag_of
        from dragoman.gateway.storage.postgresql import SharedDatabase
        from dragoman.gateway.storage.shared_responses import SharedResponses
        from dragoman.gateway.storage.shared_signatures import SharedSeals
        from dragoman.ledger.counters.roster import machine_of

        assert ledger.store is not None
        database = SharedDatabase(ledger.store)
        self._close.append(database.close)
        if ledger.counters is None:
            from dragoman.gateway.storage.postgresql_board import PostgresqlBoard

            self.breakers = PostgresqlBoard(database)
        else:
            from dragoman.gateway.storage.valkey_board import ValkeyBoard
            from dragoman.ledger.counters.valkey import ValkeyPlace

            self.breakers = ValkeyBoard(ValkeyPlace(ledger.counters, patience=_PATIENCE))
        self.seals = SharedSeals(database, seals)
        if kept is not None:
            try:
                self.responses = SharedResponses(database, kept, tag=tag_of(machine_of(ledger)))
            except OSError as problem:
                raise ConfigError(f"{ledger.root}: {problem.strerror}") from None


def _file(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name
