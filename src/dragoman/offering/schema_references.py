"""Rewrite references within a schema for vendors that support one form only, or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from dragoman._json import Json
from dragoman.codec.json_fields import parts_of

Schema: TypeAlias = dict[str, Any]

_DEFS: Final = "#/$defs/"
#: The name of `$defs` in older drafts. What is referenced there moves; the rest is used nowhere.
_OLDER_DEFS: Final = "definitions"
#: What may stand beside a reference.
_BESIDE: Final = frozenset({"description", "default"})
#: What says nothing of values.
_NOTES: Final = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
#: Objects that a schema may grow to, written out.
_MOST_OBJECTS: Final = 2_000
_DEEPEST: Final = 100
#: Values by which a schema may grow, references written out or joined.
_MOST_VALUES: Final = 20_000
_WHOLE: Final = 1 << 62
_CHARACTERS: Final = 8  # of a text that count as one value
#: Keywords whose lists hold data, not schemas.
_DATA: Final = frozenset({"enum", "examples"})
_DIGITS: Final = 10  # of a place in a list
#: References that are joined with what stands beside them.
_MOST_JOINED: Final = 200


class _TooLarge(Exception):
    """Written out, a schema would have too many objects."""


def within_defs(schema: Schema, lost: list[str]) -> Schema:
    """Rewrite references to point into the root's `$defs` only, with nothing beside them but a description and a
    default.
    """
    if not any("$ref" in node for node in _nodes(schema)):
        return schema
    mover = _Mover(schema, lost)
    made: Schema = {}
    for key, value in schema.items():
        made |= mover.moved(key, value) if key != _OLDER_DEFS else {}
    mover.move_waiting()
    return made | {"$defs": mover.defs} if mover.defs else made


class _Mover:
    """Moves referenced schemas into `$defs`. `_names`: by pointer, the name there."""

    def __init__(self, root: Schema, lost: list[str]) -> None:
        self._root = root
        self._lost = lost
        self._names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # by name in `$defs`, the last number that was appended to it
        self._waiting: list[tuple[str, Schema]] = []  # named targets that are still to be moved
        self._joined = 0
        self._room = _MOST_VALUES
        self.defs: Schema = {}
        known = root.get("$defs")
        for name in known if isinstance(known, dict) else ():
            self._names[_DEFS + name] = name
            self._numbers[name] = 1

    def move_waiting(self) -> None:
        """Move the named targets, and those that they name."""
        while self._waiting:
            name, target = self._waiting.pop()
            self.defs[name] = self._schema(target, 0)

    def moved(self, key: str, value: Json) -> Schema:
        """Return a member of the root with rewritten references; nothing of a reference to nothing."""
        if key == "$defs" and isinstance(value, dict):
            for name, inner in value.items():
                self.defs[name] = self._schema(inner, 0)
            return {key: self.defs}
        made: Schema = self._schema({key: value}, 0)
        return made

    def _schema(self, node: Json, depth: int, key: str = "") -> Any:
        if isinstance(node, list):
            return node if key in _DATA else [self._schema(each, depth + 1) for each in node]
        if not isinstance(node, dict) or depth > _DEEPEST:
            return node
        pointer = node.get("$ref")
        if not isinstance(pointer, str):
            return {name: self._schema(value, depth + 1, name) for name, value in node.items()}
        target = _at(self._root, pointer)
        if target is None:
            self._lost.append("$ref")
            return {key: self._schema(value, depth + 1) for key, value in node.items() if key != "$ref"}
        others = {key: value for key, value in node.items() if key not in _BESIDE and not key.startswith("$")}
        said = {key: value for key, value in node.items() if key not in others and key != "$ref"}
        if not others.keys() <= _NOTES:
            self._joined += 1
            self._room -= _size(target, self._room) if self._joined <= _MOST_JOINED else 0
            if self._joined <= _MOST_JOINED and self._room > 0 and not _leads_back(self._root, target):
                rest = {key: value for key, value in node.items() if key != "$ref"}
                return self._schema({**target, **rest}, depth + 1)
            self._lost += [key for key in others if key not in _NOTES]
        return {**said, "$ref": pointer if pointer == "#" else _DEFS + self._name(pointer, target)}

    def _name(self, pointer: str, target: Schema) -> str:
        """Return the name in `$defs` of a pointer's target, which is moved there if it stands elsewhere."""
        name = self._names.get(pointer)
        if name is None:
            plain = name = pointer.rpartition("/")[2].replace("~", "_").replace("%", "_") or "root"
            while name in self._numbers:
                self._numbers[plain] += 1
                name = f"{plain}_{self._numbers[plain]}"
            self._names[pointer] = name
            self._numbers[name] = 1
            self._waiting.append((name, target))
        return name


def written_out(schema: Schema) -> Schema:
    """Replace references with their targets; recursive ones stay."""
    if not any("$ref" in node for node in _nodes(schema)):
        return schema
    try:
        return _Writer(schema).written(schema, ())  # type: ignore[no-any-return]
    except _TooLarge:
        return schema


class _Writer:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._objects = 0
        self._room = _MOST_VALUES + _size(root, _WHOLE)

    def written(self, node: Json, within: tuple[str, ...], key: str = "") -> Any:
        """Return a value written out. `within`: the pointers being written out."""
        if isinstance(node, str):
            self._room -= len(node) // _CHARACTERS
        if isinstance(node, list) and key in _DATA:
            self._room -= _size(node, self._room)
            return node
        self._room -= len(node) if isinstance(node, list | dict) else 0
        if isinstance(node, list):
            return [self.written(each, within) for each in node]
        if not isinstance(node, dict):
            return node
        self._objects += 1
        if self._objects > _MOST_OBJECTS or self._room < 0 or len(within) > _DEEPEST:
            raise _TooLarge
        pointer = node.get("$ref")
        if isinstance(pointer, str) and pointer not in within:
            target = _at(self._root, pointer)
            if target is not None:
                rest = {key: value for key, value in node.items() if key != "$ref"}
                return {**self.written(target, (*within, pointer)), **self.written(rest, within)}
        return {name: value if name == "$defs" else self.written(value, within, name) for name, value in node.items()}


def _at(root: Schema, pointer: str) -> Schema | None:
    """Return the target of a pointer (RFC 6901) within the same schema."""
    if pointer == "#":
        return root
    if not pointer.startswith("#/"):
        return None
    place: Json = root
    for key in pointer[2:].split("/"):
        plain = key.replace("~1", "/").replace("~0", "~")
        if (
            isinstance(place, list)
            and plain.isascii()
            and plain.isdigit()
            and len(plain) < _DIGITS
            and int(plain) < len(place)
        ):
            place = place[int(plain)]
        else:
            place = place.get(plain) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else None


def _leads_back(root: Schema, target: Schema) -> bool:
    """Return whether a target contains a reference to itself."""
    seen: set[str] = set()
    waiting = [target]
    while waiting:
        for node in _nodes(waiting.pop()):
            pointer = node.get("$ref")
            if isinstance(pointer, str) and pointer not in seen:
                seen.add(pointer)
                found = _at(root, pointer)
                if found is target:
                    return True
                waiting += [] if found is None else [found]
    return False


def _nodes(value: Json) -> Iterator[Schema]:
    """Yield every object within a value, itself included."""
    return (node for node in parts_of(value) if isinstance(node, dict))


def _size(value: Json, most: int) -> int:
    """Return how many members and items a value has, at any depth, with its long texts; counting ends behind `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        node = waiting.pop()
        if isinstance(node, dict | list):
            count += len(node)
            waiting += node.values() if isinstance(node, dict) else node
        elif isinstance(node, str):
            count += len(node) // _CHARACTERS
    return count
