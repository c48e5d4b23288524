"""Start model servers that targets need, each once per client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from dragoman.config import Config
from dragoman.providers.catalog import split_target
from dragoman.routing.resolve import at_address
from dragoman.routing.target import Target
from dragoman.secret import Secret


class Server(Protocol):
    """A server that runs at `url`, on this machine."""

    url: str
    api_key: str

    def close(self) -> None:
        """End it."""
        ...


def _start_embedded(model: str) -> Server:
    from dragoman import embedded

    return embedded.start(model)


def _check_embedded(model: str) -> None:
    from dragoman import embedded

    embedded.check_model(model)


#: Providers without an address of their own → what starts their server (blocking).
STARTERS: Final[dict[str, Callable[[str], Server]]] = {"embedded": _start_embedded}
#: The same → what refuses a model that there is not.
CHECKS: Final[dict[str, Callable[[str], None]]] = {"embedded": _check_embedded}


def check_target(target: str, config: Config) -> None:
    """Refuse an unknown provider, and a model for which no server could be started. Only servers know all other models.

    Raises:
        UsageError: it is one.
    """
    provider, model = split_target(target)
    if not config.catalog.provider(provider).base_url and provider in CHECKS:
        CHECKS[provider](model)


class LocalServers:
    """The servers of one client."""

    __slots__ = ("_lock", "_running")

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._lock = asyncio.Lock()

    async def ready(self, target: Target) -> Target:
        """Return the target with an address: unchanged, or at a server that is started now."""
        start = STARTERS.get(target.provider.name)
        if target.provider.base_url or start is None:
            return target
        async with self._lock:
            server = self._running.get(target.name)
            if server is None:
                server = await asyncio.to_thread(start, target.model)
                self._running[target.name] = server
        return at_address(target, f"{server.url}/v1", Secret(server.api_key))

    def close(self) -> None:
        """Stop them all."""
        while self._running:
            self._running.popitem()[1].close()
