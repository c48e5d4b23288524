"""Machines of one fleet, each with a state folder of its own, as far as what they share goes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from reliability.engines import PostgreSQL

from dragoman.config import Config, load_config
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.storage.moving import Mover
from dragoman.gateway.storage.postgresql import SharedDatabase
from dragoman.gateway.storage.postgresql_tables import prepare_shared
from dragoman.gateway.storage.sqlite import StoreUnreachable
from dragoman.gateway.storage.stores import Stores
from dragoman.gateway.telemetry.record import Observer
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.replica.refreshing import ReplicaKeeper
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.secret import Secret
from gateway.running import provider_config

T = TypeVar("T")


class Cut(SharedDatabase):
    """A database whose line can be cut. `is_cut`: nothing gets there; `loses`: so many answers do not come back."""

    __slots__ = ("is_cut", "loses")

    def __init__(self, address: Secret) -> None:
        super().__init__(address)
        self.is_cut = False
        self.loses = 0

    @property
    def is_away(self) -> bool:
        return self.is_cut

    async def run(self, work: Callable[[Connection], T]) -> T:
        if self.is_cut:
            raise StoreUnreachable("cut")
        found = await super().run(work)
        if self.loses:
            self.loses -= 1
            raise StoreUnreachable("the answer was lost")
        return found


class Machine:
    """One of them. What it keeps is that of one worker."""

    def __init__(self, folder: Path, address: str) -> None:
        folder.mkdir()
        (folder / "dragoman.toml").write_text(f'[server]\nstate = "{folder / "state"}"\n', encoding="utf-8")
        self.config: Config = load_config(folder / "dragoman.toml", environ={}, home=folder)
        self.state = folder / "state"
        self.ledger = LedgerFolder.of(self.state, Secret(address))
        self.stores = Stores(self.config, self.ledger)
        self.mover = Mover(self.state, self.ledger)
        self._thread = ThreadPoolExecutor(1)  # the mover's own: it is for one thread
        self.responses: Any = self.stores.responses
        self.seals: Any = self.stores.seals

    def move(self) -> None:
        """A round of the mover."""
        self._thread.submit(self.mover.round).result()

    def close(self) -> None:
        self.stores.close()
        self._thread.submit(self.mover.close).result()
        self._thread.shutdown()


class Fleet:
    """Their PostgreSQL is empty at first."""

    def __init__(self, server: PostgreSQL, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.machines: list[Machine] = []
        self._end = threading.Event()
        self._movers: list[threading.Thread] = []
        self._look = Connection(Secret(server.address))
        self._thread = ThreadPoolExecutor(1)
        self.do(self._empty)

    def _empty(self, connection: Connection) -> None:
        prepare_shared(connection)
        connection.execute("TRUNCATE response, response_item, seal, seal_begun, state_machine, proof")

    def do(self, work: Callable[[Connection], T]) -> T:
        """In the database itself, from a thread that has no event loop."""
        return self._thread.submit(work, self._look).result()

    def fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What stands there."""
        return self.do(lambda connection: connection.fetch(statement, *values))

    def execute(self, statement: str, *values: object) -> None:
        """Change what stands there."""
        self.do(lambda connection: connection.execute(statement, *values))

    def machine(self) -> Machine:
        machine = Machine(self.folder / f"machine-{len(self.machines)}", self.server.address)
        self.machines.append(machine)
        return machine

    def gateway(self, name: str, url: str) -> dict[str, Any]:
        """The options of a gateway on a machine of its own, whose provider is at this address."""
        folder = self.folder / name
        folder.mkdir()
        config = provider_config(folder, url, f'[server]\nstate = "{folder / "state"}"\n')
        ledger = LedgerFolder.of(folder / "state", Secret(self.server.address))
        keeper = ReplicaKeeper(ledger)
        keeper.refresh()  # there are no keys: clients may have any
        keeper.close()
        mover = threading.Thread(target=Mover(folder / "state", ledger).run, args=(self._end,))
        mover.start()
        self._movers.append(mover)
        return {"config": config, "ledger": Ledger(ledger, Observer(), ships=False)}

    def close(self) -> None:
        self._end.set()
        for mover in self._movers:
            mover.join()
        for machine in self.machines:
            machine.close()
        self.do(lambda connection: connection.close())
        self._thread.shutdown()
