"""One test over a table of cases: every case is tried, and each that fails is named."""

from __future__ import annotations

import inspect

import pytest

from for_each import for_each


def test_every_case_is_tried_and_each_that_fails_is_named():
    tried = []

    @for_each("word", ["a", "b", "c"], ids=lambda word: f"the word {word}")
    @for_each(("one", "other"), [(1, 1), (1, 2), (2, 2), (3, 1)])
    def compare(one: int, other: int, word: str, fixture: str) -> None:
        tried.append((word, one, other, fixture))
        assert one == other or word != "b", "they differ"
        if word == "c":
            pytest.fail("it is c")

    assert list(inspect.signature(compare).parameters) == ["fixture"]
    with pytest.raises(BaseExceptionGroup) as raised:
        compare(fixture="f")
    assert tried == [(word, *pair, "f") for word in "abc" for pair in ((1, 1), (1, 2), (2, 2), (3, 1))]
    assert "2 of 3 cases of compare fail: the word b, the word c" in str(raised.value)
    of_b, of_c = raised.value.exceptions
    assert "2 of 4 cases of compare fail: 1-2, 3-1" in str(of_b) and "4 of 4" in str(of_c)
    assert of_b.__notes__ == ["compare: case the word b"]
    assert [problem.__notes__ for problem in of_b.exceptions] == [["compare: case 1-2"], ["compare: case 3-1"]]
    assert all("they differ" in str(problem) for problem in of_b.exceptions)


def test_a_table_is_not_empty_and_has_the_tests_own_keys():
    with pytest.raises(AssertionError):
        for_each("word", [])(lambda word: None)()
    with pytest.raises(AssertionError):
        for_each(("one", "other"), [(1, 2), (1,)])(lambda one, other: None)()
    with pytest.raises(AssertionError):
        for_each("word", ["a"])(lambda name: None)


def test_marks_stay():
    @for_each("word", ["a"])
    @pytest.mark.soak
    def marked(word: str) -> None: ...

    assert [mark.name for mark in marked.pytestmark] == ["soak"]
