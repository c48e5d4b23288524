"""`KnownResponse`: a transport's response with known content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from dragoman.events import Failure
from dragoman.http.response import TransportFailed


@final
class KnownResponse:
    """A response whose body comes in pieces of a given size. `cut`: the message of its break; "" for an end."""

    __slots__ = ("_cut", "_pieces", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, *, piece: int, cut: str) -> None:
        self.status, self.headers = status, headers
        self._pieces = (body[at : at + piece] for at in range(0, len(body), piece))
        self._cut = cut

    async def read(self) -> bytes:
        data = next(self._pieces, b"")
        if not data and self._cut:
            raise TransportFailed(Failure("connection", self._cut))
        return data

    async def pour(self, sink: Any) -> None:
        while data := await self.read():
            sink(data)

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def abort(self) -> None:
        self._pieces.close()
        self._cut = ""

    def close(self) -> None:
        self.abort()
