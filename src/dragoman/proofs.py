"""What validation has shown of targets, and where that is kept: judgments that routing and the gateway ask for.

A `Proof` is bound to its target, endpoint, protocol and the model's digest, and expires. The store is one SQLite file;
one that is damaged is set aside, and one that cannot be read or written costs the proofs, never the work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.contract import Way
from dragoman.errors import UsageError
from dragoman.providers import Model, Provider
from dragoman.types import Cost, ProtocolName

#: `not-used`: the server or model may do without (it made no call where it could have); `unsupported`: it cannot.
Verdict: TypeAlias = Literal["passed", "failed", "unsupported", "not-used", "error"]
Suite: TypeAlias = Literal["quick", "full"]

DAY_SECONDS: Final = 86_400

#: Probes that must pass before a model's tools count as proven.
_PROVING: Final = ("toolCall", "result-round-trip")
#: What dragoman itself left out or changed in a request: no fault of the wire.
_OURS: Final = frozenset({"dropped", "moved", "changed", "tools-way", "unvalidated", "failed-call-as-text"})
_SCHEMA_VERSION: Final = 1
_EXPORT_FORMAT: Final = "dragoman-proofs"
_LOCK_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 1.0  # how long a reading of the file holds


@final
class ProbeResult(msgspec.Struct, frozen=True):
    """One probe's verdict over all its trials, with the reason in one line. `at_zero` is those at temperature 0."""

    verdict: Verdict
    reason: str
    passes: int = 0
    trials: int = 1
    passes_at_zero: int = 0
    trials_at_zero: int = 1


@final
class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What one validation of one target has shown.

    Attributes:
        target: `provider/model`.
        endpoint: the base URL; "" for a server that dragoman starts itself.
        digest: names the weights, as the server or we ourselves tell; None when nobody does.
        version: the model's name in its answers, where it is another than was asked for.
        dragoman: the version that validated.
        at: when it ended, in Unix seconds.
        probes: by probe; skipped ones stand in `skipped`, with the reason.
        deviations: how often each code was seen.
        ways: the ways of asking for tools that work, best first.
        first_event: median seconds until something of an answer came.
        tokens_per_second: median, of the answers that reported tokens.
        cost: of the whole run; None when unknown.
        requests: how many were sent.
    """

    target: str
    protocol: ProtocolName
    endpoint: str
    digest: str | None = None
    version: str | None = None
    suite: Suite
    suite_version: int
    dragoman: str
    at: int
    probes: dict[str, ProbeResult]
    skipped: dict[str, str] = {}
    deviations: dict[str, int] = {}
    ways: tuple[Way, ...] = ()
    first_event: float | None = None
    tokens_per_second: float | None = None
    cost: Cost | None = None
    requests: int = 0

    def has_passed(self, probe: str) -> bool:
        """Whether that probe was run and passed."""
        result = self.probes.get(probe)
        return result is not None and result.verdict == "passed"


def is_proven(proof: Proof | None) -> bool:
    """Whether its tools work: it calls one with exactly the right arguments, and uses the result."""
    return proof is not None and all(proof.has_passed(probe) for probe in _PROVING)


def is_clean(proof: Proof | None) -> bool:
    """Whether its wire kept to its protocol throughout, so that bytes may pass as they are."""
    return proof is not None and is_proven(proof) and not wire_deviations(proof)


def disagreements(proof: Proof, *, tools: bool | None, thinking: bool | None) -> tuple[str, ...]:
    """Where a proof contradicts what the model or its server claims, in one line each. None claims nothing."""
    found = []
    for word, claimed, probe in (("tools", tools, "toolCall"), ("thinking", thinking, "thinking")):
        result = proof.probes.get(probe)
        if result is None or result.verdict == "error" or claimed is None:
            continue
        if claimed and result.verdict != "passed":
            found.append(f"claims {word}, but {probe} is {result.verdict}: {result.reason}")
        elif not claimed and result.verdict == "passed":
            found.append(f"claims no {word}, but {probe} passed")
    read = proof.probes.get("truncation")
    if read is not None and read.verdict == "failed":
        found.append(f"claims its context window, but cuts long prompts in silence: {read.reason}")
    return tuple(found)


def wire_deviations(proof: Proof) -> dict[str, int]:
    """The deviations that the server is to blame for."""
    return {code: count for code, count in proof.deviations.items() if is_of_the_wire(code)}


def is_of_the_wire(code: str) -> bool:
    """Whether the server is to blame for a deviation."""
    return code not in _OURS


def pick_proof(
    proofs: Iterable[Proof],
    target: str,
    *,
    now: float,
    expires_days: int,
    protocol: ProtocolName | None = None,
    endpoint: str | None = None,
    digest: str | None = None,
) -> Proof | None:
    """The newest proof of a target that still holds.

    Args:
        proofs: any.
        target: `provider/model`.
        now: Unix seconds.
        expires_days: how long a proof holds.
        protocol, endpoint, digest: what the target has now; a proof made with another one is void. None: not asked.
    """
    valid = [
        proof
        for proof in proofs
        if proof.target == target
        and now - proof.at < expires_days * DAY_SECONDS
        and (protocol is None or proof.protocol == protocol)
        and (endpoint is None or proof.endpoint == endpoint)
        and (digest is None or proof.digest is None or proof.digest == digest)
    ]
    return max(valid, key=lambda proof: proof.at, default=None)


# ---------------------------------------------------------------- export and import


class _Export(msgspec.Struct, frozen=True):
    format: str
    version: int
    proofs: tuple[Proof, ...]


_decode_export: Final = _json.typed_decoder(_Export)
_decode_proof: Final = _json.typed_decoder(Proof)


def render_export(proofs: Iterable[Proof]) -> bytes:
    """Proofs as one JSON document."""
    return _json.encode(_Export(_EXPORT_FORMAT, _SCHEMA_VERSION, tuple(proofs)))


def parse_export(data: bytes, *, where: str) -> tuple[Proof, ...]:
    """The proofs of an export.

    Raises:
        UsageError: the document is something else.
    """
    export = _decode_export(data)
    if isinstance(export, _json.Malformed):
        raise UsageError(f"{where}: expected an export of proofs: {export.problem}")
    if (export.format, export.version) != (_EXPORT_FORMAT, _SCHEMA_VERSION):
        expected = f"{_EXPORT_FORMAT} version {_SCHEMA_VERSION}"
        raise UsageError(f"{where}: expected {expected}, got {export.format[:40]!r} version {export.version}")
    return export.proofs


# ---------------------------------------------------------------- the store


class ProofStore:
    """Proofs in one SQLite file, which is made when the first one is put in. For any thread and process.

    Of each target, protocol, endpoint and suite the newest proof is kept.
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
            say: is told in one line what is wrong with the file, if anything is.
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
        """The newest proof of a target that holds now. Cheap: the file is looked at once a second at most.

        A `digest` that is told once holds for later questions without one: who lists models voids the proofs of those
        that have changed, for everyone who asks this store.
        """
        if digest is not None:
            self._digests[target] = digest
        now = self._clock()
        if self._looked is None or abs(now - self._looked) >= _LOOK_SECONDS:
            self._look(now)
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
        """Every proof that is kept, expired ones too; oldest first."""
        self._look(self._clock())
        return self._proofs

    def put(self, *proofs: Proof) -> bool:
        """Keep proofs; False when that is not possible (the reason was said)."""
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
        """Read the file when it has changed."""
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
        """Rename a damaged file; whether that was possible."""
        aside = path.with_name(f"{path.name}.damaged-{int(self._clock())}")
        try:
            path.replace(aside)
        except OSError as reason:
            self._say(f"{path}: damaged ({problem}), and cannot be set aside: {reason}")
            return False
        self._say(f"{path}: damaged ({problem}); kept as {aside.name}, and a new one begins")
        return True


def proof_of(model: Model, provider: Provider, store: ProofStore) -> Proof | None:
    """The proof that holds for a model as it is now. Ollama's may have been validated under a name without its tag."""
    for target in dict.fromkeys((model.target, model.target.removesuffix(":latest"))):
        found = store.get(target, model.digest, protocol=provider.protocol, endpoint=provider.base_url)
        if found is not None:
            return found
    return None


def _open(path: Path, *, mode: Literal["ro", "rwc"]) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_LOCK_SECONDS)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with the file; None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
