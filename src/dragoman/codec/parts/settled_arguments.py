"""Judge the argument text of a call that has ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, final

import msgspec

from dragoman import _json
from dragoman.bounds import USUAL_BOUNDS, exceeded
from dragoman.codec.framing.outline import values_beyond
from dragoman.codec.repeated_keys import has_plain_keys, repeats_key

#: Why arguments fail that tell one member otherwise the second time.
REPEATED_KEY: Final = "the arguments have a key twice, with different values"


@final
class Settled(msgspec.Struct, frozen=True):
    """The result of a call's argument text.

    Attributes:
        text: the arguments, a JSON object; None if they cannot be delivered.
        delta: the part of `text` that has not left yet.
        more: further argument objects that stood in the same call.
        codes: deviations, as (code, what was seen).
        kind, problem: why there is no `text`.
        cut_after: the last of several objects was cut.
        objects: all argument objects of the call, repeated ones too, if there were several.
    """

    text: str | None
    delta: str = ""
    more: tuple[str, ...] = ()
    codes: tuple[tuple[str, str], ...] = ()
    kind: Literal["cut", "unreadable", "contradicted", "refused"] = "unreadable"
    problem: str = ""
    cut_after: bool = False
    objects: tuple[str, ...] = ()

    def told_once(self) -> Settled:
        """Return the same result, unless an object repeats a key with another value: then there are two readings."""
        if self.text is not None and any(
            repeats_key(text.encode("utf-8", "replace")) for text in self.objects or (self.text,)
        ):
            return Settled(None, kind="contradicted", problem=REPEATED_KEY)
        return self


def says_something(text: str) -> bool:
    """Return whether a text that is an object, if it is JSON, has something in it."""
    return text[:1] == "{" and text[-1:] == "}" and '"' in text


def may_halve(text: str) -> bool:
    """Return whether an escape in a JSON text may be half of a surrogate pair."""
    return "\\ud" in text or "\\uD" in text


def is_plain_object(text: str) -> bool:
    """Return whether a text is exactly one non-empty JSON object without repeated keys and oversized numbers."""
    if not says_something(text):
        return False
    try:
        written = text.encode()
    except UnicodeEncodeError:
        return False
    return has_plain_keys(written) or (type(_json.decode(text)) is not _json.Malformed and not _json.repeats_key(text))


def beyond(text: str, most: int) -> Settled | None:
    """Return the result of arguments with more than `most` JSON values, of which none is read; else None."""
    count = values_beyond(text.encode("utf-8", "replace"), most) if len(text) > most else 0
    if not count:
        return None
    problem = exceeded(f"arguments of at most {most} JSON values", "argument_values", f"{count} or more")
    return Settled(None, kind="refused", problem=problem)


def is_same(one: str, other: str) -> bool:
    """Return whether two argument texts are the same object. Of very many values none is read for it."""
    if one == other:
        return True
    if beyond(one, USUAL_BOUNDS.argument_values) is not None:
        return False
    value = _json.decode_object(one)
    return not isinstance(value, _json.Malformed) and is_same_value(value, _json.decode_object(other))


def is_placeholder(text: str) -> bool:
    """Return whether an argument text says nothing: blank, `null` or `{}`."""
    text = text.strip()
    return text in ("", "{}", "null") or (text[0] == "{" and text[-1] == "}" and text[1:-1].isspace())


def contradicts(one: str, other: str) -> bool:
    """Return whether two whole argument texts cannot belong to one call.

    An empty list, as PHP writes an empty object, says nothing beside an object.
    """
    is_blank = is_placeholder(one) or is_placeholder(other) or "[]" in (one.strip(), other.strip())
    return not (is_blank or is_same(one.strip(), other.strip()))


def told_once(texts: Iterable[str]) -> tuple[str, bool]:
    """Return the whole arguments of several places, and whether all places that say something agree."""
    chosen, is_one = "", True
    for text in texts:
        if is_placeholder(chosen):
            chosen = text or chosen
        elif contradicts(chosen, text):
            is_one = False
    return chosen, is_one


def is_same_value(one: _json.Json, other: _json.Json) -> bool:
    """Return whether two JSON values are equal: 1 is 1.0, and it is not true."""
    if one != other:
        return False
    pairs = [(one, other)]
    while pairs:
        first, second = pairs.pop()
        if isinstance(first, bool) is not isinstance(second, bool):
            return False
        if isinstance(first, dict):
            pairs += [(first[key], second[key]) for key in first]
        elif isinstance(first, list):
            pairs += zip(first, second, strict=True)
    return True
