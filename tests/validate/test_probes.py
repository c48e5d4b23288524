"""The probes' files, what varies in them, the ladder, and the limits of a run."""

import asyncio
from decimal import Decimal
from random import Random
from time import monotonic

import pytest

from dragoman import _json
from dragoman.proofs import ProbeResult
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Message, Request, Text
from dragoman.validate.limits import Budget, CapReached, Pace
from dragoman.validate.probe import Probe, load_probes, plan_probe
from dragoman.validate.probe_order import probes_of, reason_to_skip
from dragoman.validate.probe_values import vary
from for_each import for_each

PROBES = {probe.name: probe for probe in load_probes()}
#: What a server may be allowed, by the words that `grade` knows.
ALLOWANCES = {
    "no_call", "no_text", "fewer_calls", "more_calls", "no_thinking", "no_usage", "no_cache", "answer",
}  # fmt: skip


@for_each("probe", PROBES.values(), ids=lambda probe: probe.name)
def test_a_probe_can_be_planned_and_leaves_nothing_open(probe: Probe) -> None:
    plan = plan_probe(probe, seed="9", context=8_000, claimed=8_000)
    names = {*probe.vary, *(name for case in probe.cases for name in case.vary), "question"}
    text = _json.to_text([plan.turns, plan.tools, plan.params, plan.target])
    assert [name for name in names if f"{{{name}}}" in text] == []
    assert plan == plan_probe(probe, seed="9", context=8_000, claimed=8_000)
    others = [plan_probe(probe, seed=str(seed), context=8_000, claimed=8_000) for seed in range(3)]
    assert any(other.turns != plan.turns for other in others)


@for_each("probe", PROBES.values(), ids=lambda probe: probe.name)
def test_a_probe_says_what_it_needs(probe: Probe) -> None:
    assert {*probe.needs, *probe.unless_failed} <= PROBES.keys()
    assert all(PROBES[name].rank < probe.rank for name in (*probe.needs, *probe.unless_failed))
    assert probe.may.keys() <= ALLOWANCES
    assert not set(probe.title) & set('."')
    assert probe.needs or probe.quick, "only what is asked first stands alone"
    for turn in probe.turns:
        assert turn.expect != type(turn.expect)(), "every turn expects something"


def test_ranks_differ_and_order_the_suite() -> None:
    ranks = [probe.rank for probe in load_probes()]
    assert ranks == sorted(set(ranks))


def test_the_answer_is_not_given_away_by_other_words() -> None:
    """The words of an expected text stand in the prompt or a result; a number to be worked out stands in neither."""
    for seed in range(20):
        for name in ("reasoning", "thinking"):
            plan = plan_probe(PROBES[name], seed=str(seed), context=8_000, claimed=8_000)
            (turn,) = plan.turns
            assert not Text(turn.user).text.count(f" {turn.expect.answer} ")


def test_no_two_names_get_the_same_word() -> None:
    kinds = {f"w{number}": "word" for number in range(200)} | {f"c{number}": "city" for number in range(30)}
    values = vary(kinds, random=Random("1"), context=0, claimed=0)
    assert len(set(values.values())) == len(kinds)


def test_a_haystack_has_its_size_and_its_facts_in_their_places() -> None:
    kinds = {"x": "word", "hay": {"haystack": 0.5, "facts": ["F1 is {x}.", "F2 is {x}."], "at": [10, 90]}}
    values = vary(kinds, random=Random("1"), context=10_000, claimed=0)
    tokens = estimate_tokens(Request("m", (Message("user", (Text(values["hay"]),)),)))
    assert tokens == pytest.approx(5_000, rel=0.03)
    first, last = (values["hay"].index(f"F{number} is {values['x']}") / len(values["hay"]) for number in (1, 2))
    assert (first, last) == pytest.approx((0.1, 0.9), abs=0.02)


# ---------------------------------------------------------------- the ladder


def result(verdict: str) -> ProbeResult:
    return ProbeResult(verdict, "because")  # type: ignore[arg-type]


def test_the_quick_suite_asks_the_proving_probes_first() -> None:
    names = [probe.name for probe in probes_of("quick", load_probes())]
    assert names == ["toolCall", "result-round-trip", "reasoning", "text", "tool-choice-required"]
    assert probes_of("full", load_probes()) == list(load_probes())


@for_each(
    ("name", "suite", "results", "skipped", "reason"),
    [
        ("text", "quick", {"toolCall": "passed"}, {}, "not needed: toolCall passed"),
        ("text", "quick", {"toolCall": "failed"}, {}, None),
        ("text", "full", {"toolCall": "passed"}, {}, None),
        ("result-round-trip", "quick", {"toolCall": "not-used"}, {}, "needs toolCall, which was not used"),
        ("result-round-trip", "quick", {"toolCall": "error"}, {}, "needs toolCall, which could not be asked"),
        ("sequential-calls", "full", {}, {"result-round-trip": "x"}, "needs result-round-trip, which was skipped"),
        ("tool-choice-named", "full", {"text": "passed", "tools-reach": "failed"}, {}, "tools-reach failed"),
        ("tool-choice-named", "full", {"text": "passed", "tools-reach": "not-used"}, {}, None),
        ("tool-choice-required", "quick", {"toolCall": "failed", "text": "passed"}, {}, None),
    ],
)
def test_what_is_left_out(
    name: str, suite: str, results: dict[str, str], skipped: dict[str, str], reason: str | None
) -> None:
    found = {probe: result(verdict) for probe, verdict in results.items()}
    assert reason_to_skip(PROBES[name], suite=suite, results=found, skipped=skipped) == reason  # type: ignore[arg-type]


# ---------------------------------------------------------------- limits


def test_a_budget_holds_back_what_may_be_spent() -> None:
    budget = Budget(Decimal("0.10"))
    with budget.hold(Decimal("0.06")):
        budget.spend(Decimal("0.02"))
        with pytest.raises(CapReached, match=r"the spend cap of \$0\.10 is reached: \$0\.0200 spent, up to \$0\.03"):
            budget.hold(Decimal("0.03")).__enter__()
        with budget.hold(Decimal("0.02")), budget.hold(None):
            pass
    with budget.hold(Decimal("0.08")):  # what was held is free again
        pass
    with Budget(None).hold(Decimal(1000)):
        pass


def test_a_provider_is_asked_one_thing_at_a_time_and_not_too_often() -> None:
    async def run(*, local: bool) -> tuple[int, float]:
        pace, now, most = Pace(per_minute=3_000), 0, 0

        async def ask() -> None:
            nonlocal now, most
            async with pace.turn("lab", local=local):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        start = monotonic()
        await asyncio.gather(*(ask() for _ in range(6)))
        return most, monotonic() - start

    most, seconds = asyncio.run(run(local=False))
    assert most == 1
    assert seconds >= 5 * 60 / 3_000 * 0.99
    assert asyncio.run(run(local=True))[0] == 1
