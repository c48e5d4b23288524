"""Text that comes in pieces and is kept."""

from __future__ import annotations

from dragoman.codec.parts.argument_text import GATHERED


class TextBuffer:
    """Makes one of many pieces now and then: a short text takes as much memory again as fifty characters."""

    __slots__ = ("_joined", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._joined = 0  # how many of them were many

    def add(self, text: str) -> None:
        """Take the next piece."""
        pieces, joined = self._pieces, self._joined
        pieces.append(text)
        if len(pieces) - joined > GATHERED:
            pieces[joined:] = ["".join(pieces[joined:])]
            self._joined = joined + 1

    def text(self) -> str:
        """All that came."""
        return "".join(self._pieces)

    def last_two(self) -> str:
        """Its last two characters, or as many as there are in two pieces."""
        return "".join(self._pieces[-2:])[-2:]
