"""Order the targets of a route: by validation, price or speed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, final

import msgspec

from dragoman.proofs import Proof, is_proven
from dragoman.routing.target import Chain

#: Tokens of the answer that a target's speed is reckoned for.
_ANSWER_TOKENS: Final = 300


@final
class Facts(msgspec.Struct, frozen=True):
    """The facts about a target. `price`: US dollars for one reference request, or None."""

    proof: Proof | None = None
    price: Decimal | None = None


_NOTHING: Final = Facts()


@final
class TargetOrder(msgspec.Struct, frozen=True):
    """A chain in the order of asking. `passed_over`: (target, reason); `is_unproven`: none is proven, so all stay."""

    chain: Chain
    passed_over: tuple[tuple[str, str], ...] = ()
    is_unproven: bool = False


def line_up(chain: Chain, facts: Mapping[str, Facts]) -> TargetOrder:
    """Order a chain's targets, and leave out those that may not be asked.

    Args:
        chain: as configured.
        facts: by target's name.

    Returns:
        The order. Its chain is empty if no target is proven and none may be asked without a proof.
    """
    targets = sorted(chain.targets, key=lambda target: _rank(chain, facts.get(target.name, _NOTHING)))  # stable
    if not chain.only_validated:
        return TargetOrder(msgspec.structs.replace(chain, targets=tuple(targets)))
    proven = [target for target in targets if is_proven(facts.get(target.name, _NOTHING).proof)]
    if not proven and chain.allow_one_unvalidated:
        return TargetOrder(msgspec.structs.replace(chain, targets=tuple(targets)), is_unproven=True)
    passed_over = tuple((target.name, "not validated") for target in targets if target not in proven)
    return TargetOrder(msgspec.structs.replace(chain, targets=tuple(proven)), passed_over)


def _rank(chain: Chain, facts: Facts) -> tuple[float, ...]:
    """Return the sort key; smaller comes earlier."""
    proof = facts.proof
    match chain.order:
        case "declared":
            return ()
        case "proof":
            return (0.0, -_share(proof)) if is_proven(proof) else (1.0 if proof is None else 2.0, 0.0)
        case "price":
            return (float(facts.price),) if facts.price is not None else (float("inf"),)
        case "speed":
            return (_seconds(proof),)


def _share(proof: Proof | None) -> float:
    """Return the share of decided probes that passed."""
    verdicts = [result.verdict for result in proof.probes.values()] if proof is not None else []
    decided = [verdict for verdict in verdicts if verdict != "error"]
    return decided.count("passed") / len(decided) if decided else 0.0


def _seconds(proof: Proof | None) -> float:
    """Return how long an answer of usual length takes; infinity if that was not measured."""
    if proof is None or proof.first_event is None or not proof.tokens_per_second:
        return float("inf")
    return proof.first_event + _ANSWER_TOKENS / proof.tokens_per_second
