"""The ledger of one worker: every attempt is written into its journal before it is sent, and when it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final, final

from dragoman.config import Quota
from dragoman.events import Failure, Finish
from dragoman.gateway.admission import Admission, RequestLimits
from dragoman.gateway.endpoint import Refused
from dragoman.gateway.telemetry.metrics import LEDGER_ATTEMPTS, LEDGER_PROBLEM, LEDGER_ROWS, LEDGER_UNRECORDED, Metrics
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.rate_limits import provider_request_id
from dragoman.gateway.telemetry.record import Observer, Record
from dragoman.http.response import TransportFailed
from dragoman.ledger.accounts import Scopes
from dragoman.ledger.budgets import Budgets
from dragoman.ledger.counting import fold_ended, open_counters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.journal import Journal, JournalFailed
from dragoman.ledger.quotas import QuotaWatch, merged
from dragoman.ledger.records import (
    Intent,
    PriceSnapshot,
    Settlement,
    State,
    bounded_usage,
    clip_id,
    clip_name,
)
from dragoman.ledger.shipper import Shipped, Shipper
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.ledger.waking import Ringer
from dragoman.money import nano_from_usd
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.target import Target
from dragoman.types import NO_USAGE, Cost, Outcome, Usage

_LOG: Final = logging.getLogger("dragoman.gateway")
#: Refusals that nobody bills.
_VOID: Final = frozenset({400, 401, 403, 404, 413, 422, 429})
#: Characters and bytes of a token, where no provider counts them (see `token_estimate`).
_PER_TOKEN: Final = 4
#: Rows that a thread of the gateway gives to the store at once: other threads wait for no more than these.
_BATCH: Final = 64
#: Seconds that the last round may take when the gateway ends.
_LAST_ROUND: Final = 5.0
_NOTICE: Final = "ledger"
_NOT_WRITTEN: Final = "requests are not recorded"


class Ledger:
    """Of one worker. Used in one event loop.

    Attributes:
        folder: where it stands.
        is_needed: what cannot be recorded is not sent.
        admission: the quotas; None while there are none.
        pricing: what tokens cost.
    """

    __slots__ = (
        "_budgets", "_journal", "_observer", "_of_file", "_ringer", "_shipper", "_thread", "_watch", "admission",
        "folder", "is_needed", "pricing",
    )  # fmt: skip

    def __init__(
        self,
        folder: LedgerFolder,
        observer: Observer,
        *,
        ships: bool = True,
        keep_days: int = 400,
        syncs: bool = False,
    ) -> None:
        """`ships`: a thread of this process delivers; else a process of its own does. `keep_days`: of attempts.
        `syncs`: see `Journal`."""
        self._journal = Journal(folder.journals, syncs=syncs)
        self._ringer = Ringer(folder)
        self.folder = folder
        self._observer = observer
        self._shipper: Shipper | None = None
        if ships:
            store = SqliteStore(folder.root)
            fold = partial(fold_ended, folder)
            self._shipper = Shipper(folder, store, batch=_BATCH, keep_days=keep_days, tell=self._told, fold=fold)
        self._thread: threading.Thread | None = None
        self.is_needed = False
        self.pricing: Pricing | None = None
        self.admission: Admission | None = None
        self._budgets: Budgets | None = None
        self._of_file: Sequence[Quota] = ()
        self._watch = QuotaWatch(folder)

    def begin(self) -> None:
        """Deliver what is there from before, and from now on."""
        self._watch.has_changed()
        if self._shipper is not None:
            self._thread = threading.Thread(target=self._shipper.run, name="dragoman-shipper", daemon=True)
            self._thread.start()
        self._ringer.ring()  # where another gateway delivers: what a worker before this one left is its to close

    def meter(self, record: Record, *, has_keys: bool) -> RequestMeter:
        """The meter of one request. `has_keys`: clients need a key."""
        virtual = record.virtual_key
        if virtual is not None:
            record.key_name = virtual.name
            return RequestMeter(self, record, virtual.owner, virtual.team)
        record.key_name = f"#{record.key}" if has_keys else ""
        return RequestMeter(self, record, "", "")

    def limits(self, record: Record, owner: str, team: str) -> RequestLimits | None:
        """The quotas of one request; None where there are none at all."""
        if self.admission is None:
            return None
        labels = {} if record.virtual_key is None else record.virtual_key.labels
        return RequestLimits(self.admission, Scopes(record.key_name, owner, team, labels))

    def limit(self, of_file: Sequence[Quota]) -> None:
        """Go by these quotas of the configuration's file from now on, and by those of the store."""
        self._of_file = of_file
        quotas = merged(of_file, self._watch.quotas)
        if not quotas:
            self.admission = None
            return
        assert self.pricing is not None
        if self._budgets is None:
            counters = open_counters(self.folder)
            self._budgets = Budgets(counters, self._journal.holder, begin=self._begin_leasing)
        if self.admission is None:
            self.admission = Admission(self._budgets, self.pricing, tell=self._alert)
        self.admission.take(quotas)

    def tick(self) -> None:
        """Once a second: quotas of the store that were changed hold; what is leased and not needed goes back."""
        if self._watch.has_changed():
            self.limit(self._of_file)
        if self._budgets is not None:
            self._budgets.tick(time.time())

    def check(self) -> None:
        """Whether a request may be taken now.

        Raises:
            Refused: it could not be recorded, and must be.
        """
        if self.is_needed:
            try:
                self._journal.make_ready()
            except JournalFailed as problem:
                self._not_recorded(str(problem))
                raise Refused(_unrecorded()) from None
            self._recorded()

    def intend(self, intent: Intent) -> bool:
        """Record an intent; False: it could not be, and need not.

        Raises:
            TransportFailed: it could not be, so nothing may be sent.
        """
        try:
            self._journal.intend(intent)
        except JournalFailed as problem:
            self._not_recorded(str(problem))
            if self.is_needed:
                raise TransportFailed(_unrecorded()) from None
            self._observer.metrics.add(LEDGER_UNRECORDED)
            return False
        if _NOTICE in self._observer.notices:
            self._recorded()
        return True

    def next_id(self, started: int) -> bytes:
        """Of an attempt."""
        return self._journal.ids.next(started)

    def settle(self, settlement: Settlement, snapshot: PriceSnapshot | None) -> None:
        """Record how an attempt ended. What cannot be is closed as interrupted later."""
        self._observer.metrics.add(LEDGER_ATTEMPTS, (settlement.state,))
        try:
            self._journal.settle(settlement, snapshot)
        except JournalFailed as problem:
            self._not_recorded(str(problem))
            return
        self._ringer.ring()

    def close(self) -> None:
        """Deliver what is left, if this process delivers, and end. May take some seconds."""
        self._journal.close()
        self._ringer.ring()
        self._ringer.close()
        self._watch.close()
        if self._shipper is not None and self._thread is not None:
            # Where another gateway delivers, it does so for this one too.
            self._shipper.stop()
            self._thread.join(_LAST_ROUND if self._shipper.has_begun else 0.0)

    # ------------------------------------------------------------ inside

    def _begin_leasing(self) -> None:
        """Raises CountersAway: the journal, by which others know that this worker lives, cannot be begun."""
        try:
            self._journal.say_leasing()
        except JournalFailed as problem:
            raise CountersAway(str(problem)) from None

    def _alert(self, text: str) -> None:
        _LOG.warning("%s", text)
        self._observer.tell("quota", text)

    def _told(self, shipped: Shipped) -> None:
        """From the shipper's thread."""
        tell_shipped(shipped, self._observer.metrics)

    def _not_recorded(self, problem: str) -> None:
        if self._observer.notices.get(_NOTICE) is None:
            _LOG.warning("the ledger cannot be written, so %s: %s", self._words, problem)
        self._observer.notices[_NOTICE] = f"{self._words}: {problem}"
        self._observer.is_refusing = self.is_needed

    def _recorded(self) -> None:
        if self._observer.notices.pop(_NOTICE, None) is not None:
            _LOG.warning("the ledger can be written again")
        self._observer.is_refusing = False

    @property
    def _words(self) -> str:
        return "requests are refused" if self.is_needed else _NOT_WRITTEN


def tell_shipped(shipped: Shipped, metrics: Metrics) -> None:
    """What a shipper has done, as numbers."""
    metrics.set(LEDGER_ROWS, shipped.rows, ("delivered",))
    metrics.set(LEDGER_ROWS, shipped.set_aside, ("set-aside",))
    metrics.set(LEDGER_PROBLEM, float(bool(shipped.problem)))


def _unrecorded() -> Failure:
    return Failure("overloaded", "the ledger of this gateway cannot be written", 503, code="unrecorded")


@final
class RequestMeter:
    """See `Meter`."""

    __slots__ = (
        "_attempt", "_ledger", "_limits", "_ordinal", "_owner", "_record", "_size", "_target", "_team", "grown",
        "has_refused", "headers", "is_limited", "usage",
    )  # fmt: skip

    def __init__(self, ledger: Ledger, record: Record, owner: str, team: str) -> None:
        self._ledger = ledger
        self._record = record
        self._owner = owner
        self._team = team
        self._ordinal = 0
        self._target: Target | None = None
        self._attempt: bytes | None = None  # the one that is under way
        self._size = 0
        self._limits = None if ledger.admission is None else ledger.limits(record, owner, team)
        self.is_limited = self._limits is not None
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

    def send(self, outgoing: Outgoing) -> None:
        if self._attempt is not None:
            # The pool writes the request once more, for a kept connection died over it without a byte of answer.
            self._settle("estimated", NO_USAGE, "resent", None)
        limits, target = self._limits, self._target
        assert target is not None
        if limits is not None:
            self.admit(outgoing)
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
            *((None, None, ()) if limits is None else (limits.reserved, limits.expected, limits.accounts)),
            client_request=record.client_request_id,
        )
        self._ordinal += 1
        self.grown, self.usage, self.headers = 0, None, {}
        try:
            if self._ledger.intend(intent):
                self._attempt = id
        except TransportFailed:
            self.has_refused = True
            raise

    def end(self, outcome: Outcome, told: Finish | Failure | None) -> None:
        if self._attempt is None:
            if self._limits is not None:
                self._limits.settle(0, 0)  # it was not sent
            return
        status = told.status if type(told) is Failure else None
        if type(told) is Finish:
            usage = told.usage
            if usage.output is not None and usage.input is not None:
                self._settle("settled", usage, "", 200, cost=told.cost, reported=True)
            else:
                self._settle("estimated", self._seen(usage), "no_usage", 200, cost=told.cost)
            return
        reason = told.kind if type(told) is Failure else "cancelled"
        if status in _VOID and not self.grown:
            self._settle("void", NO_USAGE, reason, status, cost=Cost(Decimal(0), "provider"))
        elif status is not None and not 200 <= status < 300 and not self.grown:
            self._settle("estimated", NO_USAGE, reason, status)  # whether such an answer is billed nobody says
        else:
            usage = told.usage if type(told) is Failure else NO_USAGE
            self._settle("estimated", self._seen(usage), reason, status, cost=told.cost if told is not None else None)

    def _seen(self, told: Usage) -> Usage:
        """What was used at least: what the provider said of it so far, and what was seen go by."""
        usage = self.usage.merged(told) if self.usage is not None else told
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
        usage = bounded_usage(usage)
        snapshot: PriceSnapshot | None = None
        nano: int | None = None
        if cost is not None and cost.source == "provider":
            nano = nano_from_usd(cost.usd)
        elif self._ledger.pricing is not None:
            nano, snapshot = self._ledger.pricing.nano(target.name, usage)
        if limits is not None:
            if limits.is_bound and state == "estimated" and status is None and reason != "resent":
                # It may go on at its provider to the end that it was allowed.
                nano, snapshot = max(nano or 0, limits.reserved or 0), None
            limits.settle(nano, (usage.input or 0) + (usage.output or 0))
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
        )
        self._ledger.settle(settlement, snapshot)
