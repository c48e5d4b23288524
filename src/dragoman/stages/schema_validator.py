"""Build a type of the JSON reader from a JSON schema, which then tells in one pass whether a text fits.

A text that it accepts needs no repair and no coercion. It may refuse one that fits: then the schema itself decides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed

#: Whether a text is one JSON value that fits.
Fits: TypeAlias = Callable[[str], bool]

#: Keywords beside the type that a type of the reader cannot say.
_UNSAID: Final = frozenset({"const", "anyOf", "oneOf", "allOf", "not", "if", "$ref"})
_DEEPEST: Final = 16
_MOST_FIELDS: Final = 200
#: A type takes the time of a thousand values to make, so that larger schemas are asked themselves.
MOST_OBJECTS: Final = 200
_LONGEST: Final = 64 * 1024
_SCALARS: Final[Mapping[str, Any]] = {
    "string": str, "number": float, "integer": int, "boolean": bool, "null": None
}  # fmt: skip


class _Unsaid(Exception):
    """No type can express the schema."""


def reader_of(schema: bytes, *, listed: bool = False) -> Fits | None:
    """Return a function that tells whether a text fits, or None if no type of the reader can express the schema.

    Args:
        schema: JSON text, its references resolved.
        listed: the text contains the items of a list, without its brackets.
    """
    if len(schema) > _LONGEST or schema.count(b'"object"') > MOST_OBJECTS:
        return None
    try:
        kind: Any = _type_of(_json.decode(schema), 0)
        decode = _json.typed_decoder(list[kind] if listed else kind)
    except (_Unsaid, TypeError, ValueError):
        # msgspec: TypeError for types that one JSON value cannot tell apart, ValueError for keys that need an escape.
        return None

    def fits(text: str) -> bool:
        return type(decode(f"[{text}]" if listed else text)) is not Malformed

    return fits


def _type_of(schema: Any, depth: int) -> Any:
    """Return the type of a schema. Raises _Unsaid.

    Values that may be anything are skipped: repeated keys and oversized numbers were checked when the call was
    completed.
    """
    if not isinstance(schema, Mapping) or depth > _DEEPEST or not _UNSAID.isdisjoint(schema):
        raise _Unsaid
    named = schema.get("type")
    kinds = [named] if isinstance(named, str) else named
    if kinds is None:
        if not {"properties", "required", "items", "enum", "additionalProperties"}.isdisjoint(schema):
            raise _Unsaid
        return msgspec.Raw
    if not isinstance(kinds, list) or not kinds:
        raise _Unsaid
    if "enum" in schema:
        return _options(schema["enum"], kinds)
    if schema.get("nullable") is True:
        kinds = [*kinds, "null"]
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "integer"]
    types = [_type_of_kind(kind, schema, depth) for kind in dict.fromkeys(kinds)]
    return functools.reduce(lambda one, other: one | other, types)


def _type_of_kind(kind: Any, schema: Mapping[str, Any], depth: int) -> Any:
    if kind == "object":
        return _object_type(schema, depth)
    if kind == "array":
        items = schema.get("items")
        item: Any = _type_of(items, depth + 1) if isinstance(items, Mapping) else msgspec.Raw
        return list[item]
    if kind not in _SCALARS:
        raise _Unsaid
    return _SCALARS[kind]


def _object_type(schema: Mapping[str, Any], depth: int) -> Any:
    properties, required = schema.get("properties"), schema.get("required")
    more = schema.get("additionalProperties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = required if isinstance(required, list) else []
    keys = dict.fromkeys([*properties, *required])
    if isinstance(more, Mapping) and (more or keys):
        raise _Unsaid
    if not keys and more is not False:
        return dict[str, msgspec.Raw]
    if len(keys) > _MOST_FIELDS or not all(isinstance(key, str) for key in keys):
        raise _Unsaid
    names = {key: f"member{number}" for number, key in enumerate(keys)}
    fields: list[Any] = []
    for key, name in names.items():
        kind: Any = _type_of(properties[key], depth + 1) if key in properties else msgspec.Raw
        fields.append((name, kind) if key in required else (name, kind | msgspec.UnsetType, msgspec.UNSET))
    fields.sort(key=len)  # those without a default first
    rename = {name: key for key, name in names.items()}
    return msgspec.defstruct("Members", fields, rename=rename, forbid_unknown_fields=more is False, gc=False)


def _options(options: Any, kinds: list[Any]) -> Any:
    if kinds != ["string"] or not isinstance(options, list) or not options:
        raise _Unsaid
    if not all(isinstance(option, str) for option in options):
        raise _Unsaid
    return Literal[tuple(options)]
