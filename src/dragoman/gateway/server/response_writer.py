"""The response to one request, as HTTP/1.1 on a transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec

from dragoman.gateway.messages import Answer
from dragoman.gateway.server.backpressure import Backpressure
from dragoman.secret import name_alone

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus if status >= 200
}

#: Bytes of a beginning that may be held. A longer one may be all that a client takes, so that `is_full` must tell.
_SHORT: Final = 8 * 1024


class HttpResponseWriter(msgspec.Struct, eq=False):
    """The response to one request, as HTTP/1.1.

    Attributes:
        has_body: it is no answer to HEAD.
        is_chunked: the client reads chunked bodies.
        keeps: the connection may serve another request.
        on_begin: called when the response begins.
    """

    __repr__ = name_alone

    _transport: asyncio.Transport
    _gate: Backpressure
    has_body: bool
    is_chunked: bool
    keeps: bool
    on_begin: Callable[[], None] | None = None
    headers: dict[str, str] = {}
    _held: bytes = b""  # head and first piece, until the end of the event loop's turn
    is_begun: bool = False
    is_whole: bool = False

    def send(self, answer: Answer) -> None:
        fields = {
            "content-type": answer.content_type,
            "content-length": str(len(answer.body)),
            **self.headers,
            **answer.headers,
        }
        body = answer.body if self.has_body else b""
        self._transport.write(self._render_head(answer.status, fields) + body)
        self.is_whole = True

    def start(self, status: int, content_type: str, first: bytes = b"") -> None:
        # Proxies that buffer would hold a stream back.
        fields = {"content-type": content_type, "cache-control": "no-cache", "x-accel-buffering": "no", **self.headers}
        if self.is_chunked:
            fields["transfer-encoding"] = "chunked"
        else:
            self.keeps = False  # HTTP/1.0: the end of the connection is the end of the body
        # A short answer's end comes in the same turn. A write to a socket costs as much as a hundred events.
        self._held = self._framed(first, before=self._render_head(status, fields))
        if len(self._held) > _SHORT:
            self._flush()
        else:
            asyncio.get_running_loop().call_soon(self._flush)

    def write(self, data: bytes) -> None:
        if data and self.has_body:
            self._put(b"%x\r\n%b\r\n" % (len(data), data) if self.is_chunked else data)

    def end(self, last: bytes = b"") -> None:
        if self.is_chunked and self.has_body:
            self._put(self._framed(last) + b"0\r\n\r\n")
        else:
            self.write(last)
            self._flush()  # the connection may be closed, or write its next answer, before the turn ends
        self.is_whole = True

    def cut(self) -> None:
        self._flush()
        self.keeps = False
        self._transport.close()

    def _framed(self, data: bytes, before: bytes = b"") -> bytes:
        if not data or not self.has_body:
            return before
        return b"%b%x\r\n%b\r\n" % (before, len(data), data) if self.is_chunked else before + data

    def _flush(self) -> None:
        if self._held:
            self._put(b"")

    def _put(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        try:
            self._transport.write(data)
        except RuntimeError:  # uvloop's word for a client that is gone; asyncio's transport says nothing
            if not self._transport.is_closing():
                raise

    @property
    def is_full(self) -> bool:
        return self._gate.is_shut

    async def drained(self) -> None:
        self._flush()
        await self._gate.opened()
        if self._transport.is_closing():
            raise ConnectionAbortedError("the client does not read, or is gone")

    def when_drained(self, go_on: Callable[[], None]) -> None:
        self._gate.when_open(go_on)

    def _render_head(self, status: int, fields: dict[str, str]) -> bytes:
        self.is_begun = True
        if self.on_begin is not None:
            self.on_begin()
        if not self.keeps:
            fields["connection"] = "close"
        lines = "\r\n".join(map(": ".join, fields.items()))
        return b"%b%b\r\n\r\n" % (
            _STATUS_LINES.get(status) or b"HTTP/1.1 %d Error\r\n" % status,
            lines.encode("latin-1"),
        )
