"""Web pages of other origins that may use the gateway (CORS), as the configuration names them.

Spec: https://fetch.spec.whatwg.org/#http-cors-protocol (read 2026-11-26). Nobody else gets a header of it, so a browser
shows no answer to a page that is not named. Cookies count nowhere, so credentials are never allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman.gateway.messages import Answer, Head

_ASKS: Final = "access-control-request-"
_SECONDS: Final = "600"


class CrossOrigin:
    """The pages that may use the gateway. `origins`: theirs, in lower case."""

    __slots__ = ("origins",)

    def __init__(self, origins: Iterable[str]) -> None:
        self.origins = frozenset(origin.lower() for origin in origins)

    def allows(self, origin: str | None) -> bool:
        """Return whether pages of an origin may ask, and read the answers."""
        return origin is not None and origin.lower() in self.origins

    def is_preflight(self, head: Head) -> bool:
        """Return whether a browser asks what such a page may send. It sends no key with that."""
        return head.method == "OPTIONS" and f"{_ASKS}method" in head.headers and self.allows(head.headers.get("origin"))

    def headers(self, head: Head) -> dict[str, str]:
        """Return the headers that let a browser show the answer to the page."""
        if not self.origins:
            return {}
        origin = head.headers.get("origin")
        if origin is None or not self.allows(origin):
            return {"vary": "origin"}
        return {"access-control-allow-origin": origin, "access-control-expose-headers": "*", "vary": "origin"}

    def answer(self, head: Head) -> Answer:
        """Return the answer to a preflight: the page may send what it asks for. Keys and routes are judged later."""
        headers = {**self.headers(head), "access-control-max-age": _SECONDS}
        headers["access-control-allow-methods"] = head.headers[f"{_ASKS}method"]
        if wanted := head.headers.get(f"{_ASKS}headers"):
            headers["access-control-allow-headers"] = wanted
        if head.headers.get(f"{_ASKS}private-network") == "true":
            headers["access-control-allow-private-network"] = "true"
        return Answer(200, b"", "text/plain", headers)
