"""Normalise objects and lists in another form than their place requires: alone in a list, without their list, or as
JSON text.

Each has one reading, so they are converted before they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from dragoman import _json
from dragoman._json import Json

#: Takes a deviation's code, its place and what was seen.
Deviate: TypeAlias = Callable[[str, str, str], None]
#: Types of parts whose words stand beside it.
_WORDY: Final = ("output_text", "text", "thinking")
_DEEPEST_WORDS: Final = 16


class Place(NamedTuple):
    """The type of a value under a key: an object, or with `is_list` a list of objects.

    Attributes:
        inner: the places under the keys of the object.
        marks: keys of which one must be in the object, because a similar value may mean itself. None: any object fits.
    """

    inner: Mapping[str, Place] = {}
    is_list: bool = False
    marks: frozenset[str] | None = None


def straighten(fields: dict[str, Json], places: Mapping[str, Place], deviate: Deviate) -> dict[str, Json]:
    """Return an object whose values have the form of their places; the same object if all have.

    A value that cannot be converted stays.
    """
    if places.keys().isdisjoint(fields):
        return fields
    changed: dict[str, Json] = {}
    for key, place in places.items():
        value = fields.get(key)
        if value:
            straight = _list_at(value, place, key, deviate) if place.is_list else _object_at(value, place, key, deviate)
            if straight is not value:
                changed[key] = straight
    return {**fields, **changed} if changed else fields


def straighten_object(value: Json, place: Place, where: str, deviate: Deviate) -> dict[str, Json] | None:
    """Return a value as an object, or None if it is not one."""
    straight = _object_at(value, place, where, deviate)
    return straight if isinstance(straight, dict) else None


def misplaced(fields: Mapping[str, Json], places: Mapping[str, Place]) -> str:
    """Return the key of a non-object where an object belongs, because a call, or a piece of one, may have stood there.

    "" if there is none. In a list each entry counts, `null` too.
    """
    for key, place in places.items():
        value = fields.get(key)
        items = value if place.is_list and isinstance(value, list) else None
        for item in (value,) if items is None else items:
            if isinstance(item, dict):
                if misplaced(item, place.inner):
                    return key
            elif items is not None or not (item is None or item in ("", [])):
                return key
    return ""


def _object_at(value: Json, place: Place, where: str, deviate: Deviate) -> Json:
    found = value if isinstance(value, dict) else _object_in(value, place)
    if found is None:
        return value
    if found is not value:
        deviate(oddity_of(value), where, type(value).__name__)
    return straighten(found, place.inner, deviate)


def _list_at(value: Json, place: Place, where: str, deviate: Deviate) -> Json:
    items = value if isinstance(value, list) else _items_in(value, place)
    if items is None:
        is_none = isinstance(value, str) and place.marks is None and _decoded(value) == []
        return [] if is_none else value
    straight: list[Json] = []
    is_formed = is_same = items is value
    for item in items:
        inner = [item] if isinstance(item, dict) else _items_in(item, place)
        if inner is None:
            straight.append(item)
            continue
        is_formed = is_formed and inner[0] is item
        for one in inner:
            straight.append(straighten(one, place.inner, deviate))
            is_same = is_same and straight[-1] is one
    if not is_formed:
        deviate(oddity_of(value), where, type(value).__name__)
    return value if is_formed and is_same else straight


def says_nothing(value: Json, depth: int = 0) -> bool:
    """Return whether a value in place of words is empty, or consists of empty parts."""
    if depth >= _DEEPEST_WORDS:
        return False
    if isinstance(value, list):
        return all(says_nothing(one, depth + 1) for one in value)
    if isinstance(value, dict):
        return all(inner in _WORDY if key == "type" else says_nothing(inner, depth + 1) for key, inner in value.items())
    return value is None or value == ""


def oddity_of(value: Json) -> Literal["missing-field", "wrong-type"]:
    """Return the deviation of a value of another type. A value that says nothing counts as missing."""
    return "missing-field" if says_nothing(value) else "wrong-type"


_DEEPEST: Final = 4


def _object_in(value: Json, place: Place, depth: int = 0) -> dict[str, Json] | None:
    """Return the single object in a list or a JSON text, or None."""
    if isinstance(value, str):
        value = _decoded(value) or None  # a text of an empty object may be meant
    if isinstance(value, list) and len(value) == 1 and depth < _DEEPEST:
        return _object_in(value[0], place, depth + 1)
    is_one = isinstance(value, dict) and (not value or place.marks is None or not place.marks.isdisjoint(value))
    return value if is_one else None


def _items_in(value: Json, place: Place) -> list[dict[str, Json]] | None:
    """Return the objects of a nested list, of a list written as an object, of a lone object, or of a JSON text.

    None if there are other values, or none.
    """
    if isinstance(value, str):
        value = _decoded(value)
    items = (numbered_items(value) or [value]) if isinstance(value, dict) else value
    if not isinstance(items, list) or not items:
        return None
    found = [_object_in(item, place) for item in items]
    return [one for one in found if one is not None] if None not in found else None


def as_items(value: Json) -> list[Json]:
    """Return a list: the items of one that is written as an object, or another value alone in a list."""
    if isinstance(value, list):
        return value
    return (numbered_items(value) if isinstance(value, dict) else None) or [value]


def numbered_items(fields: dict[str, Json]) -> list[Json] | None:
    """Return the items of a list whose keys are their numbers, as some languages write lists; else None."""
    if "0" not in fields:
        return None
    items = [fields.get(str(number)) for number in range(len(fields))]
    return items if all(isinstance(item, dict) for item in items) else None


def _decoded(text: str) -> Json:
    """Return the value of a JSON text of an object or a list; None for another text."""
    return _json.decode_lenient(text.encode("utf-8", "surrogatepass")) if text.lstrip()[:1] in ("{", "[") else None
