"""Convert schemas of older drafts, of OpenAPI and with Python's type names to JSON Schema draft 2020-12.

Spec: https://json-schema.org/draft/2020-12/release-notes and https://spec.openapis.org/oas/v3.0.3#schema-object (read
2026-11-26).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from dragoman._json import Json
from dragoman.codec.schemas.places import BY_NAME, NOTES, ONE, SEVERAL

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
#: Words of programs for JSON's types.
_SAME: Final = {
    "str": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean", "list": "array",
    "tuple": "array", "dict": "object", "map": "object", "none": "null", "nonetype": "null",
}  # fmt: skip
_ANY: Final = "any"
_BOUNDS: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
_TEXTS: Final = (
    "description", "title", "pattern", "format", "contentEncoding", "contentMediaType", "$comment", "$schema", "$ref",
    "$dynamicRef", "$recursiveAnchor", "$recursiveRef",
)  # fmt: skip
_COUNTS: Final = (
    "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minContains", "maxContains",
)  # fmt: skip
_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SWITCHES: Final = ("uniqueItems", "deprecated", "readOnly", "writeOnly")
_DEFINITIONS: Final = ("$defs", "definitions")
_DEEPEST: Final = 100
_ANCHOR: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")


def modern(schema: dict[str, Any], lost: list[str], depth: int = 0) -> dict[str, Any]:
    """Return a schema that the draft's metaschema accepts. Invalid values of keywords are moved to `lost`."""
    if depth > _DEEPEST:
        return schema
    made: dict[str, Any] = {}
    wanted: list[str] = []
    for key, value in _without_dependencies(schema, lost).items():
        if key in BY_NAME and isinstance(value, dict):
            made[key] = {name: _inner(inner, lost, depth) for name, inner in value.items()}
            if key == "properties":
                wanted = [name for name, inner in value.items() if _is_wanted(inner)]
        elif key in BY_NAME:
            lost.append(key)
        elif key == "items" and isinstance(value, list):
            if _is_filled(schema.get("prefixItems")):  # the newer name counts
                lost.append(key)
            elif value:
                made["prefixItems"] = _each(value, lost, depth)
        elif key in ONE or key == "items":
            made[key] = _inner(value, lost, depth)
        elif key in SEVERAL and _is_filled(value):
            made[key] = _each(value, lost, depth)
        elif key in SEVERAL:
            lost.append(key)
        elif key not in ("required", "type"):
            made[key] = value
        elif key == "type":
            _type(made, value, lost)
        else:
            names = value if isinstance(value, list) else []
            made |= {key: list(dict.fromkeys(name for name in names if isinstance(name, str)))} if names else {}
            if not isinstance(value, list | bool) or not all(isinstance(name, str) for name in names):
                lost.append(key)
    _tuples(made, schema)
    _bounds(made)
    _checked(made, lost)
    if wanted:
        made["required"] = list(dict.fromkeys([*made.get("required", ()), *wanted]))
    if made.pop("nullable", None) is True:
        _allow_null(made)
    return made


def _without_dependencies(schema: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    """Return a schema with the two keywords that `dependencies` of older drafts became, where it has not these too."""
    found = schema.get("dependencies")
    if not isinstance(found, dict):
        return schema
    made = {key: value for key, value in schema.items() if key != "dependencies"}
    for key, kind in (("dependentRequired", list), ("dependentSchemas", dict | bool)):
        if (those := {name: each for name, each in found.items() if isinstance(each, kind)}) and key not in made:
            made[key] = those
        elif those:
            lost.append("dependencies")
    if not all(isinstance(each, list | dict | bool) for each in found.values()):
        lost.append("dependencies")
    return made


def _inner(value: Json, lost: list[str], depth: int) -> Json:
    if isinstance(value, dict):
        return modern(value, lost, depth + 1)
    if isinstance(value, bool):
        return value
    lost.append("a schema that is none")
    return True


def _each(values: list[Json], lost: list[str], depth: int) -> list[Json]:
    return [_inner(each, lost, depth) for each in values]


def _is_filled(value: Json) -> bool:
    return isinstance(value, list) and bool(value)


def _is_wanted(schema: Json) -> bool:
    """Return whether a property itself says that it is required, as in draft 3."""
    return isinstance(schema, dict) and schema.get("required") is True


def _type(made: dict[str, Any], value: Json, lost: list[str]) -> None:
    """Set JSON's types; none if any type is valid, or the name is unknown."""
    given = value if isinstance(value, list) else [value]
    known = [_SAME.get(each.lower(), each.lower()) if isinstance(each, str) else "" for each in given]
    types = list(dict.fromkeys(each for each in known if each in _TYPES))
    if _ANY in known:
        return
    if len(types) < len(set(known)) or not known:
        lost.append("type")
    if types:
        made["type"] = types if isinstance(value, list) and value else types[0]


def _tuples(made: dict[str, Any], schema: dict[str, Any]) -> None:
    """Rename `additionalItems`, which described what follows a tuple's places."""
    behind = made.pop("additionalItems", None)
    if isinstance(schema.get("items"), list) and behind is not None:
        made["items"] = behind


def _bounds(made: dict[str, Any]) -> None:
    """Convert boolean exclusive bounds to numbers."""
    for bound, exclusive in _BOUNDS:
        said = made.get(exclusive)
        if isinstance(said, bool):
            del made[exclusive]
            if said and isinstance(made.get(bound), int | float):
                made[exclusive] = made.pop(bound)


def _checked(made: dict[str, Any], lost: list[str]) -> None:
    """Remove keywords whose values are of another kind than the draft wants. Older drafts wrote an anchor as `$id`."""
    if isinstance(name := made.get("$id"), str) and name[:1] == "#" and _is_anchor(name[1:]):
        made.setdefault("$anchor", name[1:])
        del made["$id"]
    for key, value in [*made.items()]:
        if key in _VALID and not _VALID[key](value):
            lost.append(key)
            del made[key]
    if "examples" in made and not isinstance(made["examples"], list):
        made["examples"] = [made["examples"]]


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_anchor(value: Json) -> bool:
    return isinstance(value, str) and _ANCHOR.fullmatch(value) is not None


def _is_bool(value: Json) -> bool:
    return isinstance(value, bool)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Json) -> bool:
    return _is_number(value) and value >= 0 and value % 1 == 0


def _are_names(value: Json) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


#: A keyword → whether a value is one of its values.
_VALID: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_TEXTS, _is_text),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(_SWITCHES, _is_bool),
    "nullable": _is_bool,
    **dict.fromkeys(("$anchor", "$dynamicAnchor"), _is_anchor),
    "$id": lambda value: _is_text(value) and "#" not in value[:-1],
    "$vocabulary": lambda value: isinstance(value, dict) and all(map(_is_bool, value.values())),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "enum": _is_filled,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
}


def _may_be_null(schema: Json) -> bool:
    """Return whether null may fit an alternative; of `oneOf`, it may fit one only."""
    if not isinstance(schema, dict) or "type" not in schema:
        return schema is not False
    return "null" in schema["type"] and schema != {"type": "null"}


def _allow_null(made: dict[str, Any]) -> None:
    """Allow null, too, which OpenAPI says with `nullable`."""
    if "$ref" in made or "allOf" in made or any(map(_may_be_null, made.get("oneOf", ()))):
        inner = {key: made.pop(key) for key in [*made] if key not in NOTES and key not in _DEFINITIONS}
        made["anyOf"] = [inner, {"type": "null"}]
        return
    kinds = made.get("type")
    if kinds is not None and kinds != "null":
        made["type"] = list(dict.fromkeys([*(kinds if isinstance(kinds, list) else [kinds]), "null"]))
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if isinstance(made.get("enum"), list) and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    for key in ("anyOf", "oneOf"):
        if key in made and {"type": "null"} not in made[key]:
            made[key] = [*made[key], {"type": "null"}]
