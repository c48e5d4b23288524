"""Retry, fallback and circuit breaker as tables: what happened so far → what comes next. No network, no clock."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import get_args

import msgspec

from dragoman.codec.errors.error_body import read_problem
from dragoman.events import Failure, FailureKind, Finish
from dragoman.routing.attempts import Attempts
from dragoman.routing.circuit_breaker import COUNTED, IN_A_ROW, OPEN_SECONDS, CircuitBreaker
from dragoman.routing.fallback import Candidate, Move, Stop, Wait, decide, pick_first
from dragoman.routing.retry import LONGEST_WAIT, RETRY_FLOOR, Budget, pick_delay
from dragoman.routing.target import Chain
from dragoman.routing.target_health import HealthTable
from for_each import for_each
from simulated import make_chain

NO_TOOLS = Failure("bad_request", "this model does not support tools", 400)


def failed(kind: str, status: int | None = None, **more) -> Failure:
    return Failure(kind, f"a failure of kind {kind}", status, **more)  # type: ignore[arg-type]


# ---------------------------------------------------------------- retry


@for_each(
    ("failure", "delay"),
    [
        (failed("rate", 429, retry_after=0.0), 0.0),
        (failed("rate", 429, retry_after=1.0), 1.0),
        (failed("rate", 429, retry_after=59.0), 59.0),
        (failed("rate", 429, retry_after=60.0), 60.0),
        (failed("rate", 429, retry_after=61.0), "the wait of 61 s is longer than 60 s"),
        (failed("overloaded", 529), 0.5),
        (failed("overloaded", 503, retry_after=2.5), 2.5),
        (failed("internal", 500), 0.5),
        (failed("wire"), 0.5),
        (failed("connection"), 0.5),
        (failed("connection", code="refused"), 0.5),
        (failed("timeout", 504), 0.5),
        (failed("timeout"), "the time was spent"),
        (failed("connection", code="unknown_host"), "the connection fails the same way again"),
        (failed("connection", code="tls"), "the connection fails the same way again"),
        (failed("bad_request", 400), "another try does not mend bad_request"),
        (failed("quota", 402), "another try does not mend quota"),
        (failed("quota", 429), "another try does not mend quota"),
        (failed("auth", 401), "another try does not mend auth"),
        (failed("permission", 403), "another try does not mend permission"),
        (failed("not_found", 404), "another try does not mend not_found"),
        (failed("too_large", 413), "another try does not mend too_large"),
        (failed("context", 400), "another try does not mend context"),
        (failed("context", 503, retry_after=1.0), "another try does not mend context"),
    ],
    ids=lambda value: f"{value.kind}-{value.status}-{value.retry_after}" if isinstance(value, Failure) else None,
)
def test_what_is_tried_again_and_when(failure, delay):
    assert pick_delay(failure, tries=1, random=1.0) == delay


def test_the_wait_grows_up_to_a_limit_and_is_spread():
    waits = [pick_delay(failed("internal"), tries=tries, random=1.0) for tries in (1, 2, 3, 5, 50)]
    assert waits == [0.5, 1.0, 2.0, 8.0, 8.0]
    assert pick_delay(failed("internal"), tries=3, random=0.0) == 1.0


def test_the_word_of_the_provider_ends_the_tries():
    assert pick_delay(failed("overloaded", 503), tries=1, random=1.0, should_retry=False) == (
        "the provider says not to try again"
    )
    assert pick_delay(failed("overloaded", 503), tries=1, random=1.0, should_retry=True) == 0.5
    assert isinstance(pick_delay(failed("bad_request", 400), tries=1, random=1.0, should_retry=True), str)


def test_a_server_of_this_machine_that_refuses_connections_does_not_run():
    refused = failed("connection", code="refused")
    assert isinstance(pick_delay(refused, tries=1, random=1.0, is_local=True), str)


@for_each(
    ("headers", "seconds"),
    [
        ({"retry-after": "0"}, 0.0),
        ({"Retry-After": "59"}, 59.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Sun, 22 Nov 2026 02:00:31 GMT", "date": "Sun, 22 Nov 2026 02:00:01 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 01:00:00 GMT", "date": "Sun, 22 Nov 2026 02:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_every_form_of_retry_after(headers, seconds):
    assert read_problem(b'{"error":{"message":"slow down"}}', status=429, headers=headers).retry_after == seconds


@for_each("code", ["enforced_spend_limit_reached", "insufficient_quota", "billing_hard_limit_reached"])
def test_a_429_that_speaks_of_money_is_never_tried_again(code):
    body = b'{"error":{"message":"You have reached your limit.","code":"%b"}}' % code.encode()
    failure = read_problem(body, status=429, headers={"retry-after": "5"})
    assert isinstance(pick_delay(failure, tries=1, random=1.0), str)


@for_each(
    ("status", "words"),
    [
        (429, "You have reached your spending limit."),
        (429, "Your team has exceeded its monthly spend limit."),
        (400, "You have reached your specified workspace API usage limits. You will regain access on 2026-12-01."),
        (429, "Billing hard limit has been reached"),
    ],
)
def test_a_limit_of_money_told_in_words_is_one_whatever_the_wait(status, words):
    failure = read_problem(b'{"error":{"message":"%b"}}' % words.encode(), status=status, headers={"retry-after": "5"})
    assert failure.kind == "quota"
    assert next_of(failure) == "b/two"


def test_the_budget_allows_a_few_retries_and_then_a_share():
    budget = Budget()
    budget.note_request(100.0)
    assert [budget.take(100.0) for _ in range(RETRY_FLOOR + 1)] == [True] * RETRY_FLOOR + [False]
    for _ in range(99):
        budget.note_request(103.0)
    assert sum(budget.take(103.5) for _ in range(100)) == 19 - RETRY_FLOOR
    assert not budget.take(109.0)
    assert budget.take(200.0)


# ---------------------------------------------------------------- fallback

CHAIN = (Candidate("a/one", 8_000), Candidate("b/two", 32_000), Candidate("c/three", 200_000))
OPEN = (CHAIN[0], Candidate("b/two", 32_000, is_admitted=False), CHAIN[2])
ALL_OPEN = tuple(Candidate(one.name, one.context, is_admitted=False) for one in CHAIN)


def next_of(failure: Failure, chain=CHAIN, position: int = 0, **state) -> str | float:
    """The next candidate's name, the seconds to wait, or why it stands."""
    state = {"attempts": 1, "tries": 1, "retries": 2, "random": 1.0} | state
    found = decide(failure, chain, position=position, **state)
    match found:
        case Move(to, _, _):
            return chain[to].name
        case Wait(seconds, _):
            return seconds
        case Stop(reason):
            return reason


@for_each("kind", [*sorted(COUNTED), "rate", "auth", "permission", "quota", "not_found"])
def test_a_failure_of_the_target_goes_to_the_next_one_at_once(kind):
    assert next_of(failed(kind)) == "b/two"
    assert next_of(failed(kind, retry_after=1.0)) == "b/two"
    assert next_of(failed(kind), OPEN) == "c/three"


@for_each("kind", ["bad_request", "too_large"])
def test_a_failure_of_the_request_stands(kind):
    assert next_of(failed(kind)) == f"no other target mends {kind}; another try does not mend {kind}"


def test_a_server_without_tools_and_one_that_moved_are_failures_of_the_target():
    assert next_of(NO_TOOLS) == "b/two"
    assert next_of(failed("bad_request", 307)) == "b/two"


def test_the_last_target_is_asked_though_its_breaker_is_open():
    assert pick_first(ALL_OPEN) == Move(2, (0, 1), "first that is admitted")
    assert pick_first(ALL_OPEN[:1]).position == 0
    assert next_of(failed("overloaded"), ALL_OPEN) == "c/three"
    assert pick_first(CHAIN) == Move(0, (), "first")


def test_only_the_last_target_is_tried_again():
    assert next_of(failed("overloaded"), CHAIN, 2, attempts=1) == 0.5
    assert next_of(failed("overloaded"), CHAIN, 2, attempts=2, tries=2) == 1.0
    assert next_of(failed("overloaded"), CHAIN, 2, attempts=3, tries=1) == "no target is left; asked 3 times"
    assert next_of(failed("overloaded"), CHAIN, 2, attempts=1, retries=0) == "no target is left; asked 1 times"
    assert next_of(failed("rate", retry_after=LONGEST_WAIT + 1), CHAIN, 2).startswith("no target is left; the wait")


@for_each(
    ("message", "chain", "expected"),
    [
        ("prompt is too long", CHAIN, "b/two"),  # the one that failed is known to take 8,000
        ("maximum context length is 8192 tokens, however you requested 40000 tokens", CHAIN, "c/three"),
        ("maximum context length is 8192 tokens", CHAIN, "b/two"),
        ("prompt is too long: 250000 tokens > 8192 maximum", CHAIN, "no target left is known to take more than 250000"),
        ("prompt is too long", (Candidate("a/one"), CHAIN[1]), "the context is exceeded, and by how much is not known"),
        ("prompt is too long", (CHAIN[0], Candidate("b/two")), "no target left is known to take more than 8000 tokens"),
        ("prompt is too long", OPEN, "c/three"),
    ],
)
def test_a_prompt_that_is_too_long_goes_only_where_it_fits(message, chain, expected):
    assert str(next_of(Failure("context", message, 400), chain)).startswith(expected)


# ---------------------------------------------------------------- circuit breaker


def test_it_opens_after_failures_in_a_row_and_one_probe_heals_it():
    breaker = CircuitBreaker()
    for second in range(IN_A_ROW):
        assert breaker.admits(second)
        breaker.begin(second)
        change = breaker.failed(failed("overloaded"), second + 0.5, begun=second)
    assert change == "opened"
    opened = IN_A_ROW - 0.5
    assert not breaker.admits(opened + OPEN_SECONDS - 0.1)
    probed = opened + OPEN_SECONDS
    assert breaker.admits(probed)
    breaker.begin(probed)
    assert not breaker.admits(probed + 1)  # one probe at a time
    assert breaker.failed(failed("connection"), probed + 1, begun=probed) is None
    assert not breaker.admits(probed + OPEN_SECONDS)
    again = probed + 1 + OPEN_SECONDS
    assert breaker.admits(again)
    breaker.begin(again)
    assert breaker.succeeded(again + 3, begun=again) == "healed"
    assert breaker.admits(again + 3)


def test_a_success_between_failures_keeps_it_closed():
    breaker = CircuitBreaker()
    for second in range(100):
        for _ in range(IN_A_ROW - 1):
            assert breaker.failed(failed("internal"), second * 20.0, begun=second * 20.0) is None
        breaker.succeeded(second * 20.0, begun=second * 20.0)
    assert breaker.admits(2_000.0)


def test_it_opens_when_a_fifth_of_the_answers_fail():
    breaker = CircuitBreaker()
    changes = []
    for number in range(100):
        now = number / 60
        if number % 5:
            breaker.succeeded(now, begun=now)
        else:
            changes.append(breaker.failed(failed("internal"), now, begun=now))
    assert "opened" in changes


@for_each("kind", sorted({*get_args(FailureKind)} - COUNTED))
def test_what_a_client_brought_upon_itself_never_counts(kind):
    breaker = CircuitBreaker()
    for number in range(1_000):
        assert breaker.failed(failed(kind, 400), number / 100, begun=number / 100) is None
    assert breaker.admits(10.0)


def test_a_target_that_asks_for_a_pause_is_given_it():
    breaker = CircuitBreaker()
    breaker.failed(failed("rate", 429, retry_after=7.0), 100.0, begun=99.0)
    assert not breaker.admits(106.9)
    assert breaker.admits(107.0)
    breaker.failed(failed("rate", 429, retry_after=9_999.0), 200.0, begun=199.0)
    assert breaker.admits(200.0 + LONGEST_WAIT)


def test_answers_that_began_before_it_opened_say_nothing_of_its_health():
    breaker = CircuitBreaker()
    for _ in range(IN_A_ROW):
        breaker.failed(failed("timeout"), 10.0, begun=1.0)
    assert breaker.succeeded(11.0, begun=2.0) is None
    assert not breaker.admits(11.0)
    assert breaker.failed(failed("timeout"), 14.9, begun=2.0) is None
    assert breaker.admits(10.0 + OPEN_SECONDS)


def test_a_probe_that_is_given_up_makes_room_for_another():
    breaker = CircuitBreaker()
    for _ in range(IN_A_ROW):
        breaker.failed(failed("timeout"), 10.0, begun=1.0)
    breaker.begin(20.0)
    breaker.abandoned(begun=20.0)
    assert breaker.admits(20.1)


def test_the_last_target_heals_though_it_was_never_passed_over():
    breaker = CircuitBreaker()
    for _ in range(IN_A_ROW):
        breaker.failed(failed("timeout"), 10.0, begun=1.0)
    breaker.begin(11.0)
    assert breaker.succeeded(12.0, begun=11.0) == "healed"


# ---------------------------------------------------------------- targets that cannot be asked

#: What a target does when it is asked: its failures, then an answer. "open": it would answer, but its breaker is open.
FAILURES = {"well": [], "open": [], "once": [failed("overloaded")], "down": [failed("overloaded")] * 9,
            "wrong": [failed("bad_request")]}  # fmt: skip


def way_of(chain: Chain, kinds: Sequence[str]) -> tuple[list[tuple[str, str]], float]:
    """The results of the targets that were asked, and the seconds that were waited for. "deaf" ones cannot be asked."""
    table, waited = HealthTable(), 0.0
    does = dict(zip([target.name for target in chain.targets], kinds, strict=True))
    left = {name: list(FAILURES.get(kind, ())) for name, kind in does.items()}
    for name, kind in does.items():
        if kind == "open":
            table.of(name).breaker.failed(failed("rate", 429, retry_after=30.0), 0.0, begun=0.0)
    course = Attempts(chain, table, log=lambda line: None)
    course.begin(1.0)
    while True:
        name = course.target.name
        if does[name] == "deaf":
            delay = course.unusable("it cannot be asked", now=1.0, random=0.0, most_wait=60.0)
        else:
            course.sent(1.0)
            if not left[name]:
                course.ended(Finish("stop"), 1.0)
                break
            delay = course.failed(left[name].pop(0), now=1.0, random=0.0, most_wait=60.0)
        if delay is None:
            break
        waited += delay
    skipped = [one.target for one in course.attempts if one.outcome == "skipped"]
    assert len(skipped) == len(set(skipped))
    return [(one.target, one.outcome) for one in course.attempts if one.outcome != "skipped"], waited


def test_a_target_that_cannot_be_asked_changes_nothing_for_the_others(tmp_path):
    whole = make_chain(tmp_path, "abcd")
    for kinds in itertools.product(["deaf", *FAILURES], repeat=4):
        hearing = [place for place, kind in enumerate(kinds) if kind != "deaf"]
        if 0 < len(hearing) < 4:
            rest = msgspec.structs.replace(whole, targets=tuple(whole.targets[place] for place in hearing))
            assert way_of(whole, kinds) == way_of(rest, [kinds[place] for place in hearing]), kinds
