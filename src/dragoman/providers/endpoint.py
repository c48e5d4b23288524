"""Address a rendered request to one provider: URL, headers, body. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, final
from urllib.parse import quote, urlencode

import msgspec

from dragoman import _json
from dragoman.codec.splicing import splice
from dragoman.errors import ConfigError
from dragoman.protocol import HttpRequest
from dragoman.providers.catalog import Auth, Provider

_AUTH_HEADER: Final[dict[Auth, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "api-key": ("api-key", ""),
}


@final
class Outgoing(msgspec.Struct, frozen=True):
    """A request ready to be sent. `headers` may contain the key and `body` the prompt, so `repr` shows neither.

    `has_login`: the key is a client's own, which is never kept. `fields`: those from which the body was written, so
    that each name stands once in it; None if that is unknown.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    has_login: bool = False
    fields: dict[str, _json.Raw] | None = None

    def __repr__(self) -> str:
        return f"Outgoing({self.method} {self.url}, {len(self.headers)} headers, {len(self.body)} bytes)"


def endpoint(provider: Provider, http: HttpRequest, *, model: str, key: str | None = None) -> Outgoing:
    """Address a rendered request to a provider.

    Args:
        provider: with a base URL whose placeholders are filled (`filled`).
        http: from the protocol's `render_request`.
        model: the model's name, for providers that want it in the path.
        key: the API key; None or "" sends none.

    Raises:
        ConfigError: the address is not complete, the path leads elsewhere, or the key cannot stand in a header.
    """
    if not provider.base_url:
        raise ConfigError(f"provider {provider.name}: its address is not known; start its server or set base_url")
    if "{" in provider.base_url:
        variables = " and ".join(provider.placeholders.values())
        raise ConfigError(f"provider {provider.name}: {provider.base_url} is not complete; set {variables} or base_url")
    path = (provider.path and provider.path.replace("{model}", quote(model, safe=""))) or http.path
    if "/." in path and not {".", ".."}.isdisjoint(path.partition("?")[0].split("/")):
        raise ConfigError(f"provider {provider.name}: the path of a request may not have '.' and '..' as segments")
    url = _joined(provider.base_url, path)
    if provider.query:
        url += ("&" if "?" in url else "?") + urlencode(provider.query)
    headers = {"content-type": "application/json", **http.headers, **fixed_headers(provider, key)}
    return Outgoing(http.method, url, headers, with_fields(http.body, provider))


def fixed_headers(provider: Provider, key: str | None) -> dict[str, str]:
    """Return the headers that every request to a provider has, whatever a client sends.

    Raises:
        ConfigError: the key cannot stand in a header.
    """
    if not (provider.headers or key):
        return {}
    return {**{name.lower(): value for name, value in provider.headers.items()}, **_auth(provider, key)}


def filled(provider: Provider, variables: Mapping[str, str]) -> Provider:
    """Return the provider with the placeholders of its base URLs replaced by the set environment `variables`."""

    def fill(url: str) -> str:
        for name, variable in provider.placeholders.items():
            value = variables.get(variable)
            if value:
                url = url.replace(f"{{{name}}}", quote(value, safe=""))
        return url

    if not provider.placeholders:
        return provider
    also = {protocol: fill(url) for protocol, url in provider.also.items()}
    return msgspec.structs.replace(provider, base_url=fill(provider.base_url), also=also)


@lru_cache(maxsize=1024)
def _joined(base_url: str, path: str) -> str:
    """Join base URL and path. A segment that ends the one and begins the other stands once (`/v1` + `/v1/messages`)."""
    base = base_url.rstrip("/")
    last = base.rpartition("/")[2]
    return base + (path.removeprefix(f"/{last}") if path.startswith(f"/{last}/") else path)


def _auth(provider: Provider, key: str | None) -> dict[str, str]:
    key = key.strip() if key else ""
    if not key or provider.auth == "none":
        return {}
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"provider {provider.name}: expected a key of printable ASCII characters on one line")
    name, prefix = _AUTH_HEADER[provider.auth]
    return {name: prefix + key}


def with_fields(body: bytes, provider: Provider) -> bytes:
    """Return the body with the fields that every request to this provider carries. The request's own fields win."""
    if not provider.body:
        return body
    asked = _json.decode(body)
    if not isinstance(asked, dict):
        return body
    spliced = splice(body, {name: value for name, value in provider.body.items() if name not in asked})
    return body if isinstance(spliced, _json.Malformed) else spliced
