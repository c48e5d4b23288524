"""Histories of attempts, for the tests: what a worker writes, and the rows that must come of it."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from dragoman.ledger.journal.records import STATES, AttemptIds, Intent, Settlement

START = 1_795_305_600_000_000  # 2026-11-22 00:00 UTC, in microseconds
HOLDER = "00000000000000ab"


class History(NamedTuple):
    """What one holder wrote, in order, and which attempts it left open."""

    records: list[Intent | Settlement]
    open: list[bytes]


def intent(ids: AttemptIds, number: int = 0, **more: object) -> Intent:
    """An intent; `more` are fields."""
    started = int(more.pop("started", START + number * 1_000))  # type: ignore[call-overload]
    fields = {
        "request": f"request-{number}", "ordinal": 0, "key": ("", "ci")[number % 2], "owner": "", "team": "",
        "route": ("coder", "")[number % 2], "target": f"lab/model-{number % 3}", "size": 100 + number,
    } | more  # fmt: skip
    return Intent(ids.next(started), started=started, **fields)  # type: ignore[arg-type]


def settlement(opened: Intent, state: str = "settled", nano: int | None = 7, **more: object) -> Settlement:
    """The end of an attempt."""
    tokens = {"input": 5, "output": 2, "reported": True} if state == "settled" else {}
    return Settlement(opened.id, opened.started + 500, state, nano, **(tokens | more))  # type: ignore[arg-type]


_ends = st.tuples(st.sampled_from(STATES[1:]), st.none() | st.integers(0, 10**12))


@st.composite
def histories(draw: st.DrawFn, most: int = 25) -> History:
    """Attempts that overlap as they like; each ends at most once."""
    ids = AttemptIds(draw(st.integers(0, 2**64 - 1)))
    records: list[Intent | Settlement] = []
    going: list[Intent] = []
    for number in range(draw(st.integers(0, most))):
        while going and draw(st.booleans()):
            records.append(settlement(going.pop(draw(st.integers(0, len(going) - 1))), *draw(_ends)))
        going.append(intent(ids, number, started=START + draw(st.integers(0, 10**10))))
        records.append(going[-1])
    return History(records, [each.id for each in going])
