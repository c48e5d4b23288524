"""The counters in SQLite answer as those of the model do, and lose nothing that the ledger has."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ledger.counters.remote import RemoteCounters
from dragoman.ledger.counters.sqlite import SqliteCounters
from dragoman.ledger.counting import correct_counters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Claim, CountersAway, Facts, Lease, Seed
from dragoman.ledger.journal.writing import Journal
from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS
from dragoman.ledger.limits.seeding import leasing_holders, live_holders, read_adjusted, read_seeds, read_spent
from dragoman.ledger.reports.checking import check
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.sqlite import SqliteStore
from ledger.counting_engines import KINDS, CountingEngines
from ledger.histories import intent, settlement
from ledger.leases_model import ReferenceCounters
from profiles import examples

HOLDERS = ("a", "b", "c")
_calls = st.tuples(
    st.sampled_from(["take", "take", "take", "late", "fold", "expire", "wait"]),
    st.sampled_from(HOLDERS), st.sampled_from([4, 8]), st.integers(0, 80), st.integers(0, 60), st.integers(0, 60),
    st.sampled_from([(100, 1), (50, 2), (130, 3)]),
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(60))
@given(st.lists(_calls, max_size=30), st.integers(0, 40), st.integers(0, 40))
def test_they_answer_as_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, counting: CountingEngines, kind: str,
    calls: list[tuple[str, str, int, int, int, int, tuple[int, int]]], closed: int, used: int,
) -> None:  # fmt: skip
    clock = [1_000.0]
    seed = Seed(closed, {"b": used}, frozenset({"gone"}))
    folder = tmp_path_factory.mktemp("counters")
    model = ReferenceCounters(lambda account: seed, lambda: set(HOLDERS), lambda: clock[0])
    with counting.open(kind, folder, lambda account: seed, lambda: set(HOLDERS), lambda: clock[0], set) as ours:
        ours.greet("a")
        for number, (call, holder, account, spent, want, least, (limit, generation)) in enumerate(calls, 1):
            if call == "wait":
                clock[0] += spent * 3
            elif call == "fold":
                ours.fold(account, holder, spent)
                model.fold(account, holder, spent)
            elif call == "expire":
                ours.expire(account, holder, spent)
                model.expire(account, holder, spent)
            else:
                told = number if call == "take" else max(1, number - 5)
                claims = [
                    Claim(account, holder, told, Facts(spent, want), want, least, limit, generation, epoch)
                    for epoch in (ours.epoch, model.epoch)
                ]
                mine, theirs = ours.take(claims[0]), model.take(claims[1])
                assert (mine.outcome, mine.amount, mine.is_tight) == (theirs.outcome, theirs.amount, theirs.is_tight)
            totals = ours.totals([4, 8])
            assert totals == {account: model.accounts[account].total for account in totals}
            assert totals.keys() == model.accounts.keys()


def counters(folder: LedgerFolder, now: float = 0.0) -> SqliteCounters:
    return SqliteCounters(
        folder.root / "counters.sqlite",
        seeds=lambda accounts: read_seeds(folder, accounts),
        adjusted=lambda account: read_adjusted(folder, account),
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
    assert read_seeds(folder, [4])[4] == expected  # nothing is delivered
    shipper = Shipper(folder, SqliteStore(folder.root), batch=64)
    shipper.round()
    assert read_seeds(folder, [4])[4] == expected  # all is
    first.close()
    shipper.round()
    assert read_seeds(folder, [4])[4] == Seed(100, {second.holder: 280}, frozenset({first.holder}))
    assert read_seeds(folder, [8])[8] == Seed(0, {second.holder: 250}, frozenset({first.holder}))
    ours = counters(folder)
    ours.greet("x")
    assert claim(ours, second.holder, 1, 280, least=621).outcome == "refused"
    assert claim(ours, second.holder, 2, 280, least=620).outcome == "granted"
    second.close()
    shipper.round()  # what it left open is interrupted, and cost what was expected: nothing is known
    ours.sweep(lambda accounts: read_spent(folder, accounts))
    assert ours.totals([4]) == {4: 130}
    ours.sweep(lambda accounts: read_spent(folder, accounts))
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


def test_a_correction_reaches_live_counters_at_once_and_counts_once(tmp_path: Path) -> None:
    """Before, during and after the life of who spent it: total is always rows and corrections."""
    folder = LedgerFolder(tmp_path)
    journal = Journal(folder.journals)
    opened = intent(journal.ids, accounts=(4, 9), reserved=500)
    journal.intend(opened)
    journal.settle(settlement(opened, nano=400))
    store = SqliteStore(folder.root)
    shipper = Shipper(folder, store, batch=64)
    shipper.round()
    ours = counters(folder)
    ours.greet(journal.holder)
    assert claim(ours, journal.holder, 1, 400, least=10).outcome == "granted"
    assert claim(ours, journal.holder, 2, 400).outcome == "granted"
    for nano, total in ((250, 650), (-100, 550), (-100, 550)):
        store.adjust(opened.id, nano, reason="invoice", actor="me")
        for _ in range(2):
            correct_counters(folder, store.accounts_of(opened.id))
            assert ours.totals([4]) == {4: total} == {4: read_seeds(folder, [4])[4].total}
    assert claim(ours, "other", 1, 0, least=451).outcome == "refused"
    assert claim(ours, "other", 2, 0, least=450).outcome == "granted"
    assert claim(ours, "other", 3, 0).outcome == "granted"
    journal.close()
    shipper.round()
    ours.sweep(lambda accounts: read_spent(folder, accounts))
    assert ours.totals([4]) == {4: 550}
    store.adjust(opened.id, 7, reason="late", actor="me")  # by somebody who was killed before telling
    ours.sweep(lambda accounts: read_spent(folder, accounts))
    assert ours.totals([4]) == {4: 557}
    ours.close()
    (tmp_path / "counters.sqlite").unlink()
    ours.greet("other")
    assert claim(ours, "new", 1, 0).outcome == "granted"
    assert ours.totals([4]) == {4: 557}
    store.close()
    ours.close()


def test_tokens_that_are_set_apart_stay_so_whoever_is_silent_or_dies(tmp_path: Path) -> None:
    """A stream of three minutes, and one whose worker is killed: neither is a license to spend its tokens again."""
    folder = LedgerFolder(tmp_path)
    journal = Journal(folder.journals)
    opened = intent(journal.ids, accounts=(5,), size=10, reserved_tokens=800)  # 5: an account of tokens
    journal.intend(opened)
    ours = counters(folder)
    ours.greet(journal.holder)
    assert claim(ours, journal.holder, 1, 800, account=5).outcome == "granted"
    assert read_seeds(folder, [5])[5] == Seed(0, {journal.holder: 800})
    later = counters(folder, now=SILENT_SECONDS + 1)
    later.greet("x")
    later.sweep(lambda accounts: read_spent(folder, accounts))
    assert later.totals([5]) == {5: 800}
    shipper = Shipper(folder, SqliteStore(folder.root), batch=64)
    journal.close()
    shipper.round()
    later.sweep(lambda accounts: read_spent(folder, accounts))
    assert later.totals([5]) == {5: 800}
    assert check(folder).is_sound
    ours.close()
    later.close()


def test_while_the_ledger_is_read_for_the_ended_others_are_answered(tmp_path: Path) -> None:
    """A thousand accounts of a folder of many months take a while to read; nobody waits for it."""
    folder = LedgerFolder(tmp_path)
    ended = Journal(folder.journals)
    ended.make_ready()
    ours = counters(folder)
    ours.greet(ended.holder)
    for account in range(4, 44, 4):
        assert claim(ours, ended.holder, 1, 0, least=5, account=account).outcome == "granted"
    ended.close()
    Shipper(folder, SqliteStore(folder.root), batch=64).round()
    other = counters(folder)
    other.greet("y")
    asked: list[str] = []

    def slow(accounts: Collection[int]) -> dict[int, dict[str, int]]:
        asked.append(claim(other, "y", len(asked) + 1, 0, least=1).outcome)
        return read_spent(folder, accounts)

    ours.sweep(slow)
    assert asked == ["granted"]
    assert ours.totals([8, 40]) == {8: 0, 40: 0}
    ours.close()
    other.close()


def test_nobody_waits_for_the_dead_whose_journal_the_shipper_has(tmp_path: Path) -> None:
    """After a reboot the shipper takes the locks of all writers: the first requests are not refused for a minute."""
    folder = LedgerFolder(tmp_path)
    dead, alive = Journal(folder.journals), Journal(folder.journals)
    dead.say_leasing()
    alive.say_leasing()
    dead.close()
    shipper = Shipper(folder, SqliteStore(folder.root), batch=64)
    shipper.round()
    assert leasing_holders(folder) == {alive.holder}
    ours = counters(folder)
    ours.greet(alive.holder)
    assert claim(ours, alive.holder, 1, 0, least=5).outcome == "granted"
    ours.close()
    alive.close()


class _Lost:
    """Counters whose life ends just when a worker tells what it has used; of `Place` what that needs."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def epoch(self) -> str:
        return "one"

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease | None:
        return Lease("lost", epoch="")

    def heard(self, *holders: str) -> None:
        self.known += holders


def test_who_could_not_tell_what_it_used_is_awaited_still() -> None:
    place = _Lost()
    counters = RemoteCounters(place, None)  # type: ignore[arg-type]
    with pytest.raises(CountersAway):
        counters.greet("a", [Claim(4, "a", 1, Facts(7), 0, 0, 100, 1, "")])
    assert place.known == []


class _Cold:
    """Counters whose accounts are all cold, and a ledger with nothing; of `Place` and `Roster` what that needs."""

    def __init__(self) -> None:
        self.had_rows: list[bool] = []

    def filling(self, account: int) -> str:
        return "0 0 0"

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease | None:
        self.had_rows.append(filling is not None)
        return None if filling is None else Lease("granted", epoch=claim.epoch, was_cold=True)


def test_rows_are_read_ahead_only_in_a_life_in_which_one_was_cold() -> None:
    """Before that it may settle yet: who ends between the reading and the call has rows that were not read."""
    place = _Cold()
    counters = RemoteCounters(place, place)  # type: ignore[arg-type]
    for account, number, epoch, expected in (
        (4, 1, "one", [False, True]), (8, 1, "one", [True]), (8, 2, "one", [False, True]), (12, 1, "one", [True]),
        (16, 1, "two", [False, True]), (20, 1, "two", [True]), (24, 1, "three", [False, True]),
    ):  # fmt: skip
        place.had_rows.clear()
        assert counters.take(Claim(account, "a", number, Facts(), 1, 1, 100, 1, epoch)).outcome == "granted"
        assert place.had_rows == expected
