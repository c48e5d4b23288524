"""Convert Gemini's own schema language (an OpenAPI subset) to JSON Schema.

Spec: https://ai.google.dev/api/caching#Schema (read 2026-11-21). Types are upper-case words, null is `nullable`, keys
come in both spellings. Requests are written with `parametersJsonSchema`, so the opposite direction is not needed.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman._json import Json
from dragoman.protocols.gemini.wire import camel_key

_TYPES: Final = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_DEEPEST: Final = 100
#: Keys that JSON schema does not have.
_OWN: Final = frozenset({"nullable", "propertyOrdering"})
_COUNT: Final = re.compile(r"[0-9]{1,18}")
#: Counts that proto JSON writes as text.
_COUNTS: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


def to_json_schema(schema: Json, depth: int = 0) -> Json:
    """Return a schema as JSON Schema. A non-object, or one deeper than any schema, is returned unchanged."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return schema
    result: dict[str, Json] = {}
    for key, value in schema.items():
        name = key if key[:1] == "$" else camel_key(key)
        if name in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            result[name] = {inner: to_json_schema(item, depth + 1) for inner, item in value.items()}
        elif name in ("items", "additionalProperties", "not"):
            result[name] = to_json_schema(value, depth + 1)
        elif name in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            result[name] = [to_json_schema(item, depth + 1) for item in value]
        elif name == "type":
            result[name] = _type(value)
        elif name in _COUNTS and isinstance(value, str) and _COUNT.fullmatch(value):
            result[name] = int(value)
        elif name not in _OWN and value != "TYPE_UNSPECIFIED":
            result[name] = value
    _order(result, schema.get("propertyOrdering", schema.get("property_ordering")))
    if schema.get("nullable") is True:
        _allow_null(result)
    return result


def _order(schema: dict[str, Json], names: Json) -> None:
    """Return properties in the order in which the model should write them."""
    properties = schema.get("properties")
    if isinstance(properties, dict) and isinstance(names, list):
        first = {name: properties[name] for name in names if isinstance(name, str) and name in properties}
        schema["properties"] = first | properties


def _type(value: Json) -> Json:
    if isinstance(value, list):
        return [item if isinstance(item, list) else _type(item) for item in value]
    return value.lower() if isinstance(value, str) and value.upper() in _TYPES else value


def _allow_null(schema: dict[str, Json]) -> None:
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
