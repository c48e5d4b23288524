"""A call that was broken off, with another one behind it: their parts are never joined to a third that nobody made.

Names, keys, types and attributes hold no markup, whatever the family, and no line break, and are of bounded length. And
what comes of a text does not depend on how it was cut into deltas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from dragoman.events import Reply
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Calls, Form
from test_written_calls import delivered, exact, is_subsequence, play

FIRST = ("write_file", {"path": "/etc/passwd", "content": "AAA"})
SECOND = ("run_command", {"command": "BBB", "timeout": 5})
#: Lengths around which something is decided: of names, heads, waiting calls and white space.
LIMITS = (64, 150, 200, 400, 1000)
#: One cut of so many in `make test`.
STEP = 1 if IS_SOAK else 17
IDS = [f"{form.family}/{form.name}" for form in FORMS]


def outcome(reply: Reply) -> tuple[Calls, str, list[tuple[str, str]], bool]:
    return delivered(reply), reply.text, [(call.name, call.kind) for call in reply.failed_calls], reply.error is None


def assert_not_joined(first: Form, second: Form, step: int) -> int:
    """Cut the first call at each of these characters; gives how often."""
    written, whole, played = first.write([FIRST]).text(), second.write([SECOND]).text(), 0
    wanted = exact([FIRST, SECOND])
    for place in range(3, len(written), step):
        for between in ("", "\n"):
            text = written[:place] + between + whole
            seen = exact(delivered(play(text, "stop", len(text))))
            assert is_subsequence(seen, wanted), f"joined: {text!r}: {seen}"
            played += 1
    return played


@for_each("form", FORMS, ids=IDS)
def test_a_cut_call_and_another_of_its_form(form: Form):
    assert assert_not_joined(form, form, STEP) > 4


@for_each("form", FORMS, ids=IDS)
def test_a_cut_call_and_one_in_bare_json(form: Form):
    """It is not the arguments of the first one, wherever that was cut."""
    written = form.write([FIRST]).text()
    whole = json.dumps({"name": SECOND[0], "arguments": SECOND[1]})
    for place in range(3, len(written) + 1, STEP):
        for between in ("", "\n"):
            text = written[:place] + between + whole
            seen = exact(delivered(play(text, "stop", len(text))))
            assert is_subsequence(seen, exact([FIRST, SECOND])), f"joined: {text!r}: {seen}"


def assert_same_in_any_deltas(text: str, sizes: Iterable[int]) -> None:
    whole = outcome(play(text, "stop", len(text)))
    for size in sizes:
        assert outcome(play(text, "stop", size)) == whole, f"in deltas of {size}: {text!r}"


@for_each("form", FORMS, ids=IDS)
def test_a_cut_call_and_one_of_another_family_in_any_deltas(form: Form):
    """What stands between them brings each limit about."""
    written, step = form.write([FIRST]).text(), 2 if IS_SOAK else 67
    start = FORMS.index(form)
    for number, place in enumerate(range(3 + start % step, len(written), step)):
        other = FORMS[(start + 7 * number + 1) % len(FORMS)].write([SECOND]).text()
        limit = LIMITS[number % len(LIMITS)]
        for length in (limit - len(other), limit - 1, limit, limit + 1):
            filler = ("x" if number % 2 else " ") * max(0, length)
            text = written[:place] + filler + other
            assert_same_in_any_deltas(text, some((1, 7, 61), text, 2))
