# ruff: noqa: E501 - tables of requests, which a line end would tear
"""Schemas of tools made up at random, as real servers of tools write them and worse, and values for them."""

from __future__ import annotations

from random import Random
from typing import Any, Final

WORDS: Final = ("a", "b", "city", "filter[id]", "$top", "x" * 70, "naïve", "type", "properties")
_LEAVES: Final[tuple[dict[str, Any], ...]] = (
    {"type": "string"}, {"type": "integer"}, {"type": "number", "minimum": 0}, {"type": "boolean"}, {"type": "null"}, {},
    {"type": "string", "enum": ["x", "y"]}, {"enum": ["x", 1, None]}, {"const": "x"}, {"type": ["string", "null"]},
    {"type": "string", "format": "date-time", "description": "When."}, {"type": "array"}, {"type": "object"},
    {"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "string", "nullable": True},
    {"type": "string", "nullable": True, "enum": ["x"]}, {"type": "any"}, {"type": "str"}, {"type": "dict"}, {"enum": []},
    {"type": "string", "required": True}, {"type": "string", "description": None}, {"type": "string", "default": {"$ref": 1}},
    {"type": "array", "minItems": -1}, {"type": "string", "examples": "x"}, {"type": ["integer", "str"]},
)  # fmt: skip


def schema(dice: Random) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    defs = {name: node(dice, 2, ()) for name in ("A", "B") if dice.random() < 0.6}
    holder = dice.choice(("$defs", "definitions"))
    names = tuple(f"#/{holder}/{name}" for name in defs)
    defs = {name: node(dice, 2, names) for name in defs}
    root = members(dice, 3, (*names, "#", "#/properties/a") if dice.random() < 0.3 else names)
    kind = dice.random()
    if kind < 0.15:
        root[dice.choice(("anyOf", "oneOf", "allOf"))] = [members(dice, 1, names) for _ in range(dice.randint(0, 3))]
    elif kind < 0.25:
        root["oneOf"] = [{"required": [dice.choice(WORDS)]} for _ in range(2)]
    elif kind < 0.3:
        root = {dice.choice(("anyOf", "oneOf")): [members(dice, 1, names), members(dice, 1, names)]}
    elif kind < 0.35 and defs:
        root = {"$ref": names[0]}
    elif kind < 0.4:
        root.pop("type", None)
    elif kind < 0.43:
        root = {"type": ["object", "null"], **{key: value for key, value in root.items() if key != "type"}}
    elif kind < 0.46:
        root = {"type": "object"}
    if defs:
        root[holder] = defs
    if dice.random() < 0.3:
        root["$schema"] = "http://json-schema.org/draft-07/schema#"
    return root


def members(dice: Random, depth: int, names: tuple[str, ...]) -> dict[str, Any]:
    """A schema of an object."""
    keys = dice.sample(WORDS, dice.randint(0, 4))
    made: dict[str, Any] = {"type": "object", "properties": {key: node(dice, depth - 1, names) for key in keys}}
    if keys and dice.random() < 0.6:
        made["required"] = dice.sample(keys, dice.randint(1, len(keys)))
    if dice.random() < 0.3:
        made["additionalProperties"] = dice.choice((False, True, {"type": "string"}))
    if dice.random() < 0.1:
        made["patternProperties"] = {"^x-": {"type": "string"}}
    if dice.random() < 0.1:
        del made["properties"]
    return made


def node(dice: Random, depth: int, names: tuple[str, ...]) -> Any:
    """A schema of anything."""
    kind = dice.random()
    if names and kind < 0.2:
        beside = dice.choice(({}, {}, {"description": "D."}, {"title": "T"}, {"minLength": 1}, {"nullable": True}))
        return {"$ref": dice.choice(names), **beside}
    if depth <= 0 or kind < 0.45:
        return dice.choice((*_LEAVES, True, False))
    if kind < 0.6:
        return members(dice, depth, names)
    if kind < 0.7:
        return {"type": "array", "items": node(dice, depth - 1, names)}
    if kind < 0.78:
        places = [node(dice, depth - 1, names) for _ in range(dice.randint(0, 2))]
        return {"type": "array", "items": places, **dice.choice(({}, {"additionalItems": False}))}
    if kind < 0.82:
        return {"type": "array", "prefixItems": [node(dice, depth - 1, names)]}
    if kind < 0.97:
        key = dice.choice(("anyOf", "oneOf", "allOf"))
        return {key: [node(dice, depth - 1, names) for _ in range(dice.randint(1, 3))]}
    return {"not": node(dice, depth - 1, names)}


_VALUES: Final = ("x", "y", "Rome", "", 0, 1, -1, 1.5, True, None, [], ["x"], [1, "x"], {}, {"a": "x"}, {"a": {"a": 1}})


def arguments(dice: Random, schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments: some of the names that the schema has, with values of all kinds."""
    found = schema.get("properties", {})
    keys = [*(found if isinstance(found, dict) else ()), *WORDS[:4]]
    return {key: dice.choice(_VALUES) for key in dice.sample(keys, dice.randint(0, min(4, len(keys))))}
