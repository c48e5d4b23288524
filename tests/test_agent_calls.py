"""Calls of coding agents: files that speak of thinking, templates and calls, nulls, and marks that are lost in them."""

from __future__ import annotations

import json
import random

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Form
from test_written_calls import delivered, exact, play, play_with

IDS = [f"{form.family}: {form.name}" for form in FORMS]
#: What files, commands and patterns of such agents hold.
CONTENTS = (
    "Thoughts stand in <think> and </think>.\n",
    's = re.sub(r"<think>.*?</think>", "", s)\n',
    'said = text.split("</think>")[-1]\n',
    "if '</think>' in said:\n    pass\n",
    "{{ title }}: ${HOME}, %s, {0}, <%= @name %>",
    '<Row {...props} render={(x) => <b key={x.id}>{x.name}</b>} />',
    '{"name": "run_command", "arguments": {"command": "ls"}}',
    "Call `run_command(command=\"ls\")` or:\n\n```json\n{\"command\": \"ls\"}\n```\n",
    'def f(x):\n    """Doc."""\n    return {"a": x, \'b\': [1, 2]}\n',
    "SELECT a->>'b' FROM \"T\" WHERE c = 'it''s' -- end",
    "string", "path", "example", "content", "null", "None", "true", "12", "", ".", "todo: ...", "raise E(...)",
)  # fmt: skip


@for_each("form", FORMS, ids=IDS)
def test_what_files_hold_is_delivered_as_it_is(form: Form):
    contents = [one for one in CONTENTS if not any(bad in one for bad in form.never)]
    for content in random.Random(form.name).sample(contents, 9) + list(CONTENTS[:3]):
        call = ("write_file", {"path": "docs/a.md", "content": content})
        text = form.write([call]).text()
        for size in (len(text), *some((1, 3), text, 4)):
            reply = play(text, "stop", size)
            assert (exact(delivered(reply)), reply.text.strip()) == (exact([call]), ""), (text, size)


def test_what_a_lone_closing_tag_ends_does_not_hang_on_the_cut():
    """White space of its line behind it, and an opening tag of another pair before it."""
    for text in (
        "It is in <think> and </think>.",
        "<b> [THINK] x [/THINK] y </b>",
        "In <think>, </thinking> and </think>",
    ):
        for size in (1, 2, 5, len(text)):
            reply = play(text, "stop", size)
            assert (reply.thinking, reply.text) == ("", text), size


NULLABLE = (
    {"type": ["string", "null"]},
    {"type": "string", "nullable": True},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
)


@for_each("form", [form for form in FORMS if form.closes == "tag"], ids=lambda form: form.name)
def test_null_between_tags_is_null_where_the_tool_takes_it(form: Form):
    for schema in NULLABLE:
        tool = Tool("note", "", _json.raw({"type": "object", "properties": {"of": schema, "more": schema}}))
        for value in (None, "nulls", "nul", "null and void", "x", "null.", "an\null"):
            call = ("note", {"of": value, "more": "b"})
            if form.name in ("typed", "V4", "V4.1", "GCML") and value is None:
                continue  # their tags give the type
            text = form.write([call]).text()
            for size in (len(text), *some((1, 4), text, 3)):
                assert exact(delivered(play_with([tool], text, "stop", size))) == exact([call]), (text, size)


FETCH = Tool(
    "fetch",
    "",
    _json.raw({
        "type": "object",
        "properties": {"url": {"type": "string"}, "headers": {"type": "object"}, "body": {"type": "string"}},
        "required": ["url"],
    }),
)  # fmt: skip
FETCHED = ("fetch", {"url": "http://a.example/b", "headers": {"a": "1", "b": "last"}, "body": "hello"})


@for_each("form", FORMS, ids=IDS)
def test_a_brace_that_is_missing_after_an_object_moves_no_argument_into_it(form: Form):
    text = form.write([FETCHED]).text()
    place = text.find("}", text.index("last"))
    if place < 0 or place > text.index("hello"):
        return
    torn = text[:place] + text[place + 1 :]
    for size in (1, len(torn)):
        assert delivered(play_with([FETCH], torn, "stop", size)) == [], torn
    if form.closes == "body":  # the same members where nothing is missing
        call = ("fetch", {"url": "http://a.example/b", "headers": {"a": "1", "body": "hello"}})
        whole = form.write([call]).text()
        assert exact(delivered(play_with([FETCH], whole, "stop", len(whole)))) == exact([call])


@for_each("form", FORMS, ids=IDS)
def test_two_lost_quotation_marks_leave_no_comma_in_a_value(form: Form):
    text = form.write([("run_command", {"command": "ls -la", "timeout": 5})]).text()
    torn = text.replace('ls -la", "timeout"', 'ls -la, "timeout')
    if torn == text:
        return
    for size in (1, len(torn)):
        assert delivered(play(torn, "stop", size)) == [], torn
    trailing = form.write([("run_command", {"command": "ls,", "timeout": 5})]).text()
    assert len(delivered(play(trailing, "stop", len(trailing)))) == 1


def test_a_tool_that_is_named_as_its_own_parameter_is_refused():
    text = (
        "<tool_call>\n<parameter=run_command><parameter=run_command>\n<parameter=command>\nls\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    for size in (1, len(text)):
        reply = play(text, "stop", size)
        assert delivered(reply) == [] and [call.name for call in reply.failed_calls] == ["run_command"]


def test_a_separator_that_comes_twice_is_none_of_the_value():
    form = next(form for form in FORMS if (form.family, form.name) == ("kimi-k3", "typed"))
    text = form.write([("run_command", {"command": "ls"})]).text()
    torn = text.replace("<|sep|>ls", "<|sep|><|sep|>ls")
    for size in (1, len(torn)):
        assert len(delivered(play(text, "stop", size))) == 1 and delivered(play(torn, "stop", size)) == []


def test_a_description_of_one_word_may_be_a_value():
    properties = {
        "language": {"type": "string", "description": "Python"},
        "why": {"type": "string", "description": "a b"},
    }
    tool = Tool("check", "", _json.raw({"type": "object", "properties": properties}))
    for arguments, count in (({"language": "Python"}, 1), ({"language": "Python", "why": "a b"}, 0)):
        text = json.dumps({"name": "check", "arguments": arguments})
        text = f"<tool_call>\n{text}\n</tool_call>"
        assert len(delivered(play_with([tool], text, "stop", 7))) == count
