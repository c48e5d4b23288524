"""A proof, and the judgments that routing and the gateway derive from it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.protocol import ToolMode
from dragoman.types import Cost, ProtocolName

#: `not-used`: the server or model may do without (it made no call where it could have); `unsupported`: it cannot.
Verdict: TypeAlias = Literal["passed", "failed", "unsupported", "not-used", "error"]
Suite: TypeAlias = Literal["quick", "full"]

DAY_SECONDS: Final = 86_400

#: Probes that must pass before a model's tools count as proven.
_PROVING: Final = ("toolCall", "result-round-trip")
#: What dragoman itself left out or changed in a request: no fault of the wire.
_OURS: Final = frozenset({"dropped", "moved", "changed", "tools-way", "unvalidated"})


@final
class ProbeResult(msgspec.Struct, frozen=True):
    """One probe's verdict over all its trials, with the reason in one line. `at_zero` covers those at temperature 0."""

    verdict: Verdict
    reason: str
    passes: int = 0
    trials: int = 1
    passes_at_zero: int = 0
    trials_at_zero: int = 1


@final
class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one validation of one target.

    Attributes:
        target: `provider/model`.
        endpoint: the base URL; "" for a server that dragoman starts itself.
        digest: identifies the weights, or None.
        version: the model's name in its answers, if it is not the requested one.
        dragoman: the version that validated.
        at: when it ended, in Unix seconds.
        probes: by probe; skipped ones stand in `skipped`, with the reason.
        deviations: how often each code was seen.
        ways: the ways of asking for tools that work, best first.
        first_event: median seconds until the first event of an answer.
        tokens_per_second: median, of the answers that reported tokens.
        cost: of the whole run, or None.
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
    ways: tuple[ToolMode, ...] = ()
    first_event: float | None = None
    tokens_per_second: float | None = None
    cost: Cost | None = None
    requests: int = 0

    def has_passed(self, probe: str) -> bool:
        """Return whether that probe was run and passed."""
        result = self.probes.get(probe)
        return result is not None and result.verdict == "passed"


def is_proven(proof: Proof | None) -> bool:
    """Return whether the target's tools work: it calls one with exactly the right arguments, and uses the result."""
    return proof is not None and all(proof.has_passed(probe) for probe in _PROVING)


def is_clean(proof: Proof | None) -> bool:
    """Return whether its wire kept to its protocol throughout, so that bytes may pass as they are."""
    return proof is not None and is_proven(proof) and not wire_deviations(proof)


def disagreements(proof: Proof, *, tools: bool | None, thinking: bool | None) -> tuple[str, ...]:
    """Describe where a proof contradicts what the model or its server claims, in one line each. None claims nothing."""
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
    """Return the deviations that the server is to blame for."""
    return {code: count for code, count in proof.deviations.items() if is_of_the_wire(code)}


def is_of_the_wire(code: str) -> bool:
    """Return whether the server is to blame for a deviation."""
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
    """Return the newest valid proof of a target.

    Args:
        proofs: any.
        target: `provider/model`.
        now: Unix seconds.
        expires_days: how long a proof is valid.
        protocol, endpoint, digest: what the target has now; a proof made with another one is void. None: not compared.
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
