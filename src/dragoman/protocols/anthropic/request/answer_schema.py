"""Convert the schema of an answer to the subset of JSON Schema that the API accepts.

Spec: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (read 2026-11-26), and `transform_schema`
of Anthropic's own SDK: objects are closed, and bounds move into the description.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Raw

_TAKEN: Final = frozenset({
    "type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "description",
    "title", "default", "format", "minItems", "additionalProperties",
})  # fmt: skip
_FORMATS: Final = frozenset({
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
})  # fmt: skip
_NOTES: Final = frozenset({"$schema", "$id", "$comment", "examples", "deprecated", "readOnly", "writeOnly"})
_SAME: Final[dict[str, str]] = {"oneOf": "anyOf", "definitions": "$defs"}
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


def _fit(node: Any, lost: list[str], depth: int) -> Any:
    if not isinstance(node, dict) or depth > _DEEPEST:
        return node
    made: dict[str, Any] = {}
    said: list[str] = []
    for key, value in node.items():
        name = str(_SAME.get(key, key))
        if name in ("properties", "$defs") and isinstance(value, dict):
            made[name] = {**made.get(name, {}), **{each: _fit(inner, lost, depth + 1) for each, inner in value.items()}}
        elif name in ("anyOf", "allOf") and isinstance(value, list) and name not in made:
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
    if made.get("type") == "object" and made.get("additionalProperties") is not False:
        if "additionalProperties" in node or "properties" not in node:
            lost.append("additionalProperties")
        made["additionalProperties"] = False
        made.setdefault("properties", {})
    if said:
        words = f"{{{', '.join(said)}}}"
        made["description"] = f"{made['description']}\n\n{words}" if "description" in made else words
    return made


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
        case _:
            return name in _TAKEN
