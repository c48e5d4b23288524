"""A prepared statement of PostgreSQL that gives one text, asked over the wire itself (protocol 3.0, extended query).

For what is asked within a request: the driver takes three times as long to ask it. Values and the answer are texts.
What is not plain, an error among it, is only told apart: then the driver asks.

https://www.postgresql.org/docs/17/protocol-message-formats.html (read 2026-11-26)
"""

from __future__ import annotations

from collections.abc import Sequence
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


def render_question(name: str, values: Sequence[object]) -> bytes:
    """Bind, Execute and Sync of a prepared statement."""
    parts = [b"\x00", name.encode(), b"\x00\x00\x00", len(values).to_bytes(2, "big")]
    for value in values:
        if value is None:
            parts.append(_NULL)
            continue
        text = str(value).encode()  # of numbers, truths and texts the server reads what Python writes
        parts += (len(text).to_bytes(4, "big"), text)
    parts.append(b"\x00\x00")
    body = b"".join(parts)
    return b"B" + (len(body) + 4).to_bytes(4, "big") + body + _EXECUTE


class Answer:
    """What comes back, in as many pieces as it likes.

    Attributes:
        text: of the row; None while there is none.
        is_plain: nothing but one row of one text has come.
    """

    __slots__ = ("_at", "_data", "is_plain", "text")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self.text: str | None = None
        self.is_plain = True

    def take(self, piece: bytes) -> bool:
        """Whether that was the end of it.

        Raises:
            ValueError: it is nothing that a PostgreSQL says.
        """
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
        """Of one column, which is not NULL."""
        if self.text is not None or row[:2] != b"\x00\x01" or int.from_bytes(row[2:6], "big") != len(row) - 6:
            self.is_plain = False
        else:
            self.text = row[6:].decode()
