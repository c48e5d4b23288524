"""The counters in SQLite answer as those of the model do, and lose nothing that the ledger has."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Claim, CountersAway, Facts, Lease, Seed
from dragoman.ledger.journal import Journal
from dragoman.ledger.leases import LEASE_SECONDS
from dragoman.ledger.seeding import leasing_holders, live_holders, read_seed, read_spent
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.sqlite import SqliteStore
from ledger.histories import intent, settlement
from ledger.leases_model import ReferenceCounters

HOLDERS = ("a", "b", "c")
_calls = st.tuples(
    st.sampled_from(["take", "take", "take", "late", "fold", "expire", "wait"]),
    st.sampled_from(HOLDERS), st.sampled_from([4, 8]), st.integers(0, 80), st.integers(0, 60), st.integers(0, 60),
    st.sampled_from([(100, 1), (50, 2), (130, 3)]),
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(_calls, max_size=30), st.integers(0, 40), st.integers(0, 40))
def test_they_answer_as_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, str, int, int, int, int, tuple[int, int]]],
    closed: int, used: int,
) -> None:  # fmt: skip
    clock = [1_000.0]
    seed = Seed(closed, {"b": used}, frozenset({"gone"}))
    ours = SqliteCounters(
        tmp_path_factory.mktemp("counters") / "counters.sqlite",
        seed=lambda account: seed, live=lambda: set(HOLDERS), leasing=set, now=lambda: clock[0],
    )  # fmt: skip
    model = ReferenceCounters(lambda account: seed, lambda: set(HOLDERS), lambda: clock[0])
    ours.greet("a")
    for number, (kind, holder, account, spent, want, least, (limit, generation)) in enumerate(calls, 1):
        if kind == "wait":
            clock[0] += spent * 3
        elif kind == "fold":
            ours.fold(account, holder, spent)
            model.fold(account, holder, spent)
        elif kind == "expire":
            ours.expire(account, holder, spent)
            model.expire(account, holder, spent)
        else:
            told = number if kind == "take" else max(1, number - 5)
            claims = [
                Claim(account, holder, told, Facts(spent, want), want, least, limit, generation, epoch)
                for epoch in (ours.epoch, model.epoch)
            ]
            mine, theirs = ours.take(claims[0]), model.take(claims[1])
            assert (mine.outcome, mine.amount, mine.is_tight) == (theirs.outcome, theirs.amount, theirs.is_tight)
        totals = ours.totals([4, 8])
        assert totals == {account: model.accounts[account].total for account in totals}
        assert totals.keys() == model.accounts.keys()
    ours.close()


def counters(folder: LedgerFolder, now: float = 0.0) -> SqliteCounters:
    return SqliteCounters(
        folder.root / "counters.sqlite",
        seed=lambda account: read_seed(folder, account),
        live=lambda: live_holders(folder),
        leasing=lambda: leasing_holders(folder),
        now=lambda: now,
    )


def claim(counters: SqliteCounters, holder: str, number: int, used: int, least: int = 0, account: int = 4) -> Lease:
    return counters.take(Claim(account, holder, number, Facts(used), least, least, 1_000, 1, counters.epoch))


def test_a_file_that_is_lost_is_filled_again_from_rows_and_journals(tmp_path: Path) -> None:
    """T6, T24: nobody begins at zero."""
    folder = LedgerFolder(tmp_path)
    first, second = Journal(folder.journals), Journal(folder.journals)
    for journal, nano in ((first, 100), (second, 30)):
        opened = intent(journal.ids, accounts=(4,), reserved=500)
        journal.intend(opened)
        journal.settle(settlement(opened, nano=nano))
    goes_on = intent(second.ids, accounts=(4, 8), reserved=250)
    second.intend(goes_on)
    expected = Seed(0, {first.holder: 100, second.holder: 280})
    assert read_seed(folder, 4) == expected  # nothing is delivered
    shipper = Shipper(folder, SqliteStore(folder.root), batch=64)
    shipper.round()
    assert read_seed(folder, 4) == expected  # all is
    first.close()
    shipper.round()
    assert read_seed(folder, 4) == Seed(100, {second.holder: 280}, frozenset({first.holder}))
    assert read_seed(folder, 8) == Seed(0, {second.holder: 250}, frozenset({first.holder}))
    ours = counters(folder)
    ours.greet("x")
    assert claim(ours, second.holder, 1, 280, least=621).outcome == "refused"
    assert claim(ours, second.holder, 2, 280, least=620).outcome == "granted"
    second.close()
    shipper.round()  # what it left open is interrupted, and cost what was expected: nothing is known
    ours.sweep(lambda account: read_spent(folder, account))
    assert ours.totals([4]) == {4: 130}
    ours.sweep(lambda account: read_spent(folder, account))
    assert ours.totals([4]) == {4: 130}
    assert claim(ours, second.holder, 3, 280).outcome == "stale"  # a late call of the ended
    ours.close()


def test_a_new_life_waits_for_who_may_hold_leases_of_the_one_before(tmp_path: Path) -> None:
    """T24, and section 19: an epoch is one life."""
    folder = LedgerFolder(tmp_path)
    one, other = Journal(folder.journals), Journal(folder.journals)
    one.say_leasing()
    other.say_leasing()
    ours = counters(folder)
    first = ours.greet("nobody")
    (folder.root / "counters.sqlite").unlink()
    lost = claim(ours, one.holder, 1, 0, least=5)
    assert (lost.outcome, lost.epoch == first) == ("lost", False)
    assert claim(ours, one.holder, 2, 0, least=5).outcome == "settling"
    ours.greet(other.holder)
    assert claim(ours, one.holder, 3, 0, least=5).outcome == "granted"
    (folder.root / "counters.sqlite").unlink()
    assert claim(ours, one.holder, 4, 0).outcome == "lost"
    assert claim(ours, one.holder, 5, 0).outcome == "settling"
    later = counters(folder, now=LEASE_SECONDS + 1)
    later.greet("nobody")
    assert claim(later, one.holder, 6, 0, least=5).outcome == "granted"  # the other's leases have ended by themselves
    for each in (ours, later):
        each.close()
    one.close()
    other.close()


def test_a_damaged_file_is_another_life_and_a_locked_one_is_away(tmp_path: Path) -> None:
    folder = LedgerFolder(tmp_path)
    ours = counters(folder)
    first = ours.greet("x")
    ours.close()
    (tmp_path / "counters.sqlite").write_bytes(b"nothing that SQLite wrote" * 200)
    with pytest.raises(CountersAway):
        ours.greet("x")
    assert ours.greet("x") not in ("", first)
    other = counters(folder)
    other.greet("y")
    connection = other._opened()
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(CountersAway):
        ours.greet("x")
    connection.execute("ROLLBACK")
    assert ours.greet("x")
    ours.close()
    other.close()
