"""What outlives a request: stored responses and seals, in two files of the state folder."""

from __future__ import annotations

from dragoman.config import Config
from dragoman.gateway.storage.responses import Responses
from dragoman.gateway.storage.signatures import SignatureStore
from dragoman.ledger.folder import LedgerFolder


class Stores:
    """The stores of one worker.

    Attributes:
        responses: None when the configuration keeps none. `ledger`: where it stands; None without one.
    """

    __slots__ = ("ledger", "responses", "seals")

    def __init__(self, config: Config, ledger: LedgerFolder | None = None) -> None:
        self.ledger = ledger
        folder = config.server.state
        self.seals = SignatureStore(None if folder is None else folder / "seals.sqlite")
        self.responses: Responses | None = None
        if config.server.store_responses:
            self.responses = Responses(None if folder is None else folder / "responses.sqlite")

    def close(self) -> None:
        """Close the files."""
        self.seals.close()
        if self.responses is not None:
            self.responses.close()
