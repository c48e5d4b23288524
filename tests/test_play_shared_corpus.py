"""The comparison of a corpus run with the list of what is pending."""

from play_shared_corpus import load_pending, parse_outcomes, render_differences

REPORT = """\
pass good (calls)
FAIL bad (calls): text 'a' instead of 'b'
calls: 1 of 2
1 of 2 cases pass
"""


def test_outcomes_are_read_from_the_report() -> None:
    assert parse_outcomes(REPORT) == {"good": True, "bad": False}


def test_a_pending_list_may_hold_comments_and_blank_lines() -> None:
    assert load_pending("# text rescue\nbad  # why\n\n") == {"bad"}


def test_a_foreseen_failure_is_no_difference() -> None:
    assert render_differences(parse_outcomes(REPORT), {"bad"}, REPORT) == []


def test_an_unforeseen_failure_is_told_with_its_reason() -> None:
    assert render_differences(parse_outcomes(REPORT), set(), REPORT) == ["FAIL bad (calls): text 'a' instead of 'b'"]


def test_a_pending_case_that_passes_or_is_unknown_must_leave_the_list() -> None:
    problems = render_differences(parse_outcomes(REPORT), {"bad", "good", "gone"}, REPORT)
    assert [problem.rsplit(": ", 1) for problem in problems] == [
        ["passes, remove it from shared_corpus_pending.txt", "good"],
        ["no such case, remove it from shared_corpus_pending.txt", "gone"],
    ]
