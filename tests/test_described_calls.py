"""A whole message that shows how a tool is called, its declaration or placeholders in place of values, is no call; one
with values is, though they look alike."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dragoman import _json
from dragoman.types import Tool
from rescue_forms import FORMS, Form
from test_written_calls import delivered, exact, play_with

FORMS_OF_MESSAGES = [form for form in FORMS if form.where == "message"]
TYPES = ("string", "number", "integer", "boolean", "array", "object")
#: Schemas of members, each with values that fit.
MEMBERS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "city": ({"type": "string", "description": "The city's name."}, ("Oslo", "a string", "<b>x</b>", "strings", "<p>")),
    "days": ({"type": "integer", "description": "How many."}, (3, 0)),
    "tags": ({"type": "array", "items": {"type": "string"}}, (["a", "string"], ["<city> is wet"])),
    "kind": ({"type": "string", "enum": ["string", "number"]}, ("string", "number")),
    "any": ({}, ({"type": "car"}, {"type": "string", "from": 1}, "x", 7)),
    "filter": (
        {"type": "object", "properties": {"type": {"type": "string"}, "to": {"type": "integer"}}},
        ({"type": "car", "to": 1}, {"to": 2}),
    ),
}


def tool_of(draw: random.Random) -> tuple[Tool, dict[str, Any]]:
    names = draw.sample(list(MEMBERS), draw.randint(1, 4))
    schema = {"type": "object", "properties": {name: MEMBERS[name][0] for name in names}}
    if draw.random() < 0.5:
        schema["required"] = names[:1]
    return Tool("get_weather", "The weather.", _json.raw(schema)), schema


def described(draw: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that give no value. What does not fit the schema is no call for that reason; both are text."""
    properties = schema["properties"]

    def word(name: str) -> Any:
        ways: list[Any] = [draw.choice(TYPES), f"<{name}>", f"<the {name}>", "...", f"{{{name}}}", "<string>"]
        if name == "kind":
            ways = ["<kind>", "…"]
        elif described := properties[name].get("description"):
            ways.append(described)
        if name == "any":
            ways += [{"type": "string"}, {"type": ["number", "null"], "description": "How many."}]
        if name == "tags":
            ways = [["string"], "array", ["..."]]
        if name == "filter":
            ways = [{"type": "string", "to": "integer"}, {"type": "<type>"}, "object"]
        return draw.choice(ways)

    return draw.choice((
        {name: word(name) for name in properties},
        {name: word(name) for name in properties},
        schema,
        {"type": "object", "properties": properties, "required": []},
        {"properties": properties},
    ))  # fmt: skip


@pytest.mark.parametrize("form", FORMS_OF_MESSAGES, ids=lambda form: f"{form.family}: {form.name}")
def test_a_description_is_no_call(form: Form):
    draw = random.Random(form.name)
    for _ in range(60):
        tool, schema = tool_of(draw)
        text = form.write([(tool.name, described(draw, schema))]).text()
        for size in (len(text), 5):
            reply = play_with([tool], text, "stop", size)
            assert (reply.tool_calls, reply.failed_calls) == ([], ()), text
            assert reply.text == text


@pytest.mark.parametrize("form", FORMS_OF_MESSAGES, ids=lambda form: f"{form.family}: {form.name}")
def test_one_value_makes_a_call(form: Form):
    draw = random.Random(form.name)
    for _ in range(60):
        tool, schema = tool_of(draw)
        arguments = {name: draw.choice(MEMBERS[name][1]) for name in schema["properties"]}
        text = form.write([(tool.name, arguments)]).text()
        if any(bad in json.dumps(arguments) for bad in form.never):
            continue
        reply = play_with([tool], text, "stop", len(text))
        assert exact(delivered(reply)) == exact([(tool.name, arguments)]), text


def test_a_tool_that_takes_types_is_called():
    """`type` with the values that it may have is a value; without these it has two readings."""
    declared = {"type": "object", "properties": {"type": {"enum": ["string", "object"]}, "properties": {}}}
    tool = Tool("define", "", _json.raw(declared))
    for arguments in ({"type": "object", "properties": {"a": "b"}}, {"type": "string"}):
        text = json.dumps({"name": "define", "parameters": arguments})
        assert delivered(play_with([tool], text, "stop", len(text))) == [("define", arguments)]


@pytest.mark.parametrize("key", ["parameters", "arguments", "input_schema"])
def test_the_declaration_of_a_tool_is_no_call(key: str):
    tool, schema = tool_of(random.Random(7))
    function = {"name": tool.name, "description": tool.description, key: schema}
    for shown in (function, {"type": "function", "function": function}, [function], {"name": tool.name, key: schema}):
        for text in (json.dumps(shown), json.dumps(shown, indent=2), f"```json\n{json.dumps(shown)}\n```"):
            reply = play_with([tool], text, "stop", 9)
            assert (reply.tool_calls, reply.failed_calls, reply.text) == ([], (), text)
