"""Find the references of a schema that lead back to where they stand, in linear time (Tarjan's strong components)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dragoman.codec.schemas.places import Schema, each_schema

_DEFINITIONS: Final = ("$defs", "definitions")


class Circles:
    """The circles of references within a schema. What stands in definitions counts where it is referred to.

    `_order`: by schema, when it was first seen. `_first`: the earliest that it leads back to, 0 once its component is
    complete. `_back`: schemas that contain a reference to themselves.
    """

    def __init__(self, find: Callable[[str], Schema | None]) -> None:
        self._find = find
        self._order: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._back: set[int] = set()
        self._open: list[Schema] = []

    def leads_back(self, target: Schema) -> bool:
        """Return whether a reference's target contains a reference to itself, at any distance."""
        self._visit(target)
        return id(target) in self._back

    def are_in(self, schema: Schema) -> bool:
        """Return whether a schema, or what it refers to, contains a reference to itself."""
        self._visit(schema)
        return bool(self._back)

    def _visit(self, start: Schema) -> None:
        if id(start) in self._order:
            return
        path = [self._begin(start)]
        while path:
            node, led = path[-1]
            inner = next(led, None)
            if inner is None:
                path.pop()
                self._end(node)
                if path:
                    self._lead(path[-1][0], node)
            elif id(inner) not in self._order:
                path.append(self._begin(inner))
            else:
                self._lead(node, inner)

    def _begin(self, node: Schema) -> tuple[Schema, Iterator[Schema]]:
        self._order[id(node)] = self._first[id(node)] = len(self._order) + 1
        self._open.append(node)
        return node, iter(self._led(node))

    def _led(self, node: Schema) -> list[Schema]:
        """Return what stands directly within a schema, and what it refers to."""
        found: list[Any] = []
        each_schema({key: value for key, value in node.items() if key not in _DEFINITIONS}, found.append)
        return [*(each for each in found if isinstance(each, dict)), *self._targets(node)]

    def _targets(self, node: Schema) -> list[Schema]:
        pointer = node.get("$ref")
        target = self._find(pointer) if isinstance(pointer, str) else None
        return [] if target is None else [target]

    def _lead(self, node: Schema, inner: Schema) -> None:
        """Note that a schema leads to another that was seen, if that is open still."""
        if first := self._first[id(inner)]:
            self._first[id(node)] = min(self._first[id(node)], first)

    def _end(self, node: Schema) -> None:
        """Complete the component that begins with a schema, if one does."""
        if self._first[id(node)] < self._order[id(node)]:
            return
        place = len(self._open) - 1
        while self._open[place] is not node:
            place -= 1
        component = self._open[place:]
        del self._open[place:]
        inside = {id(each) for each in component}
        for each in component:
            self._back |= {id(target) for target in self._targets(each)} & inside
            self._first[id(each)] = 0
