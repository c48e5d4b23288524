"""A closing tag of a value that lacks a character: the value never holds what is left of it."""

from __future__ import annotations

import pytest

from profiles import some
from rescue_forms import FORMS, Form
from test_written_calls import delivered, play

MEANT = ("write_file", {"path": "alpha", "content": "omega"})
TAGGED = [form for form in FORMS if form.closes == "tag" and form.never]


@pytest.mark.parametrize("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_no_value_holds_what_is_left_of_its_closing_tag(form: Form):
    text = form.write([MEANT]).text()
    begin, end = text.index("alpha") + len("alpha"), text.rindex("content", 0, text.index("omega"))
    for place in range(begin, end):
        broken = text[:place] + text[place + 1 :]
        for calls in (delivered(play(broken, "stop", size)) for size in (*some([1], broken, 1), len(text))):
            assert all(call[1].get("path", "").strip() == "alpha" for call in calls), (place, calls)
