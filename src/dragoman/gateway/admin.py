"""The operator's listener: it serves what concerns all clients, and has its own keys.

Off unless `[admin]` names an address. It serves no models.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.events import Failure
from dragoman.gateway.administration.admin_keys import Granters
from dragoman.gateway.administration.api import PREFIX, AdminApi
from dragoman.gateway.administration.requests import AdminRefusal
from dragoman.gateway.auth import Guard, shown_keys
from dragoman.gateway.messages import Answer, Head, ResponseWriter
from dragoman.gateway.pages.health import HEALTH, PATHS, Operations
from dragoman.gateway.server.client_addresses import ClientAddresses
from dragoman.gateway.telemetry.record import Observer
from dragoman.secret import name_alone

_TEXT: Final = "text/plain; charset=utf-8"


class AdminApp(msgspec.Struct, eq=False, kw_only=True):
    """The pages and the API of the admin listener, as an `Application`.

    The pages concern all clients, so they need a key with the role `read` and without a team.
    """

    guard: Guard
    granters: Granters
    api: AdminApi
    addresses: ClientAddresses
    observer: Observer
    operations: Operations

    __repr__ = name_alone

    @property
    def is_draining(self) -> bool:
        """Whether the process ends."""
        return self.operations.is_draining

    def admit(self, head: Head) -> Answer | None:
        """Check Host, Origin and admin key, on every method and path."""
        failure = self.guard.judge(head, needs_key=head.path not in HEALTH)
        if failure is None:
            return None
        return self.addresses.slowed(self.refuse(head, failure), head, failure)

    def refuse(self, head: Head, failure: Failure) -> Answer:
        """Return a failure as text, or as JSON for the API."""
        status = failure.status or 500
        self.observer.refused(failure, status)
        if _is_of_api(head):
            return AdminRefusal(status, failure.kind, failure.message).answer()
        return Answer(status, f"{failure.message}\n".encode(), _TEXT)

    async def respond(self, head: Head, body: bytes, response_writer: ResponseWriter) -> None:
        """Serve one of the pages, or of the API's routes."""
        if _is_of_api(head):
            response_writer.send(await self.api.respond(head, body))
        elif head.path not in PATHS:
            expected = " ".join([*sorted(PATHS), f"{PREFIX}/"])
            response_writer.send(Answer(404, f"expected one of {expected}\n".encode(), _TEXT))
        elif head.path in HEALTH or self._may_read(head):
            await self.operations.respond(head, response_writer)
        else:
            words = "expected an admin key with the role read and without a team: this page tells of all clients\n"
            response_writer.send(Answer(403, words.encode(), _TEXT))

    def _may_read(self, head: Head) -> bool:
        if not self.granters.has_any:
            return True  # on this machine alone, everybody may
        shown = (self.granters.find_key(key) for key in shown_keys(head))
        return any(granter is not None and "read" in granter.roles and not granter.team for granter in shown)


def _is_of_api(head: Head) -> bool:
    return head.path == PREFIX or head.path.startswith(f"{PREFIX}/")
