"""What people reported of gateways: each request with what each kind of provider is to get, written before it was
played."""

from __future__ import annotations

from asked import cases_models, cases_settings, cases_talk, cases_tools
from asked.asking import VENDORS, asked
from asked.vendor_rules import broken
from asked.writing import EVERYWHERE, Case, Refused, faults
from for_each import for_each

CASES = [*cases_models.CASES, *cases_tools.CASES, *cases_talk.CASES, *cases_settings.CASES]


def wrong(case: Case) -> list[str]:
    """What is not as it was expected, by target."""
    found: list[str] = []
    for target in dict.fromkeys((*EVERYWHERE, *case.wanted)):
        sent = asked(case.client, case.body, VENDORS.get(target, target))  # type: ignore[call-overload]
        wanted = case.wanted.get(target, ())
        found += [f"{target}: {fault}" for fault in faults(sent, wanted)]
        if target in EVERYWHERE and not sent.refused and target != case.client:
            found += [f"{target}: {fault}" for fault in broken(target, sent.body)]
    return found


@for_each("case", CASES, ids=lambda case: f"{case.client}: {case.name}")
def test_a_reported_request_arrives(case: Case) -> None:
    assert wrong(case) == []


def test_there_are_many() -> None:
    assert len(CASES) > 170
    assert sum(isinstance(each, Refused) for case in CASES for wanted in case.wanted.values() for each in wanted) > 2
