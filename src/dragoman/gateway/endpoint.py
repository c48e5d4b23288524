"""An endpoint that has to wait for the disk, or for a provider that is asked in another way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

import msgspec

from dragoman.events import Failure
from dragoman.gateway.messages import Answer, Head, ResponseWriter
from dragoman.gateway.telemetry.record import Record
from dragoman.secret import name_alone
from dragoman.types import ProtocolName


@final
class Call(msgspec.Struct, frozen=True):
    """A request.

    Attributes:
        name: the text of `{model}` in the path, or "".
        page: the path's pattern.
        owner: whose conversations the client may continue.
    """

    __repr__ = name_alone

    head: Head
    body: bytes
    name: str
    page: str
    owner: str
    response_writer: ResponseWriter
    record: Record

    def answer(self, answer: Answer) -> None:
        """Send a whole response."""
        self.response_writer.send(answer)
        self.record.outcome, self.record.status, self.record.page = "done", answer.status, self.page


class Refused(Exception):
    """An endpoint has no answer; the client gets the failure in its protocol's form."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


Serve: TypeAlias = Callable[[Call], Awaitable[None]]


@final
class Endpoint(msgspec.Struct, frozen=True):
    """A path and its handler. `{model}` in the pattern stands for any text.

    `serve` may raise `DragomanError`, `UnknownModel` and `Refused` before it sends anything; the client gets them in
    the protocol's form.
    """

    protocol: ProtocolName
    methods: tuple[str, ...]
    pattern: str
    serve: Serve
