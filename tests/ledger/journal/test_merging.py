"""Records → rows: each attempt is one row, however often and from where its journal is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.ledger.journal.frames import frame, read_frames
from dragoman.ledger.journal.merging import Merging
from dragoman.ledger.journal.records import AttemptIds, Intent, Row, Settlement, decode_records, encode_record
from ledger.histories import HOLDER, START, History, histories, intent, settlement


def rows_of(data: bytes, merging: Merging, start: int = 0) -> list[Row]:
    """The final rows of a segment's bytes."""
    found = read_frames(data, start, is_closed=True)
    records, unread = decode_records(found.records)
    assert not unread
    merging.is_at = (1, found.end)
    return merging.take(1, records)


@given(histories())
def test_each_attempt_is_one_row(history: History) -> None:
    merging = Merging(HOLDER)
    rows = rows_of(b"".join(frame(encode_record(record)) for record in history.records), merging)
    ended = [record for record in history.records if type(record) is Settlement]
    assert [row.settlement for row in rows] == ended
    assert all(row.settlement is not None and row.intent.id == row.settlement.id for row in rows)
    assert [row.intent.id for row in merging.going_on(2**62)] == [
        record.id for record in history.records if type(record) is Intent and record.id in history.open
    ]
    assert merging.going_on(2**62) == []
    closed = merging.interrupted(START)
    assert {row.intent.id for row in closed} == set(history.open)
    assert all(row.state == "interrupted" and row.settlement and row.settlement.nano is None for row in closed)
    assert merging.open_attempts == 0
    assert not merging.orphans


@given(histories(), st.data())
def test_a_reader_that_begins_again_where_it_must_finds_the_same(history: History, data: st.DataObject) -> None:
    written = b"".join(frame(encode_record(record)) for record in history.records)
    cut = data.draw(st.integers(0, len(written)))
    first = Merging(HOLDER)
    before = rows_of(written[:cut], first)
    # Where the first reader stopped a record may be half there; all that is open is read again.
    again = Merging(HOLDER)
    after = rows_of(written, again, first.oldest()[1] if first.open_attempts else read_frames(written[:cut]).end)
    everything = rows_of(written, Merging(HOLDER))
    assert {row.intent.id: row for row in [*before, *after]} == {row.intent.id: row for row in everything}
    assert len({row.intent.id for row in after} & {row.intent.id for row in before}) <= len(before)


def test_what_goes_on_is_told_once_and_held_back() -> None:
    ids = AttemptIds(1)
    old, young = intent(ids, started=START), intent(ids, started=START + 60_000_000)
    merging = Merging(HOLDER)
    merging.take(1, [(32, old), (132, young)])
    assert merging.first_due() == old.started
    assert [row.intent for row in merging.going_on(START + 1)] == [old]
    assert merging.going_on(START + 1) == []
    assert merging.first_due() == young.started
    assert merging.oldest() == (1, 32)
    [row] = merging.take(1, [(232, settlement(old))])
    assert row is not None and row.state == "settled"
    assert merging.oldest() == (1, 132)


def test_an_interrupted_attempt_costs_what_was_expected_of_it() -> None:
    merging = Merging(HOLDER)
    merging.take(1, [(32, intent(AttemptIds(1), expected=12))])
    [row] = merging.interrupted(START)
    assert row.settlement is not None
    assert (row.settlement.nano, row.settlement.reason, row.settlement.reported) == (12, "process_died", False)


def test_a_settlement_without_its_intent_is_no_row() -> None:
    merging = Merging(HOLDER)
    lost = settlement(intent(AttemptIds(1)))
    assert merging.take(1, [(32, lost)]) == []
    assert merging.orphans == [lost]
