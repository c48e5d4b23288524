"""Fetch images that are given by address, for servers that take them as data only: from allowed hosts, guarded.

An address in a prompt could make this machine call its own network. So a host is resolved once, all its addresses must
be public, and the checked one is dialled; a redirect is checked like the first address. References:
https://owasp.org/www-community/attacks/Server_Side_Request_Forgery, vLLM's CVE-2025-6242 (an empty list of allowed
hosts was an open one; here it is closed).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from dragoman.errors import UsageError, WireError
from dragoman.http.dns_lookups import DnsLookups
from dragoman.http.public_addresses import is_public
from dragoman.http.response import TransportFailed
from dragoman.protocol.media_types import type_of_bytes
from dragoman.types import Media, Message, Part, Request, ToolResult

#: Bytes of one image, seconds for it with all its redirects, images and bytes of one request.
LARGEST: Final = 20 * 1024 * 1024
_SECONDS: Final = 10.0
_MOST_IMAGES: Final = 16
_MOST_SIZE: Final = 32 * 1024 * 1024
_MOST_HOPS: Final = 3
_PORTS: Final = (80, 443)
_ANY: Final = "*"
_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
#: Names that mean this machine or its network, whatever a resolver says.
_INSIDE: Final = (".local", ".localhost", ".internal", ".home.arpa", ".lan")


class _Place(NamedTuple):
    is_tls: bool
    host: str
    port: int
    target: str


class ImageRefused(WireError, UsageError):
    """An image that stands at an address cannot be sent: the fault of a client's body, or of a program's call."""


class _NoImage(Exception):
    """An address that gives no image. The message says why, without its path."""


class Images:
    """Replaces addresses with data. Created and used in one event loop."""

    __slots__ = ("_context", "_hosts", "_is_reachable", "_lookups", "_ports")

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        context: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        is_reachable: Callable[[str], bool] | None = None,
        ports: tuple[int, ...] = _PORTS,
    ) -> None:
        """Create it.

        Args:
            hosts: names, `*.name` for all below one, `*` for every public host; none: nothing is fetched.
            is_reachable, ports: for tests: which addresses and ports may be dialled.
        """
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)
        self._context = context
        self._is_reachable = is_reachable or is_public
        self._lookups = DnsLookups()
        self._ports = ports

    async def filled(self, request: Request) -> Request:
        """Return the request with its images as data. Raises `ImageRefused`: one cannot be had."""
        addresses = list(dict.fromkeys(_addresses(request)))
        if not addresses:
            return request
        if not self._hosts:
            raise ImageRefused(
                f"expected images as data, got one by its address at host {_shown(addresses[0])}: this model's server"
                " takes none, and http.image_hosts allows no host to fetch them from"
            )
        if len(addresses) > _MOST_IMAGES:
            raise ImageRefused(f"expected at most {_MOST_IMAGES} images by address, got {len(addresses)}")
        found: dict[str, tuple[str, str]] = {}
        size = 0
        for address in addresses:
            data, mime = await self._fetched(address)
            size += len(data)
            if size > _MOST_SIZE:
                raise ImageRefused(f"expected images of at most {_MOST_SIZE} bytes together", status=413)
            found[address] = mime, base64.b64encode(data).decode()
        messages = tuple(_with_data(message, found) for message in request.messages)
        return msgspec.structs.replace(request, messages=messages)

    async def _fetched(self, address: str) -> tuple[bytes, str]:
        try:
            async with asyncio.timeout(_SECONDS):
                for _ in range(_MOST_HOPS + 1):
                    data, onward = await self._asked(self._checked(address))
                    if not onward:
                        return data, _type_of(data)
                    address = urljoin(address, onward)
            raise _NoImage(f"it was redirected more than {_MOST_HOPS} times")
        except TimeoutError:
            reason = f"it did not come within {_SECONDS:g} seconds"
        except (_NoImage, TransportFailed, OSError) as problem:
            reason = str(problem) if isinstance(problem, _NoImage) else type(problem).__name__
        raise ImageRefused(f"the image of host {_shown(address)} cannot be fetched: {reason}")

    def _checked(self, address: str) -> _Place:
        """Return the parts of an address that may be fetched."""
        try:
            parts = urlsplit(address)
            host = (parts.hostname or "").encode("idna").decode("ascii").lower().rstrip(".")
            port = parts.port if parts.port is not None else 443 if parts.scheme == "https" else 80
        except ValueError:
            raise _NoImage("it is no address") from None
        if parts.scheme not in ("http", "https") or not host:
            raise _NoImage("expected an http or https address")
        if parts.username is not None or parts.password is not None:
            raise _NoImage("expected an address without a user")
        if port not in self._ports:
            raise _NoImage("its port is not allowed")
        if not self._is_allowed(host):
            raise _NoImage("http.image_hosts does not allow it")
        target = quote(parts.path or "/", safe="!#$%&'()*+,/:;=?@[]~")
        if parts.query:
            target += "?" + quote(parts.query, safe="!$%&'()*+,/:;=?@[]~")
        return _Place(parts.scheme == "https", host, port, target)

    def _is_allowed(self, host: str) -> bool:
        if host == "localhost" or host.endswith(_INSIDE):
            return False
        names = host.split(".")
        wider = {f"*.{'.'.join(names[start:])}" for start in range(1, len(names))}
        return not self._hosts.isdisjoint({_ANY, host, *wider})

    async def _asked(self, place: _Place) -> tuple[bytes, str]:
        """Return the body, or the address of a redirect."""
        from dragoman.http.connection import READ_SIZE, HttpConnection  # only who fetches needs its library

        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: HttpConnection(
                place.host,
                free=lambda kept: kept.abort(),
                gone=lambda gone: None,
                buffer=memoryview(bytearray(READ_SIZE)),
            ),
            await self._reachable(place),
            place.port,
            ssl=self._context() if place.is_tls else None,
            server_hostname=place.host if place.is_tls else None,
        )
        try:
            host = f"[{place.host}]" if ":" in place.host else place.host
            lines = (f"GET {place.target} HTTP/1.1", f"host: {host}:{place.port}", "accept: image/*",
                     "accept-encoding: identity", "user-agent: dragoman", "connection: close")  # fmt: skip
            response = await connection.send("\r\n".join([*lines, "", ""]).encode("ascii"), b"")
            if 300 <= response.status < 400 and response.headers.get("location"):
                return b"", response.headers["location"]
            if response.status != 200:
                raise _NoImage(f"its server answered {response.status}")
            data = bytearray()
            while piece := await response.read():
                data += piece
                if len(data) > LARGEST:
                    raise _NoImage(f"it is larger than {LARGEST} bytes")
            return bytes(data), ""
        finally:
            connection.abort()

    async def _reachable(self, place: _Place) -> str:
        """Return the address to dial. All of the host's must be allowed."""
        try:
            addresses = await self._lookups.addresses(place.host)
        except OSError:
            raise _NoImage("its host is not known") from None
        if not addresses or not all(map(self._is_reachable, addresses)):
            raise _NoImage("its host is not a public one")
        return addresses[0]


def _type_of(data: bytes) -> str:
    """Return the type of the bytes, whatever their server calls it."""
    found = type_of_bytes(data)
    if found not in _TYPES:
        raise _NoImage("it is no PNG, JPEG, GIF or WebP image")
    return found


def _shown(address: str) -> str:
    """Return the host alone: the rest may contain a key."""
    try:
        return repr((urlsplit(address).hostname or "")[:80])
    except ValueError:
        return "''"


def _addresses(request: Request) -> Iterable[str]:
    for message in request.messages:
        for part in message.parts:
            for inner in part.parts if isinstance(part, ToolResult) else (part,):
                if isinstance(inner, Media) and _is_linked(inner):
                    yield inner.url or ""


def _is_linked(part: Part) -> bool:
    return (
        isinstance(part, Media)
        and part.kind == "image"
        and part.data is None
        and part.url is not None
        and part.url.lower().startswith(("http://", "https://"))
    )


def _with_data(message: Message, found: dict[str, tuple[str, str]]) -> Message:
    parts = tuple(_part_with_data(part, found) for part in message.parts)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _part_with_data(part: Part, found: dict[str, tuple[str, str]]) -> Part:
    if isinstance(part, ToolResult):
        inner = tuple(_part_with_data(one, found) for one in part.parts)
        return part if inner == part.parts else msgspec.structs.replace(part, parts=inner)
    if isinstance(part, Media) and _is_linked(part):
        mime, data = found[part.url or ""]
        return msgspec.structs.replace(part, mime=mime, data=data, url=None)
    return part
