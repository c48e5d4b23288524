"""Keep proofs in one SQLite file.

A damaged file is set aside. A file that cannot be read or written costs the proofs, never the work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from dragoman import _json
from dragoman.proofs.proof import Proof, pick_proof
from dragoman.providers.catalog import Model, Provider
from dragoman.types import ProtocolName

_SCHEMA_VERSION: Final = 1
_LOCK_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 1.0  # how long a reading of the file holds
_decode_proof: Final = _json.typed_decoder(Proof)


class ProofStore:
    """Proofs in one SQLite file, which the first proof creates. For any thread and process.

    For each target, protocol, endpoint and suite the newest proof is kept.
    """

    __slots__ = ("_clock", "_digests", "_expires_days", "_looked", "_path", "_proofs", "_say", "_stamp")

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Callable[[], float],
        expires_days: int = 30,
        say: Callable[[str], object] = lambda message: None,
    ) -> None:
        """
        Args:
            path: the file; None keeps nothing.
            clock: gives Unix seconds.
            expires_days: how long a proof holds.
            say: called with one line when something is wrong with the file.
        """
        self._path = path
        self._clock = clock
        self._expires_days = expires_days
        self._say = say
        self._proofs: tuple[Proof, ...] = ()
        self._stamp: tuple[int, int, int] | None = None
        self._looked: float | None = None
        self._digests: dict[str, str] = {}  # by target, the last that somebody told

    def get(
        self,
        target: str,
        digest: str | None = None,
        *,
        protocol: ProtocolName | None = None,
        endpoint: str | None = None,
    ) -> Proof | None:
        """Return the newest valid proof of a target. Cheap: the file is looked at once a second at most.

        A given `digest` applies to later calls without one: listing models voids the proofs of changed models for every
        user of this store.
        """
        if digest is not None:
            self._digests[target] = digest
        now = self._clock()
        if self._looked is None or abs(now - self._looked) >= _LOOK_SECONDS:
            self._look(now)
        if not self._proofs:
            return None
        return pick_proof(
            self._proofs,
            target,
            now=now,
            expires_days=self._expires_days,
            protocol=protocol,
            endpoint=endpoint,
            digest=self._digests.get(target),
        )

    def all(self) -> tuple[Proof, ...]:
        """Return every proof that is kept, expired ones too; oldest first."""
        self._look(self._clock())
        return self._proofs

    def put(self, *proofs: Proof) -> bool:
        """Keep proofs. Return False if that is not possible; the reason was reported."""
        if self._path is None:
            return False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._write(self._path, proofs)
        except (OSError, sqlite3.OperationalError) as problem:
            self._say(f"{self._path}: results are not kept: {problem}")
            return False
        except sqlite3.DatabaseError as problem:
            if not self._set_aside(self._path, problem):
                return False
            return self.put(*proofs)
        self._looked = None
        return True

    # ------------------------------------------------------------ the file

    def _look(self, now: float) -> None:
        """Read the file if it has changed."""
        self._looked = now
        stamp = _stamp(self._path) if self._path is not None else None
        if self._path is None or stamp is None:
            self._proofs, self._stamp = (), None
        elif stamp != self._stamp:
            self._proofs, self._stamp = self._read(self._path), stamp

    def _read(self, path: Path) -> tuple[Proof, ...]:
        try:
            with closing(_open(path, mode="ro")) as database:
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version > _SCHEMA_VERSION:
                    self._say(f"{path}: made by a newer dragoman; its results are not used")
                    return ()
                rows = database.execute("SELECT proof FROM proofs ORDER BY at").fetchall() if version else []
        except (OSError, sqlite3.OperationalError) as problem:
            self._say(f"{path}: results cannot be read: {problem}")
            return ()
        except sqlite3.DatabaseError as problem:
            self._set_aside(path, problem)
            return ()
        proofs = [_decode_proof(row) for (row,) in rows if isinstance(row, str | bytes)]
        readable = tuple(proof for proof in proofs if isinstance(proof, Proof))
        if len(readable) < len(rows):
            self._say(f"{path}: {len(rows) - len(readable)} results cannot be read and do not count")
        return readable

    def _write(self, path: Path, proofs: Iterable[Proof]) -> None:
        with closing(_open(path, mode="rwc")) as database, database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version > _SCHEMA_VERSION:
                raise sqlite3.OperationalError("the file was made by a newer dragoman")
            database.execute(
                "CREATE TABLE IF NOT EXISTS proofs (target TEXT, protocol TEXT, endpoint TEXT, suite TEXT, at INTEGER,"
                " proof TEXT, PRIMARY KEY (target, protocol, endpoint, suite))"
            )
            database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            database.executemany(
                "INSERT INTO proofs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
                " SET at = excluded.at, proof = excluded.proof WHERE excluded.at >= proofs.at",
                [
                    (proof.target, proof.protocol, proof.endpoint, proof.suite, proof.at, _json.encode(proof).decode())
                    for proof in proofs
                ],
            )

    def _set_aside(self, path: Path, problem: Exception) -> bool:
        """Rename a damaged file. Return whether that was possible."""
        aside = path.with_name(f"{path.name}.damaged-{int(self._clock())}")
        try:
            path.replace(aside)
        except OSError as reason:
            self._say(f"{path}: damaged ({problem}), and cannot be set aside: {reason}")
            return False
        self._say(f"{path}: damaged ({problem}); kept as {aside.name}, and a new one begins")
        return True


def proof_of(model: Model, provider: Provider, store: ProofStore) -> Proof | None:
    """Return the proof of a model as it is now. Ollama's may have been validated under a name without its tag."""
    for target in dict.fromkeys((model.target, model.target.removesuffix(":latest"))):
        found = store.get(target, model.digest, protocol=provider.protocol, endpoint=provider.base_url)
        if found is not None:
            return found
    return None


def _open(path: Path, *, mode: Literal["ro", "rwc"]) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_LOCK_SECONDS)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes with the file, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
