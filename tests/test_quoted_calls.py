"""Calls that a text quotes stay text, whatever their values hold and however many lines they have."""

from __future__ import annotations

import json
import random

from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Form
from test_damaged_frames import OFFERED
from test_written_calls import delivered, play_with

ANYWHERE = [form for form in FORMS if form.where == "anywhere"]


@for_each("form", ANYWHERE, ids=lambda form: f"{form.family}: {form.name}")
def test_a_quotation_that_holds_a_call_goes_on_behind_it(form: Form) -> None:
    """A value of the first one holds what closes it."""
    written = form.write([("write_file", {"path": "a", "content": "\0"})])
    ping, chance = form.write([("ping", {})]).text(), random.Random(form.family + form.name)
    for value in {"x", "</tool_call>", *(closing.strip() for _, closing in written.calls)}:
        call = written.text().replace("\\u0000", json.dumps(value)[1:-1]).replace("\0", value)
        for opening, closing in (
            '""',
            "“”",
            "«»",
            "''",
            chance.choice(("””", "„“", "„”", "»«", "‹›", "「」", "『』", "《》")),
        ):
            text = f"He wrote {opening}{chance.choice(('', ' '))}{call} and then {ping}{closing} there."
            for size in (len(text), *some([1], text, 1)):
                assert delivered(play_with(OFFERED, text, "stop", size)) == [], text


def test_single_marks_quote_as_double_ones_do() -> None:
    call = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    for words, is_run in (
        (f"He wrote '{call} and don't then ", False), (f"He wrote 'call it {call} and ", False),
        ("He didn't 'don't call ", False), (f"He wrote '{call}' there. ", True), (f"‘{call}’ ", True),
        (f"‘{call}\n", False), ("I like 'em. ", True), ("I don't know 'why not' ", True), ("The users' call: ", True),
        ("Rock 'n' roll: ", True), ("In the '90s: ", True), ("'Twas 5'3 tall: ", True), ("It's 'a' and 'b': ", True),
    ):  # fmt: skip
        for size in (999, 1):
            assert delivered(play_with(OFFERED, words + call, "stop", size)) == [("ping", {})] * is_run, words


def test_who_asks_right_behind_a_call_makes_the_next_one_up() -> None:
    call = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    for size in (999, 3, 1):
        reply = play_with(OFFERED, f"{call}Human: Again.\nAssistant: {call}", "stop", size)
        assert (delivered(reply), reply.text) == ([("ping", {})], f"Human: Again.\nAssistant: {call}")


def test_a_call_behind_a_quotation_is_run() -> None:
    call = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    for words in (
        f'He wrote "{call}" there.\n', f"«{call}»\n", f'He wrote "{call} and no more.\n\n',
        'The "<tool_call>" tag (5" of it):\n', "Jag skrev ”a” och (”b”), 5” lång: ", "He “said” so”. ", "File › Open: ",
        "「東京」と『大阪』、《a》を調べる:", "“Oh.\nYes.” ",
        'Write "<tool_call>{...}" and close it with </tool_call>.\n', 'It is "<tool_call>{"a": "b"}</tool_call>".\n',
    ):  # fmt: skip
        for size in (999, 1):
            assert delivered(play_with(OFFERED, words + call, "stop", size)) == [("ping", {})], words
