"""What an admin key may give is never more than what it has."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.gateway.administration.admin_keys import Granter, is_within
from dragoman.ledger.keys import VirtualKey
from profiles import IS_SOAK

NAMES = ["".join(letters) for size in range(5) for letters in product("ab/[", repeat=size)]
PATTERNS = st.text(alphabet="ab/*?[]!-", max_size=5)


@settings(max_examples=10_000 if IS_SOAK else 300)
@given(PATTERNS, PATTERNS)
def test_what_is_within_matches_no_more(pattern: str, bound: str) -> None:
    if is_within(pattern, bound):
        assert not [name for name in NAMES if fnmatchcase(name, pattern) and not fnmatchcase(name, bound)]


def test_usual_patterns_are_within() -> None:
    within = [("ollama/granite4", "ollama/*"), ("ollama/gr*", "ollama/*"), ("x", "x"), ("a*b?", "*"), ("a[b]", "a[b]")]
    beyond = [("*", "ollama/*"), ("ollama*", "ollama/*"), ("openai/x", "ollama/*"), ("a?", "a"), ("", "a*")]
    assert [is_within(*pair) for pair in within + beyond] == [True] * len(within) + [False] * len(beyond)


@given(st.lists(PATTERNS, max_size=3), st.lists(PATTERNS, max_size=3), st.sampled_from(["", "a", "b"]))
def test_a_key_without_excess_permits_what_its_granter_may(bounds: list[str], models: list[str], team: str) -> None:
    granter = Granter("g", frozenset({"keys"}), "a", tuple(bounds), ())
    key = VirtualKey(name="k", team=team, models=tuple(models), routes=())
    if not granter.excess(key):
        assert team == "a"
        permitted = [name for name in NAMES if "/" in name and key.permits(name)]
        assert all(any(fnmatchcase(name, bound) for bound in bounds) for name in permitted)
