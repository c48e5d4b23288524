"""The operator's listener: it serves what concerns all clients, and has keys of its own.

Off unless `[admin]` names an address. It has no models and takes no requests for them.
"""

from __future__ import annotations

from typing import Final

from dragoman.events import Failure
from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Answer, Head, ResponseWriter
from dragoman.gateway.pages.health import HEALTH, PATHS, Operations
from dragoman.gateway.server.client_addresses import ClientAddresses
from dragoman.gateway.telemetry.record import Observer

_TEXT: Final = "text/plain; charset=utf-8"


class AdminApp:
    """The pages of the admin listener, as an `Application`. A key of any role may read them."""

    __slots__ = ("_addresses", "_guard", "_observer", "_operations")

    def __init__(self, *, guard: Guard, addresses: ClientAddresses, observer: Observer, operations: Operations) -> None:
        self._guard = guard
        self._addresses = addresses
        self._observer = observer
        self._operations = operations

    @property
    def is_draining(self) -> bool:
        """The process ends."""
        return self._operations.is_draining

    def admit(self, head: Head) -> Answer | None:
        """Host, Origin and admin key, on every method and path."""
        failure = self._guard.judge(head, needs_key=head.path not in HEALTH)
        if failure is None:
            return None
        return self._addresses.slowed(self.refuse(head, failure), head, failure)

    def refuse(self, head: Head, failure: Failure) -> Answer:
        """A failure in words."""
        status = failure.status or 500
        self._observer.refused(failure, status)
        return Answer(status, f"{failure.message}\n".encode(), _TEXT)

    async def respond(self, head: Head, body: bytes, response_writer: ResponseWriter) -> None:
        """One of the pages."""
        if head.path in PATHS:
            await self._operations.respond(head, response_writer)
        else:
            response_writer.send(Answer(404, f"expected one of {' '.join(sorted(PATHS))}\n".encode(), _TEXT))
