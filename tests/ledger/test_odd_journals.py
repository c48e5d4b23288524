"""What can never be a row, and what comes at an odd time: set aside, told, and nothing else waits. In each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Store
from dragoman.ledger.journal.records import AttemptIds, first_id, started_of
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.limits.seeding import read_spent
from dragoman.ledger.reports.checking import Checked, check, list_journals
from dragoman.ledger.reports.usage import read_usage
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.files import month_of
from ledger.engines import KINDS, Engines, now
from ledger.histories import START, intent, settlement

MONTH = 31 * 86_400 * 1_000_000
OLD = START - 14 * MONTH  # of a month that is not kept any more
Opened = tuple[LedgerFolder, Store]


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, engines: Engines, tmp_path: Path) -> Iterator[Opened]:
    with engines.open(request.param, tmp_path / "ledger") as (folder, store):
        yield folder, store


def write(folder: LedgerFolder, times: list[int], **odd: object) -> list[bytes]:
    """A writer that has ended: an attempt at each of these times, the middle one with an odd settlement."""
    journal = Journal(folder.journals)
    ids = AttemptIds(int(journal.holder, 16))
    found = []
    for number, started in enumerate(times):
        began = intent(ids, number, started=started, accounts=(4,))
        journal.intend(began)
        journal.settle(settlement(began, **(odd if number == len(times) // 2 else {})))  # type: ignore[arg-type]
        found.append(began.id)
    journal.close()
    return found


def ship(opened: Opened, *, clock: float = 0.0) -> tuple[Shipper, Checked]:
    """One round of a new shipper. `clock`: Unix seconds, 0: that of all tests."""
    folder, store = opened
    shipper = Shipper(folder, store, batch=8, keep_days=400, now=(lambda: clock) if clock else now)
    shipper.round()
    for reader in shipper._readers.values():
        reader.close()
    assert all(journal.waiting == 0 for journal in list_journals(folder))
    return shipper, check(folder)


@pytest.mark.parametrize("odd", [{"reason": "the provider's own words"}, {"nano": -1}, {"input": 2**62 * 2}], ids=str)
def test_a_poison_record_is_set_aside_and_nothing_waits_for_it(opened: Opened, odd: dict[str, object]) -> None:
    good = [write(opened[0], [START + number for number in range(20)]) for _ in range(2)]
    bad = write(opened[0], [START + number for number in range(21)], **odd)
    shipper, found = ship(opened)
    assert (found.attempts, found.nano, found.differences) == (60, 60 * 7, [])
    assert [line.partition(":")[0] for line in found.set_aside] == [bad[10].hex()]
    assert "words" not in found.set_aside[0] and shipper.shipped.problem == ""
    assert len(good[0] + good[1]) == 40
    assert ship(opened)[1] == found  # a further shipper finds nothing new


def test_what_a_clock_of_1970_dated_counts_and_is_told(opened: Opened) -> None:
    odd = write(opened[0], [0, 5_000, 10_000])
    write(opened[0], [START, START + 1_000])
    _, found = ship(opened)
    assert (found.attempts, found.nano, found.differences) == (5, 35, [])
    assert sorted(line.partition(":")[0] for line in found.set_aside) == sorted(id.hex() for id in odd)
    assert all("dated before what is kept" in line for line in found.set_aside)
    opened[1].drop_before("2025-10-20")  # as the next day does
    later = write(opened[0], [1_000])
    _, after = ship(opened)
    assert (after.attempts, after.differences) == (2, [])
    assert {line.partition(":")[0] for line in after.set_aside} == {id.hex() for id in (*odd, *later)}
    [used] = read_usage(opened[0], ())
    assert (used.attempts, used.nano) == (5, 35)  # sums stay when attempts go


def test_a_late_journal_of_a_month_that_is_gone_is_set_aside(opened: Opened) -> None:
    write(opened[0], [OLD, START])
    ship(opened)
    opened[1].drop_before("2025-10-20")
    late = write(opened[0], [OLD + 1_000, OLD + 2_000])
    fresh = write(opened[0], [START + 1_000, START + 2_000])
    _, found = ship(opened)
    assert (found.attempts, found.differences) == (3, [])
    assert {line.partition(":")[0] for line in found.set_aside} >= {id.hex() for id in late}
    assert not any(id.hex() in line for line in found.set_aside for id in fresh)


def test_a_shipper_whose_clock_stands_at_1970_delivers_all_and_drops_nothing(opened: Opened) -> None:
    write(opened[0], [START - 5 * MONTH, START])
    _, found = ship(opened, clock=5.0)
    assert (found.attempts, found.set_aside, found.differences) == (2, [], [])
    _, found = ship(opened)
    assert (found.attempts, found.set_aside) == (2, [])
    folder = opened[0]
    if folder.store is None:
        assert read_spent(folder, (4,))[4]


@pytest.mark.parametrize("month", ["1960-01", "1970-01", "1970-02", "2026-11", "9999-12"])
def test_the_lowest_id_of_a_month(month: str) -> None:
    lowest = first_id(month)
    assert month_of(lowest) == max(month, "1970-01")
    if started_of(lowest):
        assert month_of((int.from_bytes(lowest, "big") - 1).to_bytes(16, "big")) < month
