"""Check what a caller made: the fields of our own values, which msgspec sets unchecked, and plain values for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from math import isfinite
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.errors import UsageError
from dragoman.inputs.keywords import SHOWN, read_word, wrong
from dragoman.misuse import kind_of
from dragoman.types import Native, Origin

#: What a field of each kind is called in an error.
_NAMES: Final[dict[type, str]] = {
    str: "a text", bool: "True or False", Native: "a Native", Origin: "an Origin", Raw: "JSON text as Raw",
    dict: "a dict of names and Raw",
}  # fmt: skip
#: A value of one of these has nothing in it that may be wrong.
_SURE: Final[frozenset[type]] = frozenset({str, bool, type(None)})
_MADE: Final = (Native, Origin)
#: A field that is checked: its name, which of its types are sure, all its types, and its words if it takes a few only.
_Field: TypeAlias = tuple[str, frozenset[type], tuple[type, ...], tuple[str, ...]]
#: Objects and lists within each other: fewer than every Python that we run on reads.
_MOST_LEVELS: Final = 500
#: Keywords of a schema under which names of the type's own stand.
_NAMED: Final = frozenset({"properties", "$defs"})
#: Fields that take more than their type says, and have readers of their own.
_READ_ELSEWHERE: Final = frozenset({"parts", "schema", "budget"})


def check_made(value: msgspec.Struct, where: str) -> None:
    """Check the fields of a value that a caller may have made.

    Raises:
        UsageError: one is of the wrong kind; names it.
    """
    for name, sure, kinds, words in _fields(type(value)):
        given: object = getattr(value, name)
        if type(given) in sure or (words and type(given) is str and given in words):
            continue
        if not isinstance(given, kinds):
            if not words:
                raise wrong(f"{where}.{name}", _NAMES[kinds[0]], given)
            read_word(f"{where}.{name}", given, words)
        elif isinstance(given, _MADE):
            check_made(given, f"{where}.{name}")
        elif isinstance(given, Raw):
            _check_json(f"{where}.{name}", given)
        elif isinstance(given, dict):
            for key, one in given.items():
                if not isinstance(key, str) or not isinstance(one, Raw):
                    raise wrong(f"{where}.{name}", _NAMES[dict], given)
                _check_json(f"{where}.{name}", one)


def _check_json(name: str, text: Raw) -> None:
    if not _json.is_json(text):
        raise UsageError(f"{name}: expected JSON text, got other text")


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    """Return the fields that are checked."""
    found: list[_Field] = []
    for name, hint in get_type_hints(kind).items():
        if name in _READ_ELSEWHERE:
            continue
        kinds = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
        words = next((get_args(one) for one in kinds if get_origin(one) is Literal), ())
        taken = tuple([get_origin(one) or one for one in kinds if get_origin(one) is not Literal])
        found.append((name, _SURE.intersection(taken), taken, words))
    return tuple(found)


def read_json(name: str, value: object) -> Raw:
    """Return plain values as JSON text.

    Raises:
        UsageError: JSON cannot say one of them, as NaN or bytes; nothing is changed to what it can say.
    """
    try:
        text = _json.raw(_plain(name, value, _MOST_LEVELS))
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(f"{name}: expected plain JSON values: {str(problem)[:SHOWN]}") from None
    if not _json.is_json(text):
        raise UsageError(f"{name}: expected plain JSON values, got a Raw that is no JSON")
    return text


def _plain(name: str, value: Any, levels: int) -> Any:
    """Return plain values, mappings as dicts. Raises UsageError: JSON cannot say one, or they are too deep."""
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, float) and not isfinite(value):
        raise UsageError(f"{name}: expected plain JSON values, got NaN or Infinity")
    if isinstance(value, bytes | bytearray | memoryview) and not isinstance(value, Raw):
        raise UsageError(f"{name}: expected plain JSON values, got {kind_of(value)}")
    if (fields := fields_of(value)) is not None:
        value = {key: one for key, one in fields if one is not msgspec.UNSET}
    is_mapping = isinstance(value, Mapping)
    if not is_mapping and not isinstance(value, list | tuple | set | frozenset):
        return value
    if not levels:
        raise UsageError(f"{name}: expected plain JSON values of at most {_MOST_LEVELS} levels, got more")
    if is_mapping:
        if len(set(map(str, value))) < len(value):
            raise UsageError(f"{name}: expected plain JSON values, got two keys that are the same in JSON")
        return {key: _plain(name, one, levels - 1) for key, one in value.items()}
    return [_plain(name, one, levels - 1) for one in value]


def fields_of(value: Any) -> list[tuple[str, Any]] | None:
    """Return the names in JSON and the values of a dataclass's, a Struct's or an attrs class's fields; else None."""
    kind = type(value)
    if isinstance(value, msgspec.Struct):
        config = kind.__struct_config__
        tag = [(config.tag_field, config.tag)] if config.tag_field else []
        names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        return [*tag, *((said, getattr(value, name, msgspec.UNSET)) for said, name in names)]
    if hasattr(kind, "__attrs_attrs__"):
        fields = kind.__attrs_attrs__
    elif hasattr(kind, "__dataclass_fields__"):
        fields = import_module("dataclasses").fields(value)  # who has one has loaded it
    else:
        return None
    return [(field.name, getattr(value, field.name, msgspec.UNSET)) for field in fields]


def read_object(name: str, value: object) -> Raw:
    """Return a mapping, or the JSON text of one, as JSON text. Raises UsageError as `read_json`, or for other JSON."""
    text = read_json(name, value)
    if bytes(text).lstrip()[:1] != b"{":
        raise UsageError(f"{name}: expected a JSON object, got other JSON")
    return text


def without_odd_defaults(schema: Any) -> Any:
    """Return the schema of a type without the defaults that JSON cannot say, as NaN.

    They would be told as null, or the class that made the schema told them so: then its own type takes no null.
    """
    if isinstance(schema, list):
        return [without_odd_defaults(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    takes_null = not isinstance(schema.get("type"), str) or schema["type"] == "null"
    kept = {
        key: one
        for key, one in schema.items()
        if key != "default" or not (_has_odd_number(one) or (one is None and not takes_null))
    }
    return {
        key: {name: without_odd_defaults(inner) for name, inner in one.items()}
        if key in _NAMED and isinstance(one, dict)
        else one
        if key == "default"
        else without_odd_defaults(one)
        for key, one in kept.items()
    }


def _has_odd_number(value: object) -> bool:
    """Return whether NaN or an infinity, which the encoder writes as null, stands in plain values."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, float) and not isfinite(one):
            return True
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return False
