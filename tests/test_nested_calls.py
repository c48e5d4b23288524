"""A file that tells how calls are written, written with a call: its calls are never run, and the file is never cut.

Each form stands in each other one. `make test` reads one of thirty-two of these texts character by character as well,
`make soak` all.
"""

from __future__ import annotations

import json

import pytest

from rescue_cases import outcome, play_text
from rescue_forms import FORMS, Form

OUTER = [form for form in FORMS if form.where == "anywhere"]
IDS = [f"{form.family}/{form.name}" for form in OUTER]
#: What nobody asked for.
INNER = ("search", {"query": "everything"})


def examples(form: Form) -> str:
    one = form.write([INNER]).text()
    return f"# Examples\n{one}\nand\n{one}\nThat is all.\n"


@pytest.mark.parametrize("step", [pytest.param(32, id="some"), pytest.param(1, marks=pytest.mark.soak, id="all")])
@pytest.mark.parametrize("outer", OUTER, ids=IDS)
def test_calls_inside_a_value_are_part_of_it_or_the_call_is_refused(outer: Form, step: int):
    for number, inner in enumerate(FORMS, OUTER.index(outer)):
        arguments = {"path": "a.md", "content": examples(inner)}
        text = f"Writing.\n{outer.write([('write_file', arguments)]).text()}"
        for pieces in ([text], list(text)) if number % step == 0 else ([text],):
            calls, failed, _ = outcome(play_text(pieces))
            told = f"{outer.family} around {inner.family}/{inner.name}: {json.dumps(calls)}"
            assert not [name for name, _ in calls if name != "write_file"], told
            if calls:
                content = dict(calls)["write_file"]["content"]  # type: ignore[index]
                assert content.strip() == arguments["content"].strip(), told
            else:
                assert failed, told
