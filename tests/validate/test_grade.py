"""Grades: what passes, what does not, and what says nothing. Wrong answers never pass."""

from typing import Any

import pytest

from dragoman.events import Deviation, Event, Failure, ToolCallFailed, fold, unfold
from dragoman.events import Reply as Answer
from dragoman.types import Part, StopReason, Text, Thinking, ToolCall, Usage
from dragoman.validate.compare_json import one_line
from dragoman.validate.grade import Grade, Seen, gives_number, grade
from dragoman.validate.probe import Expect, ExpectedCall, Probe, Turn
from dragoman.validate.statistics import sum_up, wilson
from for_each import for_each


def answer(*parts: Part, reason: StopReason = "stop", usage: Usage | None = None, **more: Any) -> list[Event]:
    fields = {"id": "1", "model": "m", "created": 1, "native_reason": None, "cost": None, "error": None,
              "failed_calls": (), "deviations": ()}  # fmt: skip
    return unfold(Answer(parts=parts, stop_reason=reason, usage=usage or Usage(), **{**fields, **more}))


def probe(expect: Expect, **fields: Any) -> Probe:
    return Probe(name="any", rank=1, title="does anything", turns=(Turn(user="do", expect=expect),), **fields)


def graded(expect: Expect, events: list[Event], *, estimate: int = 100, left: bool = False, **fields: Any) -> Grade:
    one = probe(expect, **fields)
    return grade(one, one.turns[0], Seen(tuple(events), fold(events), estimate, left))


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall("call_1", name, arguments)


WEATHER = Expect(calls=(ExpectedCall("get_weather", {"city": "Paris", "days": 3}),))


@for_each(
    ("arguments", "verdict", "reason"),
    [
        ('{"city": "Paris", "days": 3}', "passed", "1 call, as asked"),
        ('{"days": 3.0, "city": "Paris"}', "passed", "1 call, as asked"),
        ('{"city": "Parts", "days": 3}', "failed", 'get_weather: city: expected "Paris", got "Parts"'),
        ('{"city": "Paris", "days": "3"}', "failed", 'get_weather: days: expected 3, got "3"'),
        ('{"city": "Paris", "days": true}', "failed", "get_weather: days: expected 3, got true"),
        ('{"city": "Paris"}', "failed", "get_weather: days is missing"),
        ('{"city": "Paris", "days": 3, "unit": "c"}', "failed", "get_weather: unit was not asked for"),
    ],
)
def test_arguments_must_be_exact(arguments: str, verdict: str, reason: str) -> None:
    assert graded(WEATHER, answer(call("get_weather", arguments), reason="tool_use")) == Grade(verdict, reason)


def test_a_list_of_arguments_has_as_many_items() -> None:
    expect = Expect(calls=(ExpectedCall("add", {"numbers": [1, 2]}),))
    reason = "add: numbers: expected 2 items, got 1"
    assert graded(expect, answer(call("add", '{"numbers": [1]}'), reason="tool_use")) == Grade("failed", reason)


def test_a_call_without_the_words_beside_it_is_not_used_where_that_is_allowed() -> None:
    expect = Expect(calls=WEATHER.calls, text_has=("sunny",))
    silent = answer(call("get_weather", '{"city": "Paris", "days": 3}'), reason="tool_use")
    assert graded(expect, silent).verdict == "failed"
    assert graded(expect, silent, may={"no_text": "called without a word"}).verdict == "not-used"


def test_calls_are_counted_and_named() -> None:
    right = call("get_weather", '{"city": "Paris", "days": 3}')
    assert graded(WEATHER, answer(right, right)).reason == "one call of get_weather too many"
    assert graded(WEATHER, answer(call("fetch", "{}"))).reason == "expected a call of get_weather, got fetch"
    two = Expect(calls=(*WEATHER.calls, ExpectedCall("get_weather", {"city": "Rome", "days": 1})))
    other = call("get_weather", '{"days": 1, "city": "Rome"}')
    assert graded(two, answer(other, right)).verdict == "passed"
    assert graded(two, answer(right)) == Grade("failed", "too few calls: 1 of 2")
    assert graded(two, answer(right), may={"fewer_calls": "one at a time"}) == Grade(
        "not-used", "one at a time: 1 of 2"
    )


def test_not_used_is_neither_failed_nor_unsupported() -> None:
    text = answer(Text("It is sunny."))
    assert graded(WEATHER, text) == Grade("failed", "no call: “It is sunny.”")
    assert graded(WEATHER, text, may={"no_call": "did not call"}) == Grade("not-used", "did not call: “It is sunny.”")
    refused: list[Event] = [Failure("bad_request", "model does not support tools", 400)]
    assert graded(WEATHER, refused, uses=("tools",)).verdict == "unsupported"


def test_calls_where_none_is_right_fail() -> None:
    made = answer(call("get_weather", "{}"))
    assert graded(Expect(no_calls=True), made) == Grade("failed", "made a call where none is right: get_weather")
    assert graded(Expect(called=("get_weather",)), made).verdict == "passed"
    assert graded(Expect(called=("find_hotel",)), made).verdict == "failed"


def test_a_call_that_broke_fails() -> None:
    cut = ToolCallFailed(0, "1", "get_weather", "cut", "the arguments end early")
    events = answer(failed_calls=(cut,), error=cut)
    assert graded(WEATHER, events) == Grade("failed", "a call of get_weather failed: the arguments end early")


def test_a_rescued_call_passes_and_is_said() -> None:
    right = call("get_weather", '{"city": "Paris", "days": 3}')
    events = answer(right, deviations=(Deviation("rescued-call", "text"),))
    assert graded(WEATHER, events) == Grade("passed", "1 call, as asked (written as text, rescued)")


@for_each(
    ("text", "passes"),
    [
        ("4", True), (" 4.\n", True), ("**4**", True), ("The answer is 4.", True), ("2 + 2 = 4", True), ("4.0", True),
        ("First 2, then 2 more.\nThat makes 4", True), ("= 4", True),
        ("14", False), ("-4", False), ("4.5", False), ("44", False), ("4,000", False), ("four", False), ("", False),
        ("The answer is 14, not 4.", False), ("2 + 2 = 14. No 4.", False), ("It is 4 or 14", False), ("24/7", False),
        ("2 + 2 = 4 = 5", False), ("4, then 5", False), ("v4", False),
    ],
)  # fmt: skip
def test_a_wrong_number_never_passes(text: str, passes: bool) -> None:
    assert gives_number(text, "4") is passes
    assert (graded(Expect(answer=4), answer(Text(text))).verdict == "passed") is passes


def test_numbers_may_have_their_thousands_marked() -> None:
    assert gives_number("1,234", "1234") and gives_number("The total is 1,234.00", "1234")
    assert not gives_number("1,234", "234")


@for_each(
    ("expect", "text", "passes"),
    [
        (Expect(text_has=("K7",)), "It is k7.", True),
        (Expect(text_has=("K7",)), "It is K77.", False),
        (Expect(text_has=(41,)), "41 °C", True),
        (Expect(text_has=(41,)), "141 °C", False),
        (Expect(text_lacks=("end",)), "the ending", True),
        (Expect(text_lacks=("end",)), "the end", False),
        (Expect(text=True), "  \n", False),
        (Expect(json={"age": 3, "ok": True}), '{"ok": true, "age": 3}', True),
        (Expect(json={"age": 3, "ok": True}), '{"ok": true, "age": 3, "more": 1}', False),
        (Expect(json={"age": 3, "ok": True}), '```json\n{"ok": true, "age": 3}\n```', False),
        (Expect(json={"age": 3}), "[3]", False),
        (Expect(deltas=2), "in one piece", False),
    ],
)
def test_texts(expect: Expect, text: str, passes: bool) -> None:
    assert (graded(expect, answer(Text(text))).verdict == "passed") is passes


def test_thinking_counts_when_it_is_seen_or_reported() -> None:
    expect = Expect(thinking=True)
    assert graded(expect, answer(Thinking("hm"), Text("4"))).verdict == "passed"
    assert graded(expect, answer(Text("4"), usage=Usage(5, 9, reasoning=4))).verdict == "passed"
    assert graded(expect, answer(Text("4")), may={"no_thinking": "none"}) == Grade("not-used", "none")
    wrong = Expect(answer=4, thinking=True)
    assert graded(wrong, answer(Thinking("4"), Text("5")), may={"no_thinking": "none"}).verdict == "failed"


@for_each(
    ("expect", "usage", "verdict"),
    [
        (Expect(usage=True), Usage(90, 2), "passed"),
        (Expect(usage=True), Usage(), "failed"),
        (Expect(usage=True), Usage(3, 2), "failed"),
        (Expect(usage=True), Usage(9000, 2), "failed"),
        (Expect(usage=True), Usage(90, 0), "failed"),
        (Expect(prompt_read=0.6), Usage(61, 2), "passed"),
        (Expect(prompt_read=0.6), Usage(59, 2), "failed"),
        (Expect(cached=True), Usage(90, 2, cache_read=50), "passed"),
        (Expect(cached=True), Usage(90, 2, cache_read=0), "failed"),
        (Expect(most_output=16), Usage(90, 16), "passed"),
        (Expect(most_output=16), Usage(90, 17), "failed"),
    ],
)
def test_reported_tokens_must_be_plausible(expect: Expect, usage: Usage, verdict: str) -> None:
    assert graded(expect, answer(Text("two words"), usage=usage)).verdict == verdict


def test_the_stop_reason_is_judged_and_a_cut_answer_said() -> None:
    assert graded(Expect(stop="length"), answer(Text("a"), reason="length")).verdict == "passed"
    assert graded(Expect(stop="length"), answer(Text("a"))).reason == "expected stop reason length, got stop"
    cut = graded(Expect(text_has=("b",)), answer(Text("a"), reason="length"))
    assert (cut.verdict, "cut at its most tokens" in cut.reason) == ("failed", True)


@for_each(
    ("failure", "expect", "fields", "verdict"),
    [
        (Failure("auth", "no", 401), Expect(failure=("auth",)), {}, "passed"),
        (Failure("internal", "no", 500), Expect(failure=("auth",)), {}, "error"),
        (Failure("bad_request", "unknown field stop", 400), Expect(), {"uses": ("params.stop",)}, "unsupported"),
        (Failure("bad_request", "no", 400), Expect(), {}, "failed"),
        (Failure("internal", "not implemented", 501), Expect(), {}, "unsupported"),
        (Failure("connection", "broke"), Expect(), {"uses": ("tools",)}, "error"),
        (Failure("timeout", "late"), Expect(), {}, "error"),
        (Failure("rate", "slow down", 429), Expect(), {}, "error"),
        (Failure("wire", "not its protocol"), Expect(), {}, "failed"),
    ],
)
def test_failures(failure: Failure, expect: Expect, fields: dict[str, Any], verdict: str) -> None:
    assert graded(expect, [failure], **fields).verdict == verdict


def test_an_answer_where_a_refusal_belongs() -> None:
    expect = Expect(failure=("not_found",))
    assert graded(expect, answer(Text("hello"))).verdict == "failed"
    assert graded(expect, answer(Text("hello")), may={"answer": "any name"}) == Grade("not-used", "any name: “hello”")


def test_what_the_protocol_cannot_say_is_unsupported_and_what_only_its_details_are_is_not() -> None:
    unsaid = answer(Text("a"), deviations=(Deviation("dropped", "params.stop", "no such field"),))
    assert graded(Expect(), unsaid, uses=("params.stop",)) == Grade(
        "unsupported", "params.stop cannot be said: no such field"
    )
    detail = answer(Text("a"), deviations=(Deviation("dropped", "params.stop.more", "no such field"),))
    assert graded(Expect(), detail, uses=("params.stop",)).verdict == "passed"


def test_what_was_left_in_the_middle_is_no_failure() -> None:
    events = answer(Text("Once upon"))[:-2]
    assert graded(Expect(text=True), events, left=True).verdict == "passed"


# ---------------------------------------------------------------- trials


def test_all_trials_must_pass_and_the_rate_is_told() -> None:
    good, bad, broken = Grade("passed", "right"), Grade("failed", "wrong"), Grade("error", "no connection")
    once = sum_up([bad], at_zero=[True])
    assert (once.verdict, once.reason, once.passes, once.trials) == ("failed", "wrong", 0, 1)
    mixed = sum_up([good, bad, bad], at_zero=[True, False, True])
    assert (mixed.verdict, mixed.reason) == ("failed", "passed 1 of 3 (6% to 79%): wrong")
    assert (mixed.passes, mixed.trials, mixed.passes_at_zero, mixed.trials_at_zero) == (1, 3, 1, 2)
    assert sum_up([good, good], at_zero=[True, False]).verdict == "passed"
    assert sum_up([good, broken], at_zero=[True, False]).verdict == "error"
    assert sum_up([broken, bad], at_zero=[True, False]).verdict == "failed"
    unused = Grade("not-used", "did not")
    both = sum_up([unused, unused], at_zero=[True, False])
    assert (both.verdict, both.reason) == ("not-used", "each time: did not")


@for_each(
    ("passes", "trials", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 3, 0.0615, 0.7923), (81, 263, 0.2553, 0.3662)],
)
def test_wilsons_interval(passes: int, trials: int, low: float, high: float) -> None:
    """Figures of Newcombe 1998 (81 of 263) and of the closed form."""
    assert wilson(passes, trials) == pytest.approx((low, high), abs=5e-4)


def test_a_servers_words_cannot_steer_a_terminal() -> None:
    assert one_line("a\x1b[2Jb\r\nc\u202ed\u200e") == "a [2Jb c d"
    assert len(one_line("x" * 500)) == 90
