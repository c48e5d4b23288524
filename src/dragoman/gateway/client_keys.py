"""The client keys of the configuration: read, and judged by who can reach the gateway."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dragoman.config import Config, read_secret
from dragoman.errors import ConfigError
from dragoman.gateway.guard import is_loopback
from dragoman.secret import Secret

#: What a client key must have where others than this machine can try keys: 22 characters of base64 are 128 bits.
_LEAST_CHARACTERS: Final = 22
_LEAST_DIFFERENT: Final = 10


def check_reach(host: str, keys: Sequence[Secret | str]) -> str:
    """Whether these client keys are enough for an address. Gives a warning where they are on this machine alone; "" for
    none. Of a digest nobody can tell what key it is of.

    Raises:
        ConfigError: other machines can reach it, and there is no key or a weak one.
    """
    is_open = not is_loopback(host)
    if is_open and not keys:
        raise ConfigError(f"{host[:80]} can be reached from other machines; set server.keys first")
    weak = next((place for place, key in enumerate(keys) if isinstance(key, Secret) and _is_weak(key)), None)
    if weak is None:
        return ""
    problem = (
        f"server.keys[{weak}]: expected at least {_LEAST_CHARACTERS} characters, {_LEAST_DIFFERENT} of them different; "
        "`dragoman keys new` makes a key"
    )
    if is_open:
        raise ConfigError(problem)
    return problem


def client_keys(config: Config) -> list[Secret | str]:
    """The client keys that the configuration names, digests as they are.

    Raises:
        ConfigError: one cannot be read.
    """
    folder = (config.path or Path.home()).absolute().parent
    return [
        reference
        if reference.startswith("sha256:")
        else read_secret(reference, f"server.keys[{position}]", environ=os.environ, home=Path.home(), folder=folder)
        for position, reference in enumerate(config.server.keys)
    ]


def _is_weak(key: Secret) -> bool:
    """Whether a client key could be guessed."""
    text = key.reveal()
    return len(text) < _LEAST_CHARACTERS or len(set(text)) < _LEAST_DIFFERENT
