"""Parse one JSON array as it comes: Gemini streams so without `alt=sse`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman.gathered import Gathered


class ArrayItems:
    """The top-level items of one JSON array, each as soon as it is closed."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_open")

    _OUTSIDE: Final = re.compile(rb'[\[\]{}",]')
    _INSIDE: Final = re.compile(rb'["\\]')

    def __init__(self) -> None:
        self._open = Gathered()
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def size(self) -> int:
        """Return the bytes of the open item."""
        return self._open.size

    def pending(self) -> bytes:
        """Return the open item."""
        return self._open.joined().strip()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes. Yield items."""
        begin = position = 0
        if self._escaped and data:
            self._escaped = False
            position = 1
        while True:
            found = (self._INSIDE if self._in_string else self._OUTSIDE).search(data, position)
            if found is None:
                break
            mark, position = found.group(), found.end()
            if mark == b'"':
                self._in_string = not self._in_string
            elif mark == b"\\":
                if position == len(data):
                    self._escaped = True
                position += 1
            elif mark in b"[{":
                self._depth += 1
                if self._depth == 1 and mark == b"[":
                    begin = position
                    self._open.clear()  # what stood before the array
            elif mark in b"]}":
                self._depth -= 1
                if self._depth == 0 or (self._depth == 1 and mark == b"}"):
                    stop = position - 1 if self._depth == 0 else position
                    yield from self._item(data[begin:stop])
                    begin = position
            elif self._depth == 1:  # a comma between items
                yield from self._item(data[begin : position - 1])
                begin = position
        if begin < len(data):
            self._open.add(data[begin:])

    def _item(self, data: bytes) -> Iterator[bytes]:
        if self._open.size:
            data = self._open.take(data)
        if item := data.strip():
            yield item


# ---------------------------------------------------------------- writing
