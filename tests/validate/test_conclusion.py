"""The verdict in a sentence: every combination of the deciding probes has one, and none claims what was not shown."""

from itertools import product

import pytest

from dragoman.events import Failure, fold, unfold
from dragoman.events import Reply as Answer
from dragoman.proofs import ProbeResult, Proof, is_proven
from dragoman.protocol import ToolMode
from dragoman.types import Part, Text, ToolCall, Usage
from dragoman.validate.ask import Asked
from dragoman.validate.conclusion import DECIDING, Conclusion, conclude
from dragoman.validate.grade import Grade
from dragoman.validate.results import TargetRun, Trial

STATES = ("passed", "failed", "unsupported", "not-used", "error", None)
WAYS: tuple[tuple[ToolMode, ...], ...] = ((), ("schema",), ("prompted",), ("schema", "prompted"))
CALL = ToolCall("1", "get_weather", "{}")
REFUSED = Failure("bad_request", "no tools", 400)


def asked(*parts: Part, error: Failure | None = None) -> Asked:
    answer = Answer("1", "m", 1, parts, None if error else "stop", None, Usage(3, 4), None, error, (), ())
    events = tuple(unfold(answer))
    return Asked(
        method="POST", url="http://127.0.0.1:1", request=b"{}", status=200, response=b"", events=events,
        reply=fold(events), estimate=9, first_event=0.1, seconds=0.2, is_left=False,
    )  # fmt: skip


def run_of(
    probes: dict[str, ProbeResult],
    *trials: Trial,
    ways: tuple[ToolMode, ...] = (),
    problem: str = "",
    suite: str = "full",
) -> TargetRun:
    proof = Proof(
        target="lab/m", protocol="openai-chat", endpoint="http://127.0.0.1:1/v1", suite=suite, suite_version=1,
        dragoman="1", at=1, probes=probes, ways=ways,
    )  # fmt: skip
    return TargetRun("lab/m", proof, trials, None, problem)


def result(state: str, **counts: int) -> ProbeResult:
    passes = int(state == "passed")
    return ProbeResult(state, f"the reason of {state}", **{"passes": passes, **counts})


def told(found: Conclusion) -> str:
    return " ".join((found.sentence, *found.why, *found.advice))


def test_every_combination_has_a_verdict_and_none_claims_what_was_not_shown() -> None:
    seen = set()
    for states in product(STATES, repeat=len(DECIDING)):
        shown = dict(zip(DECIDING, states, strict=True))
        probes = {name: result(state) for name, state in shown.items() if state is not None}
        call, back = shown["toolCall"], shown["result-round-trip"]
        for other in WAYS:
            ways = (*(("native",) if call == "passed" else ()), *other)
            run = run_of(probes, ways=ways)
            found = conclude(run)
            seen.add(found.standing)
            assert found.sentence.endswith(".") and found.why and found.advice, shown
            assert (found.standing == "usable") == is_proven(run.proof), shown
            is_told = call not in (None, "error") and (call != "passed" or back not in (None, "error"))
            assert (found.standing == "unknown") == (not is_told), shown
            assert found.sentence.startswith("Unknown") == (found.standing == "unknown")
            assert found.sentence.startswith("Usable") == (found.standing == "usable")
            is_limited = call in ("failed", "unsupported", "not-used") and bool(other)
            assert ('tools = "auto"' in told(found)) == is_limited == (found.standing == "limited"), shown
            assert ("it calls the tool as asked" in found.sentence) == (call == "passed"), shown
            assert ("as asked and answers from its result" in found.sentence) == (call == back == "passed"), shown
            assert "prose" not in told(found), "no answer was kept that shows it"
            gets_by_force = "tool_choice = required gets calls" in told(found)
            assert not gets_by_force or (call == "not-used" and shown["tool-choice-required"] == "passed"), shown
            for name, state in shown.items():
                lines = [line for line in found.why if line.startswith(f"{name.replace('C', '-c')} ")]
                is_core = name in ("toolCall", "result-round-trip")
                is_wanted = state is not None and (is_core or found.standing != "usable" or state != "passed")
                assert (f"{state}: the reason of {state}" in str(lines)) == is_wanted, shown
    assert seen == {"usable", "limited", "unusable", "unknown"}


@pytest.mark.parametrize(
    ("state", "answer", "sentence"),
    [
        ("not-used", asked(Text("I would call it.")), "it answers in prose instead of calling the tool."),
        ("not-used", asked(), "it does not call the tool."),
        ("failed", asked(CALL), "its call of the tool is wrong."),
        ("failed", asked(error=Failure("wire", "cut")), "its answer to a request with tools failed."),
        ("unsupported", asked(error=REFUSED), "it refuses a request that offers tools."),
        ("unsupported", asked(Text("Hi.")), "tools cannot be offered to it."),
    ],
)
def test_the_answers_of_the_model_say_what_is_wrong(state: str, answer: Asked, sentence: str) -> None:
    trial = Trial("toolCall", 0, True, "native", Grade(state, "why"), (answer,))
    found = conclude(run_of({"toolCall": result(state)}, trial))
    assert found.sentence == f"Not usable as an agent: {sentence}"
    by_schema = Trial("toolCall", 0, True, "schema", Grade("passed", "1 call"), (asked(CALL),))
    found = conclude(run_of({"toolCall": result(state)}, trial, by_schema, ways=("schema",)))
    assert found.sentence.endswith(f"with native tools: {sentence[:-1]}; asked the schema way, it calls the tool.")
    assert 'Set tools = "auto" in [models."lab/m"]: by its proof, dragoman then asks the schema way.' in found.advice


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ((asked(Text("No.")),), "did not when it was asked again"),
        ((asked(CALL), asked(Text("I do not know."))), "does not answer from the tool's result"),
        ((asked(CALL), asked(error=REFUSED)), "the request with the tool's result failed"),
    ],
)
def test_where_a_round_trip_ended_is_told(turns: tuple[Asked, ...], words: str) -> None:
    trial = Trial("result-round-trip", 0, True, "native", Grade("failed", "why"), turns)
    found = conclude(run_of({"toolCall": result("passed"), "result-round-trip": result("failed")}, trial))
    assert found.sentence == f"Not usable as an agent: it calls the tool as asked, but {words}."


@pytest.mark.parametrize("probe", ["toolCall", "result-round-trip"])
def test_what_is_right_now_and_then_is_not_reliable(probe: str) -> None:
    sometimes = result("failed", passes=2, trials=4, passes_at_zero=2, trials_at_zero=2)
    found = conclude(run_of({"toolCall": result("passed"), probe: sometimes}))
    assert found.standing == "unsteady" and found.sentence.endswith("in 2 of 4 trials.")
    assert "Ask it at temperature 0: there it was right each time." in found.advice
    never_there = result("failed", passes=2, trials=4, passes_at_zero=1, trials_at_zero=2)
    found = conclude(run_of({"toolCall": result("passed"), probe: never_there}))
    assert "temperature" not in told(found)


def test_what_is_left_open_is_said() -> None:
    good = {"toolCall": result("passed"), "result-round-trip": result("passed")}
    found = conclude(run_of({**good, "stop": result("failed"), "cache": result("error")}))
    assert found.sentence.endswith("answers from its result, but 1 other probe failed.")
    assert "Failed too: stop." in found.why and "Unknown, because it could not be asked: cache." in found.why
    found = conclude(run_of(good, problem="cost: the cap is reached", suite="quick"))
    assert "The run ended early: cost: the cap is reached" in found.why
    assert "not kept" in found.advice[0]
    assert any("quick suite leaves most unknown" in line for line in found.why)


@pytest.mark.parametrize(
    ("problem", "advice"),
    [
        ("connection: no connection", "Start the server, or correct the provider's base_url."),
        ("auth: not_found: no such key", "Check the provider's API key."),
        ("something else", "Fix what stopped the validation."),
        ("", "Fix what stopped the validation."),
    ],
)
def test_what_could_not_be_validated_is_unknown(problem: str, advice: str) -> None:
    found = conclude(TargetRun("lab/m", None, problem=problem))
    assert (found.standing, found.advice[0]) == ("unknown", advice)
    assert found.why == (problem or "nothing was asked",)
