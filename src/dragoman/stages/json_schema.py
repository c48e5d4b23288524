"""A tool's JSON schema as far as arguments need it: what fits, and what a value must become to fit.

Coercion follows one rule: a value that fits is never touched; one that does not is changed only if its meaning is
certain (`"5"` for a number). Numbers are kept as their own text, so that none changes its form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Number
from dragoman.codec.json_fields import parts_of
from dragoman.stages.schema_validator import Fits, reader_of

Schema: TypeAlias = Mapping[str, Any]
#: Reads a list or an object that stands in a string, as leniently as arguments are read; the names of all members help.
ReadInner: TypeAlias = Callable[[str, frozenset[str]], "_json.Json | Malformed"]

#: Keywords that decide a value beside its type.
_DECIDING: Final = frozenset({"enum", "const", "anyOf", "oneOf", "allOf", "not", "if"})
_ANY: Final[Schema] = {}
#: How the first item of a list in JSON begins, and one that is empty ends.
_ITEM_BEGINS: Final = re.compile(r"\s*(?:[\"'{\[\]]|-?\d)")
_DEEPEST: Final = 64
#: Parts of a schema that may declare members of an object: always, and if it is one of several.
_ALWAYS: Final = ("allOf",)
_PERHAPS: Final = ("allOf", "anyOf", "oneOf", "then", "else")
#: Subschemas that are looked at for members.
_MOST_PARTS: Final = 64
#: Subschemas that are looked at for the types of a value, and how deep, in fours: optional ones have two.
_MOST_CHOICES: Final = 12
#: Looks at a value by a subschema that a call has, whatever its length; and how many more for each of its characters.
_FREE_STEPS: Final = 600
_STEPS_A_CHARACTER: Final = 3
#: How many plain values are compared in the time of such a look.
_CHEAPER: Final = 8
_KINDS: Final[Mapping[type, str]] = {
    str: "string", Number: "number", int: "number", float: "number", bool: "boolean", type(None): "null", list: "array",
}  # fmt: skip
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
#: The same in the words of programming languages, which hand-written tools have: servers' parsers read them.
_OTHER_WORDS: Final[Mapping[str, str]] = {
    "str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "none": "null",
}  # fmt: skip


@final
class Shape(msgspec.Struct, frozen=True):
    """A schema's statement about one value at first sight.

    Attributes:
        types: None: any.
        words: texts among its choices.
        kinds: the types that its subschemas leave, None: any.
        is_listed: its values are enumerated, here or in a subschema.
        members: the schemas of an object's members.
    """

    schema: Schema
    types: frozenset[str] | None
    is_decided: bool  # a keyword beside the type decides the value, so it is judged whole
    required: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None
    is_listed: bool = False
    members: Schema = _ANY

    @property
    def is_text(self) -> bool:
        """Whether a value is a text and nothing else, null apart."""
        return not self.is_decided and self.types is not None and "string" in self.types <= {"string", "null"}

    def takes_live(self, kind: str) -> bool:
        """Return whether a value of this JSON type may leave before it is complete."""
        return not self.is_decided and (self.types is None or kind in self.types)


class ToolSchema:
    """The schema of a tool's arguments. Its derived facts are cached, so that one serves many responses."""

    __slots__ = ("_arguments", "_names", "_reader", "_readers", "_root", "_shapes")

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._shapes: dict[int, tuple[Schema, Shape]] = {}
        self._arguments: Schema | None = None
        self._names: frozenset[str] | None = None
        self._reader: Fits | None = None
        self._readers: dict[int, tuple[Schema, Fits | None]] = {}

    def root(self) -> Shape:
        """Return the shape of the arguments object."""
        return self.shape(self._root)

    def shape(self, schema: Any) -> Shape:
        """Return the shape of a subschema, its reference followed."""
        known = self._shapes.get(id(schema))
        if known is None:
            resolved = self._resolve(schema)
            is_decided = not _DECIDING.isdisjoint(resolved) or "$ref" in resolved
            required, words = (tuple(dict.fromkeys(_texts(resolved.get(key)))) for key in ("required", "enum"))
            kinds, is_listed = self._kinds(resolved)
            members = self._members(resolved, _ALWAYS)
            shape = Shape(resolved, _types(resolved), is_decided, required, frozenset(words), kinds, is_listed, members)
            known = self._shapes[id(schema)] = (schema, shape)
        return known[1]

    def _kinds(self, schema: Schema, depth: int = 0) -> tuple[frozenset[str] | None, bool]:
        """Return the types that a schema and its subschemas leave, and whether its values are enumerated."""
        kinds, is_listed = _types(schema), "enum" in schema or "const" in schema
        for word in ("anyOf", "oneOf", "allOf") if depth < _MOST_CHOICES else ():
            parts = schema.get(word)
            if not isinstance(parts, list) or not 0 < len(parts) <= _MOST_CHOICES:
                continue
            found = [self._kinds(self._resolve(part), depth + 4) for part in parts]
            is_listed = is_listed or any(each for _, each in found)
            told = [each for each, _ in found if each is not None]
            if told and (word == "allOf" or len(told) == len(found)):
                left = frozenset.intersection(*told) if word == "allOf" else frozenset.union(*told)
                kinds = left if kinds is None else kinds & left
        return kinds, is_listed

    def _members(self, schema: Schema, words: tuple[str, ...]) -> Schema:
        """Return the members that a schema declares, and its parts under these keywords."""
        found: dict[str, list[Any]] = {}
        parts = [schema]
        for part in parts:
            properties = part.get("properties")
            properties = properties if isinstance(properties, Mapping) else _ANY
            if len(parts) == 1 and not any(word in part for word in words):
                return properties
            for key, told in properties.items():
                found.setdefault(key, []).append(told)
            for more in map(part.get, words):
                more = more if isinstance(more, list) else [more]
                parts += map(self._resolve, more[: _MOST_PARTS - len(parts)])
        joint = "allOf" if words == _ALWAYS else "anyOf"
        return {key: told[0] if len(told) == 1 else {joint: told} for key, told in found.items()}

    def member(self, shape: Shape, key: str) -> Shape:
        """Return the shape of an object's member."""
        if not shape.schema:
            return shape
        if key in shape.members:
            return self.shape(shape.members[key])
        more = shape.schema.get("additionalProperties")
        return self.shape(more if isinstance(more, Mapping) else _ANY)

    def argument(self, key: str) -> Shape:
        """Return the shape of an argument; one of several alternatives may declare it."""
        return self.shape(self._declared()[key]) if self.has_member(key) else self.member(self.root(), key)

    def has_member(self, key: str) -> bool:
        """Return whether the arguments object names this member."""
        return key in self._declared()

    def _declared(self) -> Schema:
        """Return the schemas of all arguments: what always holds, else what alternatives say."""
        if self._arguments is None:
            root = self.root()
            self._arguments = {**self._members(root.schema, _PERHAPS), **root.members}
        return self._arguments

    def names(self) -> frozenset[str]:
        """Return the names of all members, in whatever depth of the schema."""
        if self._names is None:
            self._names = frozenset(_member_names(self._root))
        return self._names

    def item(self, shape: Shape) -> Shape:
        """Return the shape of an array's items."""
        if not shape.schema:
            return shape
        items = shape.schema.get("items")
        return self.shape(items if isinstance(items, Mapping) else _ANY)

    def is_unknown_member(self, shape: Shape, key: str) -> bool:
        """Return whether an object may not have this member."""
        properties = shape.schema.get("properties")
        known = properties if isinstance(properties, Mapping) else ()
        return shape.schema.get("additionalProperties") is False and key not in known

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
        """Return whether a text is one complete object that fits, so that nothing changes. False may be a mistake."""
        if text[:1] != "{" or text[-1:] != "}" or "arg_key" in text or "parameter" in text:  # see `holds_next`
            return False
        if self._reader is None:
            self._reader = reader_of(bytes(_json.raw(self._root))) or _never
        if self._reader(text):
            return True
        value = _json.decode(text)
        # A sixth of the steps: what is not sure here is judged value by value.
        return isinstance(value, dict) and Judge(self, len(text), share=6).fits(value, self._root)

    def fitting_items(self, shape: Shape) -> Fits | None:
        """Return a function that tells whether a text is items of a list, each of this shape; None: a `Judge` must."""
        known = self._readers.get(id(shape.schema))
        if known is None:
            reader = reader_of(bytes(_json.raw(shape.schema)), listed=True)
            known = self._readers[id(shape.schema)] = (shape.schema, reader)
        return known[1]


class Judge:
    """Judges values by a schema, and makes them fit, in a number of steps that their text bounds.

    A few hundred bytes of schema can ask for more looks at one value than any machine has time for (alternatives of
    alternatives). What is not judged when the steps are spent stays as it is.
    """

    __slots__ = ("_left", "_schema")

    def __init__(self, schema: ToolSchema, size: int = 0, *, share: int = 1) -> None:
        """Create it. `size`: characters around the values; see `allow`. `share`: 6 for a sixth of the steps."""
        self._schema = schema
        self._left = (_FREE_STEPS + size * _STEPS_A_CHARACTER) // share

    def allow(self, size: int) -> None:
        """Grant the steps for `size` more characters."""
        self._left += size * _STEPS_A_CHARACTER

    @property
    def is_spent(self) -> bool:
        """Whether something was not judged."""
        return self._left < 0

    def fits(self, value: Any, schema: Any) -> bool:
        """Return whether a value (numbers best as `Number`) certainly fits a schema. Ranges and patterns are not."""
        return self._fits(value, schema, 0) and not self.is_spent

    def coerced(self, value: Any, schema: Any, *, read_inner: ReadInner) -> Any:
        """Return the value as the schema wants it, or the value itself if it fits, or nothing is certain.

        Args:
            read_inner: reads a list or an object that stands in a string.
        """
        changed = self._coerced(value, schema, 0, read_inner=read_inner)
        return value if self.is_spent else changed

    def _fits(self, value: Any, schema: Any, depth: int) -> bool:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return True
        shape = self._schema.shape(schema)
        if shape.types is not None and not is_of(value, shape.types):
            return False
        if shape.is_decided and not self._is_chosen(value, shape, depth):
            return False
        if isinstance(value, dict):
            return self._members_fit(value, shape, depth)
        items = shape.schema.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            return all(self._fits(item, items, depth + 1) for item in value)
        return True

    def _is_chosen(self, value: Any, shape: Shape, depth: int) -> bool:
        """Return whether the keywords beside the type accept the value."""
        schema = shape.schema
        options = schema.get("enum")
        if isinstance(options, list) and not self._is_among(value, options, shape.words):
            return False
        if "const" in schema and not self._is_among(value, [schema["const"]], frozenset()):
            return False
        for alternatives in (schema.get("anyOf"), schema.get("oneOf")):
            if isinstance(alternatives, list):
                for one in alternatives:
                    if self._fits(value, one, depth + 1):
                        break
                else:
                    return False
        parts = schema.get("allOf")
        return not isinstance(parts, list) or all(self._fits(value, part, depth + 1) for part in parts)

    def _members_fit(self, value: dict[str, Any], shape: Shape, depth: int) -> bool:
        # More names than members: one of the first that many is missing.
        if any(key not in value for key in shape.required) or any(
            self._schema.is_unknown_member(shape, key) for key in value
        ):
            return False
        member = self._schema.member
        return all(self._fits(item, member(shape, key).schema, depth + 1) for key, item in value.items())

    def _is_among(self, value: Any, options: list[Any], words: frozenset[str]) -> bool:
        """Return whether a value is one of the options. `words`: the texts among these, if known."""
        if words and type(value) is str:
            return value in words
        each = _values(value) if isinstance(value, list | dict) else 1
        self._left -= (len(options) + 1) * each // _CHEAPER
        return self._left < 0 or any(_equal(value, option) for option in options)

    # ------------------------------------------------------------ coercing

    def _coerced(self, value: Any, schema: Any, depth: int, *, read_inner: ReadInner) -> Any:
        if depth > _DEEPEST or self._fits(value, schema, 0):
            return value
        shape = self._schema.shape(schema)
        schema = shape.schema
        for options in (schema.get("anyOf"), schema.get("oneOf")):
            for option in options if isinstance(options, list) else ():
                changed = self._coerced(value, option, depth + 1, read_inner=read_inner)
                if self._fits(changed, option, 0):
                    return changed
        if isinstance(value, dict) and _may_be(schema, "object"):
            return {
                key: self._coerced(item, self._schema.member(shape, key).schema, depth + 1, read_inner=read_inner)
                for key, item in value.items()
            }
        if isinstance(value, list) and _may_be(schema, "array"):
            items = schema.get("items", _ANY)
            return [self._coerced(item, items, depth + 1, read_inner=read_inner) for item in value]
        for changed in self._readings(value, schema, read_inner):
            if isinstance(changed, list | dict):
                changed = self._coerced(changed, schema, depth + 1, read_inner=read_inner)
            if self._fits(changed, schema, 0):
                return changed
        if "array" in (_types(schema) or ()) and not isinstance(value, list) and not _looks_like_list(value):
            changed = [self._coerced(value, schema.get("items", _ANY), depth + 1, read_inner=read_inner)]
            if value is not None and self._fits(changed, schema, 0):
                return changed
        return value

    def _readings(self, value: Any, schema: Schema, read_inner: ReadInner) -> list[Any]:
        """Return what else a value may mean, the most certain first."""
        if isinstance(value, bool):
            return ["true" if value else "false"]
        if isinstance(value, Number):
            return [str(value)]
        if not isinstance(value, str):
            return []
        options = schema.get("enum")
        options = options if isinstance(options, list) else []
        self._left -= (len(value) + len(options)) // _CHEAPER
        found = _readings_of_text(value, schema, options)
        bare = value.strip()
        if bare[:1] in ("{", "[", "(") and (_may_be(schema, "array") or _may_be(schema, "object")):
            self._left -= len(value)
            inner = read_inner(bare, self._schema.names())
            if not isinstance(inner, Malformed):
                found.append(inner)
        return found


def _looks_like_list(value: Any) -> bool:
    """Return whether an unreadable text may be a list, or the beginning of one: then it is no single item."""
    if not isinstance(value, str) or (bare := value.strip())[:1] != "[":
        return False
    return bare[-1:] == "]" or bare.count("[") > bare.count("]") or _ITEM_BEGINS.match(bare, 1) is not None


def _readings_of_text(text: str, schema: Schema, options: list[Any]) -> list[Any]:
    found: list[Any] = []
    bare = text.strip()
    folded = bare.casefold() if options else ""
    same = [option for option in options if isinstance(option, str) and option.casefold() == folded]
    if len(same) == 1:
        found.append(same[0])
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
    words = [kind.lower() for kind in named if isinstance(kind, str)]
    types = {_OTHER_WORDS.get(word, word) for word in words} & _TYPES
    if schema.get("nullable") is True:
        types.add("null")
    return frozenset(types) or None


def _may_be(schema: Schema, kind: str) -> bool:
    types = _types(schema)
    return types is None or kind in types


def is_of(value: Any, types: frozenset[str]) -> bool:
    """Return whether a value is of one of these JSON types."""
    kind = _KINDS.get(type(value), "object")
    if kind != "number" or kind in types:
        return kind in types
    return "integer" in types and (value.is_integer() if isinstance(value, Number) else isinstance(value, int))


def _texts(value: Any) -> Iterator[str]:
    return (item for item in value if isinstance(item, str)) if isinstance(value, list) else iter(())


def _values(value: Any) -> int:
    """Return the number of values in a list or an object, in any depth."""
    return sum(1 for _ in parts_of(value))


def _equal(value: Any, option: Any) -> bool:
    if isinstance(value, Number):
        return not isinstance(option, bool) and isinstance(option, int | float) and value.equals(option)
    return type(value) is type(option) and bool(value == option)
