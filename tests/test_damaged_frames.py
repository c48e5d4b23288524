"""A call in the value of another one whose own markup is damaged: it is never run, however the text comes.

Each form stands in a share of the others; in `make soak` each stands in all.
"""

from __future__ import annotations

import json
import random

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import IS_SOAK, one
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, play_with

PING = Tool("ping", "", _json.raw({"type": "object", "properties": {}}))
OFFERED = (*TOOLS, PING)
#: Forms whose values stand in tags that no call begins with.
OUTER = [form for form in FORMS if form.closes == "tag" and form.never and form.where == "anywhere"]
INNER = [form.write([("ping", {})]).text() for form in FORMS if form.where != "message"] + ["[TOOL_CALLS]ping[ARGS]{}"]
SHARE = 1 if IS_SOAK else 16
VALUE = "\0"


def damaged(form: Form, chance: random.Random) -> list[str]:
    """A call whose name, or the tag around it, is not as it should be; its value is yet to come."""
    text = form.write([("write_file", {"path": VALUE, "content": "omega"})]).text()
    at = text.index("write_file") + chance.randrange(-2, len("write_file"))
    typographic = text.replace('"', chance.choice("“”„")) if 'name="write_file"' in text else text[:at] + text[at + 1 :]
    return [typographic, text[:at] + chance.choice("“”'\"<>｜&") + text[at + 1 :], text.replace("write_", "write ")]


@for_each("form", OUTER, ids=lambda form: f"{form.family}: {form.name}")
def test_no_call_in_a_value_of_a_damaged_call_is_run(form: Form) -> None:
    chance = random.Random(form.family + form.name)
    for inner in INNER[OUTER.index(form) % SHARE :: SHARE]:
        for frame in damaged(form, chance) if not any(mark in inner for mark in form.never) else ():
            lead = chance.choice(("", "\n", "see ", "say: "))
            text = frame.replace(VALUE, lead + (json.dumps(inner)[1:-1] if f'"{VALUE}"' in frame else inner))
            whole, *others = (play_with(OFFERED, text, "stop", size) for size in (len(text), *one((1, 7), text)))
            assert ("ping", {}) not in delivered(whole), text
            for reply in others:
                assert (delivered(reply), reply.text, str(reply.error)) == (
                    delivered(whole), whole.text, str(whole.error),
                ), text  # fmt: skip


def test_a_tag_of_values_that_prose_names_refuses_no_call() -> None:
    call, tags = "[TOOL_CALLS]ping[ARGS]{}", "<function=get_time>\n<parameter=zone>\na\n</parameter>\n</function>"
    for words in (
        "Use `<parameter=x>` here.\n", 'The tag "<parameter" is none.\n', "It ends with </parameter>.\n",
        "I look at the <parameter> element of pom.xml first.\n", "Is <parameter name='x'> there? ",
        "In src/my_app/pom.xml the <parameter> element is missing.\n", "a = [1] {x} and <param> of A & B: ",
        "See a/b for <param>.\n", "See a/b (not for <parameter>) there: ", "See a_b, <parameter>, <param>:\n",
    ):  # fmt: skip
        for size in (1, 999):
            assert delivered(play_with(OFFERED, words + call, "stop", size)) == [("ping", {})], words
            if "<param> " in words or "<parameter> " in words:  # tells nothing of calls of its own form either
                assert delivered(play_with(OFFERED, words + tags, "stop", size)) == [("get_time", {"zone": "a"})], words


def test_a_tag_that_may_begin_a_value_refuses_the_call_behind_it() -> None:
    for before in ("a_b <parameter> \n", "a_b <parameter>x ", "a_b <parameter> <name>x</name> ", "\n<parameter> x "):
        for size in (1, 999):
            assert delivered(play_with(OFFERED, before + "[TOOL_CALLS]ping[ARGS]{}", "stop", size)) == [], before
