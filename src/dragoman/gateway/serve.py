"""The process: opens the port, serves, and ends without breaking what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, get_args

from dragoman.client import AsyncClient
from dragoman.config import Config, read_secret
from dragoman.errors import ConfigError
from dragoman.gateway.app import App
from dragoman.gateway.edge import Connection
from dragoman.gateway.guard import Guard, is_loopback
from dragoman.gateway.http import Limits
from dragoman.gateway.names import Names
from dragoman.gateway.relay import KEEPALIVE_SECONDS, Relay
from dragoman.secret import Secret
from dragoman.types import ProtocolName

ALL_PROTOCOLS: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
#: Seconds that responses may go on after the signal to end.
DRAIN_SECONDS: Final = 30.0
_BACKLOG: Final = 1024


class Gateway:
    """A gateway that listens. Made by `Gateway.open`, in one event loop."""

    __slots__ = ("_client", "_connections", "_server", "host", "port")

    def __init__(
        self, client: AsyncClient, server: asyncio.Server, connections: set[Connection], *, host: str, port: int
    ) -> None:
        self._client = client
        self._server = server
        self._connections = connections
        self.host = host
        self.port = port

    @classmethod
    async def open(
        cls,
        config: Config,
        *,
        host: str,
        port: int,
        protocols: Iterable[ProtocolName] = ALL_PROTOCOLS,
        only_routes: bool = False,
        limits: Limits | None = None,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
    ) -> Gateway:
        """Listen. Port 0 takes a free one; `only_routes`: clients may not ask for a `provider/model` themselves.

        Raises:
            ConfigError: other machines could reach it and no client keys are set, or a key cannot be read.
            OSError: the port is taken, or the address is not this machine's.
        """
        limits = limits or Limits()
        keys = _client_keys(config)
        if not keys and not is_loopback(host):
            raise ConfigError(f"{host[:80]} can be reached from other machines; set server.keys first")
        allowed = {*config.server.allowed_hosts, *(() if host in ("0.0.0.0", "::") else (host,))}
        client = AsyncClient(config)
        names = Names(config, only_routes=only_routes)
        app = App(
            protocols=protocols,
            names=names,
            relay=Relay(client, names, keepalive_seconds=keepalive_seconds),
            guard=Guard(allowed_hosts=allowed, keys=keys),
            limits=limits,
        )
        connections: set[Connection] = set()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(app, limits, connections), host, port, backlog=_BACKLOG)
        return cls(client, server, connections, host=host, port=server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Take no further connection, let the responses under way end, for so many seconds at most; then close."""
        self._server.close()
        for connection in tuple(self._connections):
            connection.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._connections:
                    await asyncio.sleep(0.02)
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.sleep(0)
        await self._client.close()


def run(
    config: Config,
    *,
    host: str,
    port: int,
    protocols: Iterable[ProtocolName],
    only_routes: bool,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the address. A second signal ends at once.

    Raises:
        ConfigError, OSError: as `Gateway.open`.
    """

    async def serve() -> None:
        gateway = await Gateway.open(config, host=host, port=port, protocols=protocols, only_routes=only_routes)
        stop = asyncio.Event()
        hurry = asyncio.Event()

        def told() -> None:
            (hurry if stop.is_set() else stop).set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, told)
        gc.freeze()  # what was loaded stays; collections need not look at it
        ready(gateway.url)
        await stop.wait()
        drained = asyncio.create_task(gateway.drain())
        hurried = asyncio.create_task(hurry.wait())
        await asyncio.wait((drained, hurried), return_when=asyncio.FIRST_COMPLETED)
        if not drained.done():
            drained.cancel()
            await gateway.drain(0)
        hurried.cancel()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve())


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest event loop that is installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _client_keys(config: Config) -> list[Secret | str]:
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
