"""Schemas of answers, made up at random, in Anthropic's subset: what is sent is of the subset, allows each answer that
the client's schema declares, and no other where nothing is said to be lost."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from jsonschema import Draft202012Validator

from asked import made_answers, made_schemas
from asked.asking import VENDORS, asked
from asked.vendor_rules import broken, broken_format
from asked.writing import chat, messages
from dragoman.codec.schemas.drafts import modern
from dragoman.protocols.anthropic.request.answer_schema import answer_schema
from dragoman.types import Raw
from for_each import for_each
from growth import MOST_EXPONENT, exponent
from profiles import IS_SOAK

SCHEMAS: Final = 6_000 if IS_SOAK else 100
_SEED: Final = 14
_VALUES: Final = 8
#: Of schemas without maps, how many the subset can say at least.
_SAYABLE: Final = 0.85
_PLAIN: Final = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}


def sent(schema: Any) -> tuple[Any, list[str]]:
    made, lost = answer_schema(Raw(json.dumps(schema).encode()))
    return (None if made is None else json.loads(bytes(made))), lost


def declared(node: Any, *, is_place: bool = True) -> Any:
    """The schema, with the members alone that it declares, and one of several alternatives at least, as in the subset.

    `is_place`: a value stands there; else it is part of one. A member that two parts declare is judged by each alone.
    """
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            made[key] = {name: declared(inner, is_place=key == "properties") for name, inner in value.items()}
        elif key in ("allOf", "anyOf", "oneOf"):
            made["anyOf" if key == "oneOf" else key] = [declared(inner, is_place=False) for inner in value]
        elif key in ("items", "prefixItems"):
            made[key] = [declared(inner) for inner in value] if isinstance(value, list) else declared(value)
        else:
            made[key] = value
    return {**made, "unevaluatedProperties": False} if is_place else made


@for_each("maps", [False, True])
def test_an_answer_that_the_client_declares_is_allowed_and_no_other(maps: bool) -> None:
    dice = Random(_SEED)
    in_words = fitting = other = 0
    for _ in range(SCHEMAS):
        schema = made_answers.schema(dice, maps=maps)
        given = made_answers.aged(dice, schema)
        made, lost = sent(given)
        if made is None:
            in_words += 1
            continue
        shown = (json.dumps(given), json.dumps(made), lost)
        assert not [*broken_format(made)], shown
        client, meant, vendor = map(Draft202012Validator, (schema, declared(schema), made))
        for _ in range(_VALUES):
            value = made_answers.value(dice, schema, schema)
            value = made_answers.damaged(dice, value) if dice.random() < 0.5 else value
            wanted, found = meant.is_valid(value), vendor.is_valid(value)
            fitting, other = fitting + wanted, other + (not wanted)
            assert found or not wanted, (*shown, value)
            assert not found or lost or client.is_valid(value) or "oneOf" in shown[0], (*shown, value)
    assert min(fitting, other) > SCHEMAS
    assert maps or in_words < (1 - _SAYABLE) * SCHEMAS


@for_each(
    "schema",
    [
        {"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        {"type": "object", "properties": {"m": {"type": "object"}}},
        {"type": "object", "properties": {"m": {}}},
        {"type": "object", "properties": {"m": True}},
        {"type": "object", "properties": {"m": {"type": "array", "items": {"$ref": "#"}}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
        {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        {"type": "object", "required": ["a"], "properties": {}},
        {"allOf": [{"anyOf": [_PLAIN, _PLAIN]}, {"anyOf": [_PLAIN, {"type": "null"}]}]},
        {"type": "object", "properties": {"m": {"enum": [{"a": 1}]}}},
        {**_PLAIN, "if": {"properties": {"b": {"const": "x"}}}, "then": {"properties": {"c": {"type": "string"}}}},
        {
            **_PLAIN,
            "if": {"required": ["b"]},
            "else": {"$ref": "#/$defs/c"},
            "$defs": {"c": {"type": "object", "properties": {"c": {"type": "string"}}}},
        },
        {**_PLAIN, "dependentSchemas": {"b": {"allOf": [{"properties": {"c": {"type": "string"}}}]}}},
    ],
    ids=lambda schema: json.dumps(schema)[:60],
)
def test_a_schema_beyond_the_subset_becomes_words_of_the_prompt(schema: Any) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}
    made = asked("openai-chat", chat(response_format=wanted), VENDORS["anthropic-messages"])
    assert broken("anthropic-messages", made.body) == []
    assert "output_config" not in made.body
    assert json.dumps(schema, separators=(",", ":")) in json.dumps(made.body["system"]).replace('\\"', '"').replace(
        ": ", ":"
    ).replace(", ", ",")
    assert [said.code for said in made.deviations if said.where == "params.response_schema"] == ["changed"]


def test_conditions_on_declared_members_alone_stay_in_the_subset() -> None:
    made, lost = sent({**_PLAIN, "if": {"properties": {"b": {"const": "x"}}}, "then": {"required": ["b"]}})
    assert made is not None and Draft202012Validator(made).is_valid({"b": "x"})
    assert lost == ["if", "then"]


def test_an_odd_schema_is_no_error_of_ours() -> None:
    dice = Random(_SEED)
    deep = [json.loads('{"type":"object","allOf":[' * depth + "{}" + "]}" * depth) for depth in (50, 200, 450)]
    odd: list[Any] = [
        {"type": "object", "required": [["a"]], "properties": {"a": {}}},
        {"type": "object", "required": "a", "properties": ["a"]},
        {"type": "object", "enum": "a", "items": 5, "anyOf": [7], "allOf": {"a": 1}, "$defs": 7, "$ref": 9},
        {"type": {"a": 1}, "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}, "prefixItems": []},
        {**_PLAIN, "if": 7, "then": {"properties": ["a"]}, "dependentSchemas": [7]},
        {"items": [{"type": "string"}], "prefixItems": []},
        *deep,
    ]
    for schema in [*odd, *(made_schemas.schema(dice) for _ in range(SCHEMAS))]:
        made, lost = sent(schema)
        assert lost if made is None else not [*broken_format(made)], (json.dumps(schema), made)


def test_the_newer_of_two_keywords_counts_in_any_order() -> None:
    text, number = {"type": "string"}, {"type": "number"}
    for older, newer in (
        ({"items": [text]}, {"prefixItems": [number]}),
        ({"dependencies": {"a": ["b"]}}, {"dependentRequired": {"c": ["d"]}}),
    ):
        for schema in ({**older, **newer}, {**newer, **older}):
            lost: list[str] = []
            assert modern(schema, lost) == newer
            assert lost == [*older]
    lost = []
    assert modern({"items": [text], "prefixItems": 7}, lost) == {"prefixItems": [text]}
    assert lost == ["prefixItems"]


def test_alternatives_are_written_out_within_bounds() -> None:
    def run(count: int) -> object:
        members = {f"p{number}": {"type": "string"} for number in range(count)}
        each = [{"properties": {f"a{number}": {"type": "string"}}} for number in range(count)]
        return sent({"type": "object", "properties": members, "oneOf": each})

    assert run(400) == (None, ["references, written out"])
    assert exponent(run, 300) <= MOST_EXPONENT


def test_parts_of_a_schema_are_joined_in_linear_time() -> None:
    def run(count: int) -> object:
        made, lost = sent({"allOf": [{"properties": {f"p{number}": {"type": "string"}}} for number in range(count)]})
        assert [*made["properties"]] == [f"p{number}" for number in range(count)] and not lost
        return made

    assert exponent(run, 400) <= MOST_EXPONENT


@for_each(
    "schema",
    [
        {"type": "object", "patternProperties": {"^x": {}}, "not": {}, "properties": {"a": {"minLength": 3}}},
        {"type": "object", "additionalProperties": {"type": "integer"}, "x-own": 1.0},
        True,
    ],
    ids=repr,
)
def test_a_schema_that_was_written_for_the_vendor_reaches_it_byte_for_byte(schema: Any) -> None:
    form = {"type": "json_schema", "schema": schema}
    for fields in ({"output_config": {"format": form}}, {"output_format": form}):
        made = asked("anthropic-messages", messages(**fields), VENDORS["anthropic-messages"])
        assert json.dumps(made.body["output_config"]["format"]) == json.dumps(form)
        assert not [said for said in made.deviations if "schema" in said.where]
