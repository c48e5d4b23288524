"""The requests of one connection to a provider that a drill counts at."""

from __future__ import annotations

import asyncio
import re

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class RequestBodies:
    """Bytes of a connection → bodies of requests, one at a time."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self._came = b""

    def take(self, data: bytes) -> bytes | None:
        """Take the next bytes; gives a body that is whole. A request without one, which nobody bills, is answered 404:
        the gateway looks for a list of models."""
        self._came += data
        head, separator, body = self._came.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = _LENGTH.search(head)
        if length is None:
            self._came = b""
            self.transport.write(_NOT_FOUND)
            return None
        size = int(length[1])
        if len(body) < size:
            return None
        self._came = body[size:]
        return body[:size]
