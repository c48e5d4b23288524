"""Schemas of answers made up at random, as programs make them, the same in words of older drafts, and values."""

from __future__ import annotations

from random import Random
from typing import Any, Final

_LEAVES: Final[tuple[dict[str, Any], ...]] = (
    {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": ["string", "null"]},
    {"type": "string", "enum": ["x", "y"]}, {"const": "x"}, {"enum": ["x", 1, None]}, {"type": "integer", "minimum": 0},
    {"type": "string", "maxLength": 1, "title": "T", "default": {"$ref": "#/nowhere"}},
    {"type": "string", "description": "D.", "examples": [{"$ref": "#/nowhere"}]},
)  # fmt: skip
_KEYS: Final = ("a", "b", "c", "default", "enum", "items")
_DEFS: Final = ("A", "B")


def schema(dice: Random, *, maps: bool) -> dict[str, Any]:
    """The schema of an answer, of draft 2020-12. `maps`: with objects of any members."""
    made = _object(dice, 3, maps)
    if dice.random() < 0.3:
        made = _composed(dice, 2, maps)
    # a definition refers to later ones only
    defs = {name: _node(dice, 2, maps, _DEFS[place + 1 :]) for place, name in enumerate(_DEFS)}
    return {**made, "$defs": defs}


def _object(dice: Random, depth: int, maps: bool, names: tuple[str, ...] = _DEFS) -> dict[str, Any]:
    if maps and dice.random() < 0.15:
        return {"type": "object", "additionalProperties": dice.choice(({"type": "integer"}, True))}
    keys = dice.sample(_KEYS, dice.randint(1, 3))
    members = {key: _node(dice, depth - 1, maps, names) for key in keys}
    made: dict[str, Any] = {"type": "object", "properties": members}
    if dice.random() < 0.6:
        made["required"] = dice.sample(keys, dice.randint(1, len(keys)))
    if dice.random() < 0.3:
        made["additionalProperties"] = False
    return made


def _composed(dice: Random, depth: int, maps: bool, names: tuple[str, ...] = _DEFS) -> dict[str, Any]:
    """Objects joined, or an object with alternatives."""
    parts = [_object(dice, depth, maps, names) for _ in range(2)]
    for part in parts:
        part.pop("additionalProperties", None)
        if names and dice.random() < 0.3:
            part.setdefault("properties", {})["r"] = {"$ref": f"#/$defs/{dice.choice(names)}"}
    key = dice.choice(("allOf", "anyOf", "oneOf"))
    if dice.random() < 0.5:
        return {key: parts}
    own = _object(dice, depth, maps, names)
    own.pop("additionalProperties", None)
    return {**own, key: parts}


def _node(dice: Random, depth: int, maps: bool, names: tuple[str, ...]) -> dict[str, Any]:
    kind = dice.random()
    if names and kind < 0.2:
        target = {"$ref": f"#/$defs/{dice.choice(names)}"}
        beside = dice.choice(({}, {}, {"description": "D."}, {"minProperties": 0}))
        return {"allOf": [target], **beside} if dice.random() < 0.3 else {**target, **beside}
    if depth <= 0 or kind < 0.5:
        return dict(dice.choice(_LEAVES))
    if kind < 0.65:
        return _object(dice, depth, maps, names)
    if kind < 0.75:
        return _composed(dice, depth - 1, maps, names)
    if kind < 0.85:
        return {"type": "array", "items": _node(dice, depth - 1, maps, names)}
    if kind < 0.92:
        places = [_node(dice, depth - 1, maps, names) for _ in range(2)]
        rest = _node(dice, depth - 1, maps, names) if dice.random() < 0.5 else False
        return {"type": "array", "prefixItems": places, "items": rest}
    return {"anyOf": [_node(dice, depth - 1, maps, names), {"type": "null"}]}


def aged(dice: Random, node: Any, holder: str = "") -> Any:
    """The same schema as older drafts and OpenAPI say it."""
    is_root = not holder
    holder = holder or dice.choice(("$defs", "definitions", "components/schemas", "#"))
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            made[key] = {name: aged(dice, inner, holder) for name, inner in value.items()}
        elif key == "$defs":
            made |= _held({name: aged(dice, inner, holder) for name, inner in value.items()}, holder)
        elif key == "$ref":
            name = value.rpartition("/")[2]
            made[key] = f"#{name}" if holder == "#" else f"#/{holder}/{name}"
        elif key in ("allOf", "anyOf", "oneOf", "prefixItems"):
            made["items" if key == "prefixItems" else key] = [aged(dice, inner, holder) for inner in value]
        elif key == "items":
            made["additionalItems" if "prefixItems" in node else key] = aged(dice, value, holder)
        else:
            made[key] = value
    if made.get("type") == ["string", "null"]:
        made |= {"type": "string", "nullable": True}
    options = made.get("anyOf", ())
    if not is_root and len(options) == 2 and options[1] == {"type": "null"} and "properties" not in made:
        del made["anyOf"]
        return {**made, "allOf": [options[0]], "nullable": True}
    return made


def _held(defs: dict[str, Any], holder: str) -> dict[str, Any]:
    if holder == "#":
        return {"$defs": {f"of {name}": {"$anchor": name, **inner} for name, inner in defs.items()}}
    first, _, second = holder.partition("/")
    return {first: {second: defs} if second else defs}


def value(dice: Random, node: Any, root: dict[str, Any]) -> Any:
    """A value that mostly fits."""
    if "$ref" in node:
        rest = {key: inner for key, inner in node.items() if key != "$ref"}
        return _both(value(dice, root["$defs"][node["$ref"].rpartition("/")[2]], root), rest, dice, root)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in node:
            rest = {name: inner for name, inner in node.items() if name != key}
            parts = node[key] if key == "allOf" else [dice.choice(node[key])]
            made = value(dice, parts[0], root)
            for part in (*parts[1:], rest):
                made = _both(made, part, dice, root)
            return made
    if "const" in node or "enum" in node:
        return dice.choice(node.get("enum") or [node["const"]])
    kinds = node.get("type", "object")
    match dice.choice(kinds if isinstance(kinds, list) else [kinds]):
        case "object":
            keys = [key for key in node.get("properties", {}) if key in node.get("required", ()) or dice.random() < 0.6]
            made = {key: value(dice, node["properties"][key], root) for key in keys}
            return made | ({"z": 7} if "properties" not in node and dice.random() < 0.7 else {})
        case "array":
            rest = [node["items"]] * dice.randint(0, 2) if isinstance(node["items"], dict) else []
            places = [*node.get("prefixItems", ()), *rest]
            return [value(dice, place, root) for place in places]
        case kind:
            return {"string": "x", "integer": dice.choice((0, 7, -7)), "number": 1.5, "boolean": True}.get(kind)


def _both(made: Any, part: Any, dice: Random, root: dict[str, Any]) -> Any:
    other = value(dice, part, root) if part.keys() - {"description", "minProperties", "$defs"} else {}
    return {**other, **made} if isinstance(made, dict) and isinstance(other, dict) else made


def damaged(dice: Random, given: Any) -> Any:
    """The value with one of its values replaced or left out."""
    if isinstance(given, dict) and given and dice.random() < 0.8:
        key = dice.choice([*given])
        rest = {name: inner for name, inner in given.items() if name != key}
        return rest if dice.random() < 0.3 else {**given, key: damaged(dice, given[key])}
    if isinstance(given, list) and given and dice.random() < 0.8:
        place = dice.randrange(len(given))
        return [*given[:place], damaged(dice, given[place]), *given[place + 1 :]]
    return dice.choice(("x", "long", 7, -7, None, True, [], {}, {"z": 7}, {"a": "x"}))
