"""What a run over the recordings excuses, and what it does not."""

from typing import Any

from play_shared_recordings import Rules, Tally

OWN: Rules = {
    "b": [{"match": "usage", "ids": ["one", "two"], "why": "w"}],
    "c ": [{"match": "", "ids": ["one"], "why": "v"}],
}


def is_expected(rules: Rules, id: str, check: str, problems: list[Any]) -> bool:
    """As the recordings' own: a list for a check, or for all that begin with its name."""
    found = [rule for name, each in rules.items() if check.startswith(name) for rule in each]
    return all(
        any(("ids" not in rule or id in rule["ids"]) and rule["match"] in str(problem) for rule in found)
        for problem in problems
    )


def tally() -> Tally:
    return Tally({"b": [{"match": "policy", "why": "theirs"}]}, OWN, is_expected)


def test_what_nobody_excuses_differs() -> None:
    found = tally()
    found.add("b", {"id": "one"}, [("text", "a", "b")])
    found.add("b", {"id": "three"}, [("usage", 1, 2)])
    found.add("b", {"id": "four"}, [])
    assert [id for id, _ in found.differ["b"]] == ["one", "three"]
    assert found.ran["b"] == 3
    assert not found.excused["b"]


def test_one_excuse_does_not_cover_another_problem_of_the_same_recording() -> None:
    found = tally()
    found.add("b", {"id": "one"}, [("usage", 1, 2), ("calls", 1, 0)])
    assert [id for id, _ in found.differ["b"]] == ["one"]


def test_both_lists_excuse() -> None:
    found = tally()
    found.add("b", {"id": "one"}, [("usage", 1, 2)])
    found.add("b", {"id": "nine"}, [("policy", 1, 2)])
    found.add("c a -> b", {"id": "one"}, [("reason", 1, 2)])
    assert not found.differ
    assert (found.excused["b"], found.excused["c a -> b"]) == (2, 1)


def test_an_entry_that_excuses_nothing_must_leave_the_list() -> None:
    found = tally()
    assert len(found.unused()) == 3
    found.add("b", {"id": "one"}, [("usage", 1, 2)])
    found.add("b", {"id": "two"}, [("text", 1, 2)])
    found.add("c a -> b", {"id": "one"}, [("reason", 1, 2)])
    assert found.unused() == ["excuses nothing, remove it from shared_recordings_excused.json: b two"]
