"""Find repeated keys in objects: a cheap look before each member is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from operator import sub
from typing import Final, final

from dragoman import _json
from dragoman._json import Json, Raw

SHORT: Final = 1024  # bytes of a value that are read at once sooner than apart
_NEAR: Final = 256  # bytes from the beginning within which objects of a long list begin
SLACK: Final = 8  # bytes by which numbers and times of like frames differ; a key and its text have more
_MOST_LOOKS: Final = 64  # at frames in which nothing was found
_BACKSLASH: Final = 0x5C
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
    for part in map(bytes, parts):
        if not (has_plain_keys(part) if len(part) > SHORT else part[:1] == b"{" and _json.is_told_once(part)):
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
        return b"%b0%b" % (text[:start], text[start + len(inner) :])
    return text


def has_plain_keys(text: bytes) -> bool:
    """Return whether a text is a JSON object that is quickly seen to have no repeated key and no oversized number.

    False says nothing.
    """
    if len(text) > SHORT and text.find(b'{"', 1, _NEAR) < 0:  # long strings in it are passed over
        members = _decode_members(text)
        if type(members) is dict and _json.holds_all(members, text):
            for member in members.values():
                if (value := bytes(member))[:1] != b'"' and not _json.is_told_once(value):
                    return False
            return True
    return text[:1] == b"{" and _json.is_told_once(text)


def repeats_text(frame: bytes, key: bytes) -> bool:
    """Whether a text stands in a frame of which none was read, for a key came again without one. `key`: as it is
    written, with its quotes."""
    bare = frame.replace(b" ", b"")
    return bare.count(key + b':"') > bare.count(key + b':""') and repeats_key(frame)


def _written_size(text: str, frame: bytes) -> int:
    """Return the bytes of a string's inside in a frame, as the usual writers write it: those that write each character
    as it is, and those that write it in ASCII alone."""
    if _BACKSLASH not in frame:
        return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    written = _json.ascii_text(text) if rb"\u" in frame else _json.encode_text(text)
    return len(written) - 2


@final
class FrameSizes:
    """How much frames have beside the text that they tell. One in which its key, or a key around it, stands twice has
    more, and who reads it takes one of the texts. Only frames of another size are looked at.

    Attributes:
        least, most: bytes beside the text of a frame that need no look.
    """

    __slots__ = ("_deviate", "_looks", "least", "most")

    def __init__(self, deviate: Callable[[str, str], None]) -> None:
        self._deviate = deviate
        self._looks = 0
        self.least, self.most = 1, 0

    def see(self, frame: bytes, text: str | None, key: bytes, where: str) -> None:
        """Take a frame. `text`: all that was read of it; `key`: of that, with its quotes."""
        if text:
            if not self.least <= len(frame) - len(text) <= self.most:
                self.look(frame, text, key, where)
        elif frame.count(key) > frame.count(key + b':""') and repeats_text(frame, key):  # what was told first is lost
            self._deviate("repeated-key", where)

    def look(self, frame: bytes, text: str, key: bytes, where: str) -> None:
        """See whether a frame of another size tells a key twice. `key`: of its text, with its quotes."""
        if not self.is_usual(frame, text, key):
            self._deviate("repeated-key", where)

    def is_usual(self, frame: bytes, text: str, key: bytes) -> bool:
        """Return whether a frame of another size tells no key twice, and take its size if so."""
        beside = len(frame) - _written_size(text, frame)
        if self.least <= beside <= self.most:
            return True
        if (_BACKSLASH not in frame or frame.count(key) > 1 or self._looks < _MOST_LOOKS) and repeats_key(frame):
            return False
        self._looks += 1
        if self._looks >= _MOST_LOOKS:
            self.least, self.most = 0, len(frame)
        elif frame.count(key) < 2:  # one that tells a text twice, the same, is no measure of others
            self.least, self.most = beside, beside + SLACK
        return True

    def are_usual(self, frames: list[bytes], texts: list[str], key: bytes) -> bool:
        """Return whether frames that came together tell no key twice, as `is_usual` finds."""
        beside = list(map(sub, map(len, frames), map(len, texts)))
        if self.least <= min(beside) and max(beside) <= self.most:
            return True
        return all(map(self.is_usual, frames, texts, repeat(key)))
