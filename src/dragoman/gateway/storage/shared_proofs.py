"""Synchronise this machine's file of proofs with the ledger's PostgreSQL: the newest proof of each key wins.

Routing reads the file as before. A proof of a server on a machine itself says nothing of another machine's server at
the same address, so it is not shared.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from dragoman import _json
from dragoman.gateway.storage.postgresql_tables import prepare_shared
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.proofs.proof import DAY_SECONDS, Proof
from dragoman.proofs.store import ProofStore
from dragoman.providers.address import is_loopback
from dragoman.secret import Secret

#: Target, protocol, endpoint, suite.
_Key: TypeAlias = tuple[str, str, str, str]
#: Seconds between two rounds.
_EVERY: Final = 5.0
#: Bytes of a proof; a longer one is nobody's.
_LONGEST: Final = 1024 * 1024
_AT_ONCE: Final = 200
_TIMES: Final = "SELECT target, protocol, endpoint, suite, at FROM proof"
_FETCH: Final = (
    "SELECT target, protocol, endpoint, suite, at, proof FROM proof WHERE octet_length(proof) <= $1 "
    "AND (target, protocol, endpoint, suite) IN "
    "(SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]))"
)
_KEEP: Final = (
    "INSERT INTO proof VALUES($1, $2, $3, $4, $5, $6) ON CONFLICT(target, protocol, endpoint, suite) "
    "DO UPDATE SET at = excluded.at, proof = excluded.proof WHERE excluded.at > proof.at"
)
_decode_proof: Final = _json.typed_decoder(Proof)


class ProofKeeper:
    """Synchronises proofs. For one thread."""

    __slots__ = ("_clock", "_connection", "_is_ready", "_refused", "_store")

    def __init__(self, address: Secret, file: Path | None, *, clock: Callable[[], float] = time.time) -> None:
        """Create it. `file`: of this machine's proofs, or None. `clock`: Unix seconds."""
        self._connection = Connection(address)
        self._clock = clock
        self._store = ProofStore(file, clock=clock)
        self._is_ready = False
        self._refused: set[tuple[_Key, int]] = set()  # what the database does not take

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set. While the database cannot be reached, try again."""
        while not stop.is_set():
            with contextlib.suppress(StoreAway, Refused, OSError):
                self.round()
            stop.wait(_EVERY)
        self.close()

    def round(self) -> None:
        """Write what is newer here, read what is newer there. Raises `StoreAway`, `Refused`: not everything is done."""
        connection = self._connection
        if not (self._is_ready and connection.is_open):
            self._is_ready = False
            prepare_shared(connection)
            self._is_ready = True
        there: dict[_Key, int] = {(*key,): at for *key, at in connection.fetch(_TIMES)}
        here = {key: proof for proof in self._store.all() if _is_shared(key := _key(proof))}
        latest = self._clock() + DAY_SECONDS  # what claims to be later would stand over all to come
        for key, proof in here.items():
            if there.get(key, -1) < proof.at <= latest and (key, proof.at) not in self._refused:
                self._give(key, proof)
        known = {key: proof.at for key, proof in here.items()}
        newer = [key for key, at in there.items() if known.get(key, -1) < at <= latest and _is_shared(key)]
        for first in range(0, len(newer), _AT_ONCE):
            self._take(newer[first : first + _AT_ONCE])

    def close(self) -> None:
        """Close the connection; the next round opens a new one."""
        self._connection.close()

    # ------------------------------------------------------------ inside

    def _give(self, key: _Key, proof: Proof) -> None:
        try:
            self._connection.execute(_KEEP, *key, proof.at, _json.encode(proof).decode())
        except Refused:
            self._refused.add((key, proof.at))

    def _take(self, keys: Sequence[_Key]) -> None:
        proofs = []
        columns = [list(column) for column in zip(*keys, strict=True)]
        for *key, at, text in self._connection.fetch(_FETCH, _LONGEST, *columns):
            proof = _decode_proof(text)
            if isinstance(proof, Proof) and (*_key(proof), proof.at) == (*key, at):
                proofs.append(proof)
        if proofs:
            self._store.put(*proofs)


def _key(proof: Proof) -> _Key:
    return proof.target, proof.protocol, proof.endpoint, proof.suite


def _is_shared(key: _Key) -> bool:
    """Return whether all machines reach its server by this address."""
    try:
        host = urlsplit(key[2]).hostname
    except ValueError:
        return False
    return bool(host) and not is_loopback(host or "")
