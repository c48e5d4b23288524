"""Generated identifiers."""

from __future__ import annotations

import os
import string
from typing import Final

_ALPHABET: Final = (string.ascii_letters + string.digits).encode()
#: A letter or digit for each byte; eight of them stand for five bytes instead of four, which costs 0.05 bits each.
_LETTERS: Final = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))


_LENGTH: Final = 24
_MANY: Final = 64


#: Identifiers in stock, so that one call for random bytes serves many. A forked process draws its own.
_DRAWN: Final[list[str]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_DRAWN.clear)


def new_id() -> str:
    """Return 24 letters and digits that are unique (142 random bits)."""
    try:
        return _DRAWN.pop()
    except IndexError:
        letters = os.urandom(_LENGTH * _MANY).translate(_LETTERS).decode()
        first, *rest = [letters[place : place + _LENGTH] for place in range(0, len(letters), _LENGTH)]
        _DRAWN.extend(rest)
        return first
