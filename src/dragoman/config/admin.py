"""The operator's listener and its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, final

import msgspec

from dragoman.config.ledger import NAME
from dragoman.errors import ConfigError

#: What an admin key may do: see numbers and lines of all clients, manage client keys, correct the ledger.
AdminRole: TypeAlias = Literal["read", "keys", "adjust"]


@final
class AdminKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An admin key by reference, as in `ServerConfig.keys`, and what it may do.

    Attributes:
        name: its name in the audit; "": its place in the list.
        team: it sees and changes the keys and sums of this team alone.
        models, routes: patterns that bound those of each key that it creates or changes. A key with such bounds changes
        no quotas.
    """

    key: str
    roles: tuple[AdminRole, ...] = ("read",)
    name: str = ""
    team: str = ""
    models: tuple[str, ...] = ("*",)
    routes: tuple[str, ...] = ("*",)


@final
class AdminConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operator's listener.

    Attributes:
        address: HOST:PORT; None: there is no such listener.
        keys: references, which may read, or tables with roles. Without keys this machine may read pages, and there is
            no API.
        behind_tls: a TLS proxy stands before it, so that other machines may use the API.
    """

    address: str | None = None
    keys: tuple[str | AdminKey, ...] = ()
    behind_tls: bool = False

    def references(self) -> tuple[str, ...]:
        """Return the keys' references."""
        return tuple(key if isinstance(key, str) else key.key for key in self.keys)


def check_admin_names(keys: Sequence[str | AdminKey]) -> None:
    """Check the names of admin keys and of their teams.

    Raises:
        ConfigError: a name has the wrong form, or two keys share it.
    """
    named: dict[str, int] = {}
    for place, key in enumerate(keys):
        if isinstance(key, str):
            continue
        for field, name in (("name", key.name), ("team", key.team)):
            if name and not NAME.fullmatch(name):
                raise ConfigError(
                    f"admin.keys[{place}].{field}: expected letters, digits and . _ @ -, got {name[:80]!r}"
                )
        if key.name and named.setdefault(key.name, place) != place:
            raise ConfigError(f"admin.keys[{place}].name: admin.keys[{named[key.name]}] has the same")
