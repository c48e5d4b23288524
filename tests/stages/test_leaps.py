"""What the JSON reader tells at once, the schema and the repairer would say too, slower."""

import json
import random
from typing import Any

import pytest

from dragoman import _json
from dragoman.events import Event, Finish, ToolCallDelta, ToolCallEnd, ToolCallStart
from dragoman.response_stages import ArgumentRepair
from dragoman.stages.argument_repair.repairer import Repairer
from dragoman.stages.json_schema import Judge, ToolSchema
from dragoman.stages.schema_validator import reader_of
from dragoman.types import Tool, ToolCall

EDIT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "line": {"type": "integer"},
        "old": {"type": "string"},
        "new": {"type": ["string", "null"]},
        "mode": {"type": "string", "enum": ["add", "cut"]},
        "keep": {"type": "boolean"},
        "more": {},
    },
    "required": ["line"],
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"edits": {"type": "array", "items": EDIT}}},
    {"type": "object", "properties": {"edits": {"type": "array", "items": {**EDIT, "additionalProperties": False}}}},
    {"type": "object", "properties": {"edits": {"type": "array"}}},
    {"type": "object", "properties": {"edits": {"type": "array", "items": {"type": "string"}}}},
    {"type": "object", "properties": {"edits": {"type": "array", "items": {"anyOf": [EDIT, {"type": "string"}]}}}},
    {"type": "object", "properties": {"edits": {"type": "object"}}},
    {"type": "object"},
]
MUTATIONS = [
    "",
    '"',
    "'",
    ",",
    "}",
    "{",
    "]",
    ":",
    "\n",
    "\\",
    "\\ud83d",
    "é",
    "None",
    "1e999",
    " ",
    "},",
    "//",
    "\ud83d",
]


def edits(dice: random.Random, count: int) -> list[dict[str, Any]]:
    values: list[Any] = [1, 2.5, "7", None, True, "a},{b", 'say "x"', "é\n", [1, {"a": "}"}], {"deep": [{}]}]
    return [
        {
            "line": dice.choice([number, number, number, str(number), number + 0.5]),
            "old": dice.choice(["x = 1", "},", "tail }", 'quoted "}, {"']),
            "new": dice.choice(["y", None, 3]),
            **({"mode": dice.choice(["add", "cut", "Add", "other"])} if dice.random() < 0.3 else {}),
            **({"more": dice.choice(values)} if dice.random() < 0.5 else {}),
            **({"keep": dice.choice([True, "true"])} if dice.random() < 0.3 else {}),
            **({"unknown": 1} if dice.random() < 0.1 else {}),
        }
        for number in range(count)
    ]


def text_of(dice: random.Random) -> str:
    """Arguments with a long list, clean in half of the cases, else broken in a place or two."""
    separators = dice.choice([(",", ":"), (", ", ": ")])
    clean = [{"line": number, "old": "a}, {b", "new": "c" * 20} for number in range(12)]
    value = {"path": "a.py", "edits": clean if dice.random() < 0.3 else edits(dice, 12), "note": "end"}
    text = json.dumps(value, separators=separators, ensure_ascii=dice.random() < 0.5)
    for _ in range(dice.choice([0, 0, 1, 2])):
        place = dice.randrange(len(text))
        text = text[:place] + dice.choice(MUTATIONS) + text[place + dice.choice([0, 1]) :]
    return text


def read(schema: ToolSchema, pieces: list[str]) -> tuple[str, str, list[tuple[str, str, str]], str]:
    repairer = Repairer(schema)
    text = "".join(repairer.feed(piece) for piece in pieces)
    if repairer.close() is None:
        text = ""  # how much had left before a piece that cannot be read is the pieces'
    return text, repairer.problem, repairer.codes, repairer.rest


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_a_leap_changes_nothing(number: int, count: int) -> None:
    dice = random.Random(number)
    for _ in range(count):
        text = text_of(dice)
        whole = read(ToolSchema(SCHEMAS[number]), [text])
        assert whole == read(ToolSchema(SCHEMAS[number]), list(text))
        cut = dice.randrange(len(text))
        assert whole == read(ToolSchema(SCHEMAS[number]), [text[:cut], text[cut:]])


def test_what_the_reader_takes_fits() -> None:
    dice = random.Random(3)
    taken = 0
    for _ in range(1500):
        schema = dice.choice([EDIT, {**EDIT, "additionalProperties": False}, {"type": ["number", "string"]}, {}])
        value = dice.choice([*edits(dice, 1), 5, 5.0, "5", None, [1], {"line": 1}])
        text = json.dumps(value)
        fits = reader_of(bytes(_json.raw(schema)))
        assert fits is not None
        if fits(text):
            taken += 1
            assert Judge(ToolSchema(schema), len(text)).fits(_json.decode_exact(text), schema)
    assert taken > 300


@pytest.mark.parametrize(
    "text", ['{"line":1', '{"line":01}', '{"line":1,}', '{"line":1,"old":"\ud800"}', r'{"line":1,"old":"\ud800"}',
             '{"line":1,"more":"a\tb"}', '{"line":1,"more":NaN}', r'{"line":1,"more":"\x"}',
             r'{"line":1,"more":"\udc00"}']
)  # fmt: skip
def test_the_reader_takes_nothing_that_needs_repair(text: str) -> None:
    fits = reader_of(bytes(_json.raw(EDIT)))
    assert fits is not None and not fits(text)


@pytest.mark.parametrize(
    "schema", [{"$ref": "#/x"}, {"const": 1}, {"type": "array", "items": {"oneOf": []}}, {"type": "frob"},
               {"enum": [1]},
               {"type": "string", "enum": [1]}, {"type": "object", "additionalProperties": {"type": "string"}},
               {"type": ["object", "frob"]}, {"properties": {"a": {}}}]
)  # fmt: skip
def test_what_no_type_says_is_left_to_the_schema(schema: dict[str, Any]) -> None:
    assert reader_of(bytes(_json.raw(schema))) is None


def test_deltas_that_come_together_leave_as_one() -> None:
    stage = ArgumentRepair([Tool("edit", "", _json.raw(SCHEMAS[0]))])
    start = ToolCallStart(0, "call_1", "edit")
    stage.feed([start])
    plain: list[Event] = [ToolCallDelta(0, '{"path":"aa'), ToolCallDelta(0, "bbb"), ToolCallDelta(0, "ccc")]
    assert "".join(event.text for event in stage.feed(plain) if isinstance(event, ToolCallDelta)) == '{"path":"aabbbccc'
    more: list[Event] = [ToolCallDelta(0, "ddd"), ToolCallDelta(0, "eee")]
    assert stage.feed(more) == [ToolCallDelta(0, "dddeee")]
    alone: list[Event] = [ToolCallDelta(0, "fff")]
    assert stage.feed(alone) is alone
    end: list[Event] = [ToolCallDelta(0, '", "edits"'), ToolCallDelta(0, ": [],"), ToolCallDelta(0, "}")]
    whole = '{"path":"aabbbcccdddeeefff", "edits": []}'
    out = stage.feed([*end, ToolCallEnd(0, ToolCall("call_1", "edit", whole)), Finish("tool_use")])
    ends = [event.call.arguments for event in out if isinstance(event, ToolCallEnd)]
    assert ends == [whole]
