"""The shipper: read all journals, deliver their rows to the store, close what dead writers left open.

There is one for each state folder, also for several gateways: the process that holds `shipper.lock`. It sleeps while
nothing is written. A record that the store refuses is set aside and the others go on. While the store is away, the
journals wait.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Final, final

import msgspec

from dragoman.ledger.delivering import Delivery, Shipped
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway, Store, StoreAway, StoreDamaged, StoreRestored
from dragoman.ledger.journal.reading import JournalReader, Look
from dragoman.ledger.journal.records import PriceSnapshot, first_id
from dragoman.ledger.journal.writing import segments_of
from dragoman.ledger.locking import FileLock
from dragoman.ledger.waking import Sleeper

#: Seconds between two rounds while records come, the first and the further ones: what comes meanwhile is delivered
#: together. A round costs a millisecond of processor time, whatever it delivers. A worker that begins rings at once. Of
#: several machines one may be lost, with what it has not delivered.
_GATHER, _GATHER_ON, _GATHER_ON_SHARED = 0.25, 1.0, 0.5
#: After how long an attempt that goes on is shown as such.
_SHOWN_AFTER: Final = 60.0
#: How long segments are kept after their delivery, and seconds between two looks for older ones.
_KEEP: Final = 3_600.0
_TIDY_EVERY: Final = 10.0
#: Seconds between two looks for leases of the silent; where other machines wait for them, also while nothing is
#: written: they may have what all others are refused for.
_FOLD_EVERY: Final = 60.0
_FOLD_SHARED_EVERY: Final = 20.0
#: The same until nobody who could not reach the counters is taken for silent: a second absence is to be noticed.
_FOLD_SOON: Final = 5.0
#: Seconds in which a shipper without a gateway leaves the lock to another one.
_GIVES_WAY: Final = 0.05
#: Seconds until the next try when the store is away.
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0)


@final
class _Part(msgspec.Struct, frozen=True):
    """A part of a journal that is to be delivered. `is_last`: its writer is dead, and nothing follows."""

    reader: JournalReader
    look: Look
    is_last: bool


class _Unread(Exception):
    """A journal cannot be read. The others are delivered."""


class Shipper:
    """Delivers journals. `round` is one pass over all of them; `run` repeats it until it is stopped.

    Attributes:
        shipped: what it has done so far.
    """

    __slots__ = (
        "_batch", "_delivery", "_dropped_on", "_expires_from", "_fold", "_fold_at", "_folder", "_has_ended",
        "_is_ending", "_keep_days", "_lock", "_now", "_readers", "_sleeper", "_store", "_tell", "_tidy_at", "_unread",
        "shipped",
    )  # fmt: skip

    def __init__(
        self,
        folder: LedgerFolder,
        store: Store,
        *,
        batch: int,
        keep_days: int = 400,
        now: Callable[[], float] = time.time,
        tell: Callable[[Shipped], None] = lambda shipped: None,
        fold: Callable[[bool], None] = lambda expires: None,
    ) -> None:
        """Create it.

        Args:
            batch: the number of rows per delivery.
            keep_days: how long attempts are kept.
            tell: called after each round that did something.
            fold: called when writers have ended and all their rows are delivered, and periodically. It is repeated
                while it raises `CountersAway`. Its argument is whether leases of silent holders expire.
        """
        self._folder = folder
        self._store = store
        self._batch = batch
        self._keep_days = keep_days
        self._dropped_on = ""  # the day before which old months were dropped last
        self._now = now
        self._tell = tell
        self._fold = fold
        self._has_ended = True  # somebody has, perhaps, since anybody looked
        self._fold_at = self._tidy_at = self._expires_from = 0.0
        self._lock = FileLock(folder.shipper_lock)
        self._readers: dict[str, JournalReader] = {}
        self._sleeper: Sleeper | None = None
        self._unread = ""  # why a journal cannot be read
        self._is_ending = threading.Event()
        self.shipped = Shipped()
        self._delivery = Delivery(store, self.shipped, batch=batch)

    # ------------------------------------------------------------ its life

    @property
    def has_begun(self) -> bool:
        """Whether this process holds the lock and so delivers for all."""
        return self._sleeper is not None

    def run(self, *, parent: int | None = None) -> None:
        """Deliver until `stop`, or until the descriptor `parent` reads as closed and no writer lives.

        While the folder cannot be written, try again.
        """
        while not self._is_ending.is_set():
            try:
                self._run(parent)
                return
            except OSError as problem:
                self._say(problem.strerror or type(problem).__name__)
            if parent is None:
                self._is_ending.wait(_PAUSES[-1])
            elif select.select((parent,), (), (), _PAUSES[-1])[0]:
                return

    def _run(self, parent: int | None) -> None:
        self._folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._has_lock(parent):
            return
        try:
            self._sleeper = sleeper = Sleeper(self._folder)
            try:
                self._deliver_on(sleeper, parent)
            finally:
                self._sleeper = None
                sleeper.close()
        finally:
            self._store.close()
            for reader in self._readers.values():
                reader.close()
            self._lock.give_back()

    def _has_lock(self, parent: int | None) -> bool:
        """Wait for the lock. Return False if the parent ends before: who has the lock delivers for its workers too.

        Raises OSError: there is no lock, or no room for a thread.
        """
        lock, is_left = self._lock, threading.Event()
        if parent is None or lock.take():
            return lock.take(waits=True)
        taken, told = os.pipe()

        def wait() -> None:
            with contextlib.suppress(OSError):
                lock.take(waits=True)
            if is_left.is_set():
                lock.give_back()
            os.close(told)

        try:
            threading.Thread(target=wait, name="dragoman-lock", daemon=True).start()
            ready = select.select((taken, parent), (), ())[0]
            if taken in ready or select.select((taken,), (), (), _PAUSES[-1])[0]:  # both may have ended together
                return lock.take()
        except RuntimeError as problem:
            os.close(told)
            raise OSError(str(problem)) from None
        finally:
            os.close(taken)
        is_left.set()
        return False

    def stop(self) -> None:
        """Make a last round and end. Call it from another thread."""
        self._is_ending.set()
        if (sleeper := self._sleeper) is not None:
            sleeper.ring()

    def _deliver_on(self, sleeper: Sleeper, parent: int | None) -> None:
        failures = 0
        gathers_on = _GATHER_ON if self._folder.store is None else _GATHER_ON_SHARED
        is_orphan = was_busy = False
        while True:
            is_last = self._is_ending.is_set()
            count = self._tried_round()
            if (not count and is_last) or (count == 0 and is_orphan and not self._has_writers()):
                return
            failures = failures + 1 if count is None else 0
            if is_orphan and failures > len(_PAUSES) and not self._has_living():
                return  # the next shipper of the folder delivers what waits
            if is_orphan and self._has_given_way():
                return
            pause: float | None = gathers_on if was_busy and count and not is_last else _GATHER
            was_busy = bool(count)
            if count is None:
                pause = _PAUSES[min(failures, len(_PAUSES)) - 1]
            elif not count and not is_orphan:
                sleeper.will_sleep()  # from here on workers ring, so this look is the last one
                if not self._tried_round() and not self._is_ending.is_set():
                    pause = self._due_in()
            if sleeper.sleep(pause, *(() if parent is None or is_orphan else (parent,))):
                is_orphan = True  # the parent is gone: this ends when the last worker has
            sleeper.wakes()

    def _has_given_way(self) -> bool:
        """Let another shipper have the lock if one waits for it, since its gateway lives. Return whether one has it.

        Raises OSError.
        """
        self._lock.give_back()
        time.sleep(_GIVES_WAY)
        return not self._lock.take()

    def _tried_round(self) -> int | None:
        """Make a round. Return None if not everything could be delivered."""
        try:
            return self.round()
        except _Unread as problem:  # it may stay so: the silent are looked for nevertheless
            self._say(str(problem))
            return None
        except (StoreAway, OSError) as problem:
            self._say(str(problem))
        except Exception as problem:  # a fault of ours must not end the delivery; its message may quote a record
            self._say(f"{type(problem).__name__} in the shipper")
        self._expires_from = math.inf
        return None

    def _has_writers(self) -> bool:
        return any(not reader.is_finished for reader in self._readers.values())

    def _has_living(self) -> bool:
        """Return whether a writer lives, even if the store was away from the beginning. Raises OSError."""
        for holder in self._journals():
            if holder not in self._readers:
                self._readers[holder] = JournalReader(self._folder.journals, holder)
        return any(not reader.is_finished and not reader.is_dead() for reader in self._readers.values())

    def _due_in(self) -> float | None:
        """Return the seconds until an open attempt is due to be shown or leases are due to be checked, or None if
        neither is.
        """
        due = [
            first / 1_000_000 + _SHOWN_AFTER - self._now()
            for reader in self._readers.values()
            if (first := reader.merging.first_due()) is not None
        ]
        if self._folder.store is not None:
            due.append(self._fold_at - time.monotonic())
        return max(0.0, min(due)) + _GATHER if due else None

    # ------------------------------------------------------------ one pass

    def round(self) -> int:
        """Deliver everything that the journals have. Return the number of records read.

        Raises:
            StoreAway, OSError, _Unread: not everything is delivered; the next round continues where this one stopped.
        """
        oldest = time.strftime("%Y-%m-%d", time.gmtime(self._now() - self._keep_days * 86_400))
        if oldest != self._dropped_on:
            self._store.drop_before(oldest)
            self._dropped_on = oldest
            self._delivery.oldest_id = first_id(oldest[:7])
        before = self.shipped.rows + self.shipped.set_aside
        tidies = time.monotonic() >= self._tidy_at
        if tidies:
            self._tidy_at = time.monotonic() + _TIDY_EVERY
        journals = self._journals()
        if time.monotonic() >= self._fold_at:
            self._look_back(journals)
        count = self._ship(journals)
        missing, notices = self._store.end_look_back()
        self.shipped.missing += missing
        self.shipped.notices += notices
        for holder, numbers in journals.items() if tidies else ():
            if self._readers[holder].tidy(numbers, _KEEP):
                del self._readers[holder]
        if self._has_ended or time.monotonic() >= self._fold_at:
            self._fold_leases()
        if self._unread:
            raise _Unread(self._unread)
        if notices or self.shipped.problem or self.shipped.rows + self.shipped.set_aside != before:
            self._say("")
        return count

    def _look_back(self, journals: dict[str, list[int]]) -> None:
        """If the store was restored from an older state, deliver again what the journals have. Raises StoreAway."""
        try:
            self._store.look_back()
        except StoreRestored:
            self._read_all_again(journals.keys())
            raise

    def _read_all_again(self, holders: Set[str]) -> None:
        for holder in holders - self._readers.keys():
            self._readers[holder] = JournalReader(self._folder.journals, holder)
        for each in self._readers.values():
            each.forget()

    def _fold_leases(self) -> None:
        """Fold leases. Holders that seem silent because the counters were away for all have time to report first."""
        now = time.monotonic()
        if now > self._fold_at + _FOLD_SHARED_EVERY:
            self._expires_from = now + _FOLD_SHARED_EVERY
        try:
            self._fold(now >= self._expires_from)
        except CountersAway as problem:
            raise StoreAway(str(problem)) from None
        self._has_ended, now = False, time.monotonic()
        self._expires_from = min(self._expires_from, now + _FOLD_SHARED_EVERY)
        if self._folder.store is None:
            self._fold_at = now + _FOLD_EVERY
        else:
            self._fold_at = now + (_FOLD_SOON if now < self._expires_from else _FOLD_SHARED_EVERY)

    def _journals(self) -> dict[str, list[int]]:
        try:
            return segments_of(os.listdir(self._folder.journals))
        except FileNotFoundError:
            return {}

    def _ship(self, journals: dict[str, list[int]]) -> int:
        """Deliver what the journals have. Rows of several journals share a batch, because each batch waits for the
        disk.

        If it fails, whatever was read and is not in the store is read again. None waits for one that cannot be read.
        """
        self._unread, count, size = "", 0, 0
        parts: list[_Part] = []
        for holder in journals.keys() - self._readers.keys():
            self._readers[holder] = JournalReader(self._folder.journals, holder)
        going_on = [each for each in map(self._readers.__getitem__, journals) if not each.is_finished]
        try:
            dead = {each.holder for each in going_on if self._is_dead(each)}
            if dead:  # then no segment of theirs can come any more
                journals = journals | self._journals()
            for reader in going_on:
                try:
                    for part in self._parts(reader, journals[reader.holder], is_dead=reader.holder in dead):
                        count += part.look.count
                        size += len(part.look.rows)
                        parts.append(part)
                        if size >= self._batch or part.look.is_more:
                            self._give(parts)
                            parts, size = [], 0
                except _Unread as problem:
                    self._unread = str(problem)
                    parts = [part for part in parts if part.reader is not reader]
                    self._begin_anew(reader)
            self._give(parts)
        except StoreDamaged:
            self._read_all_again(journals.keys())
            raise
        except BaseException:
            for each in going_on:
                self._begin_anew(each)
            raise
        return count

    def _is_dead(self, reader: JournalReader) -> bool:
        try:
            return reader.is_dead()
        except OSError as problem:
            self._unread = _why(reader, problem)
            return False

    def _begin_anew(self, reader: JournalReader) -> None:
        self._readers[reader.holder] = JournalReader(self._folder.journals, reader.holder)
        reader.close()

    def _parts(self, reader: JournalReader, numbers: list[int], *, is_dead: bool) -> Iterator[_Part]:
        """Yield the parts of one journal. Deliver each before the next. Raises _Unread."""
        while True:
            try:
                look = reader.look(numbers, is_dead=is_dead)
            except Exception as problem:
                raise _Unread(_why(reader, problem)) from None
            if not look.is_more:
                now, merging = int(self._now() * 1_000_000), reader.merging
                shown = int(_SHOWN_AFTER * 1_000_000)
                look.rows += merging.interrupted(now) if is_dead else merging.going_on(now - shown)
            yield _Part(reader, look, is_dead and not look.is_more)
            if not look.is_more:
                return

    def _give(self, parts: Sequence[_Part]) -> None:
        rows = [row for part in parts for row in part.look.rows]
        snapshots: list[PriceSnapshot] = []
        for part in parts:
            merging = part.reader.merging
            snapshots += merging.snapshots
            merging.snapshots = []
        self._delivery.give(rows, snapshots)
        for part in parts:
            orphans, part.reader.merging.orphans = part.reader.merging.orphans, []
            self._delivery.give_odd(orphans, part.look.odd)
            part.reader.delivered(is_finished=part.is_last)
            self._has_ended = self._has_ended or part.is_last

    def _say(self, problem: str) -> None:
        self.shipped.problem = problem
        self._tell(self.shipped)


def _why(reader: JournalReader, problem: Exception) -> str:
    """Return why a journal cannot be read. It quotes no record."""
    return f"journal {reader.holder}: {getattr(problem, 'strerror', '') or type(problem).__name__}"
