"""Admin keys: what each may do, and the bounds within which it may grant rights."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, final

import msgspec

from dragoman.config import AdminKey, AdminRole
from dragoman.gateway.messages import Head
from dragoman.ledger.keys import VirtualKey
from dragoman.secret import Secret

#: What makes a pattern more than the text that it is.
_SPECIAL: Final = frozenset("*?[")


@final
class Granter(msgspec.Struct, frozen=True):
    """An admin key. `name`: in the audit. `team`: "" for all teams."""

    name: str
    roles: frozenset[AdminRole]
    team: str = ""
    models: tuple[str, ...] = ("*",)
    routes: tuple[str, ...] = ("*",)

    @property
    def is_bounded(self) -> bool:
        """Whether there is anything that it may not grant."""
        return bool(self.team) or self.models != ("*",) or self.routes != ("*",)

    def sees(self, key: VirtualKey) -> bool:
        """Return whether it may see a client's key."""
        return not self.team or key.team == self.team

    def excess(self, key: VirtualKey) -> str:
        """Return what of a client's key is beyond this key's bounds; "" if nothing is."""
        if not self.sees(key):
            return f"team: expected {self.team}, got {key.team or 'none'}"
        for field, bounds, patterns in (("models", self.models, key.models), ("routes", self.routes, key.routes)):
            for pattern in patterns:
                if not any(is_within(pattern, bound) for bound in bounds):
                    return f"{field}: expected what is within {', '.join(bounds)}, got {pattern}"
        return ""


def is_within(pattern: str, bound: str) -> bool:
    """Return whether everything that a pattern matches is certainly matched by another."""
    if bound in ("*", pattern):
        return True
    if _SPECIAL.isdisjoint(pattern):
        return fnmatchcase(pattern, bound)
    prefix = bound[:-1]
    return bound.endswith("*") and _SPECIAL.isdisjoint(prefix) and pattern.startswith(prefix)


class Granters:
    """Finds the admin key of a request. Only a bearer in `Authorization` counts: no web page can send it."""

    __slots__ = ("_known",)

    def __init__(self, keys: Sequence[str | AdminKey], secrets: Sequence[Secret | str]) -> None:
        """Create it. `keys` are those of the configuration, `secrets` the same ones, read."""
        self.take(keys, secrets)

    def take(self, keys: Sequence[str | AdminKey], secrets: Sequence[Secret | str]) -> None:
        """Use these keys from now on."""
        self._known = tuple(
            (_digest(secret), _granter(place, key))
            for place, (key, secret) in enumerate(zip(keys, secrets, strict=True))
        )

    @property
    def has_any(self) -> bool:
        """Whether there are admin keys."""
        return bool(self._known)

    def find(self, head: Head) -> Granter | None:
        """Return the admin key of a request, or None."""
        scheme, _, bearer = head.headers.get("authorization", "").partition(" ")
        return self.find_key(bearer.strip()) if scheme.lower() == "bearer" else None

    def find_key(self, shown: str) -> Granter | None:
        """Return the admin key of a secret, or None. All are compared, in constant time."""
        digest = hashlib.sha256(shown.encode("utf-8", "replace")).digest()
        found = None
        for ours, granter in self._known:
            if hmac.compare_digest(digest, ours):
                found = granter
        return found


def _granter(place: int, key: str | AdminKey) -> Granter:
    name = f"admin.keys[{place}]"
    if isinstance(key, str):
        return Granter(name, frozenset({"read"}))
    return Granter(key.name or name, frozenset(key.roles), key.team, key.models, key.routes)


def _digest(key: Secret | str) -> bytes:
    if isinstance(key, Secret):
        return hashlib.sha256(key.reveal().encode()).digest()
    return bytes.fromhex(key.removeprefix("sha256:"))
