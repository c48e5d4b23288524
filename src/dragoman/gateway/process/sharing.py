"""The tasks beside the shipper of a ledger that several machines share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dragoman.ledger.folder import LedgerFolder

#: Seconds for what waits still when the gateway has ended.
_LAST_MOVE: Final = 5.0


@contextlib.contextmanager
def sharing(folder: LedgerFolder, proofs: Path | None) -> Iterator[None]:
    """Keep the copies of this machine up to date, and move waiting data into the store, with a last round at the end.

    `proofs`: their file.
    """
    if folder.store is None:
        yield
        return
    from dragoman.gateway.storage.moving import Mover
    from dragoman.gateway.storage.shared_proofs import ProofKeeper
    from dragoman.ledger.replica.refreshing import ReplicaKeeper

    stop = threading.Event()
    mover = threading.Thread(target=Mover(folder.root.parent, folder).run, args=(stop,), daemon=True)
    mover.start()
    # They end with the process.
    for work in (ReplicaKeeper(folder).run, ProofKeeper(folder.store, proofs).run):
        threading.Thread(target=work, args=(stop,), daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        mover.join(_LAST_MOVE)
