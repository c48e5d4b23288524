"""Ports for programs that begin again at the same one."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

#: Below those that systems give to whoever asks for any, so that nobody is given one while its program is away.
_FIRST, _COUNT = 20_000, 12_000
_TRIES = 100


def free_port() -> int:
    """Return a port of this machine at which nobody listens now, and which nobody is given by chance."""
    for _ in range(_TRIES):
        port = _FIRST + secrets.randbelow(_COUNT)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError(f"none of {_TRIES} ports from {_FIRST} on is free")
