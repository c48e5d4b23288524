"""The process: opens the port, serves, and ends without breaking what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias, get_args

from dragoman.client import AsyncClient
from dragoman.config import Config, read_secret
from dragoman.errors import ConfigError, DragomanError
from dragoman.gateway.app import App
from dragoman.gateway.edge import Connection
from dragoman.gateway.guard import Guard, is_loopback
from dragoman.gateway.http import Limits
from dragoman.gateway.names import Names
from dragoman.gateway.observe import Observer
from dragoman.gateway.relay import KEEPALIVE_SECONDS, Relay
from dragoman.providers import Model, Provider
from dragoman.secret import Secret
from dragoman.types import ProtocolName

ALL_PROTOCOLS: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
#: Seconds that responses may go on after the signal to end.
DRAIN_SECONDS: Final = 30.0
_BACKLOG: Final = 1024
#: How often servers are asked for their models, and how long the first answers are waited for.
_LOOK_SECONDS: Final = 60.0
_FIRST_LOOK_SECONDS: Final = 1.0


#: Asks a server with this key for its models; none when it does not answer.
Look: TypeAlias = Callable[[Provider, Secret | None], Awaitable[Iterable[Model]]]


class Gateway:
    """A gateway that listens. Made by `Gateway.open`, in one event loop."""

    __slots__ = ("_client", "_connections", "_looking", "_server", "host", "port")

    def __init__(
        self, client: AsyncClient, server: asyncio.Server, connections: set[Connection], *, host: str, port: int
    ) -> None:
        self._client = client
        self._server = server
        self._connections = connections
        self._looking: asyncio.Task[None] | None = None
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
        look: Look | None = None,
        limits: Limits | None = None,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
    ) -> Gateway:
        """Listen. Port 0 takes a free one; `only_routes`: clients may not ask for a `provider/model` themselves;
        `look`: asks servers for their models, whose word stands over the catalogue's.

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
            observer=Observer(),
        )
        connections: set[Connection] = set()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(app, limits, connections), host, port, backlog=_BACKLOG)
        gateway = cls(client, server, connections, host=host, port=server.sockets[0].getsockname()[1])
        if look is not None and names.servers():
            first = asyncio.Event()
            gateway._looking = loop.create_task(_keep_looking(config, names, look, first=first))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_LOOK_SECONDS):
                    await first.wait()
        return gateway

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Take no further connection, let the responses under way end, for so many seconds at most; then close."""
        self._server.close()
        if self._looking is not None:
            self._looking.cancel()
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


async def _keep_looking(config: Config, names: Names, look: Look, *, first: asyncio.Event) -> None:
    """Ask all servers, again and again; `first` is set when each was asked once."""

    async def ask(provider: Provider) -> None:
        with contextlib.suppress(DragomanError):  # an address that is not complete: asking it for an answer says so
            names.tell(provider.name, await look(provider, config.keys.get(provider.name)))

    while True:
        await asyncio.gather(*(ask(provider) for provider in names.servers()))
        first.set()
        await asyncio.sleep(_LOOK_SECONDS)


def run(
    config: Config,
    *,
    host: str,
    port: int,
    protocols: Iterable[ProtocolName],
    only_routes: bool,
    look: Look,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the address. A second signal ends at once.

    Raises:
        ConfigError, OSError: as `Gateway.open`.
    """

    async def serve() -> None:
        gateway = await Gateway.open(
            config, host=host, port=port, protocols=protocols, only_routes=only_routes, look=look
        )
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
