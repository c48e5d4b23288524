"""The gateway: open the port, apply configurations, and end without breaking current requests."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Awaitable, Callable, Iterable, Set
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

import msgspec

from dragoman.client.requester import Requester
from dragoman.config import Config, ServerConfig, split_address
from dragoman.errors import DragomanError
from dragoman.events import Failure
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.app import App
from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Limits, read_limits
from dragoman.gateway.model_names import ModelNames
from dragoman.gateway.pages.health import Operations, State
from dragoman.gateway.pages.routes import make_endpoints
from dragoman.gateway.process.breaker_gossip import BreakerGossip
from dragoman.gateway.process.listener_keys import Keys, check_change, check_reach, read_keys, virtual_keys
from dragoman.gateway.process.listening import BACKLOG, open_listener, share_port
from dragoman.gateway.relay import KEEPALIVE_SECONDS, Relay
from dragoman.gateway.server.backpressure import hold_little
from dragoman.gateway.server.body_memory import BodyMemory
from dragoman.gateway.server.client_addresses import ClientAddresses
from dragoman.gateway.server.connection import Connection, Shared
from dragoman.gateway.storage.stores import Stores
from dragoman.gateway.telemetry.metrics import GENERATION, READY, REPLICA_AGE
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.record import Observer
from dragoman.gateway.telemetry.siblings import Siblings
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.replica.age import replica_words
from dragoman.providers.address import is_loopback
from dragoman.providers.catalog import Model, Provider
from dragoman.response_stages import load_stages_of_texts
from dragoman.secret import Secret
from dragoman.types import ProtocolName

if TYPE_CHECKING:
    from dragoman.gateway.administration.admin_keys import Granters

load_stages_of_texts()  # the first answer must not wait for it

ALL_PROTOCOLS: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
#: Seconds that responses may go on after the signal to end.
DRAIN_SECONDS: Final = ServerConfig().drain_seconds
_STEP_SECONDS: Final = 0.02
#: Seconds for telling clients that their time is over.
_LAST_WORDS_SECONDS: Final = 1.0
#: How often to see whether somebody listens at another worker.
_SIBLINGS_SECONDS: Final = 0.25
#: How often servers are asked for their models, and how long the first answers are waited for.
_LOOK_SECONDS: Final = 60.0
_FIRST_LOOK_SECONDS: Final = 1.0
#: A name for two addresses: which of them a client takes is its own affair, so both are served.
_BOTH: Final = "localhost"
_LOOPBACKS: Final = ("127.0.0.1", "::1")
_NO_IPV6: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

#: What the notice of the copy of keys is about.
_REPLICA: Final = "keys"

#: Asks a server with this key for its models; none when it does not answer.
Look: TypeAlias = Callable[[Provider, Secret | None], Awaitable[Iterable[Model]]]


class Gateway:
    """A listening gateway. Created by `Gateway.open`, in one event loop.

    Args:
        port: 0 takes a free one.
        only_routes: clients may not name a `provider/model` themselves.
        look: asks servers for their models, which override the catalogue's.
        listener, admin_listener: bound sockets in place of host and port, and of the admin address.
    """

    __slots__ = (
        "_addresses", "_admin", "_client", "_connections", "_gossip", "_granters", "_guard", "_is_closed", "_ledger",
        "_listeners", "_memory", "_names", "_pricing", "_relay", "_ring", "_siblings", "_state", "_stores", "_tasks",
        "_usual_hosts", "admin_port", "host", "observer", "port", "routes",
    )  # fmt: skip

    def __init__(
        self,
        config: Config,
        *,
        host: str,
        only_routes: bool,
        observer: Observer | None,
        siblings: Siblings | None,
        keepalive_seconds: float,
        ledger: Ledger | None,
    ) -> None:
        """Create everything but the sockets."""
        self._usual_hosts = () if host in ("0.0.0.0", "::") else (host,)
        self._stores = Stores(config, None if ledger is None else ledger.folder)
        self._client = Requester(config, vault=self._stores.seals)
        self._names = ModelNames(config, only_routes=only_routes, proof=self._client.target_states.model_proof)
        keys = read_keys(config)
        weak = check_reach(host, keys.of_clients())
        hosts, origins, server = self._hosts(config), config.server.allowed_origins, config.server
        self._addresses = ClientAddresses(most=server.connections_per_address, trusted=server.trusted_proxies)
        self._memory = BodyMemory(server.memory_mib * 1024 * 1024)
        folder, max_age = None if ledger is None else ledger.folder, config.ledger.replica_max_age_seconds
        self._ring = KeyRing(folder, virtual_keys(config), max_age=max_age)
        self._guard = Guard(allowed_hosts=hosts, keys=keys.clients, ring=self._ring, allowed_origins=origins)
        self._relay = Relay(self._client, self._names, keepalive_seconds=keepalive_seconds)
        self._state = State()
        self._is_closed = False
        self._gossip: BreakerGossip | None = None
        self._siblings = siblings
        self._connections: set[Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.observer = observer or Observer()
        if weak:
            self.observer.tell("config", weak)
        self._pricing = Pricing(config)
        self.observer.price_of = self._pricing.cost
        self._names.prepare = self._pricing.prepare
        self._ledger = ledger
        if ledger is not None:
            ledger.pricing = self._pricing
            ledger.begin()
            ledger.limit(config.quotas, written=config.written)
            self._ring.learned = ledger.look
            self._ask_for_records()
        self._admin: Guard | None = None  # of the admin listener
        self._granters: Granters | None = None
        self.host = host
        self.port = self.admin_port = 0
        self.routes: tuple[tuple[str, str], ...] = ()  # methods and paths; `{model}` is any text

    @classmethod
    async def open(
        cls,
        config: Config,
        *,
        host: str,
        port: int = 0,
        protocols: Iterable[ProtocolName] = ALL_PROTOCOLS,
        only_routes: bool = False,
        look: Look | None = None,
        limits: Limits | None = None,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
        observer: Observer | None = None,
        siblings: Siblings | None = None,
        listener: socket.socket | None = None,
        admin_listener: socket.socket | None = None,
        ledger: Ledger | None = None,
    ) -> Gateway:
        """Listen. The arguments are described at the class.

        Raises:
            ConfigError: other machines could reach it and the client keys are missing or weak, or a key cannot be read.
            OSError: the port is taken, or the address is another machine's.
        """
        gateway = cls(
            config,
            host=host,
            only_routes=only_routes,
            observer=observer,
            siblings=siblings,
            keepalive_seconds=keepalive_seconds,
            ledger=ledger,
        )
        app = App(
            protocols=protocols,
            names=gateway._names,
            relay=gateway._relay,
            guard=gateway._guard,
            addresses=gateway._addresses,
            limits=(limits := limits or read_limits(config.server.limits)),
            observer=gateway.observer,
            operations=Operations(gateway.observer, gateway._state, siblings),
            endpoints=make_endpoints(gateway._client, gateway._names, gateway._relay, gateway._stores, gateway._memory),
            ledger=ledger,
        )
        await gateway._listen(app, limits, listener, port)
        await gateway._listen_for_admins(config, limits, admin_listener)
        await gateway._begin(siblings, look)
        return gateway

    async def _begin(self, siblings: Siblings | None, look: Look | None) -> None:
        """Start the background tasks, and report that it listens."""
        if look is not None and self._names.servers():
            await self._begin_looking(look)
        self._tasks.append(asyncio.create_task(self._tick()))
        if self._stores.breakers is not None:
            health_table = self._client.target_states.health_table
            gossip = self._gossip = BreakerGossip(self._stores.breakers, lambda: self._client.config, health_table)
            self._tasks.append(asyncio.create_task(gossip.run()))
        if siblings is not None:
            self._tasks.append(asyncio.create_task(self._pass_on(siblings)))
        self._state.is_started = True
        self.observer.metrics.set(READY, 1)
        self.observer.metrics.set(GENERATION, 1)

    async def _listen(self, app: App, limits: Limits, listener: socket.socket | None, port: int) -> None:
        self.routes = tuple(app.routes())
        if self._ledger is not None:
            await self._ledger.greet()
        loop = asyncio.get_running_loop()

        shared = Shared(limits, self._connections, self._addresses, self._memory)

        def connection() -> Connection:
            return Connection(app, shared)

        host, beside = _LOOPBACKS if self.host == _BOTH else (self.host, "")
        if listener is None:
            first = await open_listener(connection, host, port)
        else:
            first = await loop.create_server(connection, sock=listener, backlog=BACKLOG)
        hold_little(first.sockets)
        self._listeners.append(first)
        self.port = first.sockets[0].getsockname()[1]
        if beside and socket.has_ipv6:
            shares = listener is not None and hasattr(socket, "SO_REUSEPORT")
            try:
                second = await open_listener(connection, beside, self.port, shares=shares)
                hold_little(second.sockets)
                self._listeners.append(second)
            except OSError as problem:
                if problem.errno not in _NO_IPV6:
                    first.close()
                    raise
        self._names.listens_at(self.port)

    async def _listen_for_admins(self, config: Config, limits: Limits, listener: socket.socket | None) -> None:
        if config.admin.address is None:
            return
        from dragoman.gateway.admin import AdminApp
        from dragoman.gateway.administration.admin_keys import Granters
        from dragoman.gateway.administration.api import MOST_BODY, AdminApi
        from dragoman.gateway.administration.ledger_access import Desk

        host, port = split_address(config.admin.address)
        keys = read_keys(config).admins
        check_reach(host, keys, listener="admin")
        guard = Guard(allowed_hosts={*self._hosts(config), host}, keys=keys)
        client = self._client
        granters = self._granters = Granters(config.admin.keys, keys)
        desk = None  # without a ledger
        if self._ledger is not None:
            desk = Desk(
                self._ledger.folder,
                lambda: list({key.name: key for key in virtual_keys(client.config).values()}.values()),
                lambda: client.config.quotas,
            )
        app = AdminApp(
            guard=guard,
            granters=granters,
            api=AdminApi(desk, granters, is_open=lambda: is_loopback(host) or client.config.admin.behind_tls),
            addresses=self._addresses,
            observer=self.observer,
            operations=Operations(self.observer, self._state, self._siblings),
        )
        limits = msgspec.structs.replace(limits, body=MOST_BODY)
        shared = Shared(limits, self._connections, self._addresses, self._memory)

        def connection() -> Connection:
            return Connection(app, shared)

        if listener is None:
            opened = await open_listener(connection, host, port)
        else:
            opened = await asyncio.get_running_loop().create_server(connection, sock=listener, backlog=BACKLOG)
        self._listeners.append(opened)
        self._admin = guard
        self.admin_port = opened.sockets[0].getsockname()[1]

    async def _begin_looking(self, look: Look) -> None:
        first = asyncio.Event()
        self._tasks.append(asyncio.create_task(self._keep_looking(look, first=first)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LOOK_SECONDS):
                await first.wait()

    @property
    def url(self) -> str:
        """The address at which clients reach it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def take(self, config: Config, keys: Keys | None = None, *, allow_open: bool = False) -> None:
        """Apply a configuration; current requests go on with the previous one. Address and protocols stay.

        Args:
            keys: those of the configuration, if they were read before (`read_keys`): files may be slow.
            allow_open: a gateway of this machine may lose its client keys.

        Raises:
            ConfigError: it cannot be applied; then nothing has changed.
        """
        keys = keys or read_keys(config)
        weak = check_change(self._guard, self.host, keys.of_clients(), listener="server", allow_open=allow_open)
        if self._admin is not None:
            check_change(self._admin, "", keys.admins, listener="admin", allow_open=False)
        self._client.take(config)
        self._pricing.take(config)
        server = config.server
        self._addresses.reconfigure(most=server.connections_per_address, trusted=server.trusted_proxies)
        self._ring.take(virtual_keys(config))
        self._guard.take(allowed_hosts=self._hosts(config), keys=keys.clients, allowed_origins=server.allowed_origins)
        if self._admin is not None:
            admin_host, _ = split_address(config.admin.address or "")
            self._admin.take(allowed_hosts={*self._hosts(config), admin_host}, keys=keys.admins)
        if self._granters is not None:
            self._granters.take(config.admin.keys, keys.admins)
        self._names.take(config)
        if self._ledger is not None:
            self._ledger.limit(config.quotas, written=config.written)
        if weak:
            self.observer.tell("config", weak)

    def _tell_age(self) -> None:
        """Report the age of the copy of the store's keys, if there is one."""
        seconds = self._ring.seconds()
        if seconds is None:
            return
        self.observer.metrics.set(REPLICA_AGE, seconds)
        words = replica_words(seconds, is_too_old=self._ring.is_too_old)
        if words:
            self.observer.notices[_REPLICA] = words
        else:
            self.observer.notices.pop(_REPLICA, None)

    def _ask_for_records(self) -> None:
        """Require records if clients have keys, quotas apply, or a store is named: then nothing is sent without one."""
        if self._ledger is not None:
            has_store = self._ledger.folder.store is not None
            self._ledger.is_needed = self._guard.has_keys or self._ledger.admission is not None or has_store

    def _hosts(self, config: Config) -> set[str]:
        return {*config.server.allowed_hosts, *self._usual_hosts}

    async def drain(self, seconds: float = DRAIN_SECONDS, *, notice: float = 0.0) -> None:
        """End without breaking current requests, within `seconds`; `/readyz` says so. `notice`: seconds before."""
        self._state.draining.set()
        self.observer.metrics.set(READY, 0)
        self._let_the_next_in()
        await asyncio.sleep(notice)
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        before = frozenset(self._connections)
        await self._end_of(before, until)
        if self._siblings is not None:
            self._siblings.drained()
            while loop.time() < until and not self._siblings.all_drained():
                await asyncio.sleep(_STEP_SECONDS)
        for listener in self._listeners:
            listener.close()
        await self._end_of(self._connections, until)
        if self._connections:
            self._relay.interrupt(Failure("overloaded", "the gateway is being shut down", 503, 1.0))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, _LAST_WORDS_SECONDS)):
                    while self._connections:
                        await asyncio.sleep(_STEP_SECONDS)
        await self.close()

    def _let_the_next_in(self) -> None:
        """Share the port with other gateways from now on. `open_listener` asks when `/readyz` says this one ends."""
        if hasattr(socket, "SO_REUSEPORT"):
            for listener in self._listeners:
                share_port(listener, True)

    async def _end_of(self, connections: Set[Connection], until: float) -> None:
        """Wait until each of these connections is closed, or until a time."""
        for connection in tuple(connections):
            connection.drain()
        loop = asyncio.get_running_loop()
        while loop.time() < until and not self._connections.isdisjoint(connections):
            await asyncio.sleep(_STEP_SECONDS)

    async def close(self) -> None:
        """End at once. Does nothing if it has ended."""
        if self._is_closed:
            return
        self._is_closed = True
        self._state.draining.set()
        for listener in self._listeners:
            listener.close()
        for connection in tuple(self._connections):
            connection.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._gossip is not None:
            await asyncio.to_thread(self._gossip.close)
        await self._client.close()
        await asyncio.to_thread(self._stores.close)
        self._ring.close()
        if self._ledger is not None:
            await asyncio.to_thread(self._ledger.close)

    async def _keep_looking(self, look: Look, *, first: asyncio.Event) -> None:
        """Ask all servers periodically. `first` is set when each was asked once."""

        async def ask(provider: Provider) -> None:
            with contextlib.suppress(DragomanError):  # an address that is not complete: asking it for an answer says so
                self._names.tell(provider.name, await look(provider, self._client.config.keys.get(provider.name)))

        while True:
            await asyncio.gather(*(ask(provider) for provider in self._names.servers()))
            first.set()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _tick(self) -> None:
        """Record once a second the event loop's delay, suppressed log lines, and the targets' state."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + 1.0
            await asyncio.sleep(1.0)
            if self._ledger is not None:
                self._ledger.tick()
                self._ask_for_records()
            self._tell_age()
            client, health_table = self._client, self._client.target_states.health_table
            asked = {target for route in client.config.routes.values() for target in route.targets}
            breakers = [(target, health_table.is_open(target)) for target in sorted(asked)]
            self.observer.settle(max(0.0, loop.time() - due), connections=client.connections, breakers=breakers)

    async def _pass_on(self, siblings: Siblings) -> None:
        """Send lines to other workers while one of them has a listener."""
        listeners = self.observer.log.listeners
        try:
            while True:
                (listeners.add if siblings.look() else listeners.discard)(siblings.send)
                await asyncio.sleep(_SIBLINGS_SECONDS)
        finally:
            listeners.discard(siblings.send)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest event loop that is installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
