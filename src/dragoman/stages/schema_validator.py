"""A JSON schema as a type of the JSON reader, which then tells in one pass whether a text fits.

A text that it takes needs no repair and no coercion. It may refuse one that fits: then the schema is asked itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed
from dragoman.codec.parts.settled_arguments import has_finite_numbers

#: Whether a text is one JSON value that fits.
Fits: TypeAlias = Callable[[str], bool]

_Decode: TypeAlias = Callable[[str], Any]

#: Keywords beside the type that a type of the reader cannot say.
_UNSAID: Final = frozenset({"const", "anyOf", "oneOf", "allOf", "not", "if", "$ref"})
_DEEPEST: Final = 16
_MOST_FIELDS: Final = 200
#: A type takes the time of a thousand values to make, so that larger schemas are asked themselves.
MOST_OBJECTS: Final = 200
_LONGEST: Final = 64 * 1024
_SHORT: Final = 512  # characters that are read whole sooner than searched
_SCALARS: Final[Mapping[str, Any]] = {
    "string": str, "number": float, "integer": int, "boolean": bool, "null": None
}  # fmt: skip


class _Unsaid(Exception):
    """No type says what the schema asks."""


def reader_of(schema: bytes, *, listed: bool = False) -> Fits | None:
    """What tells whether a text fits; None when no type of the reader says what the schema asks.

    Args:
        schema: JSON text, its references resolved.
        listed: the text holds the items of a list, without its brackets.
    """
    if len(schema) > _LONGEST or schema.count(b'"object"') > MOST_OBJECTS:
        return None
    value = _json.decode(schema)
    closed = _Types(is_closed=True)
    usual = _decoder(closed, value, listed=listed)
    if usual is None:
        return None
    wider: list[_Decode] = []  # takes members that the schema does not name; made when the first such text comes

    def fits(text: str) -> bool:
        text = f"[{text}]" if listed else text
        if not wider:
            if type(usual(text)) is not Malformed:
                return True
            if not closed.has_open:
                return False
            wider.append(_decoder(_Types(is_closed=False), value, listed=listed) or _json.decode)
        # It passes such members over; a number there may be out of range.
        if type(wider[0](text)) is Malformed:
            return False
        is_searched = len(text) > _SHORT and text.find("{", 1) > 0  # many values are decoded for more than a search
        return (is_searched and has_finite_numbers(text)) or type(_json.decode(text)) is not Malformed

    return fits


def _decoder(types: _Types, schema: Any, *, listed: bool) -> _Decode | None:
    try:
        kind: Any = types.of(schema, 0)
        return _json.typed_decoder(list[kind] if listed else kind)
    except (_Unsaid, TypeError, ValueError):
        # msgspec: TypeError for types that one JSON value cannot tell apart, ValueError for keys that need an escape.
        return None


class _Types:
    """Makes the types of one schema. `is_closed`: no object has a member that the schema does not name.

    Attributes:
        has_open: an object of the schema may have other members.
    """

    __slots__ = ("_anything", "_is_closed", "has_open")

    def __init__(self, *, is_closed: bool) -> None:
        self._is_closed = is_closed
        # The closed type is the only one that sees a value; with the other a second decode looks at all of them.
        self._anything: Any = Any if is_closed else msgspec.Raw
        self.has_open: bool = False

    def of(self, schema: Any, depth: int) -> Any:
        """The type of a schema. Raises _Unsaid."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST or not _UNSAID.isdisjoint(schema):
            raise _Unsaid
        named = schema.get("type")
        kinds = [named] if isinstance(named, str) else named
        if kinds is None:
            if not {"properties", "required", "items", "enum", "additionalProperties"}.isdisjoint(schema):
                raise _Unsaid
            return self._anything
        if not isinstance(kinds, list) or not kinds:
            raise _Unsaid
        if "enum" in schema:
            return _options(schema["enum"], kinds)
        if schema.get("nullable") is True:
            kinds = [*kinds, "null"]
        if "number" in kinds:
            kinds = [kind for kind in kinds if kind != "integer"]
        types = [self._of_kind(kind, schema, depth) for kind in dict.fromkeys(kinds)]
        return functools.reduce(lambda one, other: one | other, types)

    def _of_kind(self, kind: Any, schema: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            return self._of_object(schema, depth)
        if kind == "array":
            items = schema.get("items")
            item: Any = self.of(items, depth + 1) if isinstance(items, Mapping) else self._anything
            return list[item]
        if kind not in _SCALARS:
            raise _Unsaid
        return _SCALARS[kind]

    def _of_object(self, schema: Mapping[str, Any], depth: int) -> Any:
        properties, required = schema.get("properties"), schema.get("required")
        more = schema.get("additionalProperties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = required if isinstance(required, list) else []
        keys = dict.fromkeys([*properties, *required])
        if isinstance(more, Mapping) and (more or keys):
            raise _Unsaid
        if not keys and more is not False:
            value: Any = self._anything
            return dict[str, value]
        if len(keys) > _MOST_FIELDS or not all(isinstance(key, str) for key in keys):
            raise _Unsaid
        self.has_open = self.has_open or more is not False
        names = {key: f"member{number}" for number, key in enumerate(keys)}
        fields: list[Any] = []
        for key, name in names.items():
            kind = self.of(properties[key], depth + 1) if key in properties else self._anything
            fields.append((name, kind) if key in required else (name, kind | msgspec.UnsetType, msgspec.UNSET))
        fields.sort(key=len)  # those without a default first
        rename = {name: key for key, name in names.items()}
        is_closed = self._is_closed or more is False
        return msgspec.defstruct("Members", fields, rename=rename, forbid_unknown_fields=is_closed, gc=False)


def _options(options: Any, kinds: list[Any]) -> Any:
    if kinds != ["string"] or not isinstance(options, list) or not options:
        raise _Unsaid
    if not all(isinstance(option, str) for option in options):
        raise _Unsaid
    return Literal[tuple(options)]
