"""Find repeated keys in objects: a cheap look before each member is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw

SHORT: Final = 1024  # bytes of a value that are read at once sooner than apart
_QUOTE: Final = b'"'[0]
_NEAR: Final = 256  # bytes from the beginning within which objects of a long list begin
_decode_members: Final = _json.typed_decoder(dict[str, Raw])


def repeats_key(text: bytes, value: Json = None) -> bool:
    """As `_json.repeats_key`, but most texts are decided without it. `value`: the strict reader's result, if it has
    read the text.
    """
    if value is None:
        is_plain = has_plain_keys(text)
    else:
        is_plain = _json.holds_all(value, text)
    return not is_plain and _json.repeats_key(text.decode("utf-8", "replace"))


def has_plain_parts(text: bytes, read: object, parts: Iterable[Raw]) -> bool:
    """As `has_plain_keys`, for a text that is read already, so that its long strings need not be read again.

    Args:
        read: the Struct or the object of the text.
        parts: each text in it that is an object.
    """
    if not _json.holds_all(read, text):
        return False
    for part in parts:  # noqa: SIM110 -- most often there is one, and this takes half the time
        if not has_plain_keys(bytes(part)):
            return False
    return True


def without_value(text: bytes, key: bytes, value: Raw | bytes) -> bytes:
    """Return a JSON text with a number in place of the text or object under a key (with its quotes and its colon).

    The text stays unchanged if the value is short, or stands there in another form, or elsewhere.
    """
    if len(value) <= SHORT:
        return text
    inner, start = bytes(value), text.find(key) + len(key)
    if start >= len(key) and text.startswith(inner, start):
        return text[:start] + b"0" + text[start + len(inner) :]
    return text


def has_plain_keys(text: bytes) -> bool:
    """Return whether a text is a JSON object that is quickly seen to have no repeated key and no oversized number.

    False says nothing.
    """
    # Long strings are passed over. A search for one byte is the faster one.
    if len(text) > SHORT and (text.find(b"{", 1, _NEAR) < 0 or text.find(b'{"', 1, _NEAR) < 0):
        members = _decode_members(text)
        if type(members) is dict and (_has_no_room(text, members) or _json.holds_all(members, text)):
            for member in members.values():
                if memoryview(member)[0] != _QUOTE and not _json.is_told_once(bytes(member)):
                    return False
            return True
    return text[:1] == b"{" and _json.is_told_once(text)


def _has_no_room(text: bytes, members: dict[str, Raw]) -> bool:
    """Return whether a text is too short to tell one of its members a second time."""
    room = shortest = len(text)
    for name, value in members.items():
        size = len(name)
        room -= size + len(value) + len('"":,')
        if size < shortest:
            shortest = size
    return room < shortest + len('"":0,')


def tell_twice(frame: bytes, keys: Iterable[bytes], deviate: Callable[[str, str, str], None]) -> None:
    """Report keys of the end of an answer (with their quotes) that a frame tells twice: which value counts?"""
    for key in keys:
        if tells_more(frame, key):
            deviate("repeated-key", key.strip(b'"').decode(), "")


def tells_more(frame: bytes, key: bytes, told: int = 1) -> bool:
    """Return whether a frame tells more under a key than was read of it, for this key or one around it came again.

    No size of other frames decides it, so that it is found however a stream is cut.

    Args:
        key: of a text, as it is written, with its quotes.
        told: the texts that were read, none of them empty.
    """
    count = frame.count(key)
    if count > told == 0:
        bare = frame.replace(b" ", b"")
        count -= bare.count(key + b':""') + bare.count(key + b":null")
    return count > told and repeats_key(frame)
