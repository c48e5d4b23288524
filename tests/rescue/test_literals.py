"""Which of several markers begins a text, and what a call in a text costs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.quoted import first_of
from for_each import for_each
from growth import steps_of
from places import PLACES

few = st.text("<a/>", max_size=5)
#: Beginnings of one long text, and of another one that differs late.
long = st.builds(lambda size, end: ("</" + "a" * 600)[:size] + end, st.integers(0, 600), few)


@given(few | long, st.lists((few | long).filter(bool), max_size=6))
def test_the_longest_that_has_come_is_found_and_a_longer_one_waited_for(text: str, literals: list[str]) -> None:
    found, is_sure = first_of(text, tuple(literals))
    assert found == max(("", *filter(text.startswith, literals)), key=len)
    assert is_sure == (not any(one != text and one.startswith(text) for one in literals))


@for_each("family", [family.name for family in FAMILIES])
def test_no_family_costs_more_lines_a_call_for_all_that_may_stand_behind_it(family: str) -> None:
    """Hermes' calls may have some fifteen tags and tokens behind them: each was looked for thirty times."""
    run, call = PLACES[f"family {family}"], '<tool_call>{"name":"f","arguments":{}}</tool_call>'
    run("<")
    assert steps_of(lambda: run(call * 20)) < 20 * 90 * len(call)
