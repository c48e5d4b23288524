"""Rewrite references within a schema for vendors that support one form only, or none."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from dragoman._json import Json
from dragoman.codec.schemas.circles import Circles
from dragoman.codec.schemas.drafts import modern
from dragoman.codec.schemas.joining import NotJoined, joined
from dragoman.codec.schemas.places import BY_NAME, NOTES, ONE, SEVERAL, Room, Schema, each_schema, nodes

_DEFS: Final = "#/$defs/"
#: The name of `$defs` in older drafts. What is referenced there moves; the rest is used nowhere.
_OLDER_DEFS: Final = "definitions"
_DEFINITIONS: Final = ("$defs", _OLDER_DEFS)
#: What may stand beside a reference.
_BESIDE: Final = frozenset({"description", "default"})
_DEEPEST: Final = 100
_DIGITS: Final = 10  # of a place in a list
#: References that are joined with what stands beside them.
_MOST_JOINED: Final = 200
#: Values that a small schema may be written out in: some kilobytes of a large service's schemas are so many. To join
#: them takes more time.
_ROOM_WRITTEN: Final = 20_000


class _TooLarge(Exception):
    """Written out, a schema would be too large."""


class Targets:
    """The targets of the references within a schema.

    Attributes:
        strange: keys of the root that no draft knows, through which references lead.
        room: what the schema may grow by.
    """

    def __init__(self, root: Schema, lost: list[str]) -> None:
        self._root = root
        self._lost = lost
        self._known: dict[str, Schema | None] = {}
        self._modern: dict[int, Schema] = {}  # by the target as it stands, which several pointers may name
        self._names: dict[str, Schema] | None = None
        self.strange: set[str] = set()
        self.room = Room(root)

    def find(self, pointer: str) -> Schema | None:
        """Return a reference's target within the same schema: a pointer (RFC 6901), an anchor or an id."""
        if pointer not in self._known:
            self._known[pointer] = self._found(pointer)
        return self._known[pointer]

    def take(self, pointer: str) -> Schema | None:
        """Return a target that is joined with another schema; None also where there is no room for it."""
        target = self.find(pointer)
        return target if target is not None and self.room.takes(target) else None

    def _found(self, pointer: str) -> Schema | None:
        base = self._root.get("$id")
        if isinstance(base, str) and pointer.startswith(f"{base.rstrip('#')}#"):
            pointer = pointer[len(base.rstrip("#")) :]
        if pointer == "#":
            return self._root
        if not pointer.startswith("#/"):
            return self._named().get(pointer)
        target = _at(self._root, pointer) or _at(self._root, unquote(pointer))
        first = pointer[2:].partition("/")[0]
        if target is None or first in BY_NAME or first in ONE or first in SEVERAL:
            return target
        self.strange.add(first)
        if id(target) not in self._modern:
            self._modern[id(target)] = modern(target, self._lost)
        return self._modern[id(target)]

    def _named(self) -> dict[str, Schema]:
        """Return the schemas that have a name of their own, by the reference to it."""
        if self._names is None:
            self._names = {}
            for node in nodes(self._root):
                for key, before in (("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
                    if isinstance(name := node.get(key), str):
                        self._names.setdefault(before + name, node)
        return self._names


def within_defs(schema: Schema, lost: list[str]) -> Schema:
    """Rewrite references to point into the root's `$defs` only, with nothing beside them but a description and a
    default.
    """
    if not any("$ref" in node for node in nodes(schema)):
        return schema
    mover = _Mover(schema, lost)
    made: Schema = {}
    for key, value in mover.whole(schema).items():
        made |= mover.moved(key, value) if key != _OLDER_DEFS else {}
    mover.move_waiting()
    made = {key: value for key, value in made.items() if key not in mover.targets.strange}
    return made | {"$defs": mover.defs} if mover.defs else made


class _Mover:
    """Moves referenced schemas into `$defs`. `_names`: by pointer, the name there."""

    def __init__(self, root: Schema, lost: list[str]) -> None:
        self.targets = Targets(root, lost)
        self._circles = Circles(self.targets.find)
        self._lost = lost
        self._names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # by name in `$defs`, the last number that was appended to it
        self._waiting: list[tuple[str, Schema]] = []  # named targets that are still to be moved
        self._joined = 0
        self.defs: Schema = {}
        found = root.get("$defs")
        known = found if isinstance(found, dict) else {}
        self._homes = {id(inner): name for name, inner in known.items()}
        for name in known:
            self._names[_DEFS + name] = name
            self._numbers[name] = 1

    def whole(self, root: Schema) -> Schema:
        """Return the root, joined with its target if it is a reference with more beside it, and can be."""
        pointer = root.get("$ref")
        target = self.targets.find(pointer) if isinstance(pointer, str) else None
        if target is None or root.keys() <= {*NOTES, *_DEFINITIONS, "$ref"}:
            return root
        defs = {key: root[key] for key in _DEFINITIONS if key in root}
        both = self._with({key: value for key, value in root.items() if key != "$ref" and key not in defs}, target)
        return both | defs if isinstance(both, dict) else root

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

    def _schema(self, node: Json, depth: int) -> Any:
        if not isinstance(node, dict) or depth > _DEEPEST:
            return node
        pointer = node.get("$ref")
        if not isinstance(pointer, str):
            return each_schema(node, lambda inner: self._schema(inner, depth + 1))
        target = self.targets.find(pointer)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        if target is None:
            self._lost.append("$ref")
            return self._schema(rest, depth + 1)
        others = {key: value for key, value in rest.items() if key not in _BESIDE and not key.startswith("$")}
        said = {key: value for key, value in rest.items() if key not in others}
        if not others.keys() <= NOTES:
            both = self._with(rest, target)
            if both is not None:
                return self._schema(both, depth + 1)
            self._lost += [key for key in others if key not in NOTES]
        return {**said, "$ref": pointer if pointer == "#" else _DEFS + self._name(pointer, target)}

    def _with(self, rest: Schema, target: Schema) -> Json:
        """Return a schema of a reference's target and what stands beside it; None if that cannot be said."""
        self._joined += 1
        if self._joined > _MOST_JOINED or not self.targets.room.takes(target) or self._circles.leads_back(target):
            return None
        try:
            return joined(rest, target, self.targets.take)
        except NotJoined:
            return None

    def _name(self, pointer: str, target: Schema) -> str:
        """Return the name in `$defs` of a pointer's target, which is moved there if it stands elsewhere."""
        name = self._names.get(pointer, self._homes.get(id(target)))
        if name is None:
            plain = name = pointer.rpartition("/")[2].strip("#").replace("~", "_").replace("%", "_") or "root"
            while name in self._numbers:
                self._numbers[plain] += 1
                name = f"{plain}_{self._numbers[plain]}"
            self._homes[id(target)] = name
            self._numbers[name] = 1
            self._waiting.append((name, target))
        return name


def written_out(schema: Schema) -> Schema:
    """Replace references with their targets; recursive ones stay."""
    if not any("$ref" in node for node in nodes(schema)):
        return schema
    try:
        return _Writer(schema).written(schema, ())  # type: ignore[no-any-return]
    except _TooLarge:
        return schema


class _Writer:
    """Writes out references, each target once.

    `_known`: by the target, what it became, and how many values that is. `_kept`: how many references stayed, since
    they lead to what is being written out.
    """

    def __init__(self, root: Schema) -> None:
        self._targets = Targets(root, [])
        self._room = Room(root, _ROOM_WRITTEN)
        self._known: dict[int, tuple[Any, int]] = {}
        self._kept = 0

    def written(self, node: Json, within: tuple[int, ...]) -> Any:
        """Return a schema written out. `within`: the targets being written out."""
        if not isinstance(node, dict):
            return node
        said = each_schema(node, lambda inner: {} if isinstance(inner, dict) else inner)  # these are counted inside
        if not self._room.takes(said) or len(within) > _DEEPEST:
            raise _TooLarge
        pointer = node.get("$ref")
        if isinstance(pointer, str):
            target = self._targets.find(pointer)
            if target is not None and id(target) in within:
                self._kept += 1
            elif target is not None:
                rest = {key: value for key, value in node.items() if key != "$ref"}
                whole = self._target(target, within)
                beside = self.written(rest, within)
                if not beside.keys() <= NOTES and not self._targets.room.takes(whole):
                    raise _TooLarge
                try:
                    return joined(beside, whole, self._targets.take)
                except NotJoined:
                    return {**whole, **beside}
        defs = {key: node[key] for key in ("$defs",) if key in node}
        return each_schema({key: value for key, value in node.items() if key not in defs},
                           lambda inner: self.written(inner, within)) | defs  # fmt: skip

    def _target(self, target: Schema, within: tuple[int, ...]) -> Any:
        """Return a reference's target written out. One without circles is the same wherever it stands."""
        if id(target) in self._known:
            whole, values = self._known[id(target)]
            if not self._room.spend(values):
                raise _TooLarge
            return whole
        kept, left = self._kept, self._room.left
        whole = self.written(target, (*within, id(target)))
        if kept == self._kept:
            self._known[id(target)] = whole, left - self._room.left
        return whole


def _at(root: Schema, pointer: str) -> Schema | None:
    """Return the target of a pointer."""
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


def leads_in_circles(schema: Schema) -> bool:
    """Return whether some reference's target contains that reference."""
    return Circles(Targets(schema, []).find).are_in(schema)
