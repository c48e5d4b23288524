"""Buffers for bytes and text that come in pieces and are kept until they are complete."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

Item = TypeVar("Item")

#: A piece below this is copied behind the others: as an object of its own it would take 41 bytes more.
_SMALL: Final = 1024
#: Texts that are kept one by one, before they become one: a short one takes as much memory again as fifty characters.
GATHERED: Final = 32


class Gathered:
    """Joins pieces of bytes. Memory is the bytes, a tenth more, and 4 KiB. Time is linear."""

    __slots__ = ("_pieces", "_small", "size")

    def __init__(self, *first: bytes) -> None:
        self._pieces: list[bytes] = []
        self._small = bytearray()  # the last of it
        self.size = 0  # bytes in all
        for data in first:
            self.add(data)

    def add(self, data: bytes) -> None:
        """Add a piece."""
        self.size += len(data)
        small = self._small
        if len(data) < _SMALL:
            small += data
            if len(small) < 2 * _SMALL:
                return
            data = b""
        if small:
            self._pieces.append(bytes(small))
            small.clear()
        if data:
            self._pieces.append(data)

    def joined(self) -> bytes:
        """Return all pieces joined."""
        return self._with(b"")

    def take(self, more: bytes = b"") -> bytes:
        """Return all pieces joined, with `more` behind them, and clear the buffer."""
        data = self._with(more)
        self.clear()
        return data

    def _with(self, more: bytes) -> bytes:
        if len(self._pieces) == 1 and not (self._small or more):  # as of most whole answers: no copy
            return self._pieces[0]
        return b"".join((*self._pieces, self._small, more))

    def clear(self) -> None:
        """Clear the buffer."""
        self._pieces.clear()
        self._small.clear()
        self.size = 0

    def __bool__(self) -> bool:
        return self.size > 0


class GatheredText(msgspec.Struct, eq=False):
    """Joins pieces of text. Memory is the text, a tenth more, and `GATHERED` objects. Time is linear.

    Attributes:
        pieces: the texts so far, in order. A caller that appends to it itself calls `gather` periodically.
    """

    pieces: list[str] = []
    _joined: int = 0  # how many of them were many

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.pieces)} pieces>"  # they may hold secrets

    def add(self, text: str) -> None:
        """Add a piece."""
        pieces = self.pieces
        pieces.append(text)
        if len(pieces) - self._joined > GATHERED:
            self.gather()

    def gather(self) -> None:
        """Join the new pieces if they are many."""
        pieces, joined = self.pieces, self._joined
        if len(pieces) - joined > GATHERED:
            pieces[joined:] = ["".join(pieces[joined:])]
            self._joined = joined + 1

    def text(self) -> str:
        """Return all pieces joined."""
        return "".join(self.pieces)

    def take(self) -> str:
        """Return all pieces joined, and clear the buffer."""
        text = "".join(self.pieces)
        self.clear()
        return text

    def clear(self) -> None:
        """Clear the buffer."""
        self.pieces.clear()
        self._joined = 0

    def last_two(self) -> str:
        """Return its last two characters, or as many as its last two pieces have."""
        return "".join(self.pieces[-2:])[-2:]

    def __bool__(self) -> bool:
        return bool(self.pieces)


class GatheredRuns(Generic[Item]):
    """Gathers structs, some of which have a `text`, and joins runs of one kind.

    Attributes:
        items: the waiting structs, in order.
    """

    __slots__ = ("_joined", "items")

    def __init__(self, *first: Item) -> None:
        self.items: list[Item] = list(first)
        self._joined = len(first)  # what stands behind these is one run

    def add(self, item: Item) -> None:
        """Add a struct."""
        items, has_text = self.items, hasattr(item, "text")
        if not has_text or (len(items) > self._joined and type(items[-1]) is not type(item)):
            self._joined = len(items) + (not has_text)
        items.append(item)
        if len(items) - self._joined > GATHERED:
            run: Any = items[self._joined :]
            items[self._joined :] = [msgspec.structs.replace(run[0], text="".join([each.text for each in run]))]
            self._joined += 1

    def take(self) -> list[Item]:
        """Return all of them, and clear the buffer."""
        items, self.items, self._joined = self.items, [], 0
        return items

    def __bool__(self) -> bool:
        return bool(self.items)
