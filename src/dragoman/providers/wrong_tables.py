"""Describe what is wrong with a table of the configuration, in the terms of TOML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from dragoman.errors import ConfigError

_WORDS: Final = {
    "array": "a list", "object": "a table", "str": "a string", "int": "a whole number", "float": "a number",
    "bool": "true or false",
}  # fmt: skip
_ENUM: Final = "Invalid enum value "
_UNKNOWN: Final = "Object contains unknown field "
_KEY: Final = "key` in `"
_SHOWN: Final = 160  # characters of a list of keys
Table: TypeAlias = Mapping[str, Any]


def wrong_value(
    problem: msgspec.ValidationError, kind: object, where: str, table: Table, read: Callable[[Table], object]
) -> ConfigError:
    """Return the error for a table of the wrong kind: the path of the key, what was expected, what was seen.

    Args:
        where: the path of the table.
        read: the function that raised the problem.
    """
    said, _, place = str(problem).partition(" - at `")
    path = place.removeprefix(_KEY).removeprefix("$").removesuffix("`").replace("[...]", ".*")
    where += _with_names(path, table, read, str(problem))
    if said.startswith(_ENUM):
        words = _choices(_found(kind, path), of_keys=place.startswith(_KEY))
        return ConfigError(f"{where}: expected {words}, got {_clipped(said[len(_ENUM) :])}")
    if said.startswith(_UNKNOWN):
        known = (field.encode_name for each in _found(kind, path) for field in getattr(each, "fields", ()))
        return ConfigError(f"{where}.{said[len(_UNKNOWN) :].strip('`')}: unknown key{listed(known)}")
    pieces = said.split("`")
    pieces[1::2] = (" or ".join(_WORDS.get(word, word) for word in piece.split(" | ")) for piece in pieces[1::2])
    words = "".join(pieces)
    return ConfigError(f"{where}: {words[:1].lower()}{words[1:]}")


def _clipped(word: str) -> str:
    return word if len(word) <= _SHOWN else f"{word[: _SHOWN - 1]}…"


def _with_names(path: str, table: Table, read: Callable[[Table], object], problem: str) -> str:
    """Return the path with a name in place of each `*`, msgspec's only information: that of the first entry with the
    problem.

    A path through a list stays as it is.
    """
    if "[" in path.rpartition(".*")[0]:
        return path
    shown, steps = "", list[str]()
    for place, piece in enumerate(path.split(".*")):
        if place:
            alone = ((name, _only(table, steps, name)) for name in _inner(table, steps))
            name, table = next((name, one) for name, one in alone if _has(problem, one, read))
            steps.append(name)
            shown += f".{dotted(name)}"
        steps += piece.split(".")[1:]
        shown += piece
    return shown


def _has(problem: str, table: Table, read: Callable[[Table], object]) -> bool:
    try:
        read(table)
    except msgspec.ValidationError as same:
        return str(same) == problem
    return False


def _inner(table: Table, steps: Sequence[str]) -> Table:
    for step in steps:
        table = table[step]
    return table


def _only(table: Table, steps: Sequence[str], name: str) -> Table:
    """Return the table with a single entry at the steps."""
    return {**table, steps[0]: _only(table[steps[0]], steps[1:], name)} if steps else {name: table[name]}


def dotted(key: str) -> str:
    """Return a key as it stands in a path: quoted if it is not a bare one."""
    key = key[:80]
    return key if key.replace("-", "_").isidentifier() else f'"{key}"'


def listed(known: Iterable[str]) -> str:
    """Return the end of a message about an unknown key: `; there are: a, b`."""
    words = ", ".join(known)
    return f"; there are: {words if len(words) <= _SHOWN else words[:_SHOWN].rpartition(',')[0] + ', …'}"


def _found(kind: object, path: str) -> tuple[Any, ...]:
    """Return the kinds of value allowed at a path like `.limits.depth` or `.protocols[0]`, as msgspec writes them."""
    from msgspec import inspect  # loads what only errors need

    found: tuple[Any, ...] = _alternatives(inspect.type_info(kind))
    for step in path.replace("[", ".[").split(".")[1:]:
        inner: list[Any] = []
        for each in found:
            inner += [field.type for field in getattr(each, "fields", ()) if field.encode_name == step]
            inner += [getattr(each, name) for name in ("item_type", "value_type") if hasattr(each, name)]
            inner += getattr(each, "item_types", ())
        found = tuple(one for each in inner for one in _alternatives(each))
    return found


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return tuple(getattr(kind, "types", (kind,)))


def _choices(kinds: Iterable[Any], *, of_keys: bool) -> str:
    """Return the words allowed there, or allowed as a key of the table there."""
    if of_keys:
        kinds = [one for each in kinds if hasattr(each, "key_type") for one in _alternatives(each.key_type)]
    words = ", ".join(str(word) for each in kinds for word in getattr(each, "values", ()))
    lists = any(hasattr(each, "item_type") for each in kinds)
    return f"{'a key that is ' if of_keys else ''}one of {words}{', or a list' if lists else ''}"
