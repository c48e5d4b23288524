"""Recognise arguments that describe a call in place of making one: JSON types, placeholders, parts of the tool's
declaration.

A model that shows how a tool is called writes `{"city": "string"}`, `{"city": "<city>"}` or the schema itself. Read as
a call it would run with words that were never meant as values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman.stages.json_schema import Shape, ToolSchema

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})
#: Keywords of JSON Schema that stand beside a type (2020-12, and `nullable` of OpenAPI 3.0).
_KEYWORDS: Final = frozenset({
    "type", "description", "title", "enum", "const", "default", "examples", "items", "properties", "required", "format",
    "additionalProperties", "nullable", "anyOf", "oneOf", "allOf", "minimum", "maximum", "minLength", "maxLength",
    "minItems", "maxItems", "pattern", "$ref", "$defs", "$schema",
})  # fmt: skip
#: What stands around a name that a value shall take the place of, and how long that is at most.
_BRACKETS: Final = "<>{}[]"
_LONGEST: Final = 80
_DOTS: Final = frozenset({"...", "…"})
#: In a path that nobody has.
_PATH: Final = "path/to/"
#: What explains a value.
_EXAMPLE: Final = re.compile(r"\b(?:e\.g\.|i\.e\.|for example|optional|required|by default|defaults to)", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z0-9]+")
_DEEPEST: Final = 32


def describes(arguments: Mapping[str, Any], schema: ToolSchema) -> bool:
    """Return whether arguments give no value at all: each names a type, is a placeholder or repeats a declaration."""
    shape = schema.root()
    if _repeats(arguments, schema):
        return True
    members = [(key, item) for key, item in arguments.items() if item is not None]
    return bool(members) and all(_is_described(key, item, schema, schema.member(shape, key)) for key, item in members)


def is_template(arguments: Mapping[str, Any], schema: ToolSchema) -> bool:
    """Return whether arguments behind a marker show how a call is written.

    They repeat the tool's schema, or a declared one of them is a schema or its description, or no text of them is a
    value: dots and a name in brackets are what a file holds if another text is told. A type's name is a value there,
    and so are two kinds of dots, one for the other.
    """
    if _repeats(arguments, schema):
        return True
    if set(_DOTS) <= {item for item in arguments.values() if isinstance(item, str)}:
        return False
    shape = schema.root()
    members = ((key, item, schema.member(shape, key)) for key, item in arguments.items())
    parts = [part for key, item, declared in members for part in _declared(key, item, schema, declared)]
    if any(_tells(value, declared) for _, value, declared in parts):
        return True
    texts = [(key, value) for key, value, declared in parts if isinstance(value, str) and _is_free(value, declared)]
    return any(_is_place(key, text) for key, text in texts) and all(
        _is_place(key, text) or _PATH in text or text in _TYPES for key, text in texts
    )


def is_explained(arguments: Mapping[str, Any], schema: ToolSchema) -> bool:
    """Return whether each of the arguments describes itself in words, as in a list of tools."""
    shape = schema.root()
    return bool(arguments) and all(
        isinstance(item, str) and _explains(key, item, schema.member(shape, key)) for key, item in arguments.items()
    )


def _explains(key: str, value: str, shape: Shape) -> bool:
    if len(value) > _LONGEST or "\n" in value.strip() or value in shape.words:
        return False
    words = set(_WORD.findall(value.lower()))
    return _is_word(key, value, shape) or bool(_EXAMPLE.search(value)) or not words.isdisjoint(_WORD.findall(key))


def _repeats(arguments: Mapping[str, Any], schema: ToolSchema) -> bool:
    """Return whether arguments are a JSON schema that the tool takes for no value.

    That is its own schema, if it takes members that it does not declare.
    """
    if not _is_schema(arguments) or all(schema.has_member(key) for key in arguments):
        return False
    root, members = schema.root().schema, arguments.get("properties")
    declared, more = root.get("properties") or {}, root.get("additionalProperties")
    if more is False or (declared and not more):
        return True
    if not members:
        return not declared and arguments.get("type") == "object"
    return bool(declared) and isinstance(members, Mapping) and members.keys() <= declared.keys()


def _declared(
    key: str, value: Any, schema: ToolSchema, shape: Shape, depth: int = 0
) -> Iterator[tuple[str, Any, Shape]]:
    """Yield the texts and objects of a value that are declared, itself too, each with its key and shape."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str | dict):
        yield key, value, shape
    if isinstance(value, list) and (item := schema.item(shape)).schema:
        for one in value:
            yield from _declared(key, one, schema, item, depth + 1)
    elif isinstance(value, dict):
        for name in value.keys() & (shape.schema.get("properties") or {}).keys():
            yield from _declared(name, value[name], schema, schema.member(shape, name), depth + 1)


def _tells(value: Any, shape: Shape) -> bool:
    """Return whether a value is its description, or a schema in place of a value. One word may be a value."""
    if isinstance(value, str):
        said = value.strip()
        return " " in said and said == shape.schema.get("description") and not _is_listed(value, shape)
    declared = shape.schema.get("properties") or {}
    is_other = shape.kinds is not None and "object" not in shape.kinds
    return _is_schema(value) and (is_other or bool(declared and not value.keys() & declared.keys()))


def _is_listed(value: str, shape: Shape) -> bool:
    """Return whether a text is one of the declared values."""
    return value in shape.words or value == shape.schema.get("const")


def _is_free(value: str, shape: Shape) -> bool:
    """Return whether a text stands where any text may."""
    return (shape.types is None or "string" in shape.types) and not _is_listed(value, shape)


def _is_place(key: str, value: str) -> bool:
    """Return whether a text is dots or its key in brackets.

    Dots with spaces around them are code: the body of a function of Python.
    """
    said = value.strip()
    return value in _DOTS or (said[:1] in ("<", "{") and said.strip(_BRACKETS).strip().lower() == key.lower())


def _is_described(key: str, value: Any, schema: ToolSchema, shape: Shape, depth: int = 0) -> bool:
    """Return whether a value describes what stands at its place. `shape`: its schema."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, str):
        return _is_word(key, value, shape)
    if isinstance(value, list):
        item = schema.item(shape)
        return bool(value) and all(_is_described(key, one, schema, item, depth + 1) for one in value)
    if not isinstance(value, dict) or not value:
        return False
    if _is_schema(value) and not _declares(shape, "type"):
        return not _takes_schemas(value, shape)
    return all(_is_described(name, one, schema, schema.member(shape, name), depth + 1) for name, one in value.items())


def _is_word(key: str, value: str, shape: Shape) -> bool:
    """Return whether a text names a type or its own place, and is none of the declared values."""
    said = value.strip()
    if _is_listed(value, shape):
        return False
    if said in _TYPES or said in _DOTS or (said and said == shape.schema.get("description")):
        return True
    if said[:1] not in ("<", "{", "[") or said[-1] not in _BRACKETS or len(said) > _LONGEST:
        return False
    words = set(_WORD.findall(said.lower()))
    return not words.isdisjoint(_TYPES) or not words.isdisjoint(_WORD.findall(key.lower()))


def _is_schema(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a JSON schema: of keywords alone, with JSON's types, or the members of an object."""
    named, members = value.get("type"), value.get("properties")
    if isinstance(members, dict) and (named == "object" or all(isinstance(one, dict) for one in members.values())):
        return named == "object" or value.keys() <= _KEYWORDS
    types = named if isinstance(named, list) else [named]
    are_types = bool(types) and all(isinstance(kind, str) and kind.lower() in {*_TYPES, "null"} for kind in types)
    return are_types and value.keys() <= _KEYWORDS


def _takes_schemas(value: Mapping[str, Any], shape: Shape) -> bool:
    """Return whether a schema with members stands where an object of any members may: it declares none to repeat."""
    return (
        "properties" in value and "properties" not in shape.schema and (shape.types is None or "object" in shape.types)
    )


def _declares(shape: Shape, key: str) -> bool:
    properties = shape.schema.get("properties")
    return isinstance(properties, Mapping) and key in properties
