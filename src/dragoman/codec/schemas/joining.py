"""Join two schemas into one that allows what both of them allow, for vendors without `allOf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeGuard

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.schemas.places import NOTES, Schema

#: Gives the target of a pointer.
Find: TypeAlias = Callable[[str], Schema | None]

_DEEPEST: Final = 100
_OBJECTS: Final = ("properties", "patternProperties", "additionalProperties")
_DEFINITIONS: Final = ("$defs", "definitions")
#: Bounds: the larger one, or the smaller one, counts.
_BOUNDS: Final[dict[str, Any]] = {
    "minimum": max, "exclusiveMinimum": max, "minLength": max, "minItems": max, "minProperties": max,
    "maximum": min, "exclusiveMaximum": min, "maxLength": min, "maxItems": min, "maxProperties": min,
}  # fmt: skip
_MOST_KINDS: Final = 7
_KINDS: Final[dict[type, str]] = {
    str: "string", int: "integer", bool: "boolean", type(None): "null", list: "array",
}  # fmt: skip
#: Keywords that mean something together: taken from one schema, or from neither.
_TOGETHER: Final = (
    frozenset({"items", "prefixItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
#: Keywords that look at what stands beside them.
_LOOKING: Final = frozenset({"unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"})


class NotJoined(Exception):
    """What two schemas say cannot be said by one."""


def joined(one: Json, other: Json, find: Find, depth: int = 0) -> Json:
    """Return a schema of the values that both schemas allow; False if there are none. Notes of the first one count.

    Raises:
        NotJoined: it cannot be said without `allOf`.
    """
    if depth > _DEEPEST:
        raise NotJoined
    if one is False or other is False:
        return False
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other if one is True else one
    if one.keys() <= NOTES or other.keys() <= NOTES:
        return {**other, **one}
    first, second = flat(one, find, depth + 1), flat(other, find, depth + 1)
    if not isinstance(first, dict) or not isinstance(second, dict):
        return joined(first, second, find, depth + 1)
    return _merged(first, second, find, depth)


def flat(schema: Schema, find: Find, depth: int = 0) -> Json:
    """Return a schema without `allOf`, and without a reference at its top. Raises `NotJoined`: it cannot be said so."""
    pointer, parts = schema.get("$ref"), schema.get("allOf")
    if pointer is None and not isinstance(parts, list):
        return schema
    if depth > _DEEPEST:
        raise NotJoined
    target = find(pointer) if isinstance(pointer, str) else True
    if target is None:
        raise NotJoined
    waiting: list[Json] = [{key: value for key, value in schema.items() if key not in ("$ref", "allOf")}]
    for part in (target, *(parts if isinstance(parts, list) else ())):
        waiting.append(flat(part, find, depth + 1) if isinstance(part, dict) else part)
    while len(waiting) > 1:  # in pairs: one by one, the first ones would be read again for each
        pairs = [waiting[place : place + 2] for place in range(0, len(waiting), 2)]
        waiting = [joined(pair[0], pair[1], find, depth + 1) if len(pair) > 1 else pair[0] for pair in pairs]
    return waiting[0]


def _merged(one: Schema, other: Schema, find: Find, depth: int) -> Json:
    if _LOOKING & (one.keys() | other.keys()):
        raise NotJoined
    for group in _TOGETHER:
        mine, theirs = group & one.keys(), group & other.keys()
        if mine and theirs and (mine | theirs) != {"items"} and any(one.get(key) != other.get(key) for key in group):
            raise NotJoined
    made: Schema = {}
    for key in {**one, **other}:
        if key in _OBJECTS:
            continue
        if key not in one or key not in other:
            made[key] = one.get(key, other.get(key))
        elif key in NOTES or _json.encode(one[key]) == _json.encode(other[key]):
            made[key] = one[key]
        elif key == "items":
            made[key] = joined(one[key], other[key], find, depth + 1)
        elif key in _DEFINITIONS:
            made[key] = {**other[key], **one[key]}
        elif (both := _both(key, one[key], other[key])) is None:
            return False
        else:
            made[key] = both
    if not _agree(made):
        return False
    return _with_members(made, one, other, find, depth)


def _agree(made: Schema) -> bool:
    """Leave values of `enum` that its type allows, and return whether any is left."""
    if made.get("type") is None:
        return True
    kinds = _kinds(made["type"])
    if isinstance(options := made.get("enum"), list):
        made["enum"] = options = [value for value in options if _is_of(value, kinds)]
        return bool(options)
    return "const" not in made or _is_of(made["const"], kinds)


def _is_of(value: Json, kinds: list[Json]) -> bool:
    if isinstance(value, float):
        return "number" in kinds or ("integer" in kinds and value.is_integer())
    kind = _KINDS.get(type(value), "object")
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _both(key: str, mine: Json, theirs: Json) -> Json:
    """Return the value of a keyword that both schemas have; None if no value of JSON meets both."""
    if key == "type":
        ours, others = _kinds(mine), _kinds(theirs)
        kinds = [kind for kind in ours if kind in others or (kind == "integer" and "number" in others)]
        kinds += ["integer"] if "number" in ours and "integer" in others and "integer" not in kinds else []
        return (kinds[0] if len(kinds) == 1 else kinds) if kinds else None
    if key == "required" and _are_names(mine) and _are_names(theirs):
        return list(dict.fromkeys([*mine, *theirs]))
    if key == "enum" and isinstance(mine, list) and isinstance(theirs, list):
        known = {_json.encode(value) for value in theirs}
        return [value for value in mine if _json.encode(value) in known] or None
    if key == "const":
        return None
    if key in _BOUNDS and type(mine) in (int, float) and type(theirs) in (int, float):
        bound: Json = _BOUNDS[key](mine, theirs)
        return bound
    raise NotJoined


def _kinds(value: Json) -> list[Json]:
    """Return the types that a schema names. More than JSON has are none."""
    kinds = value if isinstance(value, list) else [value]
    if len(kinds) > _MOST_KINDS:
        raise NotJoined
    return kinds


def _are_names(value: Json) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _with_members(made: Schema, one: Schema, other: Schema, find: Find, depth: int) -> Json:
    """Add what the schemas say of members. What one of them does not declare, it allows or refuses as undeclared."""
    sides = [[side.get(key, default) for key, default in zip(_OBJECTS, ({}, {}, True), strict=True)]
             for side in (one, other)]  # fmt: skip
    (mine, my_patterns, my_rest), (theirs, their_patterns, their_rest) = sides
    if not all(isinstance(each, dict) for each in (mine, theirs, my_patterns, their_patterns)):
        raise NotJoined
    if (my_patterns or their_patterns) and not (_is_open(my_rest) and _is_open(their_rest)):
        raise NotJoined
    rest = joined(my_rest, their_rest, find, depth + 1)
    members: Schema = {}
    required = set(said) if _are_names(said := made.get("required")) else set()
    for name in {**mine, **theirs}:
        member = joined(mine.get(name, my_rest), theirs.get(name, their_rest), find, depth + 1)
        if member is False and name in required:
            if made.get("type") == "object":
                return False
            raise NotJoined
        if member is not False or rest is not False:
            members[name] = member
    for key, value in (("properties", members), ("patternProperties", {**my_patterns, **their_patterns})):
        if key in one or key in other:
            made[key] = value
    if any(my_patterns[name] != their_patterns[name] for name in my_patterns.keys() & their_patterns.keys()):
        raise NotJoined
    if "additionalProperties" in one or "additionalProperties" in other:
        made["additionalProperties"] = rest
    return made


def _is_open(rest: Json) -> bool:
    return rest is True or rest == {}
