"""Authentication: the Host and Origin of a request, and its client key."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman.events import Failure
from dragoman.gateway.cross_origin import CrossOrigin
from dragoman.gateway.messages import Head, query_values
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.keys import VirtualKey
from dragoman.providers.address import is_loopback
from dragoman.secret import Secret

_IN_ORDER: Final = ("x-api-key", "x-goog-api-key", "api-key")
_KEY_HEADERS: Final = frozenset(_IN_ORDER)
#: Host headers that are remembered.
_KEPT: Final = 64
#: Seconds after which a client may ask again whose key cannot be checked.
_AWAY_SECONDS: Final = 30.0
_SHA256: Final = "sha256:"
_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]{2,45})\]|(?P<plain>[A-Za-z0-9._-]{1,255}))(?::[0-9]{0,5})?"
)
#: What an Origin may be: a scheme and an authority, nothing behind it.
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}://(.*)")


class Guard:
    """Judges request heads before every route."""

    __slots__ = ("_digests", "_hosts", "_let_in", "_ring", "cross_origin")

    def __init__(
        self,
        *,
        allowed_hosts: Iterable[str],
        keys: Iterable[Secret | str],
        ring: KeyRing | None = None,
        allowed_origins: Iterable[str] = (),
    ) -> None:
        """Create it. `keys`: secrets, or `sha256:HEX` of one; `ring`: virtual keys. Without both, every client of an
        allowed host is admitted. `allowed_origins`: pages that may ask and read the answers.
        """
        self._ring = ring
        self.take(allowed_hosts=allowed_hosts, keys=keys, allowed_origins=allowed_origins)

    def take(
        self, *, allowed_hosts: Iterable[str], keys: Iterable[Secret | str], allowed_origins: Iterable[str] = ()
    ) -> None:
        """Use these from now on."""
        self.cross_origin = CrossOrigin(allowed_origins)
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._digests = tuple(_digest(key) for key in keys)
        self._let_in: set[str] = set()  # Host headers that were judged

    def judge(self, head: Head, *, needs_key: bool = True) -> Failure | None:
        """Return why the request is refused, or None. `needs_key` False: keys are not checked."""
        headers = head.headers
        shown = headers.get("host", "")
        if shown not in self._let_in:
            host = host_name(shown)
            if not host:
                return Failure("bad_request", "expected a Host header of the form HOST or HOST:PORT", 400)
            if not self._is_allowed(host):
                # A page whose name was pointed at this machine (DNS rebinding) sends its own name here.
                return Failure("permission", "the Host header names neither this machine nor an allowed host", 403)
            if len(self._let_in) >= _KEPT:
                self._let_in.clear()
            self._let_in.add(shown)
        origin = headers.get("origin")
        if origin is None:
            # Pictures, scripts and links of a page come without an Origin; browsers say so in another header.
            is_foreign = headers.get("sec-fetch-site") == "cross-site"
        else:
            found = _ORIGIN.fullmatch(origin)
            is_foreign = found is None or not self._is_allowed(host_name(found[1]))
        if is_foreign and not self.cross_origin.allows(origin):
            words = "requests from other sites' pages are not taken, but for those in server.allowed_origins"
            return Failure("permission", words, 403)
        if needs_key and self.has_keys and not self.owner(head):
            if self._ring is not None and self._ring.is_too_old:
                words = "the keys of this gateway's store cannot be checked now"
                return Failure("overloaded", words, 503, _AWAY_SECONDS, code="keys_away")
            return Failure("auth", "expected a client key of this gateway (dragoman keys makes one)", 401)
        return None

    @property
    def has_keys(self) -> bool:
        """Whether clients need a key."""
        return bool(self._digests) or (self._ring is not None and self._ring.has_any)

    def _is_allowed(self, host: str) -> bool:
        return is_loopback(host) or host in self._hosts

    def owner(self, head: Head) -> str:
        """Return the owner of what a client stores: the SHA-256 of its key in 64 hexadecimal digits, "" without a valid
        key.

        All keys are compared, in constant time. While no keys are set, whatever a client sends as a key distinguishes
        clients. What a virtual key stores belongs to its name, whatever its secret is.
        """
        if not self.has_keys:
            return nobodys_owner(head)
        found = b""
        for key in shown_keys(head):
            digest = _digest_of(key)
            for ours in self._digests:
                if hmac.compare_digest(digest, ours):
                    found = ours
        if not found and (virtual := self.virtual_key(head)) is not None:
            found = hashlib.sha256(b"key " + virtual.name.encode()).digest()
        return found.hex()

    def virtual_key(self, head: Head) -> VirtualKey | None:
        """Return the virtual key of a request, or None if it has no valid one."""
        if self._ring is None or not self._ring.has_any:
            return None
        digests = (_digest_of(key) for key in shown_keys(head))
        return next((key for digest in digests if (key := self._ring.find(digest)) is not None), None)

    def without_keys(self, head: Head) -> Head:
        """Return the head without the gateway's own keys, so that none is passed on. Another bearer is the client's."""
        if not self.has_keys:
            return head
        headers = {name: value for name, value in head.headers.items() if name not in _KEY_HEADERS}
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            shown = _digest_of(bearer.strip())
            is_virtual = self._ring is not None and self._ring.find(shown) is not None
            if is_virtual or any(hmac.compare_digest(shown, ours) for ours in self._digests):
                del headers["authorization"]
        return msgspec.structs.replace(head, headers=headers)


def nobodys_owner(head: Head) -> str:
    """As `Guard.owner`, while no keys are set."""
    shown = shown_keys(head)
    return _digest_of(shown[0]).hex() if shown else ""


def shown_keys(head: Head) -> list[str]:
    """Return the keys in a request, from every place where a client of the five protocols puts one."""
    headers = head.headers
    keys: list[str] = []
    if "authorization" in headers:
        scheme, _, bearer = headers["authorization"].partition(" ")
        if scheme.lower() == "bearer":
            keys.append(bearer.strip())
    if not _KEY_HEADERS.isdisjoint(headers):
        keys += [headers[name] for name in _IN_ORDER if name in headers]
    if head.query:
        keys += query_values(head.query, "key")
    return [key for key in keys if key] if keys else keys


def host_name(authority: str) -> str:
    """Return the host of `HOST[:PORT]` in lower case, without the brackets of an IPv6 address; "" if it is no
    authority.

    https://www.rfc-editor.org/rfc/rfc9110#section-7.2 (read 2026-11-22), without user names and percent-encoding.
    """
    found = _AUTHORITY.fullmatch(authority)
    return (found["bracketed"] or found["plain"]).lower() if found is not None else ""


def _digest_of(shown: str) -> bytes:
    return hashlib.sha256(shown.encode("utf-8", "replace")).digest()


def _digest(key: Secret | str) -> bytes:
    if isinstance(key, Secret):
        return hashlib.sha256(key.reveal().encode()).digest()
    return bytes.fromhex(key.removeprefix(_SHA256))
