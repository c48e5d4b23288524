"""Run a prepared statement that returns one text, over the wire protocol itself (3.0, extended query).

It serves the calls that a request waits for: the driver takes three times as long. Values and the answer are texts. An
answer that is not plain, such as an error, is only recognised; then the driver repeats the call.

https://www.postgresql.org/docs/17/protocol-message-formats.html (read 2026-11-26)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Final

_TYPE_AND_SIZE: Final = 5
_ROW, _READY = ord("D"), ord("Z")
#: What comes with every answer, and what may come at any time: BindComplete, CommandComplete, a notice, a setting that
#: was changed, a notification.
_PASSED: Final = frozenset(b"2CNSA")
_IDLE: Final = b"I"
#: Execute without a name and of all rows; Sync.
_EXECUTE: Final = b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00S\x00\x00\x00\x04"
_NULL: Final = b"\xff\xff\xff\xff"
_packed_size: Final = struct.Struct(">I").pack
#: What stands before and behind the size and the row of an answer of one row, as nearly all are: BindComplete and the
#: beginning of DataRow; CommandComplete and ReadyForQuery.
_BEFORE: Final = b"2\x00\x00\x00\x04D"
_BEHIND: Final = b"C\x00\x00\x00\x0dSELECT 1\x00Z\x00\x00\x00\x05I"
_ROW_AT: Final = len(_BEFORE) + 4


def render_question(name: str, values: Sequence[object]) -> bytes:
    """Return the messages Bind, Execute and Sync of a prepared statement."""
    texts = [*map(str.encode, map(str, values))]  # of numbers, truths and texts the server reads what Python writes
    sizes = [*map(_packed_size, map(len, texts))]
    if None in values:
        for place, value in enumerate(values):
            if value is None:
                sizes[place], texts[place] = _NULL, b""
    head = (b"\x00", name.encode(), b"\x00\x00\x00", len(values).to_bytes(2, "big"))
    body = b"".join((*head, *chain.from_iterable(zip(sizes, texts, strict=True)), b"\x00\x00"))
    return b"B" + _packed_size(len(body) + 4) + body + _EXECUTE


class Answer:
    """Parses an answer that arrives in pieces.

    Attributes:
        text: the row's text, or None so far.
        is_plain: nothing but one row with one text has come.
    """

    __slots__ = ("_at", "_data", "is_plain", "text")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self.text: str | None = None
        self.is_plain = True

    def take(self, piece: bytes) -> bool:
        """Take a piece. Return whether the answer is complete.

        Raises:
            ValueError: this is not PostgreSQL's protocol.
        """
        if not self._data and piece.startswith(_BEFORE) and piece.endswith(_BEHIND):
            end = len(piece) - len(_BEHIND)
            if int.from_bytes(piece[len(_BEFORE) : _ROW_AT], "big") == end - len(_BEFORE):
                self._take_row(piece[_ROW_AT:end])
                return True
        data = self._data = self._data + piece if self._data else piece
        while len(data) - self._at >= _TYPE_AND_SIZE:
            at = self._at
            size = int.from_bytes(data[at + 1 : at + 5], "big")
            end = at + 1 + size
            if size < 4:
                raise ValueError("expected a message of PostgreSQL")
            if end > len(data):
                return False
            self._at = end
            kind = data[at]
            if kind == _READY:
                self.is_plain = self.is_plain and self.text is not None and data[at + 5 : end] == _IDLE
                return True
            if kind == _ROW:
                self._take_row(data[at + 5 : end])
            elif kind not in _PASSED:
                self.is_plain = False
        return False

    def _take_row(self, row: bytes) -> None:
        """Read a row of one column that is not NULL."""
        if self.text is not None or row[:2] != b"\x00\x01" or int.from_bytes(row[2:6], "big") != len(row) - 6:
            self.is_plain = False
        else:
            self.text = row[6:].decode()
