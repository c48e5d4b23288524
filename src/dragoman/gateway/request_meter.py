"""The meter of one client's request: each attempt is reserved, recorded before it is sent, and settled."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Protocol, final

import msgspec

from dragoman.codec.cost import tier_of
from dragoman.events import Event, Failure, Finish
from dragoman.gateway.admission import NOTHING_APART, RequestLimits
from dragoman.gateway.attempt_bounds import asked_tier
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.rate_limits import ID_NAMES, TIER_HEADER, provider_request_id
from dragoman.gateway.telemetry.record import Record
from dragoman.http.response import TransportFailed
from dragoman.ledger.journal.records import (
    LONGEST_NAME,
    AttemptIds,
    Intent,
    PriceSnapshot,
    Settlement,
    State,
    clip_id,
    fit_name,
)
from dragoman.money import NANO, bounded_usage, nano_from_usd
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.metering import count_text
from dragoman.routing.target import Target
from dragoman.secret import name_alone
from dragoman.types import NO_USAGE, BilledApart, Cost, Outcome, Usage

#: Refusals that nobody bills.
_VOID: Final = frozenset({400, 401, 403, 404, 413, 422, 429})
#: Characters and bytes of a token, where no provider counts them (see `token_estimate`).
_PER_TOKEN: Final = 4
#: How many times the most that an attempt may use or cost a provider may say. What is beyond cannot be true: the bound
#: counts each byte as a token, and no bill of one attempt may end a budget for all.
_BELIEVED: Final = 100
#: Nano-dollars that a provider may say of any attempt, since searches are billed beside tokens; and where no price is
#: known.
_SMALL, _LARGE = NANO, 1_000 * NANO


class AttemptLog(Protocol):
    """Records attempts. `pricing`: what tokens cost. `ids`: of attempts.

    `syncs`: an intent must be on the disk before its request is sent, so `on_disk` must be awaited.
    """

    pricing: Pricing | None
    ids: AttemptIds
    syncs: bool

    def intend(self, intent: Intent) -> bool:
        """Record an intent. Return False if it was not recorded and need not be.

        Raises:
            TransportFailed: it was not recorded, so nothing may be sent.
        """
        ...

    async def on_disk(self) -> None:
        """Wait until all intents are on the disk. Raises `TransportFailed`: they are not, so nothing may be sent."""
        ...

    def settle(self, settlement: Settlement, snapshot: PriceSnapshot | None) -> None:
        """Record how an attempt ended."""
        ...


@final
class RequestMeter(msgspec.Struct, eq=False):
    """The meter of one client's request; see `Meter`."""

    __repr__ = name_alone

    _ledger: AttemptLog
    _record: Record
    _limits: RequestLimits | None
    is_limited: bool
    _ordinal: int = 0
    _target: Target | None = None
    _attempt: bytes | None = None  # the one that is under way
    _size: int = 0
    _tier: str = ""  # that the request names
    has_refused: bool = False
    grown: int = 0
    usage: Usage | None = None
    uncounted: Sequence[Event] = ()
    headers: Mapping[str, str] = {}

    def begin(self, target: Target) -> None:
        self._target = target
        self.has_refused = False

    def admit(self, outgoing: Outgoing) -> None:
        limits, target = self._limits, self._target
        if limits is None or target is None or self._attempt is not None or limits.amounts is not None:
            return
        try:
            limits.admit(target, self._record.route, outgoing)
        except TransportFailed:
            self.has_refused = True
            raise

    def close(self) -> None:
        """End the client's request."""
        if self._limits is not None:
            self._limits.close()

    def send(self, outgoing: Outgoing) -> Awaitable[None] | None:
        if self._attempt is not None:
            # The pool writes the request once more, for a kept connection died over it without a byte of answer.
            self._settle("estimated", NO_USAGE, "resent", None)
        ledger, limits, record, target, ordinal = self._ledger, self._limits, self._record, self._target, self._ordinal
        assert target is not None
        apart = NOTHING_APART
        if limits is not None:
            if limits.amounts is None:
                self.admit(outgoing)
            apart = limits.apart
        key = record.virtual_key
        self._size = size = len(outgoing.body)
        self._tier = asked_tier(outgoing.body, outgoing.fields) if apart.tier is None else apart.tier
        started = time.time_ns() // 1_000
        id = ledger.ids.next(started)
        intent = Intent(
            id,
            record.request_id,
            ordinal,
            started,
            record.key_name,
            "" if key is None else key.owner,
            "" if key is None else key.team,
            fit_name(record.route[:LONGEST_NAME]),
            fit_name(target.name[:LONGEST_NAME]),
            size,
            apart.reserved,
            apart.expected,
            apart.accounts,
            record.client_request_id,
            apart.reserved_tokens,
        )
        self._ordinal = ordinal + 1
        if ordinal:  # what the attempt before saw is not of this one
            self.grown, self.usage, self.uncounted, self.headers = 0, None, (), {}
        try:
            if ledger.intend(intent):
                self._attempt = id
        except TransportFailed:
            self.has_refused = True
            raise
        return self._on_disk() if ledger.syncs and self._attempt is not None else None

    async def _on_disk(self) -> None:
        try:
            await self._ledger.on_disk()
        except BaseException as problem:
            self.has_refused = isinstance(problem, TransportFailed)
            if self._attempt is not None:  # it is written, and never sent
                reason = "overloaded" if self.has_refused else "cancelled"
                self._settle("void", NO_USAGE, reason, None, cost=Cost(Decimal(0), "provider"))
            raise

    def end(self, outcome: Outcome, told: Finish | Failure | None) -> None:
        if self._attempt is None:
            if self._limits is not None:
                self._limits.settle(0, 0)  # it was not sent
            return
        if type(told) is Finish:
            usage = self._believed(told.usage)
            if usage.output is not None and usage.input is not None:
                self._settle("settled", usage, "", 200, told.cost, reported=True)
            else:
                reason = "not_believed" if usage is NO_USAGE and told.usage is not NO_USAGE else "no_usage"
                self._settle("estimated", self._seen(usage), reason, 200, told.cost)
            return
        self._count()
        failure = told if type(told) is Failure else None
        status = None if failure is None else failure.status
        reason = "cancelled" if failure is None else failure.kind
        if status in _VOID and not self.grown:
            self._settle("void", NO_USAGE, reason, status, Cost(Decimal(0), "provider"))
        elif status is not None and not 200 <= status < 300 and not self.grown:
            self._settle("estimated", NO_USAGE, reason, status)  # whether such an answer is billed nobody says
        else:
            usage, cost = (NO_USAGE, None) if failure is None else (failure.usage, failure.cost)
            self._settle("estimated", self._seen(usage), reason, status, cost)

    def _count(self) -> None:
        """Bring `grown` and `usage` up to date."""
        if self.uncounted:
            events, self.uncounted = self.uncounted, ()
            count_text(self, events)

    def _believed(self, told: Usage) -> Usage:
        """Return the plausible part of a report, `NO_USAGE` for one far beyond the bound.

        An output of 0 beside text that was seen is unknown, and so is an input of 0 beside that: servers that count
        nothing report 0.
        """
        usage = bounded_usage(self._with_header(told) if TIER_HEADER in self.headers else told)
        if usage.output == 0:
            self._count()
            if self.grown:
                usage = msgspec.structs.replace(usage, input=usage.input or None, output=None)
        most = None if self._limits is None else self._limits.apart.most_tokens
        if most is not None and (usage.input or 0) + (usage.output or 0) > _BELIEVED * most:
            return NO_USAGE
        return usage

    def _paid(self, cost: Cost, target: Target, usage: Usage) -> tuple[int | None, PriceSnapshot | None, bool]:
        """Return the nano-dollars of an attempt whose cost is reported, its prices, and whether that is implausible."""
        said = nano_from_usd(cost.usd)
        if said is not None and said <= _SMALL:
            return said, None, False
        nano, snapshot = self._counted(target, usage)
        limits = self._limits
        most = nano if limits is None or not limits.apart.most else limits.apart.most
        if said is not None and said <= (_BELIEVED * most if most else _LARGE):
            return said, None, False
        return nano, snapshot, True

    def _counted(self, target: Target, usage: Usage) -> tuple[int | None, PriceSnapshot | None]:
        pricing = self._ledger.pricing
        if pricing is not None and usage.apart is not None and usage.apart.tier not in ("", self._tier):
            pricing.note_tier(target.name, usage.apart.tier)
        return (None, None) if pricing is None else pricing.nano(target.name, usage)

    def _seen(self, told: Usage) -> Usage:
        """Return the least usage: what the provider has reported so far, and what was seen."""
        self._count()
        usage = self._believed(self.usage.merged(told) if self.usage is not None else told)
        seen = -(-self.grown // _PER_TOKEN)
        return Usage(
            -(-self._size // _PER_TOKEN) if usage.input is None else usage.input,
            max(seen, usage.output or 0),
            usage.cache_read,
            usage.cache_write,
            usage.reasoning,
            usage.apart or (BilledApart(self._tier) if self._tier else None),
        )

    def _with_header(self, usage: Usage) -> Usage:
        """Return a usage with the service tier that the headers of its answer name, if its body names none."""
        named = self.headers.get(TIER_HEADER)
        if named is None or not (tier := tier_of(named)) or (usage.apart is not None and usage.apart.tier):
            return usage
        return msgspec.structs.replace(usage, apart=msgspec.structs.replace(usage.apart or BilledApart(), tier=tier))

    def _settle(
        self,
        state: State,
        usage: Usage,
        reason: str,
        status: int | None,
        cost: Cost | None = None,
        *,
        reported: bool = False,
    ) -> None:
        id, self._attempt = self._attempt, None
        ledger, limits, target = self._ledger, self._limits, self._target
        assert id is not None and target is not None
        is_beyond = False
        if cost is not None and cost.source == "provider":
            nano, snapshot, is_beyond = self._paid(cost, target, usage)
            if is_beyond:
                state, reason = "estimated", reason or "not_believed"
        else:
            nano, snapshot = self._counted(target, usage)
        charged_tokens: int | None = None
        if limits is not None:
            tokens = (usage.input or 0) + (usage.output or 0)
            if usage is not NO_USAGE and (nano is None or state != "settled"):
                is_unsure = (status is None and reason != "resent") or (reason == "not_believed" and not is_beyond)
                is_unsure = is_unsure or (reason == "no_usage" and cost is None)
                known, seen = nano, tokens
                nano, tokens = limits.charged(target, usage, nano, may_go_on=state == "estimated" and is_unsure)
                if nano != known:
                    state, snapshot = "estimated", None
                charged_tokens = tokens if tokens != seen else None
            limits.settle(nano, tokens)
        settlement = Settlement(
            id,
            time.time_ns() // 1_000,
            state,
            nano,
            None if snapshot is None else snapshot.id,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            usage.reasoning,
            reported,
            reason,
            status,
            "" if ID_NAMES.isdisjoint(self.headers) else clip_id(provider_request_id(self.headers)),
            charged_tokens,
        )
        ledger.settle(settlement, snapshot)
