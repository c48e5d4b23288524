"""The order of a route's targets, and which of them may be asked, as tables."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from dragoman.proofs import ProbeResult, Proof
from dragoman.routing.target import Chain
from dragoman.routing.target_order import Facts, line_up
from simulated import make_chain

PASSED, FAILED = ProbeResult("passed", ""), ProbeResult("failed", "no call")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return make_chain(tmp_path_factory.mktemp("ordering"), "abcd")


def proof(*, works: bool = True, failed: int = 0, **more: Any) -> Proof:
    probes = {"toolCall": PASSED if works else FAILED, "result-round-trip": PASSED}
    probes |= {f"other-{number}": FAILED for number in range(failed)}
    return Proof(target="", protocol="openai-chat", endpoint="", suite="full", suite_version=1, dragoman="0", at=0,
                 probes=probes, **more)  # fmt: skip


GOOD, FAIR, BAD = proof(), proof(failed=2), proof(works=False)
QUICK, SLOW = proof(first_event=0.2, tokens_per_second=100.0), proof(first_event=0.1, tokens_per_second=20.0)


@pytest.mark.parametrize(
    ("order", "facts", "expected"),
    [
        ("declared", {"c": Facts(GOOD, Decimal(0))}, "abcd"),
        ("proof", {}, "abcd"),
        ("proof", {"a": Facts(BAD), "c": Facts(FAIR), "d": Facts(GOOD)}, "dcba"),
        ("proof", {"b": Facts(GOOD), "d": Facts(GOOD)}, "bdac"),
        ("price", {}, "abcd"),
        ("price", {"b": Facts(price=Decimal("0.5")), "d": Facts(price=Decimal("0.1"))}, "dbac"),
        ("price", {"a": Facts(price=Decimal(1)), "c": Facts(price=Decimal(0))}, "cabd"),
        ("speed", {"a": Facts(SLOW), "c": Facts(QUICK)}, "cabd"),
        ("speed", {"a": Facts(GOOD), "d": Facts(SLOW)}, "dabc"),
    ],
)
def test_the_order(order: Any, facts: dict[str, Facts], expected: str, chain: Chain) -> None:
    asked = msgspec.structs.replace(chain, order=order)
    found = line_up(asked, {f"{name}/m": known for name, known in facts.items()})
    assert "".join(target.name[0] for target in found.chain.targets) == expected
    assert found.passed_over == ()


@pytest.mark.parametrize(
    ("facts", "allows", "expected", "passed_over", "is_unproven"),
    [
        ({"b": GOOD, "d": FAIR}, False, "bd", "ac", False),
        ({"b": GOOD, "a": BAD}, True, "b", "acd", False),
        ({"a": BAD}, False, "", "abcd", False),
        ({"a": BAD}, True, "abcd", "", True),
        ({}, True, "abcd", "", True),
    ],
)
def test_only_what_is_proven(
    facts: dict[str, Proof], allows: bool, expected: str, passed_over: str, is_unproven: bool, chain: Chain
) -> None:
    asked = msgspec.structs.replace(chain, only_validated=True, allow_one_unvalidated=allows)
    found = line_up(asked, {f"{name}/m": Facts(known) for name, known in facts.items()})
    assert "".join(target.name[0] for target in found.chain.targets) == expected
    assert "".join(name[0] for name, _ in found.passed_over) == passed_over
    assert found.is_unproven is is_unproven
