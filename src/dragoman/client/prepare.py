"""Prepare a request for each target of its chain: fit it to the target and render it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, final

import msgspec

from dragoman.client.exchange import Exchange, OnDeviation, OnWire
from dragoman.client.offload import LARGE, run_sized
from dragoman.client.passthrough.exchange import EndpointCache, PassthroughExchange, RawRequest
from dragoman.client.request.forwarding import ClientHead, as_client
from dragoman.client.request.images import Images
from dragoman.client.request.tool_mode import offer_tools
from dragoman.client.started_servers import LocalServers
from dragoman.client.target_state import TargetStates
from dragoman.events import Deviation
from dragoman.history import SignatureWatch, Vault
from dragoman.http.timeouts import Timeouts
from dragoman.ids import new_id
from dragoman.offering import Offer
from dragoman.routing.resolve import with_defaults
from dragoman.routing.target import Target
from dragoman.secret import name_alone
from dragoman.types import Request

#: Changes a request for a target.
Adapt: TypeAlias = Callable[[Request, Target], Request]


@final
class Means(msgspec.Struct, frozen=True, kw_only=True):
    """The shared resources of one client's requests."""

    target_states: TargetStates
    servers: LocalServers
    vault: Vault
    images: Images
    addresses: EndpointCache
    timeouts: Timeouts
    on_wire: OnWire | None


@final
class Preparation(msgspec.Struct, frozen=True, eq=False):
    """Prepares one request for any target.

    Attributes:
        said: further deviations for the caller.
        has_price: the answer's cost is looked up. The others are as for `Requester.open`.
    """

    __repr__ = name_alone

    means: Means
    request: Request
    on_deviation: OnDeviation
    said: tuple[Deviation, ...]
    has_price: bool
    owner: str
    trace_parent: str
    original: RawRequest | None
    head: ClientHead | None
    size: int
    adapt: Adapt | None = None

    async def make_ready(self, target: Target) -> tuple[Exchange | PassthroughExchange, float]:
        """Return the exchange with a target, and the limit in seconds for the first event of its answer.

        Raises:
            DragomanError: the target cannot be asked this.
        """
        means, original = self.means, self.original
        ready = as_client(means.target_states.in_proven_way(target), self.head)
        is_local = target.provider.local
        if original is not None and means.target_states.passes(ready, original):
            limit = means.timeouts.first_event_of(local=is_local, reasoning=True, whole=not original.peek.stream)
            if not ready.provider.base_url:
                ready = await means.servers.ready(ready)
            if self.size <= LARGE:
                return self._passing(ready, original), limit
            return await run_sized(self.size, partial(self._passing, ready, original)), limit
        read = self.request
        if original is not None:
            read = (await run_sized(self.size, original.parsed)).request
        if not (ready.protocol.takes_image_urls and ready.dialect.supports_image_url):
            read = await means.images.filled(read)
        wanted = with_defaults(read, ready)
        if self.adapt is not None:
            wanted = self.adapt(wanted, ready)
        limit = means.timeouts.first_event_of(
            local=is_local, reasoning=read.params.reasoning is not None, whole=not read.stream
        )
        protocol = self.head.protocol if self.head is not None else None
        if self.size <= LARGE:
            made = offer_tools(ready, wanted, protocol)
        else:
            made = await run_sized(self.size, partial(offer_tools, ready, wanted, protocol))
        if not ready.provider.base_url:  # only now: a request that is refused starts no server
            ready = await means.servers.ready(ready)
        # By the names and forms that are sent: a call that the client's protocol says otherwise has its seal, too.
        restored = await means.vault.restored(made.request, self.owner)
        if restored is not made.request:
            made = msgspec.structs.replace(made, request=restored)
        is_as_came = restored is wanted and read is self.request and self.adapt is None
        is_as_came = is_as_came and protocol == ready.protocol.name
        if is_as_came and wanted.params is not read.params:
            is_as_came = msgspec.structs.replace(wanted.params, cache=read.params.cache) == read.params
        if self.size <= LARGE:
            return self._usual(ready, wanted, made, is_as_came), limit
        return await run_sized(self.size, partial(self._usual, ready, wanted, made, is_as_came)), limit

    def _usual(self, target: Target, wanted: Request, made: Offer | None, is_as_came: bool = False) -> Exchange:
        means = self.means
        return Exchange(
            target,
            wanted if made is None else made.request,
            new_id=new_id,
            price_of=means.target_states.prices.cost if self.has_price else None,
            on_deviation=self.on_deviation,
            withdraw=means.target_states.withdraw,
            watch=SignatureWatch(means.vault, wanted, self.owner),
            said=self.said,
            trace_parent=self.trace_parent,
            on_wire=means.on_wire,
            head=self.head,
            offered=made,
            is_as_came=is_as_came,
        )

    def _passing(self, target: Target, original: RawRequest) -> PassthroughExchange:
        def mended() -> Exchange:
            wanted = with_defaults(original.parsed().request, target)
            return self._usual(target, wanted, None)

        return PassthroughExchange(
            target,
            original,
            self.means.addresses,
            new_id=new_id,
            usual=mended,
            on_deviation=self.on_deviation,
            withdraw=self.means.target_states.withdraw,
            said=self.said,
            trace_parent=self.trace_parent,
        )
