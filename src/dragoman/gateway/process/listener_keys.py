"""Read the keys of a listener, and check them against who can reach it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.config import Config, read_secret
from dragoman.errors import ConfigError
from dragoman.gateway.auth import Guard
from dragoman.ledger.keys import VirtualKey
from dragoman.providers.address import is_loopback
from dragoman.secret import Secret

#: What a client key must have where others than this machine can try keys: 22 characters of base64 are 128 bits.
_LEAST_CHARACTERS: Final = 22
_LEAST_DIFFERENT: Final = 10


@final
class Keys(msgspec.Struct, frozen=True):
    """The keys of a configuration's listeners, as secrets or `sha256:HEX`. `virtual`: digests of clients' keys with
    names.
    """

    clients: list[Secret | str]
    admins: list[Secret | str]
    virtual: list[str] = []

    def of_clients(self) -> list[Secret | str]:
        """Return everything that admits a client."""
        return [*self.clients, *self.virtual]


def check_reach(host: str, keys: Sequence[Secret | str], *, listener: str = "server") -> str:
    """Check that these keys suffice for the address of a listener. The strength of a digest's key cannot be checked.

    Return a warning if only this machine can reach it; "" for none.

    Raises:
        ConfigError: other machines can reach it, and there is no key or a weak one.
    """
    is_open = not is_loopback(host)
    if is_open and not keys:
        raise ConfigError(
            f"{host[:80]} can be reached from other machines; set {listener}.keys first: dragoman keys new"
        )
    weak = next((place for place, key in enumerate(keys) if isinstance(key, Secret) and _is_weak(key)), None)
    if weak is None:
        return ""
    problem = (
        f"{listener}.keys[{weak}]: expected at least {_LEAST_CHARACTERS} characters, {_LEAST_DIFFERENT} of them "
        "different; `dragoman keys new` makes a key"
    )
    if is_open:
        raise ConfigError(problem)
    return problem


def check_change(guard: Guard, host: str, keys: Sequence[Secret | str], *, listener: str, allow_open: bool) -> str:
    """Check whether a changed configuration may set these keys. As `check_reach`; `host` "" is not checked.

    Raises:
        ConfigError: the listener had keys and would have none, and `allow_open` is not set.
    """
    weak = check_reach(host, keys, listener=listener) if host else ""
    if guard.has_keys and not keys and not allow_open:
        raise ConfigError(
            f"{listener}.keys: there were keys, and the file has none any more; to let everybody on this machine in, "
            "start the gateway anew, or with --allow-open"
        )
    return weak


def read_keys(config: Config) -> Keys:
    """Return the keys that the configuration names, digests as they are. Raises `ConfigError`: one cannot be read."""
    has_admins = config.admin.address is not None
    return Keys(
        _read(config, config.server.keys, "server"),
        _read(config, config.admin.references(), "admin") if has_admins else [],
        [digest for key in config.virtual_keys.values() for digest in key.digests],
    )


def virtual_keys(config: Config) -> dict[bytes, VirtualKey]:
    """Return the virtual keys of a configuration by digest."""
    found = {}
    for name, key in config.virtual_keys.items():
        virtual = VirtualKey(
            name=name,
            owner=key.owner,
            team=key.team,
            labels=key.labels,
            models=key.models,
            routes=key.routes,
            expires=None if key.expires is None else int(datetime.combine(key.expires, time.min, UTC).timestamp()),
            disabled=0 if key.disabled else None,
        )
        found.update({bytes.fromhex(digest.removeprefix("sha256:")): virtual for digest in key.digests})
    return found


def _read(config: Config, references: Sequence[str], listener: str) -> list[Secret | str]:
    folder = (config.path or Path.home()).absolute().parent
    return [
        reference
        if reference.startswith("sha256:")
        else read_secret(reference, f"{listener}.keys[{place}]", environ=os.environ, home=Path.home(), folder=folder)
        for place, reference in enumerate(references)
    ]


def _is_weak(key: Secret) -> bool:
    """Return whether a client key could be guessed."""
    text = key.reveal()
    return len(text) < _LEAST_CHARACTERS or len(set(text)) < _LEAST_DIFFERENT
