"""`/admin/v1/`: the routes, the role that each needs, and its handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote

import msgspec

from dragoman.config import AdminRole, QuotaConfig
from dragoman.gateway.administration import keys, quotas, reports
from dragoman.gateway.administration.admin_keys import Granters
from dragoman.gateway.administration.ledger_access import Desk
from dragoman.gateway.administration.requests import AdminRefusal, Asked, NoFields
from dragoman.gateway.messages import Answer, Head

PREFIX: Final = "/admin/v1"
#: Bytes of a body.
MOST_BODY: Final = 64 * 1024
_NAME: Final = "{name}"
_LONGEST_NAME: Final = 1_024
#: The last is what the route takes.
Handler: TypeAlias = Callable[[Desk, Asked, Any], Answer]


@final
class Route(msgspec.Struct, frozen=True):
    """A route of the API.

    Attributes:
        path: behind `PREFIX`; `{name}` is one percent-encoded segment.
        takes: the query's parameters for GET, the body's fields for the others. Nothing else is accepted.
    """

    method: str
    path: str
    role: AdminRole
    handler: Handler
    takes: type[msgspec.Struct] = NoFields


ROUTES: Final = (
    Route("GET", "/keys", "read", keys.list_keys),
    Route("POST", "/keys", "keys", keys.make_key, keys.NewKey),
    Route("GET", "/keys/{name}", "read", keys.show_key),
    Route("PATCH", "/keys/{name}", "keys", keys.change_key, keys.KeyChange),
    Route("DELETE", "/keys/{name}", "keys", keys.disable_key),
    Route("POST", "/keys/{name}/rotate", "keys", keys.rotate_key, keys.Rotation),
    Route("GET", "/teams", "read", keys.list_teams),
    Route("GET", "/quotas", "read", quotas.list_quotas),
    Route("PUT", "/quotas", "keys", quotas.set_quota, QuotaConfig),
    Route("DELETE", "/quotas/{name}", "keys", quotas.remove_quota),
    Route("GET", "/balances", "read", quotas.show_balances, quotas.BalancesQuery),
    Route("GET", "/usage", "read", reports.show_usage, reports.UsageQuery),
    Route("GET", "/attempts", "read", reports.show_attempts, reports.AttemptsQuery),
    Route("POST", "/adjustments", "adjust", reports.adjust, reports.Adjustment),
    Route("GET", "/audit", "read", reports.show_audit, reports.AuditQuery),
    Route("GET", "/ledger", "read", reports.show_ledger),
)


class AdminApi:
    """Serves the routes, one request at a time in a thread: the ledger is used there, and no other request waits."""

    __slots__ = ("_desk", "_granters", "_is_open", "_turn")

    def __init__(self, desk: Desk | None, granters: Granters, *, is_open: Callable[[], bool]) -> None:
        """Create it. `desk` None: this gateway keeps no ledger. `is_open`: whether it may be used at this address."""
        self._desk = desk
        self._granters = granters
        self._is_open = is_open
        self._turn = asyncio.Lock()

    async def respond(self, head: Head, body: bytes) -> Answer:
        """Answer a request whose path begins with `PREFIX`."""
        try:
            route, asked, taken = self._judged(head, body)
            if self._desk is None:
                raise AdminRefusal(404, "no_ledger", "this gateway keeps no ledger")
            async with self._turn:
                return await asyncio.to_thread(route.handler, self._desk, asked, taken)
        except AdminRefusal as refusal:
            return refusal.answer()

    def _judged(self, head: Head, body: bytes) -> tuple[Route, Asked, msgspec.Struct]:
        """Check the key, then the request. Raises AdminRefusal."""
        granter = self._granters.find(head)
        if granter is None:
            raise AdminRefusal(401, "no_admin_key", "authorization: expected Bearer and an admin key")
        if not self._is_open():
            expected = "admin.behind_tls = true, which says that TLS stands before this address"
            raise AdminRefusal(403, "no_tls", f"configuration: expected {expected}")
        route, name = _found(head)
        if route.role not in granter.roles:
            has = ", ".join(sorted(granter.roles)) or "none"
            raise AdminRefusal(403, "role", f"roles: expected {route.role}, this admin key has {has}")
        if len(body) > MOST_BODY:
            raise AdminRefusal(413, "too_large", f"body: expected {MOST_BODY} bytes at most, got {len(body)}")
        asked = Asked(granter, head, body, name)
        query = asked.query(route.takes if route.method == "GET" else NoFields)
        if route.method == "GET" or route.takes is NoFields:
            asked.nothing()
            return route, asked, query
        return route, asked, asked.content(route.takes)


def _found(head: Head) -> tuple[Route, str]:
    """Return the route of a request. Raises AdminRefusal for an unknown path, or another method."""
    path, methods = head.path.removeprefix(PREFIX), set()
    for route, name in _matching(path):
        methods.add(route.method)
        if route.method == head.method:
            return route, _decoded(name)
    if methods:
        expected = ", ".join(sorted(methods))
        raise AdminRefusal(405, "bad_method", f"{head.path[:120]}: expected {expected}, got {head.method[:20]}")
    raise AdminRefusal(404, "not_found", f"{head.path[:120]}: expected a path of the API")


def _matching(path: str) -> Iterator[tuple[Route, str]]:
    """Yield the routes of a path, each with the text of `{name}`."""
    parts = path.split("/")
    for route in ROUTES:
        pairs = list(zip(route.path.split("/"), parts, strict=False))
        is_whole = route.path.count("/") == len(parts) - 1
        if is_whole and all((part and name == _NAME) or name == part for name, part in pairs):
            yield route, next((part for name, part in pairs if name == _NAME), "")


def _decoded(name: str) -> str:
    try:
        decoded = unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise AdminRefusal(400, "bad_path", "path: expected UTF-8") from None
    if not decoded.isprintable() or len(decoded) > _LONGEST_NAME:
        raise AdminRefusal(400, "bad_path", f"path: expected a name of {_LONGEST_NAME} printable characters at most")
    return decoded
