"""What is wrong with a table of the configuration, in the words of TOML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

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


def wrong_value(problem: msgspec.ValidationError, kind: object, where: str) -> ConfigError:
    """The error for a table that is not of its kind: the path of the key, what was expected, what was seen."""
    said, _, place = str(problem).partition(" - at `")
    path = place.removeprefix(_KEY).removeprefix("$").removesuffix("`").replace("[...]", ".*")
    if said.startswith(_ENUM):
        words = _choices(_found(kind, path), of_keys=place.startswith(_KEY))
        return ConfigError(f"{where}{path}: expected {words}, got {said[len(_ENUM) :]}")
    if said.startswith(_UNKNOWN):
        known = (field.encode_name for each in _found(kind, path) for field in getattr(each, "fields", ()))
        return ConfigError(f"{where}{path}.{said[len(_UNKNOWN) :].strip('`')}: unknown key{listed(known)}")
    pieces = said.split("`")
    pieces[1::2] = (" or ".join(_WORDS.get(word, word) for word in piece.split(" | ")) for piece in pieces[1::2])
    words = "".join(pieces)
    return ConfigError(f"{where}{path}: {words[:1].lower()}{words[1:]}")


def listed(known: Iterable[str]) -> str:
    """A tail for a message about a key that is near to none: `; there are: a, b`."""
    words = ", ".join(known)
    return f"; there are: {words if len(words) <= _SHOWN else words[:_SHOWN].rpartition(',')[0] + ', …'}"


def _found(kind: object, path: str) -> tuple[Any, ...]:
    """The kinds of value that may stand at a path like `.limits.depth` or `.protocols[0]`, as msgspec tells them."""
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
    """The words that may stand there, or as a key of the table there."""
    if of_keys:
        kinds = [one for each in kinds if hasattr(each, "key_type") for one in _alternatives(each.key_type)]
    words = ", ".join(str(word) for each in kinds for word in getattr(each, "values", ()))
    lists = any(hasattr(each, "item_type") for each in kinds)
    return f"{'a key that is ' if of_keys else ''}one of {words}{', or a list' if lists else ''}"
