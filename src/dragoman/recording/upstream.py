"""The server to which the recorder sends requests: a provider's, or one named by its URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final
from urllib.parse import urlencode

import msgspec

from dragoman.errors import ConfigError, UsageError
from dragoman.protocols import PROTOCOLS
from dragoman.providers.address import scheme_hint, split_url
from dragoman.providers.catalog import Provider
from dragoman.providers.endpoint import Outgoing, fixed_headers
from dragoman.secret import Secret
from dragoman.types import Message, ProtocolName, Request

#: What belongs to the connection with the client, not to the request. Answers are asked for as plain bytes.
_CONNECTION: Final = frozenset(
    {
        "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "origin", "referer",
    }
)  # fmt: skip
_KEYS: Final = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key"})


@final
class Upstream(msgspec.Struct, frozen=True):
    """A provider with its key, or an address alone. `base_url`: as clients of the server want it."""

    base_url: str
    provider: Provider | None = None
    key: Secret | None = None

    @property
    def title(self) -> str:
        """The provider's name with its address, or the address alone."""
        place = self.base_url.partition("?")[0]
        return place if self.provider is None else f"{self.provider.name} at {place}"

    def outgoing(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, protocol: ProtocolName | None
    ) -> Outgoing:
        """Return a client's request as the server gets it. The key of a provider replaces the client's.

        Raises:
            ConfigError: the key cannot stand in a header.
        """
        provider = self.provider
        passed = {name.lower(): value for name, value in headers.items() if name.lower() not in _CONNECTION}
        if provider is None:
            return Outgoing(method, _joined(self.base_url, path), passed, body)
        if protocol in provider.also:
            provider = provider.speaking(protocol)
        own = fixed_headers(provider, self.key.reveal() if self.key is not None else None)
        if self.key is not None:
            passed = {name: value for name, value in passed.items() if name not in _KEYS}
        url = provider.base_url.rstrip("/") + _without(_version_of(provider.protocol), path)
        if provider.query:
            url += ("&" if "?" in url else "?") + urlencode(provider.query)
        return Outgoing(method, url, {**passed, **own}, body)


def upstream_at(url: str) -> Upstream:
    """Return a server by its address. Raises UsageError if the text is not an address."""
    found = split_url(url)
    if found is None or any((found[0].query, found[0].fragment, found[0].username, found[0].password)):
        seen = "" if "@" in url or "?" in url else f"; got {url[:80]!r}{scheme_hint(url)}"
        raise UsageError(
            f"expected a provider or an address like http://127.0.0.1:11434, without a password or a query{seen}"
        )
    return Upstream(url.rstrip("/"))


def upstream_of(provider: Provider, key: Secret | None) -> Upstream:
    """Return the server of a provider. Raises `ConfigError`: its address is not known."""
    if not provider.base_url:
        serve = f"dragoman serve --provider {provider.name} --model …"
        raise ConfigError(
            f"provider {provider.name} has no server of its own: start one ({serve}) and name its address"
        )
    if not provider.is_complete:
        raise ConfigError(f"provider {provider.name}: its address is not complete; set base_url")
    return Upstream(provider.base_url, provider, key)


def _without(prefix: str, path: str) -> str:
    """Return a path without leading segments. The rest begins a segment too: otherwise `@host` would turn the address
    before it into a user name and send the key to that host.
    """
    rest = path.removeprefix(prefix)
    return rest if rest[:1] in ("", "/", "?") else path


def _joined(base_url: str, path: str) -> str:
    """Join an address and a client's path. A segment that ends the one and begins the other stands once."""
    last = base_url.rpartition("/")[2]
    return base_url + (path.removeprefix(f"/{last}") if path.startswith(f"/{last}/") else path)


def _version_of(protocol: ProtocolName) -> str:
    """Return the prefix of a protocol's client paths that belongs to the base URL of its providers: "/v1", or ""."""
    form = PROTOCOLS[protocol]
    sent = form.render_request(Request(model="m", messages=(Message("user", ()),), stream=False)).http.path
    route = form.routes[0][1].replace("{model}", "m")
    return route.removesuffix(sent) if route.endswith(sent) else ""
