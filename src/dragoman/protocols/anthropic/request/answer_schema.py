"""Convert the schema of an answer to the subset of JSON Schema that the API accepts.

Spec: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (read 2026-11-26), and `transform_schema`
of Anthropic's own SDK: objects are closed, and bounds move into the description.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Raw

_TAKEN: Final = frozenset({
    "type", "properties", "required", "items", "enum", "const", "anyOf", "$ref", "$defs", "description",
    "title", "default", "format", "minItems", "additionalProperties",
})  # fmt: skip
_FORMATS: Final = frozenset({
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
})  # fmt: skip
_NOTES: Final = frozenset({"$schema", "$id", "$comment", "examples", "deprecated", "readOnly", "writeOnly"})
_SAME: Final[dict[str, str]] = {"oneOf": "anyOf", "definitions": "$defs"}
#: Keywords from which the type of a value follows.
_SAYS_TYPE: Final = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
#: Keywords that stand beside no others, and those that may stand beside them.
_ALONE: Final = frozenset({"$ref", "anyOf", "oneOf"})
_SAID_OF_IT: Final = frozenset({*_NOTES, "title", "description", "default", "$defs", "definitions"})
#: Keywords whose values grow as schemas are joined.
_GATHERED: Final = frozenset({"properties", "required"})
_DEFINITIONS: Final = "#/definitions/"
_DEEPEST: Final = 100


def answer_schema(schema: Raw) -> tuple[Raw, list[str]]:
    """Return the schema in the API's form, and the keywords that are no rules any more; unchanged if the API accepts
    it.
    """
    given = _json.decode(bytes(schema))
    if not isinstance(given, dict):
        return schema, []
    lost: list[str] = []
    made = _fit(given, lost, 0)
    return (schema, []) if made == given else (_json.raw(made), list(dict.fromkeys(lost)))


def _fit(given: Any, lost: list[str], depth: int) -> Any:
    if not isinstance(given, dict) or depth > _DEEPEST:
        return given
    node, unsaid = _without_joints(given, depth)
    made: dict[str, Any] = {}
    said = [f"{key}: {_json.to_text(value)}" for key, value in unsaid.items()]
    lost += unsaid
    for key, value in node.items():
        name = str(_SAME.get(key, key))
        if name in ("properties", "$defs") and isinstance(value, dict):
            made[name] = {**made.get(name, {}), **{each: _fit(inner, lost, depth + 1) for each, inner in value.items()}}
        elif name == "anyOf" and isinstance(value, list):
            made[name] = [_fit(inner, lost, depth + 1) for inner in value]
        elif name == "items" and isinstance(value, dict):
            made[name] = _fit(value, lost, depth + 1)
        elif name == "$ref" and isinstance(value, str):
            made[name] = value.replace(_DEFINITIONS, "#/$defs/", 1)
        elif _is_taken(name, value):
            made[name] = value
        elif name not in _NOTES:
            said.append(f"{key}: {_json.to_text(value)}")
            lost.append(key)
    kind = made.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind):
        _close(made, node, lost)
    if said:
        words = f"{{{', '.join(said)}}}"
        made["description"] = f"{made['description']}\n\n{words}" if "description" in made else words
    return made


def _close(made: dict[str, Any], node: dict[str, Any], lost: list[str]) -> None:
    """Close an object: it has the members that it declares, and requires none of the others."""
    if made.get("additionalProperties") is not False:
        if "additionalProperties" in node or "properties" not in node:
            lost.append("additionalProperties")
        made["additionalProperties"] = False
    members, required = made.setdefault("properties", {}), made.get("required")
    if isinstance(required, list) and isinstance(members, dict):
        told = dict.fromkeys(key for key in required if isinstance(key, str))
        kept = [key for key in told if key in members]
        lost += ["required"] if len(kept) < len(told) else []
        made["required"] = kept


def _without_joints(node: dict[str, Any], depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a schema whose alternatives stand alone, and the keywords that it has no place for.

    An object is closed. Closed, it refuses what its alternatives declare, and they refuse what it declares.
    """
    unsaid: dict[str, Any] = {}
    if isinstance(node.get("$ref"), str):  # its target is closed, too
        unsaid = {key: value for key, value in node.items() if key != "$ref" and key not in _SAID_OF_IT}
        return {key: value for key, value in node.items() if key not in unsaid}, unsaid
    parts = node.get("allOf")
    if isinstance(parts, list):
        node = {key: value for key, value in node.items() if key != "allOf"}
        joined = {key: value.copy() if key in _GATHERED and isinstance(value, dict | list) else value
                  for key, value in node.items()}  # fmt: skip
        if all(_join(joined, part, depth + 1) for part in parts):
            node = joined
        else:
            unsaid = {"allOf": parts}
    unions = [key for key in ("anyOf", "oneOf") if isinstance(node.get(key), list)]
    if not unions:
        return node, unsaid
    is_lone = "properties" not in node and "required" not in node
    for key in unions[1:] if is_lone else unions:
        unsaid[key] = node[key]
    if is_lone:
        kinds = {} if node.get("type") is None else {"type": node["type"]}
        alternatives = [{**kinds, **each} if isinstance(each, dict) and not each.keys() & _SAYS_TYPE else each
                        for each in node[unions[0]]]  # fmt: skip
        node = {**node, unions[0]: alternatives}
    gone = {*unsaid, *(("type", "additionalProperties") if is_lone else ())}
    return {key: value for key, value in node.items() if key not in gone}, unsaid


def _join(one: dict[str, Any], other: Any, depth: int) -> bool:
    """Add what another schema says to a schema. False if the words of one cannot stand beside those of the other."""
    if not isinstance(other, dict) or depth > _DEEPEST:
        return other is True
    other, unsaid = _without_joints(other, depth)
    if unsaid or (other.keys() & _ALONE and one.keys() - _SAID_OF_IT) or (one.keys() & _ALONE and other):
        return False
    for key, theirs in other.items():
        mine = one.get(key, theirs)
        if key == "properties" and isinstance(mine, dict) and isinstance(theirs, dict):
            if any(mine[name] != theirs[name] for name in mine.keys() & theirs.keys()):
                return False
            one[key] = mine if mine is not theirs else theirs.copy()
            one[key].update(theirs)
        elif key == "required" and isinstance(mine, list) and isinstance(theirs, list):
            one[key] = mine if mine is not theirs else []
            one[key] += theirs
        elif key not in one:
            one[key] = theirs
        elif mine != theirs and key not in _SAID_OF_IT:
            return False
    return True


def _is_taken(name: str, value: Json) -> bool:
    """Return whether the API accepts a keyword with this value."""
    match name:
        case "additionalProperties":
            return value is False
        case "format":
            return isinstance(value, str) and value in _FORMATS
        case "minItems":
            return value in (0, 1)
        case "description":
            return isinstance(value, str)
        case "required":
            return isinstance(value, list)
        case "properties" | "$defs":  # they are read apart, if they are schemas by name
            return False
        case _:
            return name in _TAKEN
