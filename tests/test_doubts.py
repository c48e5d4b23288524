"""Two marks of a call's markup are damaged: no argument that is delivered holds the next one, and no call is delivered
without what its tool requires."""

from __future__ import annotations

import json
import random
from typing import Any

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Form
from test_written_calls import delivered, play, play_pieces

MEANT: list[tuple[str, dict[str, Any]]] = [("write_file", {"path": "alpha", "content": "omega"})]
PYTHON = [form for form in FORMS if "zone='" in form.write([("get_time", {"zone": "a"})]).text()]
TAGGED = [form for form in FORMS if form.closes == "tag" and form.never]


def ran(text: str) -> list[tuple[str, dict[str, Any]]]:
    calls = [delivered(play(text, "stop", size)) for size in (len(text), *some([1], text, 4))]
    assert calls[0] == calls[-1], text
    return calls[0]


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_no_value_holds_the_next_argument(form: Form) -> None:
    """One character is missing of what closes the first value, and one of what begins the second."""
    text = form.write(MEANT).text()
    begin, end = text.index("alpha") + len("alpha"), text.rindex("content", 0, text.index("omega"))
    chance = random.Random(form.family + form.name)
    middle = (begin + end) // 2
    for _ in range(40):
        first, second = chance.randrange(begin, middle), chance.randrange(middle, end)
        damaged = text[:first] + text[first + 1 : second] + text[second + 1 :]
        for _, arguments in ran(damaged):
            assert "omega" not in arguments.get("path", ""), (damaged, arguments)


@for_each("form", PYTHON, ids=lambda form: f"{form.family}: {form.name}")
@for_each("mark", ["", '"', "`"])
def test_no_text_grows_over_the_next_argument(form: Form, mark: str) -> None:
    """One quotation mark is missing, or another one stands in its place."""
    calls = [("write_file", {"path": "alpha", "content": "omega"}), ("get_time", {"zone": "delta"})]
    text = form.write(calls[: form.most]).text()
    for place in (at for at, character in enumerate(text) if character == "'"):
        for _, arguments in ran(text[:place] + mark + text[place + 1 :]):
            for value in arguments.values():
                assert sum(word in value for word in ("alpha", "omega", "delta")) <= 1, (place, arguments)


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_call_that_closes_before_its_arguments_has_none_to_run(form: Form) -> None:
    """What closes the call stands behind its name too."""
    written = form.write(MEANT)
    text, closing = written.text(), written.calls[0][1].strip()
    if not closing or form.where == "message":
        return
    name = text.index("write_file") + len("write_file")
    for place in range(name, text.index("path") + 1):
        for _, arguments in ran(text[:place] + closing + text[place:]):
            assert arguments, (place, text[:place] + closing + text[place:])


@for_each("behind", ['command": "a"}', '>command": "a"}', '"command": "a"}', "command: a"])
@for_each("marker", ["[TOOL_CALLS]run_command[ARGS]", "<function=run_command>"])
def test_arguments_behind_an_empty_object_are_not_left_out(marker: str, behind: str) -> None:
    assert ran(f"{marker}{{}}{behind}") == []


def test_what_a_tool_requires_may_be_missing_where_nothing_shows_more() -> None:
    assert ran("<|python_start|>[run_command()]<|python_end|>") == [("run_command", {})]
    text = '<tool_call><function=write_file><parameter=path>\n<input name="tags">\n</parameter></function></tool_call>'
    assert [name for name, _ in ran(text)] == ["write_file"]


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_arguments_in_an_argument_that_the_tool_has_not_are_not_run_as_they_stand(form: Form) -> None:
    """What the tool has stands a level or two too deep; it requires none of it."""
    twice = {"arguments": {"zone": "Rome"}}
    for key in ("arguments", "input"):
        for inner in ({"zone": "Rome", "form": 1}, '{"zone": "Rome"}', twice, json.dumps(twice)):
            assert ran(form.write([("get_time", {key: inner})]).text()) == [], key
        for inner in ("Rome", ["Rome"], [{"zone": "Rome"}], 5):  # alone under such a word: the only argument, perhaps
            assert ran(form.write([("get_time", {key: inner})]).text()) == [], (key, inner)


@for_each(
    ("arguments", "runs"),
    [
        ({"key": "path", "value": "src"}, False), ({"name": "depth", "type": "integer", "value": 3}, False),
        ({"path": {"type": "string", "value": "src"}}, False), ({"path": "a", "depth": {"value": 3}}, False),
        ({"depth": {"integer": 3}}, False), ({"args": {"key": "path", "value": "src"}}, False),
        ({"path": "key", "depth": 3}, True), ({"path": "a", "mode": "path"}, True), ({"mode": "depth"}, True),
        ({"any": {"type": "x", "value": "y"}}, True), ({"options": {"type": "x", "value": "y"}}, True),
    ],
)  # fmt: skip
def test_arguments_in_a_form_that_the_schema_does_not_have_are_refused(arguments: dict[str, Any], runs: bool) -> None:
    """Key and value as arguments, or an object of type and value where the tool has a plain type."""
    properties = {"path": {"type": "string"}, "depth": {"type": ["integer", "null"]}, "options": {"type": "object"}}
    text = f"<tool_call>{json.dumps({'name': 'ls', 'arguments': arguments})}</tool_call>"
    told: list[tuple[dict[str, Any], bool]] = [
        ({"type": "object", "properties": {**properties, "any": {}}}, runs), ({"type": "object"}, True),
        ({"type": "object", "properties": {**properties, "any": {}}, "additionalProperties": True}, runs),
    ]  # fmt: skip
    for schema, is_run in told:
        for size in (1, len(text)):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            reply = play_pieces((Tool("ls", "", _json.raw(schema)),), pieces, "stop")
            assert delivered(reply) == ([("ls", arguments)] if is_run else []), (schema, text)


@for_each("more", [{"additionalProperties": True}, {"patternProperties": {"^x-": {"type": "object"}}}])
def test_an_object_of_a_tool_that_takes_any_members_may_have_keys_of_the_tool(more: dict[str, Any]) -> None:
    """Under the words for arguments alone, and with nothing beside them, the tool's own stand one level too deep."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, **more}
    for arguments, runs in (
        ({"x-owner": {"name": "Bo"}}, True), ({"name": "a", "x-owner": {"name": "Bo"}}, True),
        ({"x-a": 1, "parameters": {"name": "Bo"}}, True), ({"arguments": {"name": "Bo"}}, False),
    ):  # fmt: skip
        text = f"<tool_call>{json.dumps({'name': 'log', 'arguments': arguments})}</tool_call>"
        reply = play_pieces((Tool("log", "", _json.raw(schema)),), [text], "stop")
        assert delivered(reply) == ([("log", arguments)] if runs else []), text
