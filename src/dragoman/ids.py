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


class _Drawn:
    """Identifiers in stock, so that one call for random bytes serves many. A forked process draws its own."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[str] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._kept.clear)

    def next(self) -> str:
        try:
            return self._kept.pop()
        except IndexError:
            letters = os.urandom(_LENGTH * _MANY).translate(_LETTERS).decode()
            first, *rest = [letters[place : place + _LENGTH] for place in range(0, len(letters), _LENGTH)]
            self._kept += rest
            return first


_DRAWN: Final = _Drawn()


def new_id() -> str:
    """Return 24 letters and digits that are unique (142 random bits)."""
    return _DRAWN.next()
