"""Proofs: what validation has shown of targets, and where that is kept.

A `Proof` is bound to its target, endpoint, protocol and the model's digest, and expires. Routing and the gateway ask
for the judgments here; validation itself lies above them.
"""

from dragoman.proofs.export import parse_export, render_export
from dragoman.proofs.proof import (
    DAY_SECONDS,
    ProbeResult,
    Proof,
    Suite,
    Verdict,
    disagreements,
    is_clean,
    is_of_the_wire,
    is_proven,
    pick_proof,
    wire_deviations,
)
from dragoman.proofs.store import ProofStore, proof_of

__all__ = [
    "DAY_SECONDS", "ProbeResult", "Proof", "ProofStore", "Suite", "Verdict", "disagreements", "is_clean",
    "is_of_the_wire", "is_proven", "parse_export", "pick_proof", "proof_of", "render_export", "wire_deviations",
]  # fmt: skip
