"""`Requester`: sends requests to targets and opens their responses, for the gateway, the agent and both clients."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from dragoman.client.exchange import OnDeviation, OnWire
from dragoman.client.passthrough.exchange import EndpointCache, RawRequest
from dragoman.client.passthrough.whole import WholePassthrough
from dragoman.client.prepare import Adapt, Means, Preparation
from dragoman.client.request.forwarding import ClientHead, as_client
from dragoman.client.request.images import Images
from dragoman.client.started_servers import LocalServers
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.client.target_state import LOG, TargetStates
from dragoman.config import Config, HttpConfig, ToolsMode, load_config
from dragoman.discovery.list_models import take_stock
from dragoman.discovery.model_facts import ModelFacts
from dragoman.discovery.query_server import Found
from dragoman.errors import CallFailed
from dragoman.events import Deviation, Failure, Reply
from dragoman.history import SignatureVault, Vault
from dragoman.http.response import BeforeSend
from dragoman.http.timeouts import Guard, read_clocks
from dragoman.http.transport import STAND_INS, Response, Transport, TransportFailed
from dragoman.protocol import HttpRequest, Strictness
from dragoman.providers.endpoint import endpoint
from dragoman.routing.attempts import Attempts
from dragoman.routing.metering import Meter
from dragoman.routing.resolve import resolve_chain
from dragoman.routing.target import Chain, Target
from dragoman.types import Request

#: Counts of deviations that are kept by model; a client of a gateway may make names up.
_MOST_COUNTED: Final = 1_024


class Requester:
    """Sends requests to targets. Use it in one event loop, with `async with` or `close` at the end.

    Args:
        config: a configuration that was loaded, or the path of one; None reads the usual one, if there is one.
        strict: True: the first deviation of severity "fault" is a `Failure`; "notes": the first note too; None takes
            the configuration's setting.
        tools: the way to ask for tools, "auto" to find one that the server takes; None uses the configuration's
            setting.
        retries: how often a target is asked again (0 to 2); None uses the configuration's setting.
        on_deviation: is told the target's name and the deviation, for each one, before its event is given out.
        on_wire: is called with every request, and with the bytes of its answer and the events that they gave.
        vault: remembers the seals of answers; None takes one in memory.

    Attributes:
        deviations: how often each deviation came, by (provider, model, code). Past 1,024 of these what is new is
            counted for the provider, as its model "*".
        steering: what is known of the targets.
    """

    def __init__(
        self,
        config: Config | Path | str | None = None,
        *,
        strict: Strictness | None = None,
        tools: ToolsMode | None = None,
        retries: int | None = None,
        on_deviation: OnDeviation | None = None,
        vault: Vault | None = None,
        on_wire: OnWire | None = None,
    ) -> None:
        self.config: Config = config if isinstance(config, Config) else load(config)
        self.deviations: Counter[tuple[str, str, str]] = Counter()
        self._strict = strict
        self._tools = tools
        self._retries = retries
        self.target_states: TargetStates = TargetStates(self.config)
        self._addresses = EndpointCache()
        self._on_deviation = on_deviation
        self._on_wire = on_wire
        self._earlier: list[Transport] = []  # of configurations that were in force before
        self._transport = _transport(self.config.http)
        self._servers = LocalServers()
        self._vault: Vault = vault or SignatureVault()
        self.take(self.config)

    def take(self, config: Config) -> None:
        """Use another configuration from now on. Current requests go on with the previous one."""
        if config.http != self.config.http:
            self._earlier.append(self._transport)
            self._transport = _transport(config.http)
        self.config = config
        self._clocks = clocks = read_clocks(config.http)
        self._whole_seconds = min(clocks.first_event_of(local=False, reasoning=True, whole=True), clocks.total)
        self.target_states.take(config)
        self._means = Means(
            target_states=self.target_states,
            servers=self._servers,
            vault=self._vault,
            images=Images(config.http.image_hosts),
            addresses=self._addresses,
            timeouts=self._clocks,
            on_wire=self._on_wire,
        )

    async def __aenter__(self) -> Requester:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def connections(self) -> int:
        """Open connections to providers, idle ones included; those over a proxy are not counted."""
        return sum(transport.connections for transport in (*self._earlier, self._transport))

    async def close(self) -> None:
        """Close every connection, and the servers that this client started."""
        for transport in (*self._earlier, self._transport):
            await transport.close()
        self._servers.close()

    def ask(
        self,
        target: str | tuple[str, ...],
        request: Request,
        *,
        is_whole: bool = False,
        timeout: float | None = None,
        adapt: Adapt | None = None,
    ) -> ResponseStream:
        """Start one turn with the targets of a name, or of the first usable one of several names.

        Args:
            is_whole: the caller reads nothing before its end.
            timeout: seconds for the whole of it; None: as configured.
            adapt: changes the request for a target.

        Raises:
            UsageError: there is no such target.
            ConfigError: its key or address cannot be read.
        """
        return self.open(self.chain(target), request, is_whole=is_whole, timeout=timeout, adapt=adapt)

    def chain(self, target: str | tuple[str, ...]) -> Chain:
        """Return the targets of a name, or of several. Raises UsageError, ConfigError as `ask`."""
        retries = self._retries
        resolve = partial(resolve_chain, target, strict=self._strict, tools=self._tools, retries=retries)
        if STAND_INS:
            found: Chain = STAND_INS[-1].chain(
                target, self.config, resolve, self.config.http.retries if retries is None else retries
            )
            return found
        return resolve(self.config)

    def open(
        self,
        asked: Chain | Target,
        request: Request,
        *,
        keeps_reply: bool = True,
        is_whole: bool = False,
        on_deviation: OnDeviation | None = None,
        owner: str = "",
        trace_parent: str = "",
        original: RawRequest | None = None,
        head: ClientHead | None = None,
        begun: WholePassthrough | None = None,
        size: int = 0,
        timeout: float | None = None,
        adapt: Adapt | None = None,
        meter: Meter | None = None,
    ) -> ResponseStream:
        """Start one turn with a chain of targets, or one target: the gateway's entry.

        Args:
            keeps_reply: False for a caller that reads batches alone: no event is kept and no price is looked up.
            is_whole: the caller reads nothing before its end, so that a failure within it may go to another target too.
            on_deviation: called with this turn's deviations too.
            meter: records every request.
            owner: of the signatures.
            original: the request's bytes, which pass if possible; `request` then is what is known of it.
            head: of the client's request over HTTP.
            size: in bytes.
            begun: the shortest way, which did not work.
            timeout, adapt: as for `ask`.

        Raises:
            ConfigError: no target of the chain may be asked.
        """
        chain, said = self._lined_up(asked)
        preparation = Preparation(
            self._means, request, on_deviation=self._noting(on_deviation), said=said, has_price=keeps_reply,
            owner=owner, trace_parent=trace_parent, original=original, head=head, size=size, adapt=adapt,
        )  # fmt: skip
        return ResponseStream(
            preparation.make_ready,
            self._attempts(chain, meter) if begun is None else begun.course,
            transport=self._transport if begun is None else begun,
            timeouts=self._clocks if timeout is None else msgspec.structs.replace(self._clocks, total=timeout),
            random=random.random,
            keeps_reply=keeps_reply,
            is_whole=is_whole or not request.stream,
        )

    def _noting(self, on_deviation: OnDeviation | None) -> OnDeviation:
        """Return a callback that counts a deviation here and passes it to a turn's caller."""

        def note(name: str, deviation: Deviation) -> None:
            self._note_deviation(name, deviation)
            if on_deviation is not None:
                on_deviation(name, deviation)

        return note

    def straight(
        self, asked: Chain, original: RawRequest, *, trace_parent: str = "", meter: Meter | None = None
    ) -> WholePassthrough | None:
        """Return the shortest way for a request whose bytes pass to the chain's first target and whose answer is not
        streamed.

        None: only `open` works.

        Raises:
            ConfigError: no target of the chain may be asked.
        """
        chain, said = self.target_states.line_up(asked)
        target = chain.targets[0]
        ready = self.target_states.in_proven_way(target)
        is_healthy = self.target_states.health_table.of(target.name).breaker.admits(asyncio.get_running_loop().time())
        if said or chain is not asked or self._on_wire is not None or not is_healthy or not target.provider.base_url:
            return None
        if ready is not target and not self.target_states.passes(ready, original):
            return None
        ready = as_client(ready, original.head)
        outgoing = self._addresses.outgoing(ready, original, asks_usage=False)
        if trace_parent:
            outgoing.headers["traceparent"] = trace_parent
        return WholePassthrough(
            ready, outgoing, self._attempts(chain, meter), self._transport, self._whole_seconds, Guard()
        )

    async def models(
        self, provider: str | None = None, tell: Callable[[Found], None] | None = None
    ) -> tuple[ModelFacts, ...]:
        """Return the available models, with what is claimed and what is proven of each. Servers are asked now.

        Args:
            provider: only this one's; it is asked even if the catalogue lists its models.
            tell: called for each server that gave no list.

        Raises:
            UsageError: no such provider.
        """
        proofs = self.target_states.proofs
        return await take_stock(self._transport, self.config, proofs, provider=provider, tell=tell)

    async def send(self, target: Target, http: HttpRequest, before: BeforeSend | None = None) -> Response:
        """Send a target a request that is no turn (texts to embed, a form that only it knows), and wait for its
        answer's head.

        The caller closes the response. `before`: called before anything is written.

        Raises:
            TransportFailed: no answer came.
            ConfigError: the target's address cannot be used.
        """
        ready = await self._servers.ready(target)
        provider = msgspec.structs.replace(ready.provider, path="", body={})  # those are of turns
        key = ready.key.reveal() if ready.key is not None else None
        outgoing = endpoint(provider, http, model=ready.model, key=key)
        limit = self._clocks.first_event_of(local=provider.local, reasoning=False, whole=True)
        try:
            async with asyncio.timeout(limit):
                return await self._transport.open(outgoing, before)
        except TimeoutError:
            raise TransportFailed(Failure("timeout", f"no answer in {limit:g} seconds")) from None

    # ------------------------------------------------------------ inside

    def _lined_up(self, asked: Chain | Target) -> tuple[Chain, tuple[Deviation, ...]]:
        """As `TargetStates.line_up`, also for a single target."""
        chain = asked if isinstance(asked, Chain) else Chain(asked.name, (asked,), retries=self._retries or 0)
        return self.target_states.line_up(chain)

    def _attempts(self, chain: Chain, meter: Meter | None) -> Attempts:
        return Attempts(chain, self.target_states.health_table, log=LOG.info, meter=meter)

    def _note_deviation(self, target: str, deviation: Deviation) -> None:
        if deviation.code == "tools-way":
            self.target_states.refused_tools(target)
        provider, _, model = target.partition("/")
        counted = (provider, model, deviation.code)
        if counted not in self.deviations and len(self.deviations) >= _MOST_COUNTED:
            counted = (provider, "*", deviation.code)
        self.deviations[counted] += 1
        if self._on_deviation is not None:
            self._on_deviation(target, deviation)


async def drained(stream: ResponseStream) -> Reply:
    """Read a stream to its end and return the reply."""
    async with stream:
        while await stream.next_batch():
            pass
    return stream.reply


def whole(reply: Reply) -> Reply:
    """Return the reply if it did not fail. Raises `CallFailed`: it did."""
    if reply.error is not None and (isinstance(reply.error, Failure) or reply.stop_reason == "error"):
        raise CallFailed(reply.error, reply)
    return reply


def load(path: Path | str | None) -> Config:
    """Return the configuration at a path, or the usual one."""
    return load_config(path, environ=os.environ, home=Path.home())


def _transport(http: HttpConfig) -> Transport:
    return Transport(
        timeouts=read_clocks(http),
        proxy=http.proxy.reveal() if http.proxy is not None else None,
        ca_file=str(http.ca_file) if http.ca_file is not None else None,
    )


__all__ = ["Requester", "whole"]
