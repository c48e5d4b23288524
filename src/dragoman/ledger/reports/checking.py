"""Check a ledger: whether rows, sums and audit agree, and what is set aside, open or waiting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.reading import JournalReader
from dragoman.ledger.journal.writing import segments_of
from dragoman.ledger.locking import FileLock
from dragoman.ledger.prices import read_rates
from dragoman.ledger.stores.files import damaged_in
from dragoman.ledger.stores.opening import StoreReading, open_reading
from dragoman.ledger.stores.schema import GROUPS, SUMS
from dragoman.ledger.stores.values import audit_digest
from dragoman.ledger.waking import Ringer
from dragoman.money import Rates
from dragoman.types import Usage

#: The words for each kind of finding.
_MOST_TOLD: Final = 20
_ROWS: Final = f"""
SELECT started / 3600000000 AS hour, {", ".join(GROUPS[1:])},
  CAST(sum(coalesce(nano, 0) + coalesce((SELECT sum(nano) FROM :adjustment WHERE attempt = attempt.id), 0)) AS bigint),
  CAST(sum(CASE WHEN nano IS NULL THEN 1 ELSE 0 END
    - coalesce((SELECT sum(prices) FROM :adjustment WHERE attempt = attempt.id), 0)) AS bigint),
  {", ".join(f"CAST(sum(coalesce({name}, 0)) AS bigint)" for name in SUMS[2:-1])}, count(*)
FROM :attempt WHERE state <> 'reserved' GROUP BY {", ".join(str(place + 1) for place in range(len(GROUPS)))}
"""
_AUDIT: Final = "SELECT id, at, actor, action, subject, change, previous, digest FROM audit ORDER BY id"
_SUMS: Final = f"SELECT {', '.join(GROUPS)}, {', '.join(SUMS)} FROM :usage_hour"
_PRICED: Final = """
SELECT id, nano, input, output, cache_read, cache_write, price FROM :attempt
WHERE price IS NOT NULL AND nano IS NOT NULL AND state IN ('settled', 'estimated')
"""


@final
class Checked(msgspec.Struct):
    """The result of a check. `differences` are contradictions; the other fields are facts.

    Attributes:
        attempts, nano: the number of final attempts, and their cost with all adjustments.
        unpriced: the number of final attempts without a cost.
        going_on: the number of open attempts in the store.
        set_aside: the number of records that the store refused.
        damaged: files that were put aside.
        waiting: the number of attempts in journals that are not in the store yet.
    """

    attempts: int = 0
    nano: int = 0
    unpriced: int = 0
    adjustments: int = 0
    going_on: int = 0
    set_aside: list[str] = []
    damaged: list[str] = []
    waiting: int = 0
    differences: list[str] = []

    @property
    def is_sound(self) -> bool:
        """Whether there is no contradiction and nothing was set aside."""
        return not (self.differences or self.set_aside or self.damaged)

    def differ(self, text: str) -> None:
        """Record a contradiction."""
        if len(self.differences) < _MOST_TOLD:
            self.differences.append(text)


def check(folder: LedgerFolder) -> Checked:
    """Check all of the store. Changes nothing. Raises `StoreAway`: the store cannot be read."""
    found = Checked(damaged=damaged_in(folder.root))
    found.waiting = sum(journal.waiting for journal in list_journals(folder))
    with open_reading(folder) as reading:
        for name, reason in reading.select(None, "SELECT name, reason FROM set_aside ORDER BY at LIMIT 1000"):
            found.set_aside.append(f"{name}: {reason}")
        rates = {id: read_rates(body) for id, body in reading.select(None, "SELECT id, body FROM price")}
        announced = _check_audit(reading, found)
        for month in reading.months():
            _check_month(reading, month, found, rates, announced)
    return found


def _check_month(
    reading: StoreReading, month: str, found: Checked, rates: dict[int, Rates | None], announced: set[str]
) -> None:
    kept = {row[: len(GROUPS)]: row[len(GROUPS) :] for row in reading.select(month, _SUMS)}
    size = len(GROUPS)
    for row in reading.select(month, _ROWS):
        sums = kept.pop(row[:size], None)
        found.nano += row[size]
        found.unpriced += row[size + 1]
        found.attempts += row[-1]
        if sums != row[size:]:
            found.differ(f"{month}: the sums of {row[:size]} are {sums}, and their rows make {row[size:]}")
    for group in kept:
        found.differ(f"{month}: there is a sum of {group}, and no row")
    _check_spend(reading, month, found)
    for (count,) in reading.select(month, "SELECT count(*) FROM :attempt WHERE state = 'reserved'"):
        found.going_on += count
    for id, actor in reading.select(month, "SELECT id, actor FROM :adjustment"):
        found.adjustments += 1
        if actor != "shipper" and id.hex() not in announced:
            found.differ(f"{month}: adjustment {id.hex()} stands in no audit")
    for id, nano, *tokens, price in reading.select(month, _PRICED):
        named = rates.get(price)
        if named is None:
            found.differ(f"{month}: {id.hex()} was counted by prices that are not known")
        elif (expected := named.cost(Usage(*tokens))) != nano:
            found.differ(f"{month}: {id.hex()} costs {nano}, and its tokens at its prices {expected}")


def _check_spend(reading: StoreReading, month: str, found: Checked) -> None:
    """Compare what was charged to accounts with the sums of their rows and corrections."""
    kept = {row[:2]: row[2:] for row in reading.select(month, "SELECT account, holder, nano, tokens FROM :spend")}
    for row in reading.charges(month):
        charged = kept.pop(row[:2], None)
        if charged != row[2:]:
            found.differ(f"{month}: account {row[0]} is charged {charged} by {row[1]}, and the rows make {row[2:]}")
    for account, holder in kept:
        found.differ(f"{month}: account {account} is charged by {holder}, and there is no row")


def _check_audit(reading: StoreReading, found: Checked) -> set[str]:
    """Check the audit's chain. Return the ids of the adjustments in it."""
    previous = bytes(32)
    ids: set[str] = set()
    for number, entry in enumerate(reading.select(None, _AUDIT), 1):
        if entry[0] != number or entry[6] != previous or entry[7] != audit_digest(previous, entry[:6]):
            found.differ(f"audit: entry {entry[0]} is not the one that was written")
        previous = entry[7]
        if entry[3] == "adjust":
            ids.add(entry[5].partition('"id":"')[2].partition('"')[0])
    return ids


# ---------------------------------------------------------------- journals


@final
class JournalState(msgspec.Struct, frozen=True):
    """The state of a journal.

    Attributes:
        waiting: the number of attempts that are not in the store.
        going_on: the number of those that have not ended.
        size: bytes on the disk.
    """

    holder: str
    is_live: bool
    waiting: int
    going_on: int
    size: int


def list_journals(folder: LedgerFolder) -> list[JournalState]:
    """Return all journals of a folder. Changes nothing."""
    try:
        names = os.listdir(folder.journals)
    except OSError:
        return []
    found = [_state(folder.journals, holder, numbers) for holder, numbers in sorted(segments_of(names).items())]
    if any(journal.waiting and not journal.is_live for journal in found):
        # To see whether its writer lives its lock was tried; a shipper that tried it meanwhile took it for a live one.
        ringer = Ringer(folder)
        ringer.ring()
        ringer.close()
    return found


def _state(journals: Path, holder: str, numbers: list[int]) -> JournalState:
    reader = JournalReader(journals, holder)
    waiting = 0
    if not reader.is_finished:
        is_more = True
        while is_more:
            try:
                look = reader.look(numbers, is_dead=False)
            except OSError:
                break  # it is being tidied up
            waiting += len(look.rows)
            is_more = look.is_more
        waiting += reader.merging.open_attempts
    lock = FileLock(journals / f"{holder}.lock")
    try:
        is_live = lock.path.exists() and not lock.take()
    except OSError:
        is_live = False
    lock.give_back()
    size = sum(path.stat().st_size for path in journals.glob(f"{holder}.*.journal") if path.exists())
    return JournalState(holder, is_live, waiting, reader.merging.open_attempts, size)
