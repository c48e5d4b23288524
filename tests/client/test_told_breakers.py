"""A circuit breaker that is told of another's: it tries as by itself, and no word keeps it open or closes it."""

from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from dragoman.events import Failure
from dragoman.routing.circuit_breaker import IN_A_ROW, OPEN_SECONDS, CircuitBreaker

FAILED = Failure("overloaded", "busy", 503)
Step = tuple[Literal["told", "asked", "failed", "given up"], float, float]
STEPS: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(["told", "asked", "failed", "given up"]), st.floats(0, 20), st.floats(0, 30)
)


def state(breaker: CircuitBreaker) -> list[object]:
    return [getattr(breaker, name) for name in CircuitBreaker.__slots__]


def take(breaker: CircuitBreaker, step: Step, now: float) -> None:
    """A request that begins and ends at once, however it ends, or a word."""
    kind, _, age = step
    if kind == "told":
        breaker.told_open(now, age=age)
        return
    breaker.begin(now)
    if kind == "asked":
        breaker.succeeded(now, begun=now)
    elif kind == "failed":
        breaker.failed(FAILED, now, begun=now)
    else:
        breaker.abandoned(begun=now)


def test_it_tries_as_it_would_by_itself() -> None:
    told, own = CircuitBreaker(), CircuitBreaker()
    assert told.told_open(100.0, age=0.0) and told.is_open and told.is_told
    for _ in range(IN_A_ROW):
        own.begin(100.0)
        own.failed(FAILED, 100.0, begun=100.0)
    for passed in (0.0, OPEN_SECONDS - 0.1, OPEN_SECONDS):
        assert told.admits(100.0 + passed) == own.admits(100.0 + passed) == (passed == OPEN_SECONDS)
    for breaker in (told, own):  # one probe
        breaker.begin(105.0)
        assert not breaker.admits(105.0)
        assert breaker.succeeded(106.0, begun=105.0) == "healed"
        assert breaker.admits(106.0)
    assert told.openings == 0 and own.openings == 1


def test_a_probe_that_fails_bears_the_word_out() -> None:
    breaker = CircuitBreaker()
    breaker.told_open(0.0, age=0.0)
    breaker.begin(5.0)
    breaker.failed(FAILED, 6.0, begun=5.0)
    assert not breaker.is_told and breaker.is_open and not breaker.admits(10.9) and breaker.admits(11.0)
    breaker.begin(11.0)
    breaker.succeeded(12.0, begun=11.0)
    assert breaker.told_open(13.0, age=0.5)  # such words are believed again


def test_what_was_answered_since_stands_over_a_word() -> None:
    breaker = CircuitBreaker()
    breaker.begin(10.0)
    breaker.succeeded(11.0, begun=10.0)
    assert not breaker.told_open(12.0, age=2.0) and breaker.admits(12.0)
    assert breaker.told_open(12.0, age=0.5)


def test_a_liar_is_believed_ever_less() -> None:
    """Ten words a second for two hours that a healthy target is down, and a request each second."""
    breaker, passed_over, believed = CircuitBreaker(), 0, 0
    for tick in range(72_000):
        now = tick / 10
        believed += breaker.told_open(now, age=0.0)
        if tick % 10 == 0:
            if breaker.admits(now):
                breaker.begin(now)
                breaker.succeeded(now, begun=now)
            else:
                passed_over += 1
    assert 10 < believed < 25 and passed_over < 120  # of 7,200


@given(st.lists(STEPS, max_size=40))
def test_no_word_closes_it_or_keeps_it_open(steps: list[Step]) -> None:
    """A word that opens nothing changes nothing, and one that opens does so for a pause, after which a probe goes."""
    breaker, now = CircuitBreaker(), 0.0
    for step in steps:
        now += step[1]
        before, was_open, admitted = state(breaker), breaker.is_open, breaker.admits(now)
        if step[0] == "told":
            opened = breaker.told_open(now, age=step[2])
            assert breaker.is_open or not was_open
            if not opened:
                assert state(breaker) == before and breaker.admits(now) == admitted
            else:
                assert not was_open and breaker.admits(now + OPEN_SECONDS)
        else:
            take(breaker, step, now)


@given(st.lists(STEPS, max_size=40))
def test_without_words_it_is_what_it_was(steps: list[Step]) -> None:
    """Words that were all contradicted leave no trace but in what is believed."""
    one, two, now = CircuitBreaker(), CircuitBreaker(), 0.0
    for step in steps:
        now += step[1]
        if step[0] != "told":
            take(one, step, now)
            take(two, step, now)
            if step[0] == "asked":
                assert not one.told_open(now, age=1.0)
            assert (one.is_open, one.admits(now), one.openings) == (two.is_open, two.admits(now), two.openings)
