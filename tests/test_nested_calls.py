"""A file that tells how calls are written, written with a call: its calls are never run, and the file is never cut.

Each form stands in a twelfth of the others, and one of ten of these texts is read character by character as well; in
`make soak` each stands in all, and all are.
"""

from __future__ import annotations

import json
import random

from for_each import for_each
from profiles import IS_SOAK
from rescue_cases import outcome, play_text
from rescue_forms import FORMS, Form

MESSAGES = [form for form in FORMS if form.where == "message"]
OUTER = [form for form in FORMS if form.where == "anywhere"]
IDS = [f"{form.family}/{form.name}" for form in OUTER]
#: One of so many forms stands in another, others in the next one.
SHARE = 1 if IS_SOAK else 12
#: What nobody asked for.
INNER = ("search", {"query": "everything"})


def examples(form: Form) -> str:
    one = form.write([INNER]).text()
    return f"# Examples\n{one}\nand\n{one}\nThat is all.\n"


@for_each("outer", OUTER, ids=IDS)
def test_calls_inside_a_value_are_part_of_it_or_the_call_is_refused(outer: Form):
    for number, inner in list(enumerate(FORMS))[OUTER.index(outer) % SHARE :: SHARE]:
        arguments = {"path": "a.md", "content": examples(inner)}
        text = f"Writing.\n{outer.write([('write_file', arguments)]).text()}"
        for pieces in ([text], list(text)) if IS_SOAK or number % 10 == 0 else ([text],):
            calls, failed, _ = outcome(play_text(pieces))
            told = f"{outer.family} around {inner.family}/{inner.name}: {json.dumps(calls)}"
            assert not [name for name, _ in calls if name != "write_file"], told
            if calls:
                content = dict(calls)["write_file"]["content"]  # type: ignore[index]
                assert content.strip() == arguments["content"].strip(), told
            else:
                assert failed, told


@for_each("outer", MESSAGES, ids=lambda form: f"{form.family}/{form.name}")
def test_no_call_inside_a_value_is_run_where_the_message_is_none(outer: Form):
    """Words follow it, it is cut, its arguments do not fit, or it calls another tool in code: it stays text whole."""
    chance = random.Random(outer.family + outer.name)
    for inner in chance.sample(FORMS, len(FORMS) if IS_SOAK else 4):
        value = f"x {inner.write([INNER]).text()} y"
        text = outer.write([("write_file", {"path": "a.md", "content": value})]).text()
        lacking = outer.write([("write_file", {"content": value})]).text()
        others = outer.write([("search", {"query": "a"}), ("nosuch", {"text": value})][: outer.most]).text()
        for told in (f"{text}\nThat is it.", text[: chance.randrange(len(text))], lacking, others):
            for pieces in ([told], list(told)):
                calls, _, _ = outcome(play_text(pieces))
                assert INNER not in calls, told
