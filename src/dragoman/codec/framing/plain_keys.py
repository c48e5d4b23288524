"""Rewrite keys that contain escapes (`"to\\u006fl_calls"`) without them.

A JSON reader recognises such a key, a search for its bytes does not. Code that searches a frame for a key, to see
whether it is repeated or hides a call, would miss it. So no frame leaves `body.py` with one.
"""

from __future__ import annotations

import re
from typing import Final

_BACKSLASH: Final = 0x5C
_U: Final = b"u"[0]
#: Bytes of a text in which a few backslashes are looked for one by one.
LONG: Final = 1024
_FEW: Final = 16
_SPARSE: Final = 256  # bytes in the midst without one, where they are looked for one by one
#: A letter or `_`, of which keys are made, escaped. Usually `<` is escaped, and what is no ASCII.
_LETTER: Final = re.compile(rb"\\u00[4-7]")
#: Strings, each up to its end or that of the text, so that each begins where one begins; a key with its colon.
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"(\s*:)?|\\?\Z)', re.S)
_ESCAPE: Final = re.compile(rb"\\(?:u00([4-7][0-9A-Fa-f])|.)", re.S)


def may_have_escapes(data: bytes) -> bool:
    """Return whether an escaped letter may stand in a text, in a fraction of the time of a search for one."""
    half = len(data) // 2  # an answer's arguments begin with some
    if half >= LONG // 2 and data[-1] != _BACKSLASH and data.find(b"\\", half, half + _SPARSE) < 0:
        place = -1  # few are found as memory is searched
        for _ in range(_FEW):
            place = data.find(b"\\", place + 1)
            if place < 0:
                return False
            if data[place + 1] == _U and data.startswith(b"\\u00", place):
                return True
    return _BACKSLASH in data and data.rfind(b"\\u00") >= 0  # half of what `in` takes


def has_escaped_letters(data: bytes) -> bool:
    """Return whether a letter in a JSON text is, or may be, escaped."""
    return may_have_escapes(data) and _LETTER.search(data) is not None


def with_plain_keys(frame: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a frame whose keys have no escaped letters. Values stay as they are written."""
    data, name = frame
    return (_STRING.sub(_plain_key, data), name) if has_escaped_letters(data) else frame


def _plain_key(string: re.Match[bytes]) -> bytes:
    return _ESCAPE.sub(_letter, string[0]) if string[1] else string[0]


def _letter(escape: re.Match[bytes]) -> bytes:
    character = bytes.fromhex(escape[1].decode()) if escape[1] else b""
    return character if character.isalpha() or character == b"_" else escape[0]
