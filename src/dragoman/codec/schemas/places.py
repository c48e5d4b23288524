"""The places within a schema where schemas stand. What else stands within it is data, also where it looks like one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from dragoman._json import Json

Schema: TypeAlias = dict[str, Any]

#: Keywords whose members are schemas by name.
BY_NAME: Final = frozenset({
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
})  # fmt: skip
#: Keywords with one schema; in older drafts `items` may have several.
ONE: Final = frozenset({
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties", "additionalItems", "contentSchema",
})  # fmt: skip
#: Keywords with a list of schemas.
SEVERAL: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
#: What says nothing of values.
NOTES: Final = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment",
    "$anchor",
})  # fmt: skip
_CHARACTERS: Final = 8  # of a text that count as one value
#: Values by which a schema may grow: so many, and so many times its own.
_LEAST_ROOM: Final = 1_000
_TIMES: Final = 4
_WHOLE: Final = 1 << 62


class Room:
    """How much a schema may grow by where what it refers to is written again: in proportion to its own size."""

    def __init__(self, schema: Json, least: int = 0) -> None:
        """Create it. `least`: the room of a small schema, where what is written again costs little."""
        self._left = max(least, _LEAST_ROOM + _TIMES * size(schema, _WHOLE))

    def takes(self, value: Json, times: int = 1) -> bool:
        """Count a value that is written again, and return whether there was room for it."""
        return self.spend((1 + size(value, self._left)) * times)

    def spend(self, values: int) -> bool:
        """Count so many values, and return whether there was room for them."""
        self._left -= values
        return self._left >= 0

    @property
    def left(self) -> int:
        """How many values there is room for."""
        return self._left


def each_schema(node: Schema, change: Callable[[Any], Any]) -> Schema:
    """Return the node with `change` applied to each schema directly within it."""
    made: Schema = {}
    for key, value in node.items():
        if key in BY_NAME and isinstance(value, dict):
            made[key] = {name: change(inner) for name, inner in value.items()}
        elif key in ONE or key in SEVERAL:
            made[key] = [change(inner) for inner in value] if isinstance(value, list) else change(value)
        else:
            made[key] = value
    return made


def nodes(value: Json) -> Iterator[Schema]:
    """Yield every schema within a schema, itself included."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            each_schema(node, waiting.append)


def size(value: Json, most: int) -> int:
    """Return how many members and items a value has, at any depth, with its long texts and names; counting ends behind
    `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        node = waiting.pop()
        if isinstance(node, dict | list):
            count += len(node)
            if isinstance(node, dict):
                count += sum(map(len, node)) // _CHARACTERS
            waiting += node.values() if isinstance(node, dict) else node
        elif isinstance(node, str):
            count += len(node) // _CHARACTERS
    return count
