"""Keys that are written with escapes (`"to\\u006fl_calls"`), written anew without them.

A reader of JSON knows such a key, a search for its bytes does not. Whatever looks for a key in a frame, to see whether
it comes twice or a call hides there, would be passed by. So no frame leaves `body.py` with one.
"""

from __future__ import annotations

import re
from typing import Final

_BACKSLASH: Final = 0x5C
#: Bytes of a text in which a few backslashes are looked for one by one.
LONG: Final = 4096
_FEW: Final = 16
_SPARSE: Final = 256  # bytes in the midst without one, where they are looked for one by one
#: A letter or `_`, of which keys are made, escaped. Usually `<` is escaped, and what is no ASCII.
_LETTER: Final = re.compile(rb"\\u00[4-7]")
#: Strings, each up to its end or that of the text, so that each begins where one begins; a key with its colon.
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"(\s*:)?|\\?\Z)', re.S)
_ESCAPE: Final = re.compile(rb"\\(?:u00([4-7][0-9A-Fa-f])|.)", re.S)


def may_have_escapes(data: bytes) -> bool:
    """Whether an escape of a letter may stand in a text: a look at it takes a fraction of a search for one."""
    if len(data) >= LONG and data.find(b"\\", LONG // 2, LONG // 2 + _SPARSE) < 0:
        place = -1  # few are found as memory is searched
        for _ in range(_FEW):
            place = data.find(b"\\", place + 1)
            if place < 0:
                return False
            if data.startswith(b"\\u00", place):
                return True
    return _BACKSLASH in data and data.rfind(b"\\u00") >= 0  # half of what `in` takes


def has_escaped_letters(data: bytes) -> bool:
    """Whether a letter in a text of JSON is escaped, or may be."""
    return may_have_escapes(data) and _LETTER.search(data) is not None


def with_plain_keys(frame: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A frame whose keys have no escaped letters; values stay as they are written."""
    data, name = frame
    return (_STRING.sub(_plain_key, data), name) if has_escaped_letters(data) else frame


def _plain_key(string: re.Match[bytes]) -> bytes:
    return _ESCAPE.sub(_letter, string[0]) if string[1] else string[0]


def _letter(escape: re.Match[bytes]) -> bytes:
    character = bytes.fromhex(escape[1].decode()) if escape[1] else b""
    return character if character.isalpha() or character == b"_" else escape[0]
