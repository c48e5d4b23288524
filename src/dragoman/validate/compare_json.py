"""Compare two JSON values, and describe where they differ. Pure."""

from __future__ import annotations

from typing import Any, Final

from dragoman import _json

_LONGEST: Final = 90  # characters of a value, or of a server's words, in a reason


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same; 5 and 5.0 are, 1 and true are not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def difference(got: Any, wanted: Any, where: str = "") -> str:
    """Describe where two values first differ."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        for key, value in wanted.items():
            if key not in got:
                return f"{where}{key} is missing"
            if not is_equal(got[key], value):
                return difference(got[key], value, f"{where}{key}.")
        surplus = next(key for key in got if key not in wanted)
        return f"{where}{one_line(surplus)} was not asked for"
    if isinstance(got, list) and isinstance(wanted, list):
        if len(got) != len(wanted):
            return f"{where.rstrip('.')}: expected {len(wanted)} items, got {len(got)}"
        place = next(place for place, value in enumerate(wanted) if not is_equal(got[place], value))
        return difference(got[place], wanted[place], f"{where}{place}.")
    return f"{where.rstrip('.')}: expected {one_line(_json.to_text(wanted))}, got {one_line(_json.to_text(got))}"


def one_line(text: str, *, limit: int = _LONGEST) -> str:
    """Return a server's words as one line of at most `limit` characters that cannot steer a terminal."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
