"""Convert the schema of an answer to the subset of JSON Schema that the API accepts.

Spec: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (read 2026-11-26), and `transform_schema`
of Anthropic's own SDK: objects are closed, and bounds move into the description. Where a closed object would refuse
members that the client's schema declares, as those of a map, the whole schema goes as words of the prompt: in the
subset, the answer would be `{}` whatever the user asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.schemas.drafts import modern
from dragoman.codec.schemas.joining import NotJoined, flat, joined
from dragoman.codec.schemas.places import NOTES, Schema, nodes
from dragoman.codec.schemas.references import Targets, leads_in_circles, within_defs
from dragoman.codec.schemas.resources import one_resource

_TAKEN: Final = frozenset({"type", "anyOf", "$ref", "description", "title", "default"})
_FORMATS: Final = frozenset({
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
})  # fmt: skip
#: Notes that the API has no place for, and that say nothing to a model.
_UNSAID: Final = (NOTES - _TAKEN) | {"definitions"}
#: What stands beside alternatives.
_BESIDE: Final = frozenset({*NOTES, "$defs"})
#: Keywords of objects, which are closed.
_OBJECTS: Final = frozenset({"properties", "required", "additionalProperties", "patternProperties"})
#: Keywords whose schemas may declare further members of the object that they stand in.
_CONDITIONS: Final = ("if", "then", "else", "dependentSchemas")
#: A keyword from which a type follows → the type.
_TYPES: Final[dict[str, str]] = {
    "properties": "object", "required": "object", "additionalProperties": "object", "patternProperties": "object",
    "items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "pattern": "string",
    "format": "string", "minLength": "string", "maxLength": "string", "minimum": "number", "maximum": "number",
    "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
}  # fmt: skip
#: Alternatives of one place, once those of several keywords are written out.
_MOST_ALTERNATIVES: Final = 64
_DEEPEST: Final = 100


class _NotInSubset(Exception):
    """The keyword that the subset cannot say."""


def answer_schema(schema: Raw) -> tuple[Raw | None, list[str]]:
    """Return the schema in the API's form, unchanged if the API accepts it, and the keywords that are no rules any
    more. None: the subset cannot say it, for the keyword in the list.
    """
    given = _json.decode(bytes(schema))
    if not isinstance(given, dict):
        return schema, []
    lost: list[str] = []
    try:
        plain = within_defs(one_resource(modern(given, lost)), lost)
        if leads_in_circles(plain):
            raise _NotInSubset("a reference to what it stands in")
        made = _Fitting(plain, lost).fit(plain, 0)
    except (_NotInSubset, RecursionError) as problem:
        return None, [str(problem) if isinstance(problem, _NotInSubset) else "schemas within schemas"]
    return (schema, lost) if made == given and not lost else (_json.raw(made), list(dict.fromkeys(lost)))


class _Fitting:
    """Fits one schema, whose references lead into its `$defs`."""

    def __init__(self, root: Schema, lost: list[str]) -> None:
        self._targets = Targets(root, [])
        self._lost = lost

    def fit(self, given: Json, depth: int) -> Schema:
        """Return a schema in the API's form."""
        if depth > _DEEPEST:
            raise _NotInSubset("schemas within schemas")
        if not isinstance(given, dict):
            raise _NotInSubset("a place for any value" if given is True else "a place for no value")
        node = self._alternatives(self._flat(given))
        if "$ref" in node and not node.keys() <= {"$ref", *_BESIDE}:
            raise _NotInSubset("what stands beside a reference")
        made: Schema = {}
        said = [self._fit_member(made, key, node, depth) for key in node if key not in _OBJECTS]
        if "$ref" not in made and "anyOf" not in made and "enum" not in made and "const" not in made:
            kind = made["type"] if "type" in made else _type_of(node)
            made["type"] = kind
            if kind == "object" or (isinstance(kind, list) and "object" in kind):
                self._close(made, node, depth)
        if words := [word for word in said if word]:
            text = f"{{{', '.join(words)}}}"
            made["description"] = f"{made['description']}\n\n{text}" if "description" in made else text
        return made

    def _fit_member(self, made: Schema, key: str, node: Schema, depth: int) -> str:
        """Add a keyword to a schema; what the API has no place for is returned in words."""
        value = node[key]
        if key == "$defs" and isinstance(value, dict):
            made[key] = {name: self.fit(inner, depth + 1) for name, inner in value.items()}
        elif key == "anyOf" and isinstance(value, list):
            made[key] = [self.fit(inner, depth + 1) for inner in value]
        elif key == "items" and isinstance(value, dict) and value:
            made.setdefault(key, self.fit(value, depth + 1))
        elif key == "prefixItems" and isinstance(value, list):
            rest = node.get("items")
            made["items"] = self._one_of([*value, rest] if isinstance(rest, dict) else value, depth)
            return self._words(key, value)
        elif key in _TAKEN or _is_taken(key, value):
            made[key] = value
        elif key not in _UNSAID and (key, value) != ("items", {}):
            return self._words(key, value)
        return ""

    def _words(self, key: str, value: Json) -> str:
        self._lost.append(key)
        return f"{key}: {_json.to_text(value)}"

    def _one_of(self, places: Sequence[Json], depth: int) -> Schema:
        """Return a schema of the values that one of the places allows."""
        each = {_json.encode(made): made for made in (self.fit(place, depth + 1) for place in places)}
        return {"anyOf": [*each.values()]} if len(each) > 1 else next(iter(each.values()))

    def _close(self, made: Schema, node: Schema, depth: int) -> None:
        """Close an object: it has the members that it declares."""
        members, rest = node.get("properties"), node.get("additionalProperties")
        if node.get("patternProperties"):
            raise _NotInSubset("patternProperties")
        if isinstance(rest, dict) or (rest is True and not members) or (rest is None and members is None):
            raise _NotInSubset("additionalProperties")
        if rest is True:
            self._lost.append("additionalProperties")
        members = members if isinstance(members, dict) else {}
        required = node.get("required", [])
        if not all(members.get(name) is not False and name in members for name in required):
            raise _NotInSubset("required")
        for key in _CONDITIONS:
            if key in node and _declares_more({key: node[key]}, members):
                raise _NotInSubset(key)
        made["properties"] = {name: self.fit(inner, depth + 1) for name, inner in members.items() if inner is not False}
        made["additionalProperties"] = False
        if "required" in node:
            made["required"] = required

    # ------------------------------------------------------------ what stands alone

    def _flat(self, node: Schema) -> Schema:
        """Return a schema without `allOf`."""
        if not isinstance(node.get("allOf"), list):
            return node
        self._pay(node, 1)
        try:
            made = flat(node, self._targets.take)
        except NotJoined:
            raise _NotInSubset("allOf") from None
        if not isinstance(made, dict):
            raise _NotInSubset("allOf")
        return made

    def _alternatives(self, node: Schema) -> Schema:
        """Return a schema whose alternatives stand alone: each says what was said beside them."""
        unions = [key for key in ("anyOf", "oneOf") if isinstance(node.get(key), list)]
        if not unions:
            return node
        beside: list[Json] = [{key: value for key, value in node.items() if key not in (*unions, *_BESIDE)}]
        for key in unions:
            self._pay(beside, len(node[key]))
            try:
                each = [joined(one, other, self._targets.take) for one in beside for other in node[key]]
            except NotJoined:
                raise _NotInSubset(key) from None
            beside = [made for made in each if made is not False]
        if not 0 < len(beside) <= _MOST_ALTERNATIVES and len(unions) > 1:
            raise _NotInSubset(unions[-1])
        return {**{key: value for key, value in node.items() if key in _BESIDE}, "anyOf": beside}

    def _pay(self, value: Json, times: int) -> None:
        """Count what a schema grows by."""
        if not self._targets.room.takes(value, times):
            raise _NotInSubset("references, written out")


def _type_of(node: Schema) -> str:
    """Return the type of a schema that does not say it."""
    kinds = dict.fromkeys(_TYPES[key] for key in node if key in _TYPES)
    if len(kinds) != 1:
        raise _NotInSubset("a place for any value")
    return next(iter(kinds))


def _declares_more(conditions: Schema, members: Schema) -> bool:
    """Return whether conditions on an object may speak of members that it does not declare itself."""
    return any(
        "$ref" in node or (isinstance(found := node.get("properties"), dict) and not found.keys() <= members.keys())
        for node in nodes(conditions)
    )


def _is_taken(key: str, value: Json) -> bool:
    """Return whether the API accepts a keyword with this value."""
    match key:
        case "format":
            return isinstance(value, str) and value in _FORMATS
        case "minItems":
            return value in (0, 1)
        case "enum":
            return isinstance(value, list) and not any(isinstance(each, list | dict) for each in value)
        case "const":
            return not isinstance(value, list | dict)
        case _:
            return False
