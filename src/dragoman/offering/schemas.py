"""Convert a tool's schema to the form that a protocol's vendor accepts.

Vendors refuse a whole request for one schema: OpenAI an object without `properties` and a list without `items`, it and
Anthropic a union at the root, Gemini a reference to elsewhere than `$defs`, Ollama a schema that is true or false, and
all of them what is no JSON Schema of draft 2020-12. Equivalent forms are used where they exist; what is lost is named.
Answers are judged by the schema that was sent, and get the client's keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.schemas.drafts import modern
from dragoman.codec.schemas.joining import NotJoined, joined
from dragoman.codec.schemas.places import NOTES, Schema, each_schema, nodes
from dragoman.codec.schemas.references import Targets, within_defs, written_out
from dragoman.codec.schemas.resources import one_resource
from dragoman.protocol import Dialect, Protocol
from dragoman.protocol.native_tools import SchemaRules

_UNIONS: Final = ("allOf", "anyOf", "oneOf")
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
#: What OpenAI has not at the root, besides unions.
_NOT_AT_ROOT: Final = ("enum", "not", "const")
#: Bytes of a schema that is remembered; a longer one is read each time.
_LONGEST: Final = 16 * 1024
_KNOWN: Final = 512
#: References one behind the other that a root is followed along.
_MOST_NAMES: Final = 8
_DIGITS: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")


@final
class FittedSchema(msgspec.Struct, frozen=True):
    """A converted schema.

    Attributes:
        schema: as it is sent.
        lost: what it no longer says.
        keys: names of arguments as they are sent → the client's.
    """

    schema: Raw
    lost: tuple[str, ...] = ()
    keys: dict[str, str] = {}


def rules_for(target: Protocol, dialect: Dialect) -> SchemaRules:
    """Return a target's rules for schemas. Unions at the root are kept if the host does not check them."""
    rules = target.tools.schema
    if rules.has_plain_root is None:
        return msgspec.structs.replace(rules, has_plain_root=dialect.strict_tools)
    return rules


def fitted(schema: Raw, rules: SchemaRules) -> FittedSchema | None:
    """Return a schema in a vendor's form, or None if it has that already, or is no object at all."""
    text = bytes(schema)
    return _known(text, rules) if len(text) <= _LONGEST else _fit(text, rules)


def _fit(text: bytes, rules: SchemaRules) -> FittedSchema | None:
    given = _json.decode(text)
    try:
        return _converted(given, rules) if isinstance(given, dict) else None
    except RecursionError:  # deeper than any vendor reads: it goes as it came
        return None


def _converted(given: Schema, rules: SchemaRules) -> FittedSchema | None:
    lost: list[str] = []
    schema: Any = one_resource(modern(given, lost))
    schema = _rooted(schema, rules, lost)
    if rules.references == "defs":
        schema = within_defs(schema, lost)
    elif rules.references == "none":
        schema = written_out(schema)
    if rules.names_members:
        schema = _with_members(schema)
        schema.setdefault("properties", {})
    if rules.is_objects:
        schema = _as_objects(schema)
    keys: dict[str, str] = {}
    if rules.key is not None:
        schema, keys = _renamed(schema, rules.key, lost)
    if not lost and schema == given and list(schema) == list(given):  # true is 1 here, and then one of them is lost
        return None
    return FittedSchema(_json.raw(schema), tuple(dict.fromkeys(lost)), keys)


_known: Final = lru_cache(_KNOWN)(_fit)


# ---------------------------------------------------------------- the root


def _rooted(schema: Schema, rules: SchemaRules, lost: list[str]) -> Schema:
    """Return the schema of an object, its root without what the vendor does not support there."""
    if not rules.is_object_rooted:
        return schema
    for _ in range(_MOST_NAMES):
        pointer = schema.get("$ref")
        target = _at(schema, pointer) if isinstance(pointer, str) else None
        if target is None:
            break
        schema = _with_target({key: value for key, value in schema.items() if key != "$ref"}, target, schema, lost)
    unions = [key for key in _UNIONS if isinstance(schema.get(key), list)] if rules.has_plain_root else []
    if unions:
        schema = _joined(schema, unions, lost)
    for key in _NOT_AT_ROOT if rules.has_plain_root and rules.names_members else ():
        if key in schema:
            schema = {name: value for name, value in schema.items() if name != key}
            lost.append(key)
    kind = schema.get("type")
    if kind == "object":
        return schema
    if kind is not None and kind != ["object", "null"]:
        lost.append("type")
    return {"type": "object", **{key: value for key, value in schema.items() if key != "type"}}


def _with_target(rest: Schema, target: Schema, root: Schema, lost: list[str]) -> Schema:
    """Return the target of the root's reference with what stands beside it: joined, where both say something."""
    twice = [key for key in rest.keys() & target.keys() - NOTES - _DEFINITIONS if rest[key] != target[key]]
    if twice:
        try:
            both = joined(rest, target, Targets(root, lost).take)
        except NotJoined:
            both = False
        if isinstance(both, dict):
            return both
        lost += sorted(twice)
    return {**target, **rest}


def _joined(schema: Schema, unions: Sequence[str], lost: list[str]) -> Schema:
    """Return one object of everything that the members of unions allow; what all of them require is required."""
    properties: dict[str, dict[bytes, Json]] = {}
    required = list(_texts(schema.get("required")))
    _gather(properties, schema)
    is_closed = schema.get("additionalProperties") is False
    for key in unions:
        found = [_resolved(member, schema) for member in schema[key] if isinstance(member, dict)]
        members = [*{id(member): member for member in found}.values()]  # many may refer to one
        for member in members:
            _gather(properties, member)
        sets = [set(_texts(member.get("required"))) for member in members]
        common = set.union(*sets) if key == "allOf" and sets else set.intersection(*sets) if sets else set()
        known = set(required)
        required += [name for name in properties if name in common and name not in known]
        is_closed = is_closed or (bool(members) and all(each.get("additionalProperties") is False for each in members))
        if key != "allOf" or not all(each.keys() <= _MEMBER_WORDS for each in members):
            lost.append(key)
    rest = {key: value for key, value in schema.items() if key not in (*_UNIONS, "properties", "required", "type")}
    rest.pop("additionalProperties", None) if is_closed else None
    made: Schema = {
        "type": "object",
        **rest,
        "properties": {key: _any_of([*each.values()]) for key, each in properties.items()},
    }
    if required:
        made["required"] = required
    if is_closed:
        made["additionalProperties"] = False
    return made


#: Of a member of `allOf`: what the joined object says too.
_MEMBER_WORDS: Final = frozenset({"type", "properties", "required", "title", "description"})


def _gather(properties: dict[str, dict[bytes, Json]], member: Schema) -> None:
    """Add the schemas of a member's properties, each once by its text."""
    found = member.get("properties")
    for key, value in found.items() if isinstance(found, dict) else ():
        properties.setdefault(key, {}).setdefault(_json.encode(value), value)


def _any_of(schemas: list[Json]) -> Json:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _resolved(member: Schema, root: Schema) -> Schema:
    pointer = member.get("$ref")
    found = _at(root, pointer) if isinstance(pointer, str) else None
    return member if found is None else found


def _at(root: Schema, pointer: str) -> Schema | None:
    """Return the target of a plain pointer into `$defs` or `definitions`."""
    _, _, path = pointer.partition("#/")
    place: Json = root
    for key in path.split("/") if path else ():
        place = place.get(key) if isinstance(place, dict) else None
    return place if path and isinstance(place, dict) else None


def _texts(value: Json) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


# ---------------------------------------------------------------- every place


def _with_members(schema: Any) -> Any:
    """Add the type of items to lists without one: anything."""
    if not isinstance(schema, dict):
        return schema
    made = each_schema(schema, _with_members)
    kind = made.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in made:
        made["items"] = {}
    return made


def _as_objects(schema: Any) -> Any:
    """Replace schemas that are true or false."""
    known: dict[int, Schema] = {}  # what a reference was replaced with may stand at many places

    def change(node: Any) -> Any:
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, dict):
            return node
        if (made := known.get(id(node))) is None:
            made = each_schema(node, change)
            if isinstance(node.get("additionalProperties"), bool):
                made["additionalProperties"] = node["additionalProperties"]
            known[id(node)] = made
        return made

    return change(schema)


def _renamed(schema: Schema, allowed: re.Pattern[str], lost: list[str]) -> tuple[Schema, dict[str, str]]:
    """Return the schema with valid names of arguments, and the original names; no reference leads by such a name."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or all(map(allowed.fullmatch, properties)):
        return schema, {}
    schema = _without_root_references(within_defs(schema, lost))
    properties = schema["properties"]
    sent = {key: key if allowed.fullmatch(key) else _made(key) for key in properties}
    if len(set(sent.values())) < len(sent):
        return schema, {}
    made = {**schema, "properties": {sent[key]: value for key, value in properties.items()}}
    if isinstance(schema.get("required"), list):
        made["required"] = [sent.get(key, key) if isinstance(key, str) else key for key in schema["required"]]
    return made, {name: key for key, name in sent.items() if name != key}


def _without_root_references(schema: Schema) -> Schema:
    """Return the schema with a copy of its root among its definitions, where a reference leads to the root."""
    if all(node.get("$ref") != "#" for node in nodes(schema)):
        return schema
    found = schema.get("$defs")
    defs = found if isinstance(found, dict) else {}
    name = next(name for number in count() if (name := f"root{number or ''}") not in defs)

    def led(node: Any) -> Any:
        made = each_schema(node, led) if isinstance(node, dict) else node
        return {**made, "$ref": f"#/$defs/{name}"} if isinstance(made, dict) and made.get("$ref") == "#" else made

    made: Schema = led({key: value for key, value in schema.items() if key != "$defs"})
    return {**made, "$defs": {**{key: led(inner) for key, inner in defs.items()}, name: made}}


def _made(key: str) -> str:
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{_ODD.sub('_', key)[: 64 - _DIGITS - 1]}_{digest}"
