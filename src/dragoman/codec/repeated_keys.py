"""Objects that tell a key twice: a cheap look before each member is read."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Raw

_SHORT: Final = 256  # bytes in which counting costs less than writing, though objects stand in objects

_decode_members = _json.typed_decoder(dict[str, Raw])


def repeats_key(text: str) -> bool:
    """As `_json.repeats_key`, of which most texts are spared."""
    return not has_plain_keys(text.encode("utf-8", "replace")) and _json.repeats_key(text)


def has_plain_keys(text: bytes) -> bool:
    """Whether a text is a JSON object in which it is soon seen that no object has a key twice: it has as many members
    as colons, or is what is written of its values again. Of most other texts nothing is known."""
    is_flat = text.find(b"{", 1) < 0 and b"[" not in text  # so its values may be written in any way
    value = _decode_members(text) if is_flat or len(text) < _SHORT else _json.decode(text)
    if not isinstance(value, dict):
        return False
    if (is_flat or len(text) < _SHORT) and len(value) == text.count(b":"):
        return True
    if len(text) < _SHORT and not is_flat:
        value = _json.decode(text)
    try:
        written = _json.encode(value)
    except RecursionError:
        return False
    return written == text or written == _json.without_spaces(text)
