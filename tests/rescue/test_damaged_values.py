"""Values that lost a letter or a mark are no values: a word of JSON that is misspelt, a key that stands twice in one,
a text that took the next key."""

from __future__ import annotations

from for_each import for_each
from rescue_forms import FORMS, Form
from test_written_calls import delivered, play

IN_TAGS = [form for form in FORMS if form.closes == "tag" or form.family in ("gemma", "gemma-bare")]


@for_each("form", IN_TAGS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_misspelt_word_of_json_is_no_value(form: Form) -> None:
    text = form.write([("run_command", {"command": "ls", "dry_run": True})]).text()
    before, _, behind = text.rpartition("true")
    for word in ("trrue", "flase", "Ture", "tru", "nul"):
        reply = play(f"{before}{word}{behind}", "stop", len(text))
        assert not delivered(reply), (word, text)
    assert delivered(play(f"{before}TRUE{behind}", "stop", 1))[0][1]["dry_run"] is True


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_key_that_is_told_twice_in_one_is_damaged(form: Form) -> None:
    for arguments, runs in (({"dry_rundry_run": True}, False), ({"dry_run": True, "dry_rundry_run": True}, True)):
        text = form.write([("run_command", {"command": "ls", **arguments})]).text()
        assert bool(delivered(play(text, "stop", len(text)))) is runs, text


@for_each("form", [form for form in FORMS if form.trims], ids=lambda form: f"{form.family}: {form.name}")
def test_a_line_end_alone_is_of_its_value(form: Form) -> None:
    for value, wanted in (
        ("\nls", "\nls"),
        ("ls\n", "ls\n"),
        ("\n\nls", "\n\nls"),
        ("\nls\n", "ls"),
        ("\n\nls\n", "\nls"),
        ("\r\nls\r\n", "ls"),
    ):
        text = form.write([("run_command", {"command": value, "timeout": 5})]).text()
        for size in (1, len(text)):
            assert delivered(play(text, "stop", size)) == [("run_command", {"command": wanted, "timeout": 5})], text


def test_a_text_takes_no_key_whose_marks_were_lost() -> None:
    whole = "<|python_start|>[write_file(path='why', content='b')]<|python_end|>"
    for lost in ("why'content'b", "why'content='b", "why',content'b", "why' content'b", "why'content'='b"):
        text = whole.replace("why', content='b", lost)
        for size in (1, len(text)):
            reply = play(text, "stop", size)
            assert not delivered(reply) and reply.failed_calls, text
    text = whole.replace("why", "rock'n'roll and Martha's")
    assert delivered(play(text, "stop", 1)) == [("write_file", {"path": "rock'n'roll and Martha's", "content": "b"})]
