"""What may stand in the objects of a wire: every field name that a protocol's Structs know, with values of every type.

A Struct that is added, or a field of one, is found by itself: nothing here lists fields.
"""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import msgspec

from dragoman import protocols

Path = tuple[str | int, ...]
FOLDERS = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic",
    "gemini-generate": "gemini",
    "ollama-chat": "ollama",
}
#: A name that no Struct knows.
UNKNOWN = "neverHeardOf"
#: Each type of JSON, empty and filled, and what usually says something.
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2.5, "", "x", "1", "stop", [], {}, ["x"], {"message": "over"}, {"text": "t"},
    [{"text": "t"}], [{"type": "text", "text": "t"}], {"name": "note", "arguments": "{}"}, {"a": 1},
)  # fmt: skip


def modules(protocol: str) -> Iterator[ModuleType]:
    """The source files of a protocol."""
    folder = f"{protocols.__name__}.{FOLDERS[protocol]}"
    for found in pkgutil.walk_packages(importlib.import_module(folder).__path__, f"{folder}."):
        yield importlib.import_module(found.name)


def names_of(protocol: str) -> list[str]:
    """Every name of a field that the Structs of a protocol's own files have."""
    names = {UNKNOWN}
    for module in modules(protocol):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__:
                names.update(value.__struct_encode_fields__)
    return sorted(names)


def objects_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all objects in a value, itself included."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from objects_in(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from objects_in(inner, (*path, index))


def changed(value: Any, path: Path, name: str, new: Any) -> Any:
    """A copy with one field of the object at a path set."""
    whole = copy.deepcopy(value)
    inner = whole
    for step in path:
        inner = inner[step]
    inner[name] = new
    return whole


def values_in(value: Any) -> list[Any]:
    """The objects and lists that stand in a value: each may stand where another is expected."""
    found = [inner for path in objects_in(value) for inner in (_at(value, path), [_at(value, path)])]
    return list({json.dumps(each, sort_keys=True): each for each in found}.values())


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def changes(protocol: str, base: Any, values: Sequence[Any] = ()) -> Iterator[Any]:
    """The base with each name in each of its objects, with each value; by default with those of the base too."""
    values = values or [*VALUES, *values_in(base)]
    for path in objects_in(base):
        for name in names_of(protocol):
            for new in values:
                yield changed(base, path, name, new)
