"""Copy one ledger into another: from the files of one machine into PostgreSQL, and back.

The copy moves nothing and overwrites nothing. It delivers attempts as a shipper does, and keeps the ids and times of
corrections and audit entries. So you may run it again, and while both ledgers are written: the second run brings what
is new. It takes a key or a quota over only if the other ledger has no change of it that this one lacks.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any, Final, final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, Store, StoreAway
from dragoman.ledger.journal.records import PriceSnapshot, Row
from dragoman.ledger.keys import KEY_FIELDS
from dragoman.ledger.stores.files import month_file, months_in, renew_month
from dragoman.ledger.stores.managing import Change, open_managed
from dragoman.ledger.stores.opening import StoreReading, open_reading, open_store
from dragoman.ledger.stores.schema import COLUMNS, GROUPS, SUMS
from dragoman.ledger.stores.values import Correction, Noted, read_row

#: Rows that are delivered at once.
_BATCH: Final = 1_024
#: How often is tried what others hold up, and seconds between.
_TURNS: Final = 5
_PAUSE: Final = 0.5
_ROWS: Final = f"SELECT {', '.join(COLUMNS)} FROM :attempt ORDER BY id"
_HAS_ANY: Final = "SELECT 1 FROM :attempt LIMIT 1"
_CORRECTIONS: Final = "SELECT id, attempt, nano, prices, reason, actor, at FROM :adjustment ORDER BY attempt, id"
_USAGE: Final = f"SELECT {', '.join((*GROUPS, *SUMS))} FROM :usage_hour"
_SPEND: Final = "SELECT account, holder, nano, tokens FROM :spend"
_ASIDE: Final = "SELECT name, reason, data, at FROM set_aside ORDER BY name"
_NOTED: Final = "SELECT at, actor, action, subject, change FROM audit ORDER BY id"
_QUOTAS: Final = "SELECT name, body FROM quota"
_KEYS: Final = f"SELECT {KEY_FIELDS} FROM virtual_key"
_DIGESTS: Final = "SELECT digest, key, until FROM key_digest"
#: Of the audit: what changes one key or one quota, which is named by its kind and its subject.
_KINDS: Final = ("key", "quota")


@final
class Copied(msgspec.Struct):
    """The result of a copy.

    Attributes:
        attempts: attempts that the source has.
        corrections, changes: corrections and audit entries that were new to the target.
        keys, quotas: keys and quotas that were taken over.
        problems: what the target refused, one sentence each.
    """

    attempts: int = 0
    corrections: int = 0
    changes: int = 0
    keys: int = 0
    quotas: int = 0
    problems: list[str] = []


def copy_ledger(source: LedgerFolder, target: LedgerFolder) -> Copied:
    """Copy into `target` what `source` has and `target` lacks.

    Raises:
        StoreAway: one of the two cannot be read or written. What was copied so far stands; run it again.
    """
    found = Copied()
    for month in months_in(source.root) if source.store is None else ():
        with suppress(sqlite3.Error):  # who reads it says what is wrong
            renew_month(month_file(source.root, month))
    with ExitStack() as stack:
        reading = stack.enter_context(open_reading(source))
        store = stack.enter_context(closing(open_store(target)))
        store.deliver((), _snapshots(reading))
        corrections = _copy_rows(reading, store, target, found)
        # A correction is announced in the audit before it is made: so they are read first, and written last.
        _copy_managed(reading, target, found)
        _take_corrections(store, corrections, found)
    return found


def _snapshots(reading: StoreReading) -> list[PriceSnapshot]:
    return [PriceSnapshot(*row) for row in reading.select(None, "SELECT id, target, source, body FROM price")]


# ---------------------------------------------------------------- attempts


def _copy_rows(reading: StoreReading, store: Store, target: LedgerFolder, found: Copied) -> list[Correction]:
    """Copy all attempts, and the sums of months whose attempts were dropped. Return the corrections."""
    corrections: list[Correction] = []
    gone = set(reading.dropped())
    with open_reading(target) as there:
        dropped = set(there.dropped())
        kept = {month for month in there.months() if any(True for _ in there.select(month, _HAS_ANY))}
        differing = [month for month in sorted(gone & (dropped | kept)) if _sums(reading, month) != _sums(there, month)]
        differing += [
            month
            for month in reading.months()
            if month in dropped - gone and _sums(reading, month) != _sums(there, month)
        ]
    for month in differing:
        found.problems.append(f"{month or 'earlier months'}: both have sums without attempts, and others: they stay")
    for month in sorted(gone - dropped - kept):
        _keep_sums(reading, target, month)
    for month in reading.months():
        if month in gone or month in dropped:
            continue
        for rows in _batches(read_row(row) for row in reading.select(month, _ROWS)):
            found.attempts += len(rows)
            _deliver(store, rows, found)
        corrections += reading.select(month, _CORRECTIONS)
    return corrections


def _sums(reading: StoreReading, month: str) -> tuple[list[Any], list[Any]]:
    """Return a month's sums by hour and by account."""
    if month in reading.dropped():
        return sorted(reading.dropped_sums(month, _USAGE)), sorted(reading.dropped_sums(month, _SPEND))
    return sorted(reading.select(month, _USAGE)), sorted(reading.select(month, _SPEND))


def _keep_sums(reading: StoreReading, target: LedgerFolder, month: str) -> None:
    at = [when for (when,) in reading.select(None, "SELECT at FROM dropped WHERE month = ?", month)]
    usage, spend = _sums(reading, month)
    with closing(open_managed(target)) as managed, managed.changing() as change:
        if not change.select("SELECT 1 FROM dropped WHERE month = ?", month):  # nobody else did it meanwhile
            change.keep_sums(month, at[0] if at else 0, usage, spend)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _deliver(store: Store, rows: Sequence[Row], found: Copied) -> None:
    """Deliver rows; halve a refused batch until the refused row is found, as a shipper does."""
    for turn in range(_TURNS):
        try:
            return store.deliver(rows)
        except Refused as problem:
            if len(rows) == 1:
                found.problems.append(f"attempt {rows[0].intent.id.hex()}: {problem}")
                return
            middle = len(rows) // 2
            _deliver(store, rows[:middle], found)
            _deliver(store, rows[middle:], found)
            return
        except StoreAway:
            if turn + 1 == _TURNS:
                raise
            time.sleep(_PAUSE)


def _take_corrections(store: Store, entries: Sequence[Correction], found: Copied) -> None:
    found.corrections = len(entries)
    for first in range(0, len(entries), _BATCH):
        batch = entries[first : first + _BATCH]
        try:
            store.take_corrections(batch)
        except Refused:
            for entry in batch:
                try:
                    store.take_corrections([entry])
                except Refused as problem:
                    found.problems.append(f"correction {entry[0].hex()}: {problem}")


# ---------------------------------------------------------------- keys, quotas, the audit


def _copy_managed(reading: StoreReading, target: LedgerFolder, found: Copied) -> None:
    """Copy keys, quotas and the audit in one transaction.

    The audit is read first: a change that is made in between is then copied again by the next run.
    """
    noted: list[Noted] = list(reading.select(None, _NOTED))
    if not noted and not any(True for _ in reading.select(None, _ASIDE)):
        return
    with closing(open_managed(target)) as managed, managed.changing() as change:
        for row in reading.select(None, _ASIDE):
            change.execute("INSERT INTO set_aside VALUES(?,?,?,?) ON CONFLICT DO NOTHING", *row)
        known = Counter(map(tuple, change.select(_NOTED)))
        new = _unknown(noted, known)
        ours = {_subject(entry) for entry in new} - {None}
        theirs = {_subject(entry) for entry in _unknown(list(known.elements()), Counter(noted))} - {None}
        for kind, name in sorted(subject for subject in ours & theirs if subject is not None):
            found.problems.append(f"{kind} {name}: it was changed in both: it stays as it is there")
        taken = [entry for entry in new if _subject(entry) not in theirs]
        change.note_all(taken)
        found.changes = len(taken)
        changed = {subject for subject in ours - theirs if subject is not None}
        found.quotas = _copy_quotas(reading, change, [name for kind, name in changed if kind == "quota"])
        found.keys = _copy_keys(reading, change, [name for kind, name in changed if kind == "key"], found)


def _unknown(entries: Sequence[Noted], known: Counter[Noted]) -> list[Noted]:
    """Return the entries that are not known yet, in their order."""
    left = Counter(known)
    new = []
    for entry in entries:
        if left[entry] > 0:
            left[entry] -= 1
        else:
            new.append(entry)
    return new


def _subject(entry: Noted) -> tuple[str, str] | None:
    """Return the kind and name of the key or quota that an entry changed, or None for another entry."""
    kind = entry[2].partition(" ")[0]
    return (kind, entry[3]) if kind in _KINDS else None


def _copy_quotas(reading: StoreReading, change: Change, names: Iterable[str]) -> int:
    wanted = set(names)
    bodies = {name: body for name, body in reading.select(None, _QUOTAS) if name in wanted}
    for name in sorted(wanted):
        change.execute("DELETE FROM quota WHERE name = ?", name)
        if name in bodies:
            change.execute("INSERT INTO quota VALUES(?,?)", name, bodies[name])
    return len(wanted)


def _copy_keys(reading: StoreReading, change: Change, names: Iterable[str], found: Copied) -> int:
    wanted = set(names)
    keys = {row[0]: row for row in reading.select(None, _KEYS) if row[0] in wanted}
    digests: dict[str, list[tuple[bytes, str, int | None]]] = {}
    for digest, key, until in reading.select(None, _DIGESTS):
        if key in wanted:
            digests.setdefault(key, []).append((digest, key, until))
    others = {digest: key for digest, key, _ in change.select(_DIGESTS) if key not in wanted}
    marks = ",".join("?" * len(KEY_FIELDS.split(",")))
    for name in sorted(keys):
        change.execute("DELETE FROM key_digest WHERE key = ?", name)
    for name in sorted(keys):
        change.execute("DELETE FROM virtual_key WHERE name = ?", name)
        change.execute(f"INSERT INTO virtual_key({KEY_FIELDS}) VALUES({marks})", *keys[name])
        for entry in digests.get(name, ()):
            if entry[0] in others:
                found.problems.append(
                    f"key {name}: key {others[entry[0]]} there has the same secret, which stays its own"
                )
            else:
                change.execute("INSERT INTO key_digest VALUES(?,?,?)", *entry)
    return len(keys)
