"""What one client's request does at providers: each attempt is set apart, written before it is sent, and settled."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from decimal import Decimal
from typing import Final, Protocol, final

from dragoman.events import Failure, Finish
from dragoman.gateway.admission import RequestLimits
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.rate_limits import provider_request_id
from dragoman.gateway.telemetry.record import Record
from dragoman.http.response import TransportFailed
from dragoman.ledger.journal.records import (
    Intent,
    PriceSnapshot,
    Settlement,
    State,
    clip_id,
    clip_name,
)
from dragoman.money import NANO, bounded_usage, nano_from_usd
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.target import Target
from dragoman.types import NO_USAGE, Cost, Outcome, Usage

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
    """Where attempts are written. `pricing`: what tokens cost."""

    pricing: Pricing | None

    def next_id(self, started: int) -> bytes:
        """Of an attempt that begins now."""
        ...

    def intend(self, intent: Intent) -> bool:
        """Record an intent; False: it could not be, and need not.

        Raises:
            TransportFailed: it could not be, so nothing may be sent.
        """
        ...

    @property
    def syncs(self) -> bool:
        """Whether an intent must be on the disk before its request is sent: `on_disk` is to be awaited."""
        ...

    async def on_disk(self) -> None:
        """Until all intents are on the disk.

        Raises:
            TransportFailed: they are not, so nothing may be sent.
        """
        ...

    def settle(self, settlement: Settlement, snapshot: PriceSnapshot | None) -> None:
        """Record how an attempt ended."""
        ...


@final
class RequestMeter:
    """See `Meter`."""

    __slots__ = (
        "_attempt", "_ledger", "_limits", "_ordinal", "_owner", "_record", "_size", "_target", "_team", "grown",
        "has_refused", "headers", "is_limited", "usage",
    )  # fmt: skip

    def __init__(self, ledger: AttemptLog, record: Record, owner: str, team: str, limits: RequestLimits | None) -> None:
        self._ledger = ledger
        self._record = record
        self._owner = owner
        self._team = team
        self._ordinal = 0
        self._target: Target | None = None
        self._attempt: bytes | None = None  # the one that is under way
        self._size = 0
        self._limits = limits
        self.is_limited = limits is not None
        self.has_refused = False
        self.grown = 0
        self.usage: Usage | None = None
        self.headers: Mapping[str, str] = {}

    def begin(self, target: Target) -> None:
        self._target = target
        self.has_refused = False

    def admit(self, outgoing: Outgoing) -> None:
        limits, target = self._limits, self._target
        if limits is None or target is None or self._attempt is not None or limits.is_admitted:
            return
        try:
            limits.admit(target, self._record.route, outgoing)
        except TransportFailed:
            self.has_refused = True
            raise

    def close(self) -> None:
        """The client's request is over."""
        if self._limits is not None:
            self._limits.close()

    def send(self, outgoing: Outgoing) -> Awaitable[None] | None:
        if self._attempt is not None:
            # The pool writes the request once more, for a kept connection died over it without a byte of answer.
            self._settle("estimated", NO_USAGE, "resent", None)
        limits, target = self._limits, self._target
        assert target is not None
        reserved = expected = reserved_tokens = None
        accounts: tuple[int, ...] = ()
        if limits is not None:
            self.admit(outgoing)
            reserved, expected, accounts = limits.reserved, limits.expected, limits.accounts
            reserved_tokens = limits.reserved_tokens
        record = self._record
        started = time.time_ns() // 1_000
        id = self._ledger.next_id(started)
        self._size = len(outgoing.body)
        intent = Intent(
            id,
            record.request_id,
            self._ordinal,
            started,
            record.key_name,
            self._owner,
            self._team,
            clip_name(record.route),
            clip_name(target.name),
            self._size,
            reserved,
            expected,
            accounts,
            record.client_request_id,
            reserved_tokens,
        )
        self._ordinal += 1
        self.grown, self.usage, self.headers = 0, None, {}
        try:
            if self._ledger.intend(intent):
                self._attempt = id
        except TransportFailed:
            self.has_refused = True
            raise
        return self._on_disk() if self._ledger.syncs and self._attempt is not None else None

    async def _on_disk(self) -> None:
        try:
            await self._ledger.on_disk()
        except BaseException as problem:
            self.has_refused = type(problem) is TransportFailed
            if self._attempt is not None:  # it is written, and never sent
                reason = "overloaded" if self.has_refused else "cancelled"
                self._settle("void", NO_USAGE, reason, None, cost=Cost(Decimal(0), "provider"))
            raise

    def end(self, outcome: Outcome, told: Finish | Failure | None) -> None:
        if self._attempt is None:
            if self._limits is not None:
                self._limits.settle(0, 0)  # it was not sent
            return
        status = told.status if type(told) is Failure else None
        if type(told) is Finish:
            usage = self._believed(told.usage)
            if usage.output is not None and usage.input is not None:
                self._settle("settled", usage, "", 200, cost=told.cost, reported=True)
            else:
                reason = "not_believed" if usage is NO_USAGE and told.usage is not NO_USAGE else "no_usage"
                self._settle("estimated", self._seen(usage), reason, 200, cost=told.cost)
            return
        reason = told.kind if type(told) is Failure else "cancelled"
        if status in _VOID and not self.grown:
            self._settle("void", NO_USAGE, reason, status, cost=Cost(Decimal(0), "provider"))
        elif status is not None and not 200 <= status < 300 and not self.grown:
            self._settle("estimated", NO_USAGE, reason, status)  # whether such an answer is billed nobody says
        else:
            usage = told.usage if type(told) is Failure else NO_USAGE
            self._settle("estimated", self._seen(usage), reason, status, cost=told.cost if told is not None else None)

    def _believed(self, told: Usage) -> Usage:
        """What of a report can be true, `NO_USAGE` for one far beyond the bound. An output of 0 beside text that was
        seen is not known, nor is an input of 0 beside that: servers that count nothing say so."""
        usage = bounded_usage(told)
        if usage.output == 0 and self.grown:
            usage = Usage(usage.input or None, None, usage.cache_read, usage.cache_write, usage.reasoning)
        most = None if self._limits is None else self._limits.most_tokens
        if most is not None and (usage.input or 0) + (usage.output or 0) > _BELIEVED * most:
            return NO_USAGE
        return usage

    def _paid(self, cost: Cost | None, target: Target, usage: Usage) -> tuple[int | None, PriceSnapshot | None, bool]:
        """Nano-dollars of an attempt and the prices by which they were counted; whether the provider said more than it
        can mean."""
        is_said = cost is not None and cost.source == "provider"
        said = nano_from_usd(cost.usd) if cost is not None and is_said else None
        if said is not None and said <= _SMALL:
            return said, None, False
        pricing, limits = self._ledger.pricing, self._limits
        nano, snapshot = (None, None) if pricing is None else pricing.nano(target.name, usage)
        most = nano if limits is None or not limits.most else limits.most
        if said is not None and said <= (_BELIEVED * most if most else _LARGE):
            return said, None, False
        return nano, snapshot, is_said

    def _seen(self, told: Usage) -> Usage:
        """What was used at least: what the provider said of it so far, and what was seen go by."""
        usage = self._believed(self.usage.merged(told) if self.usage is not None else told)
        seen = -(-self.grown // _PER_TOKEN)
        return Usage(
            -(-self._size // _PER_TOKEN) if usage.input is None else usage.input,
            max(seen, usage.output or 0),
            usage.cache_read,
            usage.cache_write,
            usage.reasoning,
        )

    def _settle(
        self,
        state: State,
        usage: Usage,
        reason: str,
        status: int | None,
        *,
        cost: Cost | None = None,
        reported: bool = False,
    ) -> None:
        id, self._attempt = self._attempt, None
        limits, target = self._limits, self._target
        assert id is not None and target is not None
        nano, snapshot, is_beyond = self._paid(cost, target, usage)
        if is_beyond:
            state, reason = "estimated", reason or "not_believed"
        charged_tokens: int | None = None
        if limits is not None:
            tokens = (usage.input or 0) + (usage.output or 0)
            if usage is not NO_USAGE:
                is_unsure = (status is None and reason != "resent") or (reason == "not_believed" and not is_beyond)
                may_go_on = state == "estimated" and is_unsure
                known, seen = nano, tokens
                nano, tokens = limits.charged(nano, tokens, may_go_on=may_go_on)
                snapshot = snapshot if nano == known else None
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
            clip_id(provider_request_id(self.headers)) if self.headers else "",
            charged_tokens,
        )
        self._ledger.settle(settlement, snapshot)
