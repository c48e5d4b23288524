"""L15: every store takes the same, refuses the same, and then holds the same."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, Store
from dragoman.ledger.journal.records import STATES, AttemptIds, Intent, PriceSnapshot, Row
from dragoman.ledger.reports.checking import check
from dragoman.ledger.reports.exporting import export_csv
from dragoman.ledger.reports.usage import GROUPINGS, read_usage
from dragoman.ledger.stores.opening import open_store
from dragoman.ledger.stores.schema import COLUMNS
from ledger.engines import KINDS, Engines, alike, dump
from ledger.histories import HOLDER, START, intent, settlement

STATE, NANO = COLUMNS.index("state"), COLUMNS.index("nano")
MONTH = 31 * 86_400 * 1_000_000
#: How an attempt may come: as open, or ended in each way, at a cost that is unknown, nothing, and something.
ENDS: list[tuple[str, int | None]] = [
    ("reserved", None),
    *((state, nano) for state in STATES if state != "reserved" for nano in (None, 0, 7)),
]


class Pair:
    """The stores side by side: what is done to one is done to all, and all must answer the same."""

    def __init__(self, stores: Sequence[tuple[LedgerFolder, Store]]) -> None:
        self.stores = stores

    def do(self, name: str, *values: Any, **named: Any) -> object:
        """What all of them answer."""
        answers = [alike(lambda store=store: getattr(store, name)(*values, **named)) for _, store in self.stores]
        assert all(answer == answers[0] for answer in answers), (name, answers)
        return answers[0]

    def give(self, rows: Sequence[Row]) -> int:
        """Deliver as the shipper does: what is refused is halved until it is found. How many were refused."""
        refused = {_give(store, rows) for _, store in self.stores}
        assert len(refused) == 1
        return refused.pop()

    def same(self) -> dict[str, list[tuple[Any, ...]]]:
        """What all of them hold, which is sound."""
        for folder, _ in self.stores:
            assert check(folder).differences == []
        dumps = [dump(folder) for folder, _ in self.stores]
        for other in dumps[1:]:
            assert other == dumps[0]
        return dumps[0]


def _give(store: Store, rows: Sequence[Row]) -> int:
    try:
        store.deliver(rows)
        return 0
    except Refused:
        if len(rows) == 1:
            return 1
        middle = len(rows) // 2
        return _give(store, rows[:middle]) + _give(store, rows[middle:])


@pytest.fixture
def stores(engines: Engines, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair([stack.enter_context(engines.open(kind, tmp_path / kind)) for kind in KINDS])


def row(opened: Intent, state: str, nano: int | None, **more: Any) -> Row:
    return Row(HOLDER, opened, None if state == "reserved" else settlement(opened, state, nano, **more))


# ---------------------------------------------------------------- one attempt, told twice


@pytest.mark.parametrize("first", ENDS, ids=str)
def test_an_attempt_is_what_was_said_first_of_its_end(stores: Pair, first: tuple[str, int | None]) -> None:
    ids = AttemptIds(1)
    opened = [intent(ids, number, accounts=(4 * number, 4 * number + 1)) for number in range(len(ENDS))]
    stores.do("deliver", [row(each, *first) for each in opened])
    for each, second in zip(opened, ENDS, strict=True):
        stores.do("deliver", [row(each, *second)] * 2)
    found = stores.same()
    late = {entry[1]: entry[2:5] for entry in found.get("adjustment 2026-11", [])}
    spent: dict[int, int] = {}
    for account, _, cost, _ in found["spend"]:
        spent[account] = spent.get(account, 0) + cost
    for number, (stands, second) in enumerate(zip(found["attempt 2026-11"], ENDS, strict=True)):
        state, nano = second if first[0] == "reserved" else first
        assert (stands[STATE], stands[NANO]) == (state, nano)
        is_late = first[0] == "interrupted" and second[0] not in ("reserved", "interrupted") and second[1] is not None
        moved = is_late and first[1] != second[1]
        difference = ((second[1] or 0) - (first[1] or 0), int(first[1] is None), "late")
        assert late.get(opened[number].id) == (difference if moved else None)
        total = (second[1] if moved else nano) or 0
        assert [spent.get(4 * number + more) for more in (0, 1)] == [None if state == "reserved" else total] * 2


# ---------------------------------------------------------------- what a row may hold

MOST = 2**63 - 1
TEXTS = ("", "é☃𝄞", "a" * 5_000, "'; DROP TABLE attempt; --", '{a,b}\\"', "%s $1 ?")
#: Of an intent, then of a settlement: values that are taken, and values that are not.
OF_INTENTS: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
    **dict.fromkeys(
        ("size", "ordinal", "reserved", "expected", "reserved_tokens"), ((-1, 0, MOST), (2**63, 2**70, -(2**63) - 1))
    ),
    **dict.fromkeys(("key", "owner", "team", "route", "target", "request", "client_request"), (TEXTS, ())),
}
OF_SETTLEMENTS: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
    **dict.fromkeys(("nano", "input", "output", "charged_tokens"), ((None, 0, MOST), (-1, 2**63, 2**70))),
    **dict.fromkeys(("cache_read", "cache_write", "reasoning", "status"), ((None, -1, 0, MOST), (2**63, 2**70))),
    "price": ((None,), (2**63, 2**70)),
    "reason": (("", "late", "cancelled"), ("the provider's own words", "LATE")),
    "state": (("settled", "void"), ("gone", "")),
    "provider_request": (TEXTS, ()),
}


@pytest.mark.parametrize("name", [*OF_INTENTS, *OF_SETTLEMENTS])
def test_a_value_is_taken_as_it_is_or_refused(stores: Pair, name: str) -> None:
    ids = AttemptIds(1)
    taken, refused = OF_INTENTS[name] if name in OF_INTENTS else OF_SETTLEMENTS[name]
    for number, value in enumerate((*taken, *refused)):
        began = {"team": f"team-{number}"} | ({name: value} if name in OF_INTENTS else {})
        ended = {"state": "settled", "nano": 7} | ({name: value} if name in OF_SETTLEMENTS else {})
        good, tried = intent(ids, number), intent(ids, number, **began)
        rows = [Row(HOLDER, good, settlement(good)), Row(HOLDER, tried, settlement(tried, **ended))]
        assert stores.do("deliver", rows) == (None if number < len(taken) else "Refused"), value
    rows_now = stores.same()["attempt 2026-11"]
    place = COLUMNS.index(name)
    assert [stands[place] for stands in rows_now[1::2]] == list(taken)
    assert len(rows_now) == 2 * len(taken)


@pytest.mark.parametrize("size", [0, 1, 15, 17])
def test_an_id_has_sixteen_bytes(stores: Pair, size: int) -> None:
    opened = intent(AttemptIds(1))
    id = (opened.id * 2)[:size]
    opened = Intent(id, *[getattr(opened, name) for name in Intent.__struct_fields__[1:]])
    assert stores.do("deliver", [row(opened, "settled", 7)]) == "Refused"
    assert stores.do("settle", settlement(opened)) is False


@pytest.mark.parametrize("name", ["nano", "input", "cache_read"])
def test_sums_hold_what_fits_and_refuse_what_does_not(stores: Pair, name: str) -> None:
    ids = AttemptIds(1)
    opened = [intent(ids, accounts=(4,)) for _ in range(4)]
    rows = [Row(HOLDER, each, settlement(each, **({"nano": 1, name: 2**62}))) for each in opened]
    assert stores.give(rows) == 3
    assert stores.give(rows) == 3
    stores.same()


# ---------------------------------------------------------------- months


@pytest.mark.parametrize(
    ("started", "month"),
    [
        (0, "1970-01"), (START, "2026-11"), (1_796_083_199_999_999, "2026-11"), (1_796_083_200_000_000, "2026-12"),
        (1_767_225_599_999_000, "2025-12"), (1_767_225_600_000_000, "2026-01"), (951_782_400_000_000, "2000-02"),
        (253_402_300_799_000_000, "9999-12"), (253_402_300_800_000_000, "9999-12"), ((2**48 - 1) * 1_000, "9999-12"),
    ],
)  # fmt: skip
def test_an_attempt_is_of_the_month_of_its_id(stores: Pair, started: int, month: str) -> None:
    opened = intent(AttemptIds(1), started=started)
    stores.do("deliver", [row(opened, "settled", 7)])
    stores.do("adjust", opened.id, 3, reason="invoice", actor="me")
    found = stores.same()
    assert f"attempt {month}" in found and f"adjustment {month}" in found and f"usage_hour {month}" in found


def test_old_months_go_and_their_sums_stay(stores: Pair) -> None:
    old, new = intent(AttemptIds(1), accounts=(4,)), intent(AttemptIds(2), started=START + MONTH, accounts=(4,))
    stores.do("deliver", [row(old, "settled", 7), row(new, "settled", 5)])
    before = stores.same()
    assert [stores.do("drop_before", day) for day in ("2026-11-30", "2026-12-01", "2026-12-01")] == [
        [],
        ["2026-11"],
        [],
    ]
    after = stores.same()
    assert "attempt 2026-11" not in after
    assert (after["sums"], after["spend"]) == (before["sums"], before["spend"])
    assert stores.do("deliver", [row(old, "settled", 7)]) == "Refused"
    assert stores.give([row(old, "settled", 7), row(new, "settled", 5)]) == 1
    assert stores.same() == after


def test_a_month_that_another_has_dropped_is_refused(stores: Pair) -> None:
    opened = intent(AttemptIds(1))
    stores.do("deliver", [row(opened, "settled", 7)])
    for folder, _ in stores.stores:
        other = open_store(folder)
        assert other.drop_before("2027-01-01") == ["2026-11"]
        other.close()
    later = intent(AttemptIds(2))
    assert stores.do("deliver", [row(later, "settled", 7)]) == "Refused"
    assert stores.do("settle", settlement(opened)) == "Refused"


# ---------------------------------------------------------------- settling, correcting, setting aside


@pytest.mark.parametrize("first", [None, *ENDS], ids=str)
def test_a_settlement_without_its_intent_settles_what_stands(
    stores: Pair, first: tuple[str, int | None] | None
) -> None:
    opened = intent(AttemptIds(1), accounts=(4,))
    if first is not None:
        stores.do("deliver", [row(opened, *first)])
    assert [stores.do("settle", settlement(opened, nano=9)) for _ in range(3)] == [first is not None] * 3
    found = stores.same()
    if first is not None and first[0] == "reserved":
        assert found["attempt 2026-11"][0][NANO] == 9


@pytest.mark.parametrize("nano", [None, 0, 7])
def test_no_credit_is_more_than_the_attempt_cost(stores: Pair, nano: int | None) -> None:
    """It would be budget that nobody granted, and who may correct may be bound to one team."""
    opened = intent(AttemptIds(1), accounts=(4,))
    stores.do("deliver", [row(opened, "settled", nano)])
    cost = nano or 0
    assert stores.do("adjust", opened.id, -cost - 1, reason="a", actor="me") == "Refused"
    assert stores.do("adjust", opened.id, 5, reason="b", actor="me") is True
    assert stores.do("adjust", opened.id, -cost - 6, reason="c", actor="me") == "Refused"
    assert stores.do("adjust", opened.id, -cost - 5, reason="d", actor="me") is True
    assert stores.do("adjust", opened.id, -1, reason="e", actor="me") == "Refused"
    assert len(stores.same()["audit"]) == 2


@pytest.mark.parametrize("nano", [None, 0, 7])
def test_a_correction_moves_the_sums_once(stores: Pair, nano: int | None) -> None:
    opened, going = intent(AttemptIds(1), accounts=(4, 8)), intent(AttemptIds(2))
    stores.do("deliver", [row(opened, "settled", nano), row(going, "reserved", None)])
    assert stores.do("adjust", opened.id, 100, reason="invoice", actor="me") is True
    assert stores.do("adjust", opened.id, 100, reason="invoice", actor="me") is False
    assert stores.do("adjust", opened.id, -30, reason="credit", actor="me") is True
    for id, refusal in ((going.id, "Refused"), (bytes(16), "Missing")):
        assert stores.do("adjust", id, 1, reason="", actor="me") == refusal
    found = stores.same()
    assert [entry[7:9] for entry in found["sums"]] == [((nano or 0) + 70, 0)]
    assert len(found["audit"]) == 2


def test_corrections_of_another_store_are_taken_as_they_stand(stores: Pair) -> None:
    ended, unpriced, going = intent(AttemptIds(1), accounts=(4,)), intent(AttemptIds(2)), intent(AttemptIds(3))
    stores.do("deliver", [row(ended, "settled", 7), row(unpriced, "settled", None), row(going, "reserved", None)])
    entries = [
        (b"a" * 16, ended.id, 5, 0, "invoice", "me", 1), (b"b" * 16, ended.id, -3, 0, "credit", "me", 2),
        (b"c" * 16, unpriced.id, 40, 1, "late", "shipper", 3),
    ]  # fmt: skip
    for _ in range(2):
        assert stores.do("take_corrections", entries) is None
        assert stores.do("take_corrections", []) is None
    for wrong in (going.id, bytes(16), intent(AttemptIds(4), started=START - 3 * MONTH).id):
        assert stores.do("take_corrections", [entries[0], (b"d" * 16, wrong, 1, 0, "", "me", 4)]) == "Refused"
    found = [dump(folder) for folder, _ in stores.stores]
    assert all(each == found[0] for each in found)
    assert sorted(entry[:3] for entry in found[0]["adjustment 2026-11"]) == [entry[:3] for entry in entries]
    assert sum(entry[7] for entry in found[0]["sums"]) == 7 + 5 - 3 + 40
    assert sum(entry[8] for entry in found[0]["sums"]) == 0  # nothing is unpriced any more


def test_the_suite_has_its_cases() -> None:
    values = [*OF_INTENTS.values(), *OF_SETTLEMENTS.values()]
    assert len(ENDS) ** 2 + sum(len(taken) + len(refused) for taken, refused in values) >= 150


def test_what_is_said_again_changes_nothing(stores: Pair) -> None:
    price = PriceSnapshot(2**63 - 1, "lab/model", "user", '{"input": 1}')
    for _ in range(2):
        stores.do("deliver", [], [price, price])
        stores.do("set_aside", "name", "reason", b"\x00\xff")
    stores.do("set_aside", "name", "another reason", b"other")
    for number in range(3):
        stores.do("audit", "me", "new", f"key-{number}", {"team": "a"})
    found = stores.same()
    assert found["price"] == [(2**63 - 1, "lab/model", "user", '{"input": 1}')]
    assert [entry[:3] for entry in found["set_aside"]] == [("name", "reason", b"\x00\xff")]
    assert [entry[0] for entry in found["audit"]] == [1, 2, 3]


def test_a_batch_has_many_accounts(stores: Pair) -> None:
    ids = AttemptIds(1)
    rows = [row(intent(ids, accounts=tuple(range(first, first + 8))), "settled", 1) for first in range(0, 8_000, 8)]
    stores.do("deliver", rows)
    assert len(stores.same()["spend"]) == 8_000


# ---------------------------------------------------------------- random histories

_numbers = st.integers(0, 5)
_acts = st.one_of(
    st.tuples(st.just("give"), st.lists(st.tuples(_numbers, st.sampled_from(ENDS)), max_size=6)),
    st.tuples(st.just("settle"), _numbers, st.sampled_from([end for end in ENDS if end[0] != "reserved"])),
    st.tuples(st.just("adjust"), _numbers, st.integers(-50, 50)),
    st.tuples(st.just("drop"), st.sampled_from(["2026-11-30", "2026-12-01", "2027-01-01"])),
    st.tuples(st.just("price"), st.integers(0, 3)),
    st.tuples(st.just("audit"), st.text("ab", max_size=2)),
)


@settings(max_examples=8)
@given(st.lists(_acts, min_size=4, max_size=10))
def test_random_histories_make_the_same_of_every_store(
    engines: Engines, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[Any, ...]]
) -> None:
    ids = AttemptIds(7)
    opened = [
        intent(ids, number, started=START + (MONTH if number == 5 else 0), accounts=(4, 9)[: number % 3])
        for number in range(6)
    ]
    root = tmp_path_factory.mktemp("stores")
    with ExitStack() as stack:
        stores = Pair([stack.enter_context(engines.open(kind, root / kind)) for kind in KINDS])
        told: set[int] = set()
        for act, *what in acts:
            if act == "give":
                stores.give([row(opened[number], *end) for number, end in what[0]])
                told.update(number for number, _ in what[0])
            elif act == "settle":
                if what[0] in told:  # a month that nothing was told of is there or not
                    stores.do("settle", settlement(opened[what[0]], *what[1]))
            elif act == "adjust":
                stores.do("adjust", opened[what[0]].id, what[1], reason="r", actor="me")
            elif act == "drop":
                stores.do("drop_before", what[0])
            elif act == "price":
                stores.do("deliver", [], [PriceSnapshot(what[0], "a", "user", "{}")])
            else:
                stores.do("audit", "me", what[0], "subject", {what[0]: 1})
        stores.same()


@settings(max_examples=4)
@given(st.lists(st.tuples(_numbers, st.sampled_from(ENDS)), min_size=6, max_size=20), st.integers(0, 2**32))
def test_redelivery_in_any_order_and_in_halves_changes_nothing(
    engines: Engines,
    tmp_path_factory: pytest.TempPathFactory,
    told: list[tuple[int, tuple[str, int | None]]],
    seed: int,
) -> None:
    ids = AttemptIds(7)
    opened = [intent(ids, number, accounts=(4, 9)[: number % 3]) for number in range(6)]
    ends: dict[int, tuple[str, int | None]] = {}
    for number, end in told:  # an attempt ends once
        if end[0] != "reserved":
            ends.setdefault(number, end)
    rows = [row(opened[number], *end) for number, end in ends.items()]
    rows += [row(opened[number], "reserved", None) for number, _ in told]
    root = tmp_path_factory.mktemp("stores")
    with ExitStack() as stack:
        stores = Pair([stack.enter_context(engines.open(kind, root / kind)) for kind in KINDS])
        stores.do("deliver", rows)
        once = stores.same()
        tenfold = rows * 10
        random.Random(seed).shuffle(tenfold)
        for batch in (tenfold, rows[: len(rows) // 2], rows[len(rows) // 4 :], *([each] for each in reversed(rows))):
            stores.do("deliver", batch)
        assert stores.same() == once


# ---------------------------------------------------------------- what is read of them


def test_usage_and_exports_are_the_same(stores: Pair) -> None:
    ids = AttemptIds(1)
    rows = [
        row(intent(ids, number, started=START + number * MONTH // 7, owner="=formula" if number % 2 else ""), *end)
        for number, end in enumerate(ENDS)
    ]
    stores.do("deliver", rows)
    stores.do("adjust", rows[1].intent.id, 5, reason="invoice", actor="me")
    stores.do("drop_before", "2026-12-01")
    for by in ((), *((name,) for name in GROUPINGS), ("key", "day"), ("month", "state", "target")):
        for bounds in ({}, {"since": START / 1e6 + 86_400}, {"until": START / 1e6 + 86_400}, {"key": "ci"}):
            sums = [read_usage(folder, by, **bounds) for folder, _ in stores.stores]  # type: ignore[arg-type]
            assert all(each == sums[0] for each in sums), (by, bounds)
    exports = [list(export_csv(folder)) for folder, _ in stores.stores]
    assert all(each == exports[0] for each in exports) and len(exports[0]) > 2
    checks = [check(folder) for folder, _ in stores.stores]
    assert all(each == checks[0] for each in checks) and checks[0].is_sound


def test_nothing_was_written_yet(stores: Pair) -> None:
    for folder, _ in stores.stores:
        assert check(folder).attempts == 0
        assert read_usage(folder, ("key",)) == []
        assert len(list(export_csv(folder))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_many_deliver_the_same_at_once(engines: Engines, tmp_path: Path, kind: str) -> None:
    ids = AttemptIds(1)
    rows = [row(intent(ids, number, accounts=(4, 8, 12, 16)), "settled", 7) for number in range(100)]
    problems: list[object] = []

    def deliver(folder: LedgerFolder, seed: int) -> None:
        store = open_store(folder)
        mine = list(rows)
        random.Random(seed).shuffle(mine)
        for first in range(0, len(mine), 10):
            while (answer := alike(lambda first=first: store.deliver(mine[first : first + 10]))) is not None:
                problems.append(answer)
                assert answer == "StoreAway" and len(problems) < 100
        store.close()

    with engines.open(kind, tmp_path) as (folder, _):
        threads = [threading.Thread(target=deliver, args=(folder, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = dump(folder)
        assert check(folder).is_sound
    assert len(found["attempt 2026-11"]) == 100
    assert [entry[2] for entry in found["spend"]] == [700] * 4
