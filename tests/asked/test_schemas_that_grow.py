"""What a schema refers to is written again in proportion to the schema's own size, however its references fan out.

A kilobyte of references stood for 2^18 schemas; forty kilobytes for each pair of 600.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from dragoman.codec.schemas.places import size
from dragoman.offering.schemas import _fit
from dragoman.protocol.native_tools import SchemaRules
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.anthropic.request.answer_schema import answer_schema
from dragoman.types import Raw
from for_each import for_each
from growth import steps_of
from profiles import IS_SOAK

Schema: TypeAlias = dict[str, Any]
#: Lines of ours that may run for each value that a schema has or may grow by.
_MOST_LINES: Final = 100
#: Characters of a value, with its name.
_MOST_BYTES: Final = 20
#: Values that a schema may always have, where its references are written out.
_WRITTEN: Final = 25_000


def _reference(number: int) -> Schema:
    return {"$ref": f"#/$defs/d{number}"}


def _fan(make: Callable[[Schema], Schema]) -> Callable[[int], Schema]:
    """Definitions, each of which refers to the next one more than once."""

    def made(count: int) -> Schema:
        defs = {f"d{number}": make(_reference(number + 1)) for number in range(count)}
        return {"$defs": {**defs, f"d{count}": {"type": "object", "properties": {"z": {"type": "string"}}}}}

    return made


def _star(make: Callable[[int, Schema], Schema]) -> Callable[[int], Schema]:
    """So many references to one large definition."""

    def made(count: int) -> Schema:
        large = {"type": "object", "properties": {f"q{number}": {"type": "string"} for number in range(count)}}
        return {"$defs": {"d0": make(count, {"$ref": "#/$defs/large"}), "large": large}}

    return made


#: What stands at `#/$defs/d0`, with all that it refers to, by its size.
TARGETS: Final[dict[str, tuple[int, Callable[[int], Schema]]]] = {
    "allOf of two": (12, _fan(lambda each: {"allOf": [each, each]})),
    "anyOf of two": (12, _fan(lambda each: {"anyOf": [each, each]})),
    "two members": (12, _fan(lambda each: {"type": "object", "properties": {"a": each, "b": each}})),
    "two joined members": (
        12, _fan(lambda each: {"type": "object", "properties": {"a": {**each, "minProperties": 1}, "b": each}})),
    "two lists": (12, _fan(lambda each: {"type": "array", "items": each, "prefixItems": [each, each]})),
    "one behind the other": (80, _fan(lambda each: each)),
    "members one behind the other": (60, _fan(lambda each: {"properties": {"x": {**each, "minProperties": 1}}})),
    "allOf of one": (80, _star(lambda count, each: {"type": "object", "allOf": [each] * count})),
    "anyOf of one": (80, _star(lambda count, each: {"type": "object", "anyOf": [each] * count})),
    "members of one": (80, _star(lambda count, each: {"properties": {f"p{n}": each for n in range(count)}})),
    "many alternatives": (80, lambda count: {"$defs": {"d0": {"type": "object", "anyOf": [
        {"type": "object", "properties": {"a": {"const": f"v{n}"}}, "required": ["a"]} for n in range(count)]}}}),
    "one place by many names": (80, lambda count: {
        "x": {"name-of-it": {"type": "object", "properties": {f"q{n}": {"type": "string"} for n in range(count)}}},
        "$defs": {"d0": {"properties": {f"p{n}": {"$ref": f"#/x/{_spelled('name-of-it', n)}"} for n in range(count)}}},
    }),
    "a long name": (80, lambda count: {"$defs": {
        "d0": {"properties": {f"p{n}": {**_reference(1), "minProperties": 1} for n in range(count)}},
        "d1": {"type": "object", "properties": {"q" * 400 * count: {}}}}}),
    "a value that is no schema": (80, lambda count: {
        "properties": {"q": {"type": "object", "default": {"properties": None, "items": "x" * 400 * count}}},
        "$defs": {"d0": {"properties": {f"p{n}": {"$ref": "#/properties/q/default"} for n in range(count)}}}}),
    "many types": (300, lambda count: {"$defs": {"d0": {"allOf": [
        {"type": [f"t{n}" for n in range(count)]}, {"type": [f"u{n}" for n in range(count)]}]}}}),
    "many required names": (200, lambda count: {"$defs": {"d0": {"type": "array", "items": {"allOf": [
        {"properties": {f"p{n}": False for n in range(count)}, "required": [f"r{n}" for n in range(count)]},
        {"properties": {f"p{n}": {"type": "string"} for n in range(count)}}]}}}}),
}  # fmt: skip


def _spelled(name: str, number: int) -> str:
    """A name with some of its letters as percent-encoded bytes."""
    return "".join(f"%{ord(letter):02x}" if number >> place & 1 else letter for place, letter in enumerate(name))


#: What refers to it.
ROOTS: Final[dict[str, Schema]] = {
    "the root": {**_reference(0)},
    "the root, with more": {**_reference(0), "type": "object", "properties": {"z": {"type": "string"}, "y": {}}},
    "allOf of the root": {"type": "object", "allOf": [_reference(0)]},
    "a member": {"type": "object", "properties": {"r": _reference(0)}, "additionalProperties": False},
    "a member, with more": {"type": "object", "properties": {"r": {**_reference(0), "minProperties": 1}}},
    "two members": {"type": "object", "properties": {
        "r": {**_reference(0), "allOf": [_reference(0), {"properties": {"z": {"type": "string"}}}]},
        "s": {"anyOf": [_reference(0), {"type": "string"}], "allOf": [_reference(0)]}}},
}  # fmt: skip
_RULES: Final = (
    PROTOCOLS["anthropic-messages"].tools.schema,
    SchemaRules(references="defs"),
    SchemaRules(references="none", is_objects=True),
)


def _tried() -> Iterator[tuple[str, str]]:
    """Each target by two roots, all of them in `make soak`."""
    names = [*ROOTS]
    for place, target in enumerate(TARGETS):
        for root in names if IS_SOAK else dict.fromkeys((names[place % len(names)], "a member, with more")):
            yield target, root


@for_each("target, root", _tried())
def test_a_schema_grows_in_proportion_to_its_size(target: str, root: str) -> None:
    count, make = TARGETS[target]
    schema = {**ROOTS[root], **make(count)}
    text = json.dumps(schema).encode()
    most = 1_000 + 5 * size(schema, len(text))
    for run in (*(partial(_fit, text, rules) for rules in _RULES), partial(answer_schema, Raw(text))):
        made: Any = None

        def keep(run: Callable[[], Any] = run) -> None:
            nonlocal made
            made = run()

        assert steps_of(keep) <= _MOST_LINES * most, run
        told = made[0] if isinstance(made, tuple) else made and made.schema
        if told is not None:
            assert size(json.loads(bytes(told)), _WRITTEN + 2 * most) <= max(most, _WRITTEN)
            assert len(bytes(told)) <= _MOST_BYTES * max(most, _WRITTEN)


def test_shared_definitions_of_a_large_service_are_written_out() -> None:
    """Eight kinds of a thing, each with six parts, each with five texts in a form of their own: 1 KB, 3,000 values."""

    def of_many(name: str, count: int) -> Schema:
        return {
            "type": "object",
            "properties": {f"{name}{number}": {"$ref": f"#/$defs/{name}"} for number in range(count)},
        }

    text = {"type": "object", "properties": {name: {"type": "string"} for name in ("language", "words", "form")}}
    schema = {**of_many("a", 8), "$defs": {"a": of_many("b", 6), "b": of_many("c", 5), "c": text}}
    made = _fit(json.dumps(schema).encode(), SchemaRules(references="none"))
    assert made is not None and not made.lost
    told = json.loads(bytes(made.schema))
    assert "$ref" not in json.dumps(told["properties"])
    assert told["properties"]["a7"]["properties"]["b5"]["properties"]["c4"] == text
