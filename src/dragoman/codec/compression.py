"""Decompress bodies that came compressed without request: gzip and zlib are recognised by their first bytes.

It works step by step, so that a decompression bomb is never in memory as a whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

#: How gzip begins, and how zlib does at its four levels.
_GZIP: Final = b"\x1f\x8b"
_ZLIB: Final = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
#: Bytes of which it is told whether a body is packed: with fewer a text that begins with `x^` may be taken for zlib.
_TOLD_BY: Final = 8
#: The first byte of either. A body that begins with one is read in a thread: it may become a thousand times as long.
FIRST_BYTES: Final = (b"\x1f", b"x")
#: Bytes of which it is told whether a body is text: of others one in three million begins so.
_TEXT_BY: Final = 16
#: Encodings that servers name and that are read, by their bytes.
READ_ENCODINGS: Final = ("", "identity", "gzip", "x-gzip", "none", "utf-8")
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ANY_KIND: Final = 47  # the window, and "tell gzip from zlib by the head"
_STEP: Final = 1024 * 1024  # bytes that are unpacked at once
_AT_ONCE: Final = 4096  # bytes in which members of gzip are looked for: behind each of them, what is left is copied
_HEAD: Final = 2048  # bytes that are kept until something comes out


class Broken(Exception):
    """Data that looked compressed is not, or is broken from here on. Caught in the reader of the body.

    Attributes:
        plain: the output of this step.
        head: the input; b"" if there was output before.
    """

    def __init__(self, plain: bytes, head: bytes) -> None:
        super().__init__()
        self.plain, self.head = plain, head


def is_packed(start: bytes) -> bool | None:
    """Return whether a body that begins so is compressed; None while that needs more bytes."""
    if start[:1] not in FIRST_BYTES or (start[:1] == _GZIP[:1] and len(start) > 1):
        return start.startswith(_GZIP)
    if len(start) < _TOLD_BY:
        return None
    return start.startswith(_ZLIB) and any(not 0x20 <= byte < 0x7F for byte in start[:_TOLD_BY])


class Unpacker:
    """Decompresses one body. A server that flushes may write several members of gzip."""

    __slots__ = ("_began", "_head", "_is_over", "_machine", "_step")

    def __init__(self, longest: int) -> None:
        """Create it. `longest`: the most bytes per step."""
        self._machine = zlib.decompressobj(_ANY_KIND)
        self._step = min(_STEP, longest)
        self._head, self._began = b"", False
        self._is_over = False  # what follows is none of it

    def steps(self, data: bytes) -> Iterator[bytes]:
        """Yield the output of the next bytes, step by step. Raises `Broken`: they cannot be decompressed."""
        if not self._began:
            self._head = (self._head + data)[:_HEAD]
        for start in range(0, len(data), _AT_ONCE):
            yield from self._some(data[start : start + _AT_ONCE])

    def _some(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._machine.eof:
                data = data.lstrip(b"\0")  # padding
                if not data:
                    return
                if data[:1] != _GZIP[:1]:
                    self._is_over = True
                    raise Broken(b"", b"")
                self._machine = zlib.decompressobj(31)
            is_full = True
            while is_full:
                before = self._machine.copy()
                try:
                    plain = self._machine.decompress(data, self._step)
                except zlib.error:
                    plain = _read_prefix(before, data, self._step)
                    raise Broken(plain, b"" if self._began or plain else self._head) from None
                self._began = self._began or bool(plain)
                yield plain
                is_full = len(plain) == self._step and not self._machine.eof  # what is over gives its rest again
                data = self._machine.unconsumed_tail
            data = self._machine.unused_data


def unpacked_start(body: bytes, most: int) -> bytes:
    """Return the beginning of a body, decompressed if it is compressed."""
    if not is_packed(body):
        return body
    try:
        return zlib.decompressobj(_ANY_KIND).decompress(body, most) or body
    except zlib.error:
        return body


def is_readable(start: bytes) -> bool | None:
    """Return whether a body that begins so is readable whatever its header says of its encoding.

    A proxy may decompress a body and leave the header. None while that needs more bytes.
    """
    if len(start) < _TEXT_BY:
        return None
    return bool(is_packed(start)) or begins_as_text(start)


def begins_as_text(body: bytes) -> bool:
    """Return whether a body begins as one of a protocol does: in plain ASCII."""
    start = body.removeprefix(b"\xef\xbb\xbf")[:_TEXT_BY]
    return all(0x20 <= byte < 0x7F or byte in b"\t\n\r" for byte in start)


def is_binary(body: bytes) -> bool:
    """Return whether bytes are no text in any usual encoding: control characters are among the first of them."""
    return any(byte < 0x20 and byte not in b"\t\n\r\f\x1b" for byte in body[:64])


def named_packing(body: bytes) -> str:
    """Describe how binary bytes may be compressed."""
    if body.startswith(_GZIP):
        return "broken gzip"
    return "packed with zstd" if body.startswith(_ZSTD) else "packed perhaps"


def _read_prefix(unzip: zlib._Decompress, data: bytes, limit: int) -> bytes:
    """Return the output of broken data up to its fault, as if it had come byte by byte."""
    plain, low, high = b"", 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            plain, low = unzip.copy().decompress(data[:middle], limit), middle
        except zlib.error:
            high = middle
    return plain
