"""A text between tags of a type that is written with subschemas, as `str | None` is by pydantic: it is told as it
stands, whatever JSON it holds."""

from __future__ import annotations

from typing import Any

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_written_calls import delivered, exact, play_with

TEXT: dict[str, Any] = {"type": "string"}
NULL: dict[str, Any] = {"type": "null"}
OPTIONAL: dict[str, dict[str, Any]] = {
    "anyOf": {"anyOf": [TEXT, NULL], "default": None},
    "oneOf": {"oneOf": [NULL, TEXT]},
    "allOf": {"allOf": [TEXT]},
    "a reference": {"anyOf": [{"$ref": "#/$defs/S"}, NULL]},
    "one within another": {"anyOf": [{"oneOf": [TEXT, NULL]}, {"allOf": [{"$ref": "#/$defs/S"}]}]},
    "types": {"type": ["string", "null"]},
    "nullable": {"type": "string", "nullable": True},
}
VALUES = ('{"a": 1}', "[1]", '"q"', "5", "true", " x ", "    indented first", "line\n    indented", "a\r\nb", "-x\t")
TAGGED = [form for form in FORMS if form.closes == "tag"]
IDS = [f"{form.family}: {form.name}" for form in TAGGED]


def tool(content: dict[str, Any]) -> Tool:
    properties = {"path": TEXT, "content": content}
    schema = {"type": "object", "$defs": {"S": TEXT}, "properties": properties, "required": ["path"]}
    return Tool("put", "", _json.raw(schema))


def read(form: Form, content: dict[str, Any], value: Any, size: int = 0) -> list[str]:
    text = form.write([("put", {"path": "a", "content": value})]).text()
    return exact(delivered(play_with((tool(content),), text, "stop", size or len(text))))


@for_each("form", TAGGED, ids=IDS)
def test_an_optional_text_is_told_as_it_stands(form: Form):
    for number, (how, content) in enumerate(OPTIONAL.items(), TAGGED.index(form)):
        for value in VALUES if IS_SOAK else VALUES[number % 2 :: 2]:
            for size in (0, *some([7], f"{form.name} {how} {value}", 3)):
                assert read(form, content, value, size) == exact([("put", {"path": "a", "content": value})]), how


@for_each("form", TAGGED, ids=IDS)
@for_each("value", [["a", "b"], 5, " x ", "a: b\n"])
def test_a_value_of_another_type_is_read_where_the_schema_takes_it(form: Form, value: Any):
    content = {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "integer"}]}
    assert read(form, content, value) == exact([("put", {"path": "a", "content": value})])


@for_each("form", TAGGED, ids=IDS)
def test_one_of_the_values_that_are_written_down_has_no_blanks_around_it(form: Form):
    content = {"anyOf": [{"enum": ["fast", "5"], "type": "string"}, NULL]}
    for value in ("fast", "5"):
        assert read(form, content, value) == exact([("put", {"path": "a", "content": value})])


@for_each("form", TAGGED, ids=IDS)
def test_a_list_that_does_not_fit_is_the_text_that_stands_there(form: Form):
    content = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
    for value in ("[1, 2]", '[{"a": 1}]', ["a", "b"]):
        assert read(form, content, value) == exact([("put", {"path": "a", "content": value})])


@for_each("form", TAGGED, ids=IDS)
def test_nothing_between_the_tags_of_a_list_is_an_empty_one(form: Form):
    """Nothing else can be meant; where a text is taken too, it is the empty text."""
    for content, value in (
        ({"type": "array", "items": TEXT}, []),
        ({"type": "object"}, {}),
        ({"type": ["string", "array"]}, ""),
        (OPTIONAL["anyOf"], ""),
    ):
        if form.family in ("k2-horizon", "kimi-k3") or 'string="' in form.write([("put", {"path": "a"})]).text():
            continue  # its tags tell the type
        text = form.write([("put", {"path": "a", "content": ""})]).text()
        told = play_with((tool(content),), text, "stop", len(text))
        assert exact(delivered(told)) == exact([("put", {"path": "a", "content": value})]), text
