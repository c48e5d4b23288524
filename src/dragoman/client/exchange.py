"""One HTTP exchange without I/O: the request's bytes out, the response's bytes in, events out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman.client.failure_words import explained
from dragoman.client.request.forwarding import ClientHead, addressed
from dragoman.client.request.tool_mode import Asked, first_attempt, next_attempt, offer_tools
from dragoman.codec.compression import READ_ENCODINGS, begins_as_text, is_packed, is_readable
from dragoman.codec.framing.large_frames import LARGE
from dragoman.deviations import clip
from dragoman.errors import failure_kind
from dragoman.events import GROWTH, SEMANTIC, Deviation, Event, Failure, Finish, Start, UsageUpdate
from dragoman.history import SignatureWatch, fit
from dragoman.history.nothing_left import refuse_nothing
from dragoman.offering import DROPPED, Offer, dropped_header
from dragoman.offering.restoring import Restored
from dragoman.pipe import Reader, WholeReader
from dragoman.protocol import ANY_TURNS, Expectation, HttpRequest, NewId, Rendered, Stage, TurnRules
from dragoman.providers.endpoint import Outgoing
from dragoman.response_stages import is_usual, nothing_fits, stages_for, stay_as_they_are
from dragoman.routing.target import Target
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Cost, Origin, ProtocolName, Request, Usage

#: (target's name, usage) → what it costs, None when unknown.
PriceOf: TypeAlias = Callable[[str, Usage], Cost | None]

#: Is told (target's name, deviation) for each one.
OnDeviation: TypeAlias = Callable[[str, Deviation], None]

#: Is told (request, status, bytes of the body, the events decoded from them): for looking at the wire.
OnWire: TypeAlias = Callable[[Outgoing, int, bytes, Sequence[Event]], None]

#: Bytes of an error's body that are read.
_ERROR_LIMIT: Final = 256 * 1024
#: A server that reports less than this share of our estimate did not read the whole prompt.
_TRUNCATED_SHARE: Final = 0.7
#: What a model's own template takes.
_STRICT_TURNS: Final = TurnRules(later_system=False, alternate=True, no_media=("assistant", "system"))
#: Deviations of a request that are told by their place: it may have as many fields as its body has room for.
_MOST_TOLD: Final = 256
_USAGE: Final = frozenset[type]({UsageUpdate, Finish, Failure})
_DEVIATION: Final = frozenset[type]({Deviation})


class Exchange:
    """A request to a target and its response.

    Args:
        asked: the request and how its tools are requested, if that is not the target's first way.
        withdraw: called with deviations that show that the target's wire is not clean.
        watch: sees the answer's events and keeps its signatures.
        said: further deviations for the caller.
        trace_parent: the trace that the request is part of, in the form of `traceparent`.
        on_wire: sees the bytes.
        head: of the client's request; the part for a provider of the same protocol is sent along.
        offered: the request with its tools as the target gets them, if that is known.
        is_as_came: it is the client's, unchanged so far. If it stays so, and the target speaks its protocol, its bytes
            are sent.

    Attributes:
        outgoing: what to send.
    """

    __slots__ = (
        "_asked", "_deviations", "_error_body", "_head", "_headers", "_new_id", "_offer", "_on_deviation",
        "_on_wire", "_origin", "_price_of",
        "_prompt_estimate", "_reader", "_request", "_restored", "_status", "_target", "_trace_parent", "_watch",
        "_withdraw", "outgoing",
    )  # fmt: skip

    def __init__(
        self,
        target: Target,
        request: Request,
        *,
        new_id: NewId,
        price_of: PriceOf | None = None,
        on_deviation: OnDeviation | None = None,
        withdraw: OnDeviation | None = None,
        asked: Asked | None = None,
        watch: SignatureWatch | None = None,
        said: tuple[Deviation, ...] = (),
        trace_parent: str = "",
        on_wire: OnWire | None = None,
        head: ClientHead | None = None,
        offered: Offer | None = None,
        is_as_came: bool = False,
    ) -> None:
        """See the class."""
        protocol = target.protocol
        self._offer = made = offered or offer_tools(target, request, head.protocol if head else None)
        self._request, unfit = _fit(made.request, target, head.protocol if head else None)
        self._asked = asked = asked or first_attempt(target, self._request)
        rendered = protocol.render_request(asked.request, dialect=target.dialect, limits=target.limits)
        if is_as_came and asked.request is request and not asked.deviations:
            rendered = _as_came(rendered, request, target, head)
        if unfit or rendered.deviations:
            refuse_nothing(request.messages, asked.request.messages, rendered.deviations, unfit, target.name)
        self.outgoing: Outgoing
        self.outgoing, unsaid = addressed(target, rendered.http, head)
        self._head, self._trace_parent = head, trace_parent
        if trace_parent:
            self.outgoing.headers["traceparent"] = trace_parent
        self._target = target
        found = [*said, *unsaid, *made.deviations, *unfit, *asked.deviations, *rendered.deviations]
        self._deviations: Sequence[Event] = found if len(found) <= _MOST_TOLD else _shortened(found)
        self._origin: Origin | None = Origin(protocol.name, target.name)  # until the answer begins
        self._restored = made.stages()
        self._reader: Reader | WholeReader = _reader(target, asked, self._restored, rendered.expectation, new_id)
        self._new_id, self._price_of, self._watch = new_id, price_of, watch
        self._on_deviation, self._on_wire, self._withdraw = on_deviation, on_wire, withdraw
        may_truncate = target.provider.local or protocol.truncates_silently
        self._prompt_estimate = estimate_tokens(asked.request) if may_truncate else 0
        self._status = 200
        self._headers: Mapping[str, str] = {}
        self._error_body: bytearray | None = None

    @property
    def ended(self) -> bool:
        """Whether the response's own end was seen: at most usage may follow in the body."""
        return self._error_body is None and self._reader.ended

    @property
    def has_error(self) -> bool:
        """Whether as much of an error's body came as is read."""
        return self._error_body is not None and len(self._error_body) >= _ERROR_LIMIT

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response, names in lower case; none before they came."""
        return self._headers

    @property
    def should_retry(self) -> bool | None:
        """The provider's advice on retrying (`x-should-retry`, a header of Anthropic's and OpenAI's), or None."""
        return {"true": True, "false": False}.get(self._headers.get("x-should-retry", "").strip().lower())

    def keep(self) -> Awaitable[None] | None:
        """Keep the signatures of a complete answer. Return what to await before the caller sees its end, or None."""
        return self._watch.keep() if self._watch is not None else None

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the response's status and headers (names in lower case)."""
        self._status, self._headers = status, headers
        if self._offer.dropped:
            self._headers = {**headers, DROPPED: dropped_header(self._offer.dropped)}
        if not 200 <= status < 300 or headers.get("content-encoding", "").strip().lower() not in READ_ENCODINGS:
            self._error_body = bytearray()

    def release(self) -> None:
        """Drop the request, because the answer has begun and it is not sent again, unless `on_wire` needs it."""
        if self._on_wire is None:
            sent = self.outgoing
            self.outgoing = Outgoing(sent.method, sent.url, sent.headers, b"", sent.has_login)
        del self._request, self._asked, self._offer
        self._head = None

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes of the body."""
        if (held := self._error_body) is not None:
            if len(held) < _ERROR_LIMIT:
                held += data
            if not 200 <= self._status < 300 or not is_readable(bytes(held[:64])):
                return []
            self._error_body, data = None, bytes(held)  # a proxy unpacked it, and left the header
        events = self._finished(self._reader.feed(data))
        if self._on_wire is not None:
            self._on_wire(self.outgoing, self._status, data, events)
        return events

    def close(self) -> list[Event]:
        """End the body."""
        if self._error_body is not None:
            body = bytes(self._error_body)
            if 200 <= self._status < 300 and (begins_as_text(body) or is_packed(body)):
                self._error_body = None
                return [*self.feed(body), *self.close()]
            return self._last(body, self._finished([self._error(body)]))
        return self._last(b"", self._finished(self._reader.close()))

    def fail(self, failure: Failure) -> list[Event]:
        """End a broken or timed-out connection. A response whose own end was seen is complete all the same."""
        if self._error_body:
            return self.close()
        return self._last(b"", self._finished(self._reader.fail(failure)))

    def _last(self, data: bytes, events: list[Event]) -> list[Event]:
        if self._on_wire is not None:
            self._on_wire(self.outgoing, self._status, data, events)
        return events

    def again(self, events: Sequence[Event]) -> Exchange | None:
        """Return the exchange to try in place of this one, if its first events say that the server refuses tools."""
        failure = events[-1] if events and not any(type(event) in SEMANTIC for event in events) else None
        if not isinstance(failure, Failure):
            return None
        asked = next_attempt(self._target, self._request, self._asked, failure)
        if asked is None:
            return None
        return Exchange(
            self._target,
            self._request,
            new_id=self._new_id,
            price_of=self._price_of,
            on_deviation=self._on_deviation,
            withdraw=self._withdraw,
            asked=asked,
            watch=self._watch,
            trace_parent=self._trace_parent,
            on_wire=self._on_wire,
            head=self._head,
            offered=msgspec.structs.replace(self._offer, request=self._request, deviations=()),
        )

    def _error(self, body: bytes) -> Failure:
        encoding = clip(self._headers.get("content-encoding", ""))
        if encoding and not begins_as_text(body) and not is_packed(body):
            problem = f"expected an answer that is not packed, as it was asked for, got one packed with {encoding!r}"
            kind = "wire" if self._status < 300 else failure_kind(self._status)
            return Failure(kind, problem, self._status if self._status >= 300 else None)
        if 300 <= self._status < 400:
            place = clip(self._headers.get("location", "nowhere").partition("?")[0])  # a query may hold a key
            return Failure("bad_request", f"expected an answer, got a redirect to {place}", status=self._status)
        failure = self._target.protocol.parse_error(self._status, body, headers=self._headers)
        if failure.status is None:
            failure = msgspec.structs.replace(failure, kind=failure_kind(self._status), status=self._status)
        return failure

    def _finished(self, events: list[Event]) -> list[Event]:
        """Add what only the exchange knows: the request's deviations, costs, a truncated prompt."""
        if not self._deviations and (not events or (self._origin is None and GROWTH.issuperset(map(type, events)))):
            return events
        if self._deviations:
            events = [*self._deviations, *events]
            self._deviations = ()
        if self._origin is not None:
            events = self._with_origin(events, self._origin)
        events = self._priced_from(events)
        if events and type(failure := events[-1]) is Failure:
            events = [*events[:-1], explained(failure, self._target, self.outgoing.url)]
        if self._watch is not None:
            self._watch.add(self._as_sent(events))
        if self._on_deviation is not None or self._withdraw is not None:
            self._tell(events)
        return events

    def _as_sent(self, events: list[Event]) -> list[Event]:
        """Return events with calls as the provider made them: signatures are found by these when they come back."""
        return self._restored[0].as_sent(events) if self._restored else events

    def _tell(self, events: list[Event]) -> None:
        """Report deviations. Those that a broken connection causes are not counted against the server."""
        if _DEVIATION.isdisjoint(map(type, events)):
            return
        for event in events:
            if type(event) is not Deviation:
                continue
            if self._on_deviation is not None:
                self._on_deviation(self._target.name, event)
            if self._withdraw is not None and type(events[-1]) is not Failure:
                self._withdraw(self._target.name, event)

    def _with_origin(self, events: list[Event], origin: Origin) -> list[Event]:
        """Add the origin to the answer's beginning, so that a later request knows whose thinking it contains."""
        for position, event in enumerate(events):
            if type(event) is Start:
                self._origin = None
                started = msgspec.structs.replace(event, origin=origin)
                return [*events[:position], started, *events[position + 1 :]]
        return events

    def _priced_from(self, events: list[Event]) -> list[Event]:
        if (self._price_of is None and not self._prompt_estimate) or _USAGE.isdisjoint(map(type, events)):
            return events
        position = 0
        while type(events[position]) not in _USAGE:
            position += 1
        return self._priced(events, position)

    def _priced(self, events: list[Event], first: int) -> list[Event]:
        out = events[:first]
        for event in events[first:]:
            if type(event) is UsageUpdate or type(event) is Finish or type(event) is Failure:
                if self._price_of is not None and event.cost is None and event.usage.output is not None:
                    cost = self._price_of(self._target.name, event.usage)
                    event = msgspec.structs.replace(event, cost=cost) if cost is not None else event
                if self._prompt_estimate and self._is_truncated(event.usage):
                    seen = f"{event.usage.input} prompt tokens reported, about {self._prompt_estimate} sent"
                    out.append(Deviation("context-truncated", "usage.input", seen))
                    self._prompt_estimate = 0
            out.append(event)
        return out

    def _is_truncated(self, usage: Usage) -> bool:
        return usage.input is not None and usage.input < _TRUNCATED_SHARE * self._prompt_estimate


def _turns(target: Target, client: ProtocolName | None) -> TurnRules:
    """Return which turns a target accepts. For a client of its own protocol these are the protocol's."""
    dialect, rules = target.dialect, target.protocol.turns
    if dialect.strict_turns:
        return _STRICT_TURNS
    if client != target.protocol.name:
        return rules
    return ANY_TURNS if rules.later_system or dialect.supports_later_system else rules


def _fit(request: Request, target: Target, client: ProtocolName | None) -> tuple[Request, tuple[Deviation, ...]]:
    return fit(
        request,
        protocol=target.protocol.name,
        target=target.name,
        thinking=target.thinking,
        takes_result_media=target.protocol.takes_result_media,
        turns=_turns(target, client),
        client=client,
    )


def _as_came(rendered: Rendered, request: Request, target: Target, head: ClientHead | None) -> Rendered:
    """Return a rendered request with the client's bytes, if they mean the same to a target of the client's protocol."""
    if head is None or head.protocol != target.protocol.name or rendered.deviations:
        return rendered
    body = head.body(target.model) if target.protocol.goes_as_came(request) else None
    http = rendered.http
    return rendered if body is None else Rendered(HttpRequest(http.path, body, http.headers), (), rendered.expectation)


def _shortened(found: Sequence[Deviation]) -> list[Event]:
    """Return the first deviations, and how many follow of each code."""
    further = Counter((each.code, each.severity) for each in found[_MOST_TOLD:])
    counted = [Deviation(code, "", f"{count} further places", kind) for (code, kind), count in further.items()]
    return [*found[:_MOST_TOLD], *counted]


def _reader(
    target: Target, asked: Asked, restored: list[Restored], expectation: Expectation, new_id: NewId
) -> Reader | WholeReader:
    """Return the answer's reader: it mends calls by the names that were sent, then restores the client's."""
    offered, policy = asked.tools, asked.policy  # the request is dropped before the answer ends

    def stages() -> list[Stage]:
        made = stages_for(offered, policy, new_id=new_id, dialect=target.dialect, expectation=expectation)
        return [*made, *restored] if restored else made

    def make() -> Reader:
        decoder = target.protocol.decoder(
            new_id=new_id,
            offered_names=frozenset([tool.name for tool in offered]),
            takes_nothing=nothing_fits(offered),
            dialect=target.dialect,
            bounds=target.bounds,
        )
        return Reader(decoder, stages())

    read_whole, bounds = target.protocol.read_whole, target.bounds
    if read_whole is None or asked.request.stream:
        return make()
    tools, is_plain = {tool.name: tool for tool in offered}, is_usual(policy, expectation)

    def read(data: bytes) -> tuple[list[Event], Sequence[Stage]] | None:
        events = read_whole(data, offered_names=tools, bounds=bounds, new_id=new_id)
        if events is None:
            return None
        return events, restored if is_plain and stay_as_they_are(events, tools) else stages()

    return WholeReader(read, make, min(LARGE, bounds.frame, bounds.answer))
