"""`NaN`, `Infinity` and numbers beyond a float: servers write them, though JSON has none (RFC 8259, section 6)."""

from __future__ import annotations

from math import isfinite

from dragoman import _json
from dragoman._json import Json, Malformed, Raw


def without_nan(value: Json) -> Json:
    """Return a lenient reader's value with null for them, plain numbers, whole characters; None: nested too deeply."""
    root = [value]
    places: list[dict[str, Json] | list[Json]] = [root]
    while places:
        place = places.pop()
        members: list[tuple[Json, Json]] = list(place.items() if isinstance(place, dict) else enumerate(place))
        for key, item in members:
            if isinstance(item, float) and not isfinite(item):
                place[key] = None
            elif isinstance(item, dict | list):
                places.append(item)
    try:
        strict = _json.decode(_json.encode(root[0]))
    except RecursionError:
        return None
    return None if isinstance(strict, Malformed) else strict


def kept(value: object) -> Raw:
    """Return a value of an answer as JSON text, to be kept and sent again."""
    text = _json.raw(value)
    return text if type(value) is str else kept_text(text)


def kept_text(text: Raw) -> Raw:
    """Return JSON text of an answer, to be kept and sent again: with null for them."""
    data = bytes(text)
    if not tells_nan(data) or _json.is_json(data):
        return text
    value = _json.decode_lenient(data)
    return _json.raw(None if isinstance(value, Malformed) else without_nan(value))


def tells_nan(frame: bytes) -> bool:
    """Return whether such a word may be in a frame."""
    return b"NaN" in frame or b"Infinity" in frame
