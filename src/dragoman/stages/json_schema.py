"""A tool's JSON schema as far as arguments need it: what fits, and what a value must become to fit.

Coercion follows one rule: a value that fits is never touched; one that does not is changed only where its meaning is
sure (`"5"` where a number is wanted). Numbers are carried as their own text, so that none changes its form.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Number
from dragoman.protocol import TakesNothing
from dragoman.stages.schema_validator import Fits, reader_of
from dragoman.types import Tool

Schema: TypeAlias = Mapping[str, Any]
#: Reads a list or an object that stands in a string, as leniently as arguments are read; the names of all members help.
ReadInner: TypeAlias = Callable[[str, frozenset[str]], "_json.Json | Malformed"]

#: Keywords that decide a value beside its type.
_DECIDING: Final = frozenset({"enum", "const", "anyOf", "oneOf", "allOf", "not", "if"})
_ANY: Final[Schema] = {}
#: How the first item of a list in JSON begins, and one that is empty ends.
_ITEM_BEGINS: Final = re.compile(r"\s*(?:[\"'{\[\]]|-?\d)")
_DEEPEST: Final = 64
_NO_ARGUMENTS: Final[Schema] = {"type": "object", "properties": {}}
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})


@final
class Shape(msgspec.Struct, frozen=True):
    """What a schema says of one value at first sight. `types` None: any."""

    schema: Schema
    types: frozenset[str] | None
    is_decided: bool  # a keyword beside the type decides the value, so it is judged whole

    def takes_live(self, kind: str) -> bool:
        """Whether a value of this JSON type may leave before it is whole."""
        return not self.is_decided and (self.types is None or kind in self.types)


class ToolSchema:
    """The schema of a tool's arguments. What was found out of it is kept, so one serves many responses."""

    __slots__ = ("_names", "_reader", "_readers", "_root", "_shapes")

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._shapes: dict[int, tuple[Schema, Shape]] = {}
        self._names: frozenset[str] | None = None
        self._reader: Fits | None = None
        self._readers: dict[int, tuple[Schema, Fits | None]] = {}

    def root(self) -> Shape:
        """The shape of the arguments object."""
        return self.shape(self._root)

    def shape(self, schema: Any) -> Shape:
        """What a subschema says at first sight, its reference followed."""
        known = self._shapes.get(id(schema))
        if known is None:
            resolved = self._resolve(schema)
            shape = Shape(resolved, _types(resolved), not _DECIDING.isdisjoint(resolved) or "$ref" in resolved)
            known = self._shapes[id(schema)] = (schema, shape)
        return known[1]

    def member(self, shape: Shape, key: str) -> Shape:
        """The shape of an object's member."""
        if not shape.schema:
            return shape
        properties = shape.schema.get("properties")
        if isinstance(properties, Mapping) and key in properties:
            return self.shape(properties[key])
        more = shape.schema.get("additionalProperties")
        return self.shape(more if isinstance(more, Mapping) else _ANY)

    def has_member(self, key: str) -> bool:
        """Whether the arguments object names this member."""
        properties = self.root().schema.get("properties")
        return isinstance(properties, Mapping) and key in properties

    def names(self) -> frozenset[str]:
        """The names of all members, in whatever depth of the schema."""
        if self._names is None:
            self._names = frozenset(_member_names(self._root))
        return self._names

    def item(self, shape: Shape) -> Shape:
        """The shape of an array's items."""
        if not shape.schema:
            return shape
        items = shape.schema.get("items")
        return self.shape(items if isinstance(items, Mapping) else _ANY)

    def is_unknown_member(self, shape: Shape, key: str) -> bool:
        """Whether an object may not have this member."""
        properties = shape.schema.get("properties")
        return shape.schema.get("additionalProperties") is False and key not in (properties or ())

    def _resolve(self, schema: Any) -> Schema:
        for _ in range(_DEEPEST):
            if not isinstance(schema, Mapping):
                return _ANY
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#"):
                return schema
            found: Any = self._root
            for step in reference[1:].strip("/").split("/"):
                step = step.replace("~1", "/").replace("~0", "~")
                found = found.get(step) if isinstance(found, Mapping) and step else found
            if found is None or found is schema:
                return {key: value for key, value in schema.items() if key != "$ref"}
            schema = found
        return _ANY

    # ------------------------------------------------------------ fitting

    def takes_as_is(self, text: str) -> bool:
        """Whether a text is one whole object that fits, so that nothing in it is mended; a false no is possible."""
        if text[:1] != "{" or text[-1:] != "}":
            return False
        if self._reader is None:
            self._reader = reader_of(bytes(_json.raw(self._root))) or _never
        if self._reader(text):
            return True
        value = _json.decode(text)
        return isinstance(value, dict) and self.fits(value, self._root)

    def fitting_items(self, shape: Shape) -> Fits | None:
        """What tells whether a text is items of a list, each of this shape; None when only `fits` can tell."""
        known = self._readers.get(id(shape.schema))
        if known is None:
            reader = reader_of(bytes(_json.raw(shape.schema)), listed=True)
            known = self._readers[id(shape.schema)] = (shape.schema, reader)
        return known[1]

    def fits(self, value: Any, schema: Any, depth: int = 0) -> bool:
        """Whether a value (numbers best as `Number`) is what a schema asks for; ranges and patterns are not read."""
        if depth > _DEEPEST:
            return True
        schema = self._resolve(schema)
        types = _types(schema)
        if types is not None and not any(_is_of(value, kind) for kind in types):
            return False
        if "enum" in schema and not any(_equal(value, option) for option in schema["enum"]):
            return False
        if "const" in schema and not _equal(value, schema["const"]):
            return False
        for keyword in ("anyOf", "oneOf"):
            options = schema.get(keyword)
            if isinstance(options, list) and not any(self.fits(value, option, depth + 1) for option in options):
                return False
        parts = schema.get("allOf")
        if isinstance(parts, list) and not all(self.fits(value, part, depth + 1) for part in parts):
            return False
        if isinstance(value, dict):
            return self._members_fit(value, schema, depth)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            return all(self.fits(item, items, depth + 1) for item in value)
        return True

    def _members_fit(self, value: dict[str, Any], schema: Schema, depth: int) -> bool:
        required = schema.get("required")
        if isinstance(required, list) and any(key not in value for key in required):
            return False
        shape = self.shape(schema)
        if any(self.is_unknown_member(shape, key) for key in value):
            return False
        return all(self.fits(item, self.member(shape, key).schema, depth + 1) for key, item in value.items())

    # ------------------------------------------------------------ coercing

    def coerced(self, value: Any, schema: Any, depth: int = 0, *, read_inner: ReadInner) -> Any:
        """The value as the schema wants it, or the value itself when it fits, or when nothing is sure.

        Args:
            read_inner: reads a list or an object that stands in a string.
        """
        if depth > _DEEPEST or self.fits(value, schema):
            return value
        schema = self._resolve(schema)
        for keyword in ("anyOf", "oneOf"):
            for option in schema.get(keyword, ()):
                changed = self.coerced(value, option, depth + 1, read_inner=read_inner)
                if self.fits(changed, option):
                    return changed
        if isinstance(value, dict) and _may_be(schema, "object"):
            shape = self.shape(schema)
            return {
                key: self.coerced(item, self.member(shape, key).schema, depth + 1, read_inner=read_inner)
                for key, item in value.items()
            }
        if isinstance(value, list) and _may_be(schema, "array"):
            items = schema.get("items", _ANY)
            return [self.coerced(item, items, depth + 1, read_inner=read_inner) for item in value]
        for changed in self._readings(value, schema, read_inner):
            if isinstance(changed, list | dict):
                changed = self.coerced(changed, schema, depth + 1, read_inner=read_inner)
            if self.fits(changed, schema):
                return changed
        if "array" in (_types(schema) or ()) and not isinstance(value, list) and not _looks_like_list(value):
            changed = [self.coerced(value, schema.get("items", _ANY), depth + 1, read_inner=read_inner)]
            if value is not None and self.fits(changed, schema):
                return changed
        if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list | dict):
            changed = self.coerced(value[0], schema, depth + 1, read_inner=read_inner)
            if self.fits(changed, schema):
                return changed
        return value

    def _readings(self, value: Any, schema: Schema, read_inner: ReadInner) -> list[Any]:
        """What else a value may mean, the surest first."""
        if isinstance(value, bool):
            return ["true" if value else "false"]
        if isinstance(value, Number):
            return [str(value)]
        if not isinstance(value, str):
            return []
        found = _readings_of_text(value, schema)
        bare = value.strip()
        if bare[:1] in ("{", "[") and (_may_be(schema, "array") or _may_be(schema, "object")):
            inner = read_inner(bare, self.names())
            if not isinstance(inner, Malformed):
                found.append(inner)
        return found


def schema_of(tool: Tool) -> ToolSchema:
    """The schema of a tool; the same one for the same text, since clients offer their tools with every request."""
    return _read_schema(bytes(tool.schema) if tool.schema is not None else b"")


@functools.lru_cache(maxsize=512)
def _read_schema(text: bytes) -> ToolSchema:
    value = _json.decode(text)
    return ToolSchema(value if isinstance(value, dict) else _NO_ARGUMENTS)


def nothing_fits(tools: Sequence[Tool]) -> TakesNothing:
    """Tells of these tools, by name, whether `{}` are arguments that they take."""
    by_name = {tool.name: tool for tool in tools}

    def takes_nothing(name: str) -> bool:
        tool = by_name.get(name)
        return tool is None or tool.schema is None or schema_of(tool).takes_as_is("{}")

    return takes_nothing


def _looks_like_list(value: Any) -> bool:
    """Whether a text that could not be read as a list may be one all the same, or the beginning of one: it is no single
    item for sure."""
    if not isinstance(value, str) or (bare := value.strip())[:1] != "[":
        return False
    return bare[-1:] == "]" or bare.count("[") > bare.count("]") or _ITEM_BEGINS.match(bare, 1) is not None


def _readings_of_text(text: str, schema: Schema) -> list[Any]:
    found: list[Any] = []
    options = schema.get("enum")
    if isinstance(options, list):
        same = [
            option for option in options if isinstance(option, str) and option.casefold() == text.strip().casefold()
        ]
        if len(same) == 1:
            found.append(same[0])
    bare = text.strip()
    number = _json.read_number(bare)
    if number is not None and math.isfinite(float(number)):
        whole = bare.partition(".")[0] if "e" not in bare.lower() and bare.partition(".")[2].strip("0") == "" else None
        if whole and "integer" in (_types(schema) or ()):
            found.append(Number(whole))
        found.append(number)
    if bare.lower() in ("true", "false"):
        found.append(bare.lower() == "true")
    if bare.lower() in ("null", "none"):
        found.append(None)
    return found


def _member_names(schema: Any) -> Iterator[str]:
    unread = [schema]
    while unread:
        part = unread.pop()
        if isinstance(part, Mapping):
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                yield from properties
            unread += part.values()
        elif isinstance(part, list):
            unread += part


def _never(text: str) -> bool:
    return False


def _types(schema: Schema) -> frozenset[str] | None:
    named = schema.get("type")
    if isinstance(named, str):
        named = [named]
    if not isinstance(named, list):
        return None
    types = {kind.lower() for kind in named if isinstance(kind, str)} & _TYPES
    if schema.get("nullable") is True:
        types.add("null")
    return frozenset(types) or None


def _may_be(schema: Schema, kind: str) -> bool:
    types = _types(schema)
    return types is None or kind in types


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, Number):
        return kind == "number" or (kind == "integer" and value.is_integer())
    if isinstance(value, bool):
        return kind == "boolean"
    if value is None:
        return kind == "null"
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and isinstance(value, int))
    return kind == ("string" if isinstance(value, str) else "array" if isinstance(value, list) else "object")


def _equal(value: Any, option: Any) -> bool:
    if isinstance(value, Number):
        return not isinstance(option, bool) and isinstance(option, int | float) and value.equals(option)
    return type(value) is type(option) and bool(value == option)
