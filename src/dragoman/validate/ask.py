"""Send one question of a probe over the wire and record the exchange: no retry, no fallback, no memory."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final, final

import msgspec

from dragoman.client.exchange import Exchange
from dragoman.client.started_servers import LocalServers
from dragoman.config import Config
from dragoman.events import SEMANTIC, Event, Failure, Reply, TextDelta, fold
from dragoman.http.response import Response, TransportFailed
from dragoman.http.timeouts import Timeouts
from dragoman.http.transport import Transport
from dragoman.ids import new_id
from dragoman.routing.prices import Prices
from dragoman.routing.resolve import with_defaults
from dragoman.routing.target import Target
from dragoman.secret import name_alone
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Cost, Request, Usage
from dragoman.validate.grade import Seen

_WIRE_LIMIT: Final = 256 * 1024  # bytes of a request or response that are kept for the report
_BODY_LIMIT: Final = 16 * 1024 * 1024  # bytes of a response; no right answer is as long
_TRAILING_SECONDS: Final = 1.0  # after the protocol's own end
_FEWEST_FOR_SPEED: Final = 8  # tokens; fewer say nothing of a model's speed


@final
class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its answer. No header is kept, because headers contain keys.

    Attributes:
        request, response: bodies, clipped.
        first_event: seconds until the first event of the answer.
        seconds: until its end.
    """

    __repr__ = name_alone

    method: str
    url: str
    request: bytes
    status: int | None
    response: bytes
    events: tuple[Event, ...]
    reply: Reply
    estimate: int
    first_event: float | None
    seconds: float
    is_left: bool

    @property
    def seen(self) -> Seen:
        """Return what is graded."""
        return Seen(self.events, self.reply, self.estimate, self.is_left)

    @property
    def tokens_per_second(self) -> float | None:
        """Return output tokens per second from the first event to the end, or None if too few were reported."""
        tokens = self.reply.usage.output
        if tokens is None or tokens < _FEWEST_FOR_SPEED or self.first_event is None:
            return None
        return tokens / max(self.seconds - self.first_event, 1e-3)


class Asker:
    """Asks targets of one configuration. Use it in one event loop, and `close` it at the end."""

    __slots__ = ("_prices", "_servers", "_timeout", "_transports", "config")

    def __init__(self, config: Config, *, timeout: float) -> None:
        """Create it. `timeout`: seconds for one answer."""
        http = config.http
        timeouts = Timeouts(connect=http.connect_seconds)
        ca_file = str(http.ca_file) if http.ca_file is not None else None
        proxy = http.proxy.reveal() if http.proxy is not None else None
        self.config = config
        self._timeout = timeout
        self._prices = Prices(config)
        self._servers = LocalServers()
        self._transports = {
            True: Transport(timeouts=timeouts, ca_file=ca_file),
            False: Transport(timeouts=timeouts, proxy=proxy, ca_file=ca_file),
        }

    async def close(self) -> None:
        """Close every connection, and the servers that were started."""
        for transport in self._transports.values():
            await transport.close()
        self._servers.close()

    def transport(self, *, local: bool) -> Transport:
        """Return the transport for this machine, or for others."""
        return self._transports[local]

    async def ready(self, target: Target) -> Target:
        """Return the target at an address. The embedded model's server is started first."""
        return await self._servers.ready(target)

    def price(self, target: str, usage: Usage) -> Cost | None:
        """Return what that many tokens cost, or None."""
        return self._prices.cost(target, usage)

    async def ask(self, target: Target, request: Request, *, abort_after: int | None = None) -> Asked:
        """Ask once. Every error on the way is a `Failure` among the events.

        Args:
            target: with an address.
            request: its model is the target's.
            abort_after: leave after so many pieces of text.

        Raises:
            DragomanError: it cannot be sent at all.
        """
        exchange = Exchange(target, with_defaults(request, target), new_id=new_id, price_of=self._prices.cost)
        recording = _Recording()
        try:
            async with asyncio.timeout(self._timeout):
                response = await self.transport(local=target.provider.local).open(exchange.outgoing)
                try:
                    await _read(response, exchange, recording, abort_after)
                finally:
                    response.close()
        except TimeoutError:
            recording.add(exchange.fail(Failure("timeout", f"no whole answer in {self._timeout:g} s")))
        except TransportFailed as problem:
            recording.add(exchange.fail(problem.failure))
        outgoing = exchange.outgoing
        return Asked(
            method=outgoing.method,
            url=outgoing.url.partition("?")[0],
            request=outgoing.body[:_WIRE_LIMIT],
            status=recording.status,
            response=bytes(recording.body),
            events=tuple(recording.events),
            reply=fold(recording.events),
            estimate=estimate_tokens(request),
            first_event=recording.first_event,
            seconds=monotonic() - recording.start,
            is_left=recording.is_left,
        )


class _Recording(msgspec.Struct, eq=False):
    """An answer being received, with times."""

    start: float = msgspec.field(default_factory=monotonic)
    status: int | None = None
    body: bytearray = msgspec.field(default_factory=bytearray)
    size: int = 0  # bytes that came
    events: list[Event] = []
    first_event: float | None = None
    is_left: bool = False

    __repr__ = name_alone

    def add(self, events: list[Event]) -> None:
        if self.first_event is None and any(type(event) in SEMANTIC for event in events):
            self.first_event = monotonic() - self.start
        self.events += events


async def _read(response: Response, exchange: Exchange, recording: _Recording, abort_after: int | None) -> None:
    recording.status = response.status
    exchange.head(response.status, response.headers)
    while data := await _next(response, exchange):
        recording.size += len(data)
        if recording.size > _BODY_LIMIT:
            recording.add(exchange.fail(Failure("wire", f"the answer is longer than {_BODY_LIMIT:,} bytes")))
            return
        if len(recording.body) < _WIRE_LIMIT:
            recording.body += data
        recording.add(exchange.feed(data))
        if abort_after is not None and sum(type(event) is TextDelta for event in recording.events) >= abort_after:
            recording.is_left = True
            return
    recording.add(exchange.close())


async def _next(response: Response, exchange: Exchange) -> bytes:
    """Return the next bytes; b"" at the end. Some servers leave the body open after the protocol's own end."""
    if not exchange.ended:
        return await response.read()
    try:
        async with asyncio.timeout(_TRAILING_SECONDS):
            return await response.read()
    except TimeoutError:
        return b""
