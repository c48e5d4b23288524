"""Schemas that say the same in other words: values between tags, which have no types of their own, get the same."""

from __future__ import annotations

import json
from typing import Any

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import one as one_of
from test_written_calls import delivered, exact, play_pieces

Schema = dict[str, Any]

TEXT, INTEGER, NULL = ({"type": kind} for kind in ("string", "integer", "null"))
TEXTS: Schema = {"type": "array", "items": TEXT}
OBJECT: Schema = {"type": "object", "properties": {"n": INTEGER}}
DEFINED: Schema = {"a": INTEGER, "b": OBJECT}
#: What the argument is, in several words.
SAME: list[list[Schema]] = [
    [INTEGER, {"$ref": "#/$defs/a"}, {"type": "INTEGER"}, {"type": "int"}, {"allOf": [INTEGER]}],
    [OBJECT, {"$ref": "#/$defs/b"}, {**OBJECT, "type": "dict"}],
    [{"type": "number"}, {"type": "float"}, {"type": ["NUMBER"]}],
    [{"type": "boolean"}, {"type": "bool"}],
    [{"type": ["integer", "null"]}, {"type": "integer", "nullable": True}, {"anyOf": [NULL, INTEGER]}],
    [{"type": ["string", "null"]}, {"type": "string", "nullable": True}, {"oneOf": [TEXT, NULL]}],
    [{"type": ["string", "integer"]}, {"type": ["integer", "string"]}, {"anyOf": [TEXT, INTEGER]}],
    [{**TEXTS, "type": ["array", "string"]}, {"anyOf": [TEXT, TEXTS]}, {**TEXTS, "type": ["str", "list"]}],
    [{**OBJECT, "type": ["object", "string"]}, {"anyOf": [OBJECT, TEXT]}],
]  # fmt: skip
VALUES = ("5", "true", "null", "north", '["a", "b"]', '{"n": 4}', "007", "-2.5")
MEANT: dict[str, list[Any]] = {  # of the first words of each, for `VALUES`; ...: it fits in no way
    "0": [5, ..., ..., ..., ..., ..., ..., ...],
    "1": [..., ..., ..., ..., ..., {"n": 4}, ..., ...],
    "3": [..., True, ..., ..., ..., ..., ..., ...],
    "4": [5, ..., None, ..., ..., ..., ..., ...],
    "5": ["5", "true", None, "north", '["a", "b"]', '{"n": 4}', "007", "-2.5"],
    "6": [5, "true", "null", "north", '["a", "b"]', '{"n": 4}', "007", "-2.5"],
    "7": ["5", "true", "null", "north", ["a", "b"], '{"n": 4}', "007", "-2.5"],
    "8": ["5", "true", "null", "north", '["a", "b"]', {"n": 4}, "007", "-2.5"],
}


def schemas(one: Schema) -> list[Schema]:
    """Tools with this argument, declared at once or in a part."""
    parts: list[Schema] = [
        {"properties": {"at": one}},
        {"allOf": [{"properties": {"at": one}}, {"properties": {"q": TEXT}}]},
        {"anyOf": [{"properties": {"at": one}}, {"properties": {"q": TEXT}, "required": ["q"]}]},
        {"oneOf": [{"properties": {"q": TEXT}, "required": ["q"]}, {"allOf": [{"properties": {"at": one}}]}]},
        {"if": {"required": ["q"]}, "then": {"properties": {"q": TEXT}}, "else": {"properties": {"at": one}}},
        {"$ref": "#/$defs/root"},
    ]
    return [{"type": "object", "$defs": {**DEFINED, "root": parts[0]}, **part} for part in parts]


def narrowed() -> list[Schema]:
    """Tools with a text, about which parts of the schema say more."""
    one: Schema = {"properties": {"at": TEXT}}
    more: Schema = {"properties": {"at": {"minLength": 1}}}
    other: Schema = {"required": ["q"]}
    parts: list[Schema] = [{"allOf": [more]}, {"anyOf": [more, other]}, {"oneOf": [other, more]}]
    return [{"type": "object", **one, **part} for part in [*parts, {"if": other, "then": more}, {"else": more}]]


def read(schema: Schema, text: str) -> list[str]:
    reply = play_pieces([Tool("go", "", _json.raw(schema))], [text], "stop")
    return [*exact(delivered(reply)), *(call.name or "" for call in reply.failed_calls)]


def written(value: str) -> list[str]:
    mark = "]<]minimax[>["
    return [
        f"<tool_call>\n<function=go>\n<parameter=at>\n{value}\n</parameter>\n</function>\n</tool_call>",
        f"<tool_call>go<arg_key>at</arg_key><arg_value>{value}</arg_value></tool_call>",
        f'<invoke name="go">\n<parameter name="at">{value}</parameter>\n</invoke>',
        f'{mark}<tool_call>{mark}<invoke name="go">{mark}<at>{value}{mark}</at>{mark}</invoke>{mark}</tool_call>',
    ]


@for_each("same", enumerate(SAME), ids=str)
def test_schemas_that_say_the_same_give_the_same(same: tuple[int, list[Schema]]):
    number, words = same
    for value, meant in zip(VALUES, MEANT.get(str(number), [...] * len(VALUES)), strict=True):
        found = [
            read(schema, text)
            for one in words
            for schema in schemas(one)
            for text in one_of(written(value), json.dumps(schema))
        ]
        assert len(found) >= 12 and all(len(calls) == 1 for calls in found)
        if meant is not ...:
            wanted = [json.dumps(["go", {"at": meant}], sort_keys=True)]
            assert found == [wanted] * len(found), (value, found)


def test_a_part_that_says_more_leaves_the_type():
    for value in VALUES:
        found = [read(schema, text) for schema in narrowed() for text in written(value)]
        assert found == [[json.dumps(["go", {"at": value}], sort_keys=True)]] * len(found), (value, found)
