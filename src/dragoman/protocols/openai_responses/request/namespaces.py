"""Functions in namespaces: a unique name for each, by which all other code knows it.

`mcp__server` and `search` are `mcp__server__search`. The function's own name and its namespace stand in the native
fields of tools and calls, so that this protocol writes them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.json_fields import read_fields, read_text

_JOINT: Final = "__"
_DIGITS: Final = 8


def joined(namespace: str, name: str) -> str:
    """Return the unique name of a function in a namespace."""
    return f"{namespace.removesuffix(_JOINT)}{_JOINT}{name}"


def hashed(namespace: str, name: str) -> str:
    """Return the unique name of a tool whose joined name another tool has."""
    digest = hashlib.sha256(f"{namespace}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{joined(namespace, name)}_{digest[:_DIGITS]}"


def new_name(namespace: str, name: str, taken: Collection[str]) -> str:
    """Return a name that no tool has."""
    plain = joined(namespace, name)
    return plain if plain not in taken else hashed(namespace, name)


def known_name(namespace: str, name: str, offered: Collection[str]) -> str:
    """Return the name by which a called function was offered."""
    if not namespace:
        return name
    found = hashed(namespace, name) if offered else ""
    return found if found in offered else joined(namespace, name)


def place_of(fields: Mapping[str, Raw]) -> tuple[str, str]:
    """Return the namespace and the own name of a function, from the native fields of its tool or call, or "" and ""."""
    space = fields.get("namespace")
    if space is None:
        return "", ""
    group = read_fields(space)
    return read_text(group.get("name") if group is not None else space), read_text(fields.get("name"))


def place(namespace: Raw, name: str) -> dict[str, Raw]:
    """Return native fields that give a function's place."""
    return {"namespace": namespace, "name": _json.raw(name)}


def offered_name(item: Mapping[str, Json], native: dict[str, Raw], offered: Collection[str]) -> str:
    """Return the name by which an item's function was offered, or its own if none in that namespace was, or "".

    `item`: its fields, or an event's about it, which has no namespace of its own. `native`: the native fields that are
    known of it, which gain its own name. Their namespace counts unless the item tells a function outside of any.
    """
    name, space = item.get("name"), item.get("namespace")
    if "namespace" not in item and "namespace" in native and ("item_id" in item or name not in offered):
        space = read_text(native["namespace"])
    if not isinstance(name, str) or not name or not isinstance(space, str) or not space:
        return name if isinstance(name, str) else ""
    native |= place(_json.raw(space), name)
    found = known_name(space, name, offered)
    return found if found in offered else name
