"""The record of one request: filled in on its way, reported once when it is over.

Nothing here is called for a chunk. Prompts, arguments, keys and the text of errors have no place in a `Record`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.client.exchange import PriceOf
from dragoman.events import Deviation, Event, Failure, Finish
from dragoman.gateway.messages import Head
from dragoman.gateway.telemetry.log import Log
from dragoman.gateway.telemetry.metrics import (
    ATTEMPTS,
    BREAKERS,
    COST,
    DEVIATIONS,
    DROPPED,
    DURATION,
    FAILURES,
    FALLBACKS,
    FIRST,
    LAG,
    REQUESTS,
    TOKENS,
    UNDER_WAY,
    UPSTREAM,
    Metrics,
)
from dragoman.ids import new_id
from dragoman.ledger.keys import VirtualKey
from dragoman.routing.metering import Meter
from dragoman.secret import name_alone
from dragoman.types import TOKEN_KINDS, Cost, Usage

#: How a request ended. `done`: the client has a whole answer; `failed`: it was told of a failure, by status or in the
#: stream; `cut`: its connection was closed within a call; `cancelled`: the client went; `refused`: nothing was asked.
Outcome: TypeAlias = Literal["done", "failed", "cut", "cancelled", "refused"]
#: How one try of one target ended; "skipped": it was passed over.
AttemptOutcome: TypeAlias = Literal["done", "failed", "cancelled", "skipped"]

#: What of a client's own request id is taken; others would put what they like into our log.
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_LONGEST: Final = 200  # characters of a name that somebody else gave
#: Deviations that tell of something that was asked or answered and not passed on as it was.
_LOSSES: Final = frozenset({"changed", "dropped", "lone-surrogate", "moved", "untranslated"})
#: A client's value of another type may be ignored.
_NOTED: Final = _LOSSES | {"wrong-type"}
_MOST_LOST: Final = 32  # places a line
#: What a path may hold in a line: not what a client wrote as the name of a field, with spaces or beyond 40 characters.
_PATH: Final = re.compile(r"[\w<>\[\]-]{1,40}(?:\.[\w<>\[\]-]{1,40}){0,11}", re.ASCII)
_SHOWN: Final = 8  # digits of a client key's digest
#: Ways to end that are remembered.
_MOST_ENDED: Final = 256
_TRACE: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@final
class Attempt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One try of one target. `reason`: the kind of its failure, or ""; `status`: the provider's."""

    target: str
    outcome: AttemptOutcome
    reason: str = ""
    status: int | None = None


@final
class Record(msgspec.Struct, kw_only=True, eq=False):
    """The record of one request. Its attributes are set by whoever knows them. Times are `time.perf_counter()` seconds.

    Attributes:
        request_id: ours.
        client_request_id: the client's, or "".
        provider_request_id: the last target's.
        owner: the SHA-256 of the client key, in hexadecimal digits, or "".
        key: 8 digits of it, for lines.
        client: the protocol of the client; "" for pages of the gateway itself.
        page: the path's pattern, if the gateway answered itself.
        route: the name in the configuration that answered, "*" included; "" for a target that was named itself.
        target: `provider/model`, the last one that was asked.
        attempts: the tries, in order.
        status: of the answer's head.
        error: the kind of the failure that the client got, or "".
        usage, cost, stop: of the answer; None and "" if unknown.
        deviations: how often each code came.
        lost: places that were not passed on as they were, with their codes.
        first_event: when the first event of the answer came, or None.
        bytes_in: of the body, on the client's side.
        passed: the answer's bytes went through untouched.
        headers: sent with the head of the answer.
        meter: records what is sent to providers for it, or None.
        virtual_key: of the client, or None.
        key_name: its name in the ledger.
        trace_parent: the trace that the request is part of, in the W3C's form, for the provider, or "".
        span: of `Telemetry`.
    """

    __repr__ = name_alone

    request_id: str
    started: float
    headers: dict[str, str]
    owner: str = ""
    method: str = ""
    bytes_in: int = 0
    client_request_id: str = ""
    trace_parent: str = ""
    provider_request_id: str = ""
    span: object = None
    meter: Meter | None = None
    virtual_key: VirtualKey | None = None
    key_name: str = ""
    max_tokens: int | None = None
    client: str = ""
    page: str = ""
    route: str = ""
    target: str = ""
    error: str = ""
    stop: str = ""
    attempts: list[Attempt] = []
    status: int = 0
    outcome: Outcome | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    deviations: dict[str, int] = {}
    lost: dict[str, None] = {}  # in order
    first_event: float | None = None
    stream: bool = False
    passed: bool = False

    @property
    def key(self) -> str:
        """Digits that identify the client key without revealing it."""
        return self.owner[:_SHOWN]

    @property
    def trace_id(self) -> str:
        """The trace's 32 digits, or ""."""
        return self.trace_parent[3:35]

    def attempt(self, target: str, outcome: AttemptOutcome, reason: str = "", status: int | None = None) -> None:
        """Record the end of a try of a target."""
        if outcome != "skipped":
            self.target = target
        self.attempts.append(Attempt(target, outcome, reason, status))

    def deviate(self, target: str, deviation: Deviation, losses: frozenset[str] = _LOSSES) -> None:
        """Count a deviation. Has the form of `OnDeviation`."""
        code = deviation.code
        self.deviations[code] = self.deviations.get(code, 0) + 1
        if code in losses and len(self.lost) < _MOST_LOST:
            found = _PATH.match(deviation.where)
            self.lost[f"{code} {found[0]}" if found else code] = None

    def note(self, lost: Iterable[Deviation]) -> None:
        """Count what of a client's request was not read, or of its answer could not be expressed."""
        for deviation in lost:
            self.deviate(self.target, deviation, _NOTED)

    def begin(self) -> None:
        """Record the first event of the answer."""
        if self.first_event is None:
            self.first_event = time.perf_counter()

    def end(self, event: Event, status: int = 200) -> None:
        """Record the answer's last event; any other means that it was cut. `status`: of the head that was sent."""
        self.status = status
        if type(event) is Finish:
            self.outcome, self.stop, self.usage, self.cost = "done", event.reason, event.usage, event.cost
        elif type(event) is Failure:
            self.outcome, self.error, self.usage, self.cost = "failed", event.kind, event.usage, event.cost
        else:
            self.outcome = "cut"

    def permits(self, name: str) -> bool:
        """Return whether the client's key may ask for a route or for `provider/model`."""
        return self.virtual_key is None or self.virtual_key.permits(name)

    def refuse(self, kind: str, status: int) -> None:
        """Record that no target was asked."""
        self.outcome, self.error, self.status = "refused", kind, status


def begin_record(head: Head, *, bytes_in: int = 0, owner: str = "") -> Record:
    """Return the record of a request that begins now."""
    request_id, headers = new_id(), head.headers
    named = headers.get("x-client-request-id") or headers.get("x-request-id")
    parent = headers.get("traceparent")
    shown = {"x-request-id": request_id}
    record = Record(
        request_id=request_id,
        started=time.perf_counter(),
        headers=shown,
        owner=owner,
        method=head.method,
        bytes_in=bytes_in,
    )
    if named and _ID.fullmatch(named):
        record.client_request_id = shown["x-client-request-id"] = named
    if parent and _TRACE.fullmatch(parent):
        record.trace_parent = parent
    return record


@final
class _Ended(msgspec.Struct, frozen=True, gc=False):
    """The counters of requests that ended alike: the series that grow by one, and the positions of two histograms."""

    provider: str
    ones: tuple[int, ...]
    duration: int
    first: int


class Telemetry(Protocol):
    """The destination of spans and metrics of the GenAI conventions; see `opentelemetry.py`."""

    def start(self, record: Record) -> None:
        """Begin a request: its trace continues at the provider."""
        ...

    def finish(self, record: Record, seconds: float) -> None:
        """End a request."""
        ...


class Observer:
    """Turns each request into metrics for Prometheus, a log line and a span.

    Attributes:
        metrics: the metrics of this process.
        log: the destination of lines.
        telemetry: the destination of spans; None without an OpenTelemetry SDK.
        price_of: called if no provider reported an answer's cost.
        is_refusing: requests that cannot be recorded are refused; `/readyz` says so.
        notices: what does not work although requests are served, by subject; `/readyz` shows them.
    """

    __slots__ = ("_ended", "is_refusing", "log", "metrics", "notices", "price_of", "telemetry")

    def __init__(
        self, metrics: Metrics | None = None, log: Log | None = None, *, telemetry: Telemetry | None = None
    ) -> None:
        """Create it. By default it counts in memory, and its lines have no reader."""
        self.metrics = metrics or Metrics()
        self._ended: dict[tuple[object, ...], _Ended] = {}
        self.log = log or Log(None)
        self.telemetry = telemetry
        self.price_of: PriceOf | None = None
        self.notices: dict[str, str] = {}
        self.is_refusing = False

    def start(self, head: Head, *, bytes_in: int, owner: str) -> Record:
        """Begin the record of an admitted request."""
        self.metrics.add(UNDER_WAY)
        record = begin_record(head, bytes_in=bytes_in, owner=owner)
        if self.telemetry is not None:
            self.telemetry.start(record)
        return record

    def finish(self, record: Record) -> None:
        """End the record of a request, however it ended."""
        self.metrics.add(UNDER_WAY, (), -1.0)
        seconds = time.perf_counter() - record.started
        outcome = record.outcome or "failed"
        if record.cost is None and record.usage is not None and self.price_of is not None and record.target:
            record.cost = self.price_of(record.target, record.usage)
        self._count(record, outcome, seconds)
        if self.telemetry is not None:
            self.telemetry.finish(record, seconds)
        if not self.log.is_read:
            return
        if outcome != "done" and not self.log.allows(f"{outcome} {record.error}"):
            return
        if not self.log.write(entry_of(record, outcome, seconds, time=self.log.now())):
            self.metrics.add(DROPPED, ("no-room",))

    def refused(self, failure: Failure, status: int) -> None:
        """Record a request that was refused at the door."""
        self.metrics.add(FAILURES, ("", failure.kind))
        if self.log.is_read and self.log.allows(f"refused {failure.kind}"):
            self.log.write({"time": self.log.now(), "kind": "refused", "error": failure.kind, "status": status})

    def tell(self, kind: str, text: str) -> None:
        """Log a line that belongs to no request."""
        if self.log.is_read:
            self.log.write({"time": self.log.now(), "kind": kind, "text": text})

    def settle(self, lag: float, *, connections: int = 0, breakers: Iterable[tuple[str, bool]] = ()) -> None:
        """Record, once a second, the event loop's delay in seconds, suppressed lines, connections and breakers."""
        self.metrics.set(LAG, lag)
        self.metrics.set(UPSTREAM, connections)
        for target, is_open in breakers:
            self.metrics.set(BREAKERS, float(is_open), (target,))
        left_out = self.log.settle()
        if left_out:
            self.metrics.add(DROPPED, ("too-many",), left_out)

    def _count(self, record: Record, outcome: Outcome, seconds: float) -> None:
        metrics, first = self.metrics, record.first_event
        alike = (
            record.client, record.route, record.target, outcome, record.error, first is None, *record.attempts
        )  # fmt: skip
        ended = self._ended.get(alike)
        if ended is None:
            if len(self._ended) >= _MOST_ENDED:
                self._ended.clear()
            ended = self._ended[alike] = self._find_series(record, outcome)
        metrics.add_at(ended.ones)
        metrics.observe_at(ended.duration, DURATION.over, seconds)
        if first is not None:
            metrics.observe_at(ended.first, FIRST.over, first - record.started)
        provider = ended.provider
        if record.usage is not None:
            for kind, amount in zip(TOKEN_KINDS, msgspec.structs.astuple(record.usage), strict=False):
                if amount:
                    metrics.add(TOKENS, (provider, kind), amount)
        if record.cost is not None:
            metrics.add(COST, (provider,), float(record.cost.usd))
        for code, count in record.deviations.items():
            metrics.add(DEVIATIONS, (provider, code), count)

    def _find_series(self, record: Record, outcome: Outcome) -> _Ended:
        position, attempts = self.metrics.position, record.attempts
        provider = record.target.partition("/")[0]
        ones = [position(REQUESTS, (record.client, record.route, provider, outcome))]
        if record.error:
            ones.append(position(FAILURES, (record.client, record.error)))
        ones += [position(ATTEMPTS, (one.target.partition("/")[0], one.outcome, one.reason)) for one in attempts]
        ones += [position(FALLBACKS, (before.reason,)) for before in attempts[:-1]]
        duration = position(DURATION, (record.client,))
        first = 0 if record.first_event is None else position(FIRST, (record.client,))
        return _Ended(provider, tuple(ones), duration, first)


@final
class Entry(msgspec.Struct, omit_defaults=True, gc=False):
    """A request's line. Empty fields are left out; `docs/reference/observability.md` describes the fields."""

    time: str
    kind: str
    id: str
    outcome: Outcome
    status: int
    total_ms: float
    client_id: str = ""
    provider_id: str = ""
    trace: str = ""
    key: str = ""
    client: str = ""
    page: str = ""
    route: str = ""
    target: str = ""
    attempts: list[Attempt] = []
    error: str = ""
    stop: str = ""
    stream: bool = False
    passed: bool = False
    usage: dict[str, int] = {}
    cost_usd: Decimal | None = None
    first_ms: float | None = None
    bytes_in: int = 0
    deviations: dict[str, int] = {}
    lost: list[str] = []


def entry_of(record: Record, outcome: Outcome, seconds: float, *, time: str) -> Entry:
    """Return a record as its line. `time`: now, in the form of RFC 3339."""
    first = record.first_event
    return Entry(
        time,
        "request",
        record.request_id,
        outcome,
        record.status,
        _milliseconds(seconds),
        record.client_request_id,
        record.provider_request_id[:_LONGEST],
        record.trace_id,
        record.key,
        record.client,
        record.page,
        record.route,
        record.target[:_LONGEST],
        record.attempts,
        record.error,
        record.stop,
        record.stream,
        record.passed,
        {} if record.usage is None else _reported(record.usage),
        None if record.cost is None else record.cost.usd,
        None if first is None else _milliseconds(first - record.started),
        record.bytes_in,
        record.deviations,
        list(record.lost),
    )


def is_of(line: bytes, owner: str) -> bool:
    """Return whether a line belongs to a request of this owner."""
    entry = _json.decode(line)
    return bool(owner) and isinstance(entry, dict) and entry.get("key") == owner[:_SHOWN]


def _reported(usage: Usage) -> dict[str, int]:
    amounts = zip(TOKEN_KINDS, msgspec.structs.astuple(usage), strict=False)
    return {name: amount for name, amount in amounts if amount is not None}


def _milliseconds(seconds: float) -> float:
    """Return milliseconds with one digit behind the point, in a tenth of the time of `round`."""
    return int(seconds * 10_000 + 0.5) / 10
