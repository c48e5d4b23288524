"""Rewrite a schema of several resources as one: references within a schema that has an `$id` are relative to that.

Spec: https://json-schema.org/draft/2020-12/json-schema-core#section-8.2 (read 2026-11-26).
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final
from urllib.parse import urljoin

from dragoman._json import Json
from dragoman.codec.schemas.places import Schema, each_schema, nodes

_DEFS: Final = "#/$defs/"
#: Characters of an `$id` that is read: each reference within it is joined with it.
_LONGEST: Final = 500


def one_resource(root: Schema) -> Schema:
    """Return a schema whose references are relative to its root. Schemas within it that have an `$id` stand in its
    `$defs` then. A schema without both such schemas and references is returned itself.
    """
    has_id = has_reference = False
    for node in nodes(root):
        has_id = has_id or (node is not root and _id(node) != "")
        has_reference = has_reference or isinstance(node.get("$ref"), str)
    return _Joining(root).joined() if has_id and has_reference else root


class _Joining:
    """Joins the resources of one schema. `_homes`: by URI, the reference to that resource from the root."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        found = root.get("$defs")
        self._known: Schema = found if isinstance(found, dict) else {}
        self._moved: Schema = {}
        self._numbers = count(1)
        self._names = {id(inner): name for name, inner in self._known.items()}
        self._base = _id(root)
        self._homes = {self._base: "#", "": "#"}
        waiting: list[tuple[Json, str]] = [(root, "")]
        while waiting:
            node, base = waiting.pop()
            if isinstance(node, dict):
                if own := _id(node):
                    base = _within(base, own)
                    self._homes.setdefault(base, self._home(node))
                inner: list[Json] = []
                each_schema(node, inner.append)
                waiting += ((each, base) for each in inner)

    def joined(self) -> Schema:
        made: Schema = self._rewritten(self._root, "", "#")
        return {**made, "$defs": {**made.get("$defs", {}), **self._moved}} if self._moved else made

    def _home(self, node: Schema) -> str:
        """Return the reference to a resource: its own place in `$defs`, or a new one."""
        if node is self._root:
            return "#"
        if id(node) not in self._names:
            self._names[id(node)] = next(name for number in self._numbers
                                         if (name := f"resource_{number}") not in self._known)  # fmt: skip
        return _DEFS + self._names[id(node)].replace("~", "~0").replace("/", "~1")

    def _rewritten(self, node: Json, base: str, home: str) -> Any:
        """Return a schema with rewritten references. `home`: of the resource that it is part of."""
        if not isinstance(node, dict):
            return node
        own = _id(node)
        if own:
            base, home = _within(base, own), self._home(node)
        made = each_schema(node, lambda inner: self._rewritten(inner, base, home))
        if isinstance(pointer := made.get("$ref"), str):
            made["$ref"] = self._from_root(pointer, base, home)
        if not own or node is self._root:
            return made
        del made["$id"]
        name = self._names[id(node)]
        if name in self._known:
            return made
        self._moved[name] = made
        return {"$ref": home}

    def _from_root(self, pointer: str, base: str, home: str) -> str:
        """Return a reference from the root to what a reference within a resource means."""
        address, mark, fragment = pointer.partition("#")
        found = self._homes.get(_within(base, address)) if address else home
        if found is None:
            return pointer
        if fragment.startswith("/"):
            return found + fragment if found != "#" else mark + fragment
        return mark + fragment if fragment else found


def _id(node: Schema) -> str:
    """Return the id of a resource, "" without one. One that is a fragment alone names no resource."""
    name = node.get("$id")
    return name.rstrip("#") if isinstance(name, str) and len(name) <= _LONGEST else ""


def _within(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # no URI
        return address
