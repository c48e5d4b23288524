"""Objects that tell a key twice: a cheap look before each member is read."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw

_SHORT: Final = 128  # bytes of a value that are read at once sooner than apart
_decode_members: Final = _json.typed_decoder(dict[str, Raw])


def repeats_key(text: bytes, value: Json = None) -> bool:
    """As `_json.repeats_key`, of which most texts are spared. `value`: what the strict reader made of the text, if it
    has read it."""
    if value is None:
        is_plain = has_plain_keys(text)
    else:
        is_plain = _json.is_written_of(value, text)
    return not is_plain and _json.repeats_key(text.decode("utf-8", "replace"))


def repeats_key_beside(text: bytes, key: bytes, value: Raw) -> bool:
    """The same of a text in which a value stands under a key (with its quotes and its colon). Both are looked at
    apart, so that long strings in the value need not be read."""
    if len(value) > _SHORT:
        rest = without_value(text, key, value)
        if rest is not text and has_plain_keys(bytes(value)) and _is_canonical(rest):
            return False
    return not _is_canonical(text) and _json.repeats_key(text.decode("utf-8", "replace"))


def without_value(text: bytes, key: bytes, value: Raw) -> bytes:
    """A JSON text without the text or the object that stands under a key (with its quotes and its colon), a number in
    its place; the text itself where the value is short, or stands there otherwise, or elsewhere."""
    if len(value) <= _SHORT:
        return text
    inner, start = bytes(value), text.find(key) + len(key)
    if start >= len(key) and text.startswith(inner, start):
        return b"%b0%b" % (text[:start], text[start + len(inner) :])
    return text


def has_plain_keys(text: bytes) -> bool:
    """Whether a text is a JSON object in which it is soon seen that no object has a key twice: it has as many members
    as colons, or is what is written of its values again. Of most other texts nothing is known."""
    if len(text) > _SHORT and text.find(b"{", 1) < 0:
        members = _decode_members(text)
        if type(members) is dict and len(text) - len(text.replace(b":", b"", len(members) + 1)) == len(members):
            return True
    return _is_canonical(text)


def _is_canonical(text: bytes) -> bool:
    """Whether a text is an object, and what is written of its value again."""
    value = _json.decode(text)
    return type(value) is dict and _json.is_written_of(value, text)
