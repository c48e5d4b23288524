"""Calls whose JSON has typographic quotation marks: read where they can be read in one way, never altered."""

from __future__ import annotations

import random
import re

from for_each import for_each
from rescue_forms import FORMS, Form
from test_written_calls import arguments, delivered, exact, play

PAIRS = ("“”", "‘’", "«»", "„“", "„”")
CALL = ("write_file", {"path": "a b.txt", "content": "one, two: 3", "tags": ["x y", "z"], "options": {"a": 1}})
JSON = [
    form
    for form in FORMS
    if form.closes == "body" and '"zone": "a"' in form.write([("get_time", {"zone": "a"})]).text()
]
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def written(form: Form, call: tuple[str, dict[str, object]], pair: str) -> str:
    """The call's object with other quotation marks."""
    text = form.write([call])
    ((body, closing),) = text.calls
    begin = body.index("{", 0 if '"name"' in body or '"tool_name"' in body else body.index(call[0]))
    return text.lead + body[:begin] + TEXT.sub(rf"{pair[0]}\1{pair[1]}", body[begin:]) + closing + text.tail


@for_each("form", JSON, ids=lambda form: f"{form.family}: {form.name}")
@for_each("pair", PAIRS)
def test_plain_texts_in_them_are_read(form: Form, pair: str):
    if form.family == "apertus":
        return  # the name is a key of its object
    text = written(form, CALL, pair)
    for size in (1, len(text)):
        assert exact(delivered(play(text, "stop", size))) == exact([CALL]), text


@for_each("form", JSON, ids=lambda form: f"{form.family}: {form.name}")
def test_hard_texts_in_them_are_never_altered(form: Form):
    draw = random.Random(form.family + form.name)
    for _ in range(20):
        call = ("write_file", arguments(draw, form, "write_file", is_plain=False))
        if re.search("[“”„‘’«»]", str(call)) or len(str(call)) > 1000:
            continue
        text = written(form, call, draw.choice(PAIRS))
        assert exact(delivered(play(text, "stop", len(text)))) in ([], exact([call])), text
