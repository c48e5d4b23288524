"""Forward parts of a client's request head to a provider that speaks the client's protocol.

Vendors enable features of a body by headers (`anthropic-beta`, `anthropic-version`, `openai-beta`), and identify
clients by others. So all pass to a provider of the same protocol, except those that belong to the connection, to the
client's key, or to a proxy between. To a provider of another protocol none passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, final
from urllib.parse import urlsplit

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.client.request.splicing import splice_sized
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.protocol import HttpRequest
from dragoman.providers.endpoint import Outgoing, endpoint
from dragoman.routing.target import Target
from dragoman.secret import Secret
from dragoman.types import ProtocolName

#: Those of one connection (RFC 9110, 7.6.1), of the body's form, of caches and browsers, and of who asks which host
#: from where. In all of these names "-" stands for "_" too: servers behind a gateway take the two for one.
_OF_THE_CONNECTION: Final = frozenset({
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "expect", "host",
    "digest", "want-digest", "accept-encoding", "accept-charset", "accept-datetime", "range", "via", "forwarded",
    "max-forwards", "true-client-ip", "origin", "origin-agent-cluster", "referer", "dnt", "from", "pragma", "warning",
    "early-data", "save-data", "expect-ct", "traceparent", "tracestate", "baggage", "b3", "request-id",
    "x-request-id", "x-correlation-id", "x-requested-with", "x-host", "x-sendfile", "x-uidh", "x-wss-key",
})  # fmt: skip
#: Of the body's form, of conditions and browsers, and what proxies, load balancers, meshes and other gateways say of a
#: client to the server behind them, which trusts them.
_FAMILIES: Final = (
    "content-", "if-", "sec-", "access-control-", "proxy-", "x-proxy", "x-forwarded-", "x-real-", "x-remote-",
    "x-original-", "x-rewrite-", "x-http-", "x-method-", "x-ssl-", "ssl-", "x-client-ip", "x-client-cert",
    "x-client-data", "x-cluster-", "x-envoy-", "x-arr-", "x-azure-", "x-accel-", "x-b3-", "x-cloud-trace-", "x-amz-",
    "x-amzn-", "x-wap-", "x-vercel-", "cf-", "fastly-", "fly-", "x-internal", "x-admin", "x-debug", "x-user",
    "x-tenant", "x-upstream-", "x-target-", "x-provider", "x-base-url", "x-api-base", "x-dragoman-", "dragoman-",
    "x-portkey-", "x-litellm-", "helicone-",
)  # fmt: skip
#: Whose bill it is: the operator's key says that.
_ACCOUNTS: Final = ("-organization", "-organization-id", "-project", "-user-project")
#: A header with one of these in its name may hold what only one server may know.
_SECRET_WORDS: Final = (
    "auth", "token", "secret", "cookie", "password", "passwd", "credential", "apikey", "api-key",
    "access-key", "private", "signature", "jwt", "bearer", "account",
)  # fmt: skip
_SECRET_ENDS: Final = ("-key", "-pass", "-pin")
#: Headers that switch on what a body asks for, by their endings; they mean nothing in another protocol.
_SWITCHES: Final = ("-beta",)
#: The credentials of a bearer (RFC 6750, 2.1); two headers joined by a comma are not credentials.
_LOGIN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_LONGEST_NAME: Final = 128
#: Parameters of the address that belong to what the body asks for.
_QUERY: Final = frozenset({"beta=true"})


@final
class ClientHead:
    """The head of a client's request: headers with names in lower case, its own login, and its bytes, if they are kept.

    Only a target with `client_login` gets the login, which is no key of the gateway.
    """

    __slots__ = ("_body", "_headers", "_passing", "_query", "protocol")

    def __init__(self, protocol: ProtocolName, headers: Mapping[str, str], *, query: str = "") -> None:
        """Create it. `headers`: without the gateway's own keys."""
        self.protocol = protocol
        self._headers = headers
        self._query = query
        self._passing: dict[str, str] | None = None
        self._body: tuple[bytes, dict[str, Raw]] | None = None

    def keep_body(self, body: bytes, fields: dict[str, Raw]) -> None:
        """Keep the request's bytes and fields, for a target for which nothing of it changes."""
        self._body = (body, fields)

    def body(self, model: str) -> bytes | None:
        """Return the request as it came, but for the model's name, or None if its bytes are not kept."""
        if self._body is None:
            return None
        body, fields = self._body
        is_same = bytes(fields.get("model", b"")) == _json.encode_text(model)
        return body if is_same else splice_sized(len(body), fields, {"model": model})[0]

    @property
    def login(self) -> Secret | None:
        """Return the bearer of the client's `authorization`, or None."""
        scheme, _, shown = self._headers.get("authorization", "").partition(" ")
        is_login = scheme.lower() == "bearer" and _LOGIN.fullmatch(shown.strip()) is not None
        return Secret(shown.strip()) if is_login else None

    def passing(self) -> dict[str, str]:
        """Return the headers for a provider of the same protocol. Those that `connection` lists belong to it."""
        if self._passing is None:
            headers = self._headers
            names: Iterable[str] = _passing_names(tuple(headers))
            if "connection" in headers:
                options = {option.strip() for option in headers["connection"].lower().split(",")}
                names = [name for name in names if name not in options]
            passing = {name: headers[name] for name in names}
            said = "".join(passing.values())
            if not (said.isascii() and said.isprintable()):
                passing = {
                    name: value if value.isascii() else _mended(value)
                    for name, value in passing.items()
                    if value.isprintable() or not value.isascii()
                }
            self._passing = passing
        return self._passing

    def query(self) -> str:
        """Return the part of the query that belongs to the body's meaning, or ""."""
        return "&".join([each for each in self._query.split("&") if each in _QUERY]) if self._query else ""

    def unsaid(self) -> list[Deviation]:
        """Return a note for each header that enables something, for a provider of another protocol."""
        return [
            Deviation("untranslated", f"headers.{name}", clip(value), "note")
            for name, value in self._headers.items()
            if name.endswith(_SWITCHES) and may_pass(name)
        ]


def as_client(target: Target, head: ClientHead | None) -> Target:
    """Return the target with a client's own login in place of its key, if it accepts that of its protocol's clients."""
    if not target.client_login or head is None or head.login is None or head.protocol != target.protocol.name:
        return target
    provider = msgspec.structs.replace(target.provider, auth="bearer")
    return msgspec.structs.replace(target, key=head.login, provider=provider)


def _mended(value: str) -> str:
    """Return a non-ASCII value, which was read as Latin-1, as the text whose UTF-8 it was, so that its bytes are sent.

    A byte that is no UTF-8 is a lone surrogate (PEP 383). Control characters become question marks.
    """
    text = value.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
    return "".join([each if each.isprintable() or "\udc80" <= each <= "\udcff" else "?" for each in text])


def addressed(target: Target, http: HttpRequest, head: ClientHead | None) -> tuple[Outgoing, list[Deviation]]:
    """Return a rendered request for a target with the client's headers for it, and what of the head cannot be
    expressed.

    Raises:
        ConfigError: as `endpoint`.
    """
    key = target.key.reveal() if target.key is not None else None
    if head is None or head.protocol != target.protocol.name:
        outgoing = endpoint(target.provider, http, model=target.model, key=key)
        return outgoing, [] if head is None else head.unsaid()
    if passing := head.passing():
        http = msgspec.structs.replace(http, headers={**http.headers, **passing})
    outgoing = endpoint(target.provider, http, model=target.model, key=key)
    if target.client_login:
        outgoing = msgspec.structs.replace(outgoing, has_login=True)
    if query := head.query():
        outgoing = msgspec.structs.replace(outgoing, url=with_query(outgoing.url, query))
    return outgoing, []


@lru_cache(maxsize=64)
def _passing_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that may be passed on. Cached, because a client sends the same ones with most requests."""
    return tuple(name for name in names if may_pass(name))


@lru_cache(maxsize=1024)
def may_pass(name: str) -> bool:
    """Return whether a header (name in lower case) may be passed on to a provider of the client's protocol."""
    if len(name) > _LONGEST_NAME:
        return False
    name = name.replace("_", "-")
    if name in _OF_THE_CONNECTION or name.startswith(_FAMILIES) or name.endswith((*_SECRET_ENDS, *_ACCOUNTS)):
        return False
    return not any(word in name for word in _SECRET_WORDS)


def with_query(url: str, query: str) -> str:
    """Return an address with an extended query."""
    if not query:
        return url
    return f"{url}{'&' if urlsplit(url).query else '?'}{query}"
