"""The ledger of one worker: every attempt is written into its journal before it is sent, and when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from dragoman.config import Quota
from dragoman.events import Failure
from dragoman.gateway.admission import Admission, RequestLimits
from dragoman.gateway.endpoint import Refused
from dragoman.gateway.request_meter import RequestMeter
from dragoman.gateway.telemetry.metrics import LEDGER_ATTEMPTS, LEDGER_PROBLEM, LEDGER_ROWS, LEDGER_UNRECORDED, Metrics
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.record import Observer, Record
from dragoman.http.response import NotAsked
from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.counting import MUCH_PATIENCE, PATIENCE, fold_ended, open_counters
from dragoman.ledger.delivering import Shipped
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.journal.records import Intent, PriceSnapshot, Settlement, State
from dragoman.ledger.journal.syncing import GroupSync
from dragoman.ledger.journal.writing import Journal, JournalFailed
from dragoman.ledger.limits.accounts import Scopes
from dragoman.ledger.limits.budgets import Budgets
from dragoman.ledger.limits.leases import GONE_SECONDS
from dragoman.ledger.limits.quotas import QuotaWatch, merged
from dragoman.ledger.limits.seeding import sharing_holders, was_used
from dragoman.ledger.replica.age import Moment, now, seconds_between
from dragoman.ledger.replica.file import ReplicaWatch
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.opening import open_store
from dragoman.ledger.waking import Ringer

_LOG: Final = logging.getLogger("dragoman.gateway")
#: Rows that a thread of the gateway gives to the store at once. A statement takes 64 of them: other threads wait for no
#: more than one.
_BATCH: Final = 512
#: Seconds that the last round may take when the gateway ends.
_LAST_ROUND: Final = 5.0
#: Seconds before others take a worker for ended at which it uses no lease any more.
_MARGIN: Final = 600.0
_NOTICE: Final = "ledger"
_COUNTERS: Final = "counters"
_NOT_WRITTEN: Final = "requests are not recorded"


class Ledger:
    """One worker's ledger. Used in one event loop.

    Attributes:
        folder: its place.
        is_needed: a request that cannot be recorded is not sent.
        admission: the quotas, or None.
        pricing: what tokens cost.
        ids: of attempts.
        syncs: an intent must be on the disk before its request is sent.
    """

    __slots__ = (
        "_begun", "_budgets", "_counters", "_ended", "_group_sync", "_journal", "_known", "_meeting", "_observer",
        "_of_file", "_replica", "_ringer", "_series", "_shipper", "_thread", "_watch", "_written", "admission",
        "folder", "ids", "is_needed", "pricing", "syncs",
    )  # fmt: skip

    def __init__(
        self,
        folder: LedgerFolder,
        observer: Observer,
        *,
        ships: bool = True,
        keep_days: int = 400,
        syncs: bool = False,
        most: int | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        """Create it.

        Args:
            ships: a thread of this process delivers; otherwise a separate process does.
            keep_days: how long attempts are kept.
            syncs, most: as in `Journal`.
            ended: called when other machines regard this worker as ended, so that another must replace it.
        """
        self._ended = ended
        self._journal = Journal(folder.journals, syncs=syncs, most=most)
        self._group_sync = GroupSync(self._journal.to_sync) if syncs else None
        self.ids, self.syncs = self._journal.ids, syncs
        self._series: dict[State, int] = {}  # where attempts that ended so count
        self._ringer = Ringer(folder)
        self.folder = folder
        self._observer = observer
        self._shipper: Shipper | None = None
        if ships:
            store = open_store(folder, ships=True)
            fold = partial(fold_ended, folder)
            self._shipper = Shipper(folder, store, batch=_BATCH, keep_days=keep_days, tell=self._told, fold=fold)
        self._thread: threading.Thread | None = None
        self.is_needed = False
        self.pricing: Pricing | None = None
        self.admission: Admission | None = None
        self._budgets: Budgets | None = None
        self._counters: SqliteCounters | RemoteCounters | None = None
        self._meeting: threading.Thread | None = None
        self._replica: ReplicaWatch | None = None
        self._begun: Moment | None = None  # when others knew that this worker may have leases
        self._of_file: Sequence[Quota] = ()
        self._watch = QuotaWatch(folder)
        self._known: dict[str, Quota] = {}  # by name, as they hold or held
        self._written = 0

    def begin(self) -> None:
        """Start delivering, beginning with what earlier processes left."""
        self._watch.has_changed()
        if self._shipper is not None:
            self._thread = threading.Thread(target=self._shipper.run, name="dragoman-shipper", daemon=True)
            self._thread.start()
        self._ringer.ring(at_once=True)  # who delivers, perhaps for another gateway, closes what a dead worker left

    def meter(self, record: Record, *, has_keys: bool) -> RequestMeter:
        """Return the meter of one request. `has_keys`: clients need a key."""
        key = record.virtual_key
        if key is not None:
            record.key_name = key.name
        elif has_keys:
            record.key_name = f"#{record.key}"
        if self.admission is None:
            return RequestMeter(self, record, None, False)
        scopes = Scopes(record.key_name) if key is None else Scopes(key.name, key.owner, key.team, key.labels)
        return RequestMeter(self, record, RequestLimits(self.admission, scopes), True)

    def limit(self, of_file: Sequence[Quota], *, written: int = 0) -> None:
        """Apply these quotas of the configuration file, and those of the store. `written`: when the file was."""
        self._of_file, self._written = of_file, written
        quotas = self._stamped(merged(of_file, self._watch.quotas))
        if not quotas:
            self.admission = None
            return
        assert self.pricing is not None
        if self._budgets is None:
            counters = self._opened()
            begin, holder = partial(self._begin_leasing, counters.join), self._journal.holder
            if isinstance(counters, RemoteCounters):
                self._replica = ReplicaWatch(self.folder)
                self._budgets = Budgets(
                    counters, holder, begin=begin, holders=self._replica.holders,
                    divide=partial(counters.divide, holder), was_used=counters.was_used,
                )  # fmt: skip
            else:
                holders = partial(sharing_holders, self.folder)
                used = partial(was_used, self.folder)
                self._budgets = Budgets(counters, holder, begin=begin, holders=holders, was_used=used)
        if self.admission is None:
            self.admission = Admission(self._budgets, self.pricing, tell=self._alert)
        self.admission.take(quotas)

    async def greet(self) -> None:
        """Tell counters of several machines, before the first request, that this worker exists.

        On a busy machine connecting may take longer than a request may wait. So it is done without any quota too: the
        first one may come while the gateway runs.
        """
        counters = self._opened() if self.folder.store is not None else None
        if not isinstance(counters, RemoteCounters):
            return
        counters.set_patience(MUCH_PATIENCE)
        try:
            await asyncio.to_thread(partial(_meet, counters) if self._budgets is None else self._budgets.greet)
        finally:
            counters.set_patience(PATIENCE)

    def _opened(self) -> SqliteCounters | RemoteCounters:
        """Return the counters. Nothing is opened before the first call."""
        if self._counters is None:
            self._counters = open_counters(self.folder)
        return self._counters

    def _keep_met(self, counters: RemoteCounters) -> None:
        """Keep a connection to the counters while no quota needs them. No request waits for it."""
        if self._meeting is None or not self._meeting.is_alive():
            self._meeting = threading.Thread(target=_meet, args=(counters,), name="dragoman-meeting", daemon=True)
            with contextlib.suppress(RuntimeError):  # there is no room for a thread
                self._meeting.start()

    def _stamped(self, quotas: Sequence[Quota]) -> list[Quota]:
        """Return quotas with the time from which their amounts apply.

        The file defines what applies when it is written, also where it leaves a quota to the store. A changed amount is
        newer than the previous one, whatever the clock says.
        """
        stamped = []
        for quota in quotas:
            known = self._known.get(quota.name)
            stamp = max(quota.generation, self._written)
            if known is not None:
                stamp = max(stamp, known.generation + (known.amount != quota.amount))
            stamped.append(msgspec.structs.replace(quota, generation=stamp))
        self._known |= {quota.name: quota for quota in stamped}
        return stamped

    def look(self) -> None:
        """Apply changed quotas of the store."""
        if self._watch.has_changed():
            self.limit(self._of_file, written=self._written)

    def tick(self) -> None:
        """Apply changed quotas of the store and give back unneeded leases. Called once a second."""
        self.look()
        if self._budgets is not None:
            self._judge_life(self._budgets)
            self._budgets.tick(time.time())
            if self._budgets.is_away:
                self._observer.notices[_COUNTERS] = "they do not answer, so `on_outage` of the quotas decides"
            else:
                self._observer.notices.pop(_COUNTERS, None)
        elif isinstance(self._counters, RemoteCounters):
            self._keep_met(self._counters)

    def _judge_life(self, budgets: Budgets) -> None:
        """Check whether other machines regard this worker as ended.

        They do if the store was not reached for nearly a day, or was reached and no longer has the worker's name.
        """
        if self._replica is None or not budgets.has_begun:
            return
        holders, heard = self._replica.holders(), self._replica.heard
        self._begun = self._begun or now()
        if heard is None or not seconds_between(self._begun, heard.at) > 0:
            return  # it was not heard since
        is_known = self._journal.holder in holders
        budgets.has_ended = not is_known or self._replica.seconds() > GONE_SECONDS - _MARGIN
        if not is_known and self._ended is not None:
            _LOG.warning("other machines take this worker for one that has ended; another takes its place")
            ended, self._ended = self._ended, None
            ended()

    def check(self) -> None:
        """Check whether a request may be accepted now. Raises `Refused`: it could not be recorded, and must be."""
        if self.is_needed:
            if not self._watch.are_known:  # what nobody could read may forbid it
                raise Refused(_unread())
            try:
                self._journal.make_ready()
            except JournalFailed as problem:
                self._not_recorded(str(problem))
                raise Refused(_unrecorded()) from None
            if _NOTICE in self._observer.notices:
                self._recorded()

    def intend(self, intent: Intent) -> bool:
        """Record an intent. Return False if it was not recorded and need not be.

        Raises:
            NotAsked: it was not recorded, so nothing may be sent.
        """
        try:
            self._journal.intend(intent)
        except JournalFailed as problem:
            self._not_recorded(str(problem))
            if self.is_needed:
                raise NotAsked(_unrecorded()) from None
            self._observer.metrics.add(LEDGER_UNRECORDED)
            return False
        if _NOTICE in self._observer.notices:
            self._recorded()
        return True

    async def on_disk(self) -> None:
        """Wait until all recorded intents are on the disk. Raises `NotAsked`: they are not, and must be."""
        assert self._group_sync is not None
        try:
            await self._group_sync.wait()
        except OSError as problem:
            self._not_recorded(problem.strerror or type(problem).__name__)
            if self.is_needed:
                raise NotAsked(_unrecorded()) from None

    def settle(self, settlement: Settlement, snapshot: PriceSnapshot | None) -> None:
        """Record how an attempt ended. One that cannot be recorded is closed as interrupted later."""
        metrics, state = self._observer.metrics, settlement.state
        series = self._series.get(state)
        if series is None:
            series = self._series[state] = metrics.position(LEDGER_ATTEMPTS, (state,))
        metrics.add_at((series,))
        try:
            self._journal.settle(settlement, snapshot)
        except JournalFailed as problem:
            self._not_recorded(str(problem))
            return
        self._ringer.ring()

    def close(self) -> None:
        """Deliver the rest, if this process delivers, and end. This may take some seconds."""
        if self._budgets is not None:
            self._budgets.close()
        if self._counters is not None:
            self._counters.close()
        self._journal.close()
        self._ringer.ring()
        self._ringer.close()
        self._watch.close()
        if self._replica is not None:
            self._replica.close()
        if self._shipper is not None and self._thread is not None:
            # Where another gateway delivers, it does so for this one too.
            self._shipper.stop()
            self._thread.join(_LAST_ROUND if self._shipper.has_begun else 0.0)

    # ------------------------------------------------------------ inside

    def _begin_leasing(self, join: Callable[[str], None]) -> None:
        """Register as a holder of leases.

        Raises CountersAway if the journal, by which others know that this worker lives, cannot be created, or other
        machines cannot be told.
        """
        try:
            self._journal.say_leasing()
        except JournalFailed as problem:
            raise CountersAway(str(problem)) from None
        join(self._journal.holder)

    def _alert(self, text: str) -> None:
        _LOG.warning("%s", text)
        self._observer.tell("quota", text)

    def _told(self, shipped: Shipped) -> None:
        """Record the shipper's report, from its thread."""
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


def _meet(counters: RemoteCounters) -> None:
    with contextlib.suppress(CountersAway):
        counters.meet()


def tell_shipped(shipped: Shipped, metrics: Metrics) -> None:
    """Update the metrics with what a shipper has done."""
    while shipped.notices:
        _LOG.warning("%s", shipped.notices.pop(0))
    metrics.set(LEDGER_ROWS, shipped.rows, ("delivered",))
    metrics.set(LEDGER_ROWS, shipped.set_aside, ("set-aside",))
    metrics.set(LEDGER_ROWS, shipped.missing, ("missing",))
    metrics.set(LEDGER_PROBLEM, float(bool(shipped.problem)))


def _unread() -> Failure:
    return Failure("overloaded", "the quotas of this gateway cannot be read", 503, code="unrecorded")


def _unrecorded() -> Failure:
    return Failure("overloaded", "the ledger of this gateway cannot be written", 503, code="unrecorded")
