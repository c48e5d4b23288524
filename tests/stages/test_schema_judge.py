"""Schemas are the client's: whatever they ask for, judging by them ends, and what is kept of them is bounded."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import _json
from dragoman.events import Deviation, Finish, Start, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.stages.argument_repair.stage import ArgumentRepair
from dragoman.stages.json_schema import Judge, ToolSchema
from dragoman.stages.known_schemas import KnownSchemas
from dragoman.stages.schema_validator import reader_of
from dragoman.types import Tool, ToolCall
from for_each import for_each
from growth import steps_of
from profiles import examples


def chain(keyword: str, length: int, last: dict[str, Any]) -> dict[str, Any]:
    """Each definition names the next one twice: 2 ** length looks at one value."""
    definitions = {f"A{at}": {keyword: [{"$ref": f"#/$defs/A{at + 1}"}] * 2} for at in range(length)}
    return {"properties": {"a": {"$ref": "#/$defs/A0"}}, "$defs": {**definitions, f"A{length}": last}}


def itself(*alternatives: dict[str, Any], keyword: str = "anyOf") -> dict[str, Any]:
    """A schema that holds itself."""
    return {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {keyword: list(alternatives)}}}


A: dict[str, Any] = {"$ref": "#/$defs/A"}
LISTS = {"type": "array", "items": A}
MANY = list(range(50_000))
#: Schemas that ask for more looks than anybody has time for, with values on which they do.
HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "all of all": (chain("allOf", 40, {"type": "string"}), '"x"'),
    "any of any": (chain("anyOf", 40, {"type": "integer"}), '"x"'),
    "one of one": (chain("oneOf", 40, {"type": "integer"}), '"x"'),
    "all of itself": (itself(A, A, keyword="allOf"), '"x"'),
    "lists of lists": (itself(LISTS, LISTS, {"type": "integer"}), "[" * 20 + '"x"' + "]" * 20),
    "a text for lists of lists": (itself(LISTS, LISTS, {"type": "integer"}), '"x"'),
    "objects of objects": (
        itself(*[{"type": "object", "additionalProperties": A}] * 3, {"type": "integer"}),
        '{"b":' * 20 + '"x"' + "}" * 20,
    ),
    "many choices": ({"properties": {"a": {"items": {"enum": MANY}}}}, "[" + "-1," * 2_000 + "-1]"),
    "lists as choices": (
        {"properties": {"a": {"items": {"enum": [[0] * 100 + [at] for at in range(500)]}}}},
        "[" + ("[" + "0," * 100 + "-1],") * 100 + "0]",
    ),
    "much that is required": (
        {"properties": {"a": {"items": {"required": [f"b{at}" for at in MANY]}}}}, "[" + '{"b0":1},' * 2_000 + "{}]"
    ),
    "a long reference": (
        {"properties": {"a": {"items": {"$ref": "#" + "/x" * 50_000}}}}, "[" + "1," * 2_000 + "1]"
    ),
    "texts for lists": (
        {"properties": {"a": {"anyOf": [{"type": "array", "items": {"const": at}} for at in range(300)]}}},
        json.dumps("[" + "1," * 2_000 + "x"),
    ),
}  # fmt: skip
#: Those whose value the steps do not suffice for.
UNJUDGED = HOSTILE.keys() - {"much that is required", "a long reference"}


def repaired(schema: Any, text: str) -> list[Any]:
    """What the stage gives for a call with these arguments."""
    stage = ArgumentRepair((Tool("f", "", _json.raw(schema)),))
    call = ToolCall("c", "f", text)
    return [
        event
        for events in ([Start("r", "m", 1), ToolCallStart(0, "c", "f")], [ToolCallDelta(0, text)],
                       [ToolCallEnd(0, call), Finish("tool_use")])
        for event in stage.feed(list(events))
    ]  # fmt: skip


@for_each("name", HOSTILE)
def test_no_schema_asks_for_more_looks_than_its_value_is_worth(name: str):
    schema, value = HOSTILE[name]
    text = f'{{"a":{value}}}'
    given: list[Any] = []
    # Making the schema a text is no part of it. A look is some ten lines; a text is read some four times.
    tool = bytes(_json.raw(schema))
    lines = steps_of(lambda: given.extend(repaired(_json.Raw(tool), text)))
    assert lines < 500_000 + 600 * len(text)
    [end] = [event for event in given if isinstance(event, ToolCallEnd)]
    assert json.loads(end.call.arguments) == json.loads(text), "what is not judged stays as it is"
    said = [event.code for event in given if isinstance(event, Deviation)]
    assert said.count("arguments-unjudged") == (name in UNJUDGED)


@for_each("digits", ["9" * 4301, "-" + "9" * 5000])
def test_a_number_of_too_many_digits_is_told_as_one(digits: str):
    tool = bytes(_json.raw({"type": "object", "properties": {"a": {"type": "integer"}}}))
    given = list(repaired(_json.Raw(tool), f'{{"a":{digits}}}'))
    [failed] = [event for event in given if isinstance(event, ToolCallFailed)]
    assert failed.message.endswith("a number has too many digits")


def test_a_judge_that_is_spent_says_so_and_claims_nothing():
    schema, _ = HOSTILE["all of all"]
    judge = Judge(ToolSchema(schema))
    assert not judge.fits({"a": "x"}, schema)
    assert judge.is_spent
    value = {"a": _json.Number("5")}
    assert judge.coerced(value, schema, read_inner=lambda text, names: _json.decode(text)) is value
    plain = ToolSchema({"properties": {"a": {"type": "string"}}})
    judge = Judge(plain, 7)
    assert judge.fits({"a": "x"}, plain.root().schema)
    assert not judge.is_spent


def test_large_unions_are_still_judged():
    """50 kinds of steps told apart by a word, a list of 40 of them, one with a number as text."""
    kinds = [
        {"type": "object", "required": ["kind", "n"], "additionalProperties": False,
         "properties": {"kind": {"const": f"k{at}"}, "n": {"type": "integer"}, "note": {"type": "string"}}}
        for at in range(50)
    ]  # fmt: skip
    schema = {"type": "object", "properties": {"steps": {"type": "array", "items": {"anyOf": kinds}}}}
    steps: list[dict[str, Any]] = [{"kind": f"k{at}", "n": at, "note": "as it was said"} for at in range(40)]
    steps[39]["n"] = "39"
    events = repaired(schema, json.dumps({"steps": steps}))
    [end] = [event for event in events if isinstance(event, ToolCallEnd)]
    assert json.loads(end.call.arguments)["steps"][39]["n"] == 39
    assert [event.code for event in events if isinstance(event, Deviation)] == ["coerced-arguments"]
    events = repaired({"properties": {"step": {"anyOf": kinds}}}, '{"step":{"kind":"k49","n":"7"}}')
    [end] = [event for event in events if isinstance(event, ToolCallEnd)]
    assert json.loads(end.call.arguments) == {"step": {"kind": "k49", "n": 7}}


KEYWORDS = [
    "type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "required", "$ref",
    "additionalProperties", "nullable", "$defs", "a", "A",
]  # fmt: skip
ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from(["", "object", "a", "#/$defs/A", "#"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    schema=st.dictionaries(
        st.sampled_from(["type", "properties", "enum", "anyOf", "oneOf", "allOf", "required", "additionalProperties",
                         "$ref", "$defs", "items"]), ODD, max_size=5),
    text=st.sampled_from(['{"a":1}', "{}", '{"a":[{"a":"1"},"x"]}', '{"a":"[1,2"}', "{'a': True}", '{"a":{"a":null}}']),
)  # fmt: skip
def test_a_schema_with_anything_anywhere_raises_nothing(schema: dict[str, Any], text: str):
    events = repaired(schema, text)
    assert len([event for event in events if isinstance(event, ToolCallEnd)]) == 1


@for_each("word", ["enum", "anyOf", "oneOf", "required", "properties", "additionalProperties"])
@for_each("value", [5, "a", None, True, [[]], [{}], {"a": 5}])
def test_a_keyword_with_another_value_says_nothing(word: str, value: Any):
    for schema in ({word: value}, {"properties": {"a": {word: value, "type": "integer"}}}):
        schema = {"additionalProperties": False, **schema}
        repaired(schema, '{"a":"5"}')
        [end] = [event for event in repaired(schema, '{"a":5}') if isinstance(event, ToolCallEnd)]
        assert json.loads(end.call.arguments) == {"a": 5}


def test_what_is_kept_of_schemas_is_bounded():
    known = KnownSchemas(1_000_000)
    chance = random.Random(1)
    for number in range(300):
        values = [{"a": number}] * chance.randrange(200)
        known.get(json.dumps({"properties": {"a": {"enum": values}}}).encode())
        assert known.size <= 1_000_000
    small = b'{"type":"object"}'
    assert known.get(small) is known.get(small)
    large = json.dumps({"enum": [1] * 100_000}).encode()
    before = known.size
    assert known.get(large) is not known.get(large)
    assert known.size == before


def test_no_types_are_made_of_large_schemas():
    def of(count: int) -> bytes:
        inner = {"type": "object", "properties": {"b": {"type": "string"}}}
        return json.dumps({"type": "object", "properties": {f"a{at}": inner for at in range(count)}}).encode()

    assert reader_of(of(100)) is not None
    assert reader_of(of(200)) is None
    assert reader_of(json.dumps({"type": "string", "description": "x" * 70_000}).encode()) is None
