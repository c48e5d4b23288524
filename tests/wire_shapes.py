"""What may stand in the objects of a wire: every field name that a protocol's Structs know, with values of every type.

A Struct that is added, or a field of one, is found by itself: nothing here lists fields.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import pkgutil
import re
from collections.abc import Iterator, Sequence
from types import CodeType, ModuleType
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
    None, True, False, 0, 1, -1, 2.5, "", "h\u00e9", "1", "stop", [], {}, ["x"], {"message": "over"}, {"text": "t"},
    [{"text": "t"}], [{"type": "text", "text": "t"}], {"name": "note", "arguments": "{}"}, {"a": 1},
)  # fmt: skip


def modules(protocol: str) -> Iterator[ModuleType]:
    """The source files of a protocol."""
    folder = f"{protocols.__name__}.{FOLDERS[protocol]}"
    for found in pkgutil.walk_packages(importlib.import_module(folder).__path__, f"{folder}."):
        yield importlib.import_module(found.name)


@functools.cache
def names_of(protocol: str) -> list[str]:
    """Every name of a field that the Structs of a protocol's own files have."""
    names = {UNKNOWN}
    for module in modules(protocol):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__:
                names.update(value.__struct_encode_fields__)
    return sorted(names)


_KEY = re.compile(r"[A-Za-z_]{2,40}")


@functools.cache
def keys_of(protocol: str) -> list[str]:
    """Every word in the code of a protocol's own files that may be a key: those of objects that no Struct has too."""
    found = set(names_of(protocol))
    for module in modules(protocol):
        waiting = [importlib.util.find_spec(module.__name__).loader.get_code(module.__name__)]  # type: ignore[union-attr]
        while waiting:
            for constant in waiting.pop().co_consts:
                for word in constant if isinstance(constant, tuple | frozenset) else (constant,):
                    if isinstance(word, CodeType):
                        waiting.append(word)
                    elif isinstance(word, str) and _KEY.fullmatch(word):
                        found.add(word)
    return sorted(found)


def filled(protocol: str) -> list[Any]:
    """Objects in which every key that a protocol's code knows has a count, and a text."""
    return [dict.fromkeys(keys_of(protocol), value) for value in (3, "x")]


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
    """A copy with one field of the object at a path set. What lies beside the path is shared: nobody writes in it."""
    if not path:
        return {**value, name: new}
    step, rest = path[0], path[1:]
    whole = value.copy()
    whole[step] = changed(value[step], rest, name, new)
    return whole


def values_in(value: Any) -> list[Any]:
    """The objects and lists that stand in a value: each may stand where another is expected."""
    found = [inner for path in objects_in(value) for inner in (_at(value, path), [_at(value, path)])]
    return list({json.dumps(each, sort_keys=True): each for each in found}.values())


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def changes(protocol: str, base: Any, values: Sequence[Any] = (), names: Sequence[str] = ()) -> Iterator[Any]:
    """The base with each name in each of its objects, with each value; by default with those of the base too.

    Args:
        names: some of them; by default all that the Structs know.
    """
    values = values or [*VALUES, *values_in(base)]
    for path in objects_in(base):
        for name in names or names_of(protocol):
            for new in values:
                yield changed(base, path, name, new)
