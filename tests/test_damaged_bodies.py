"""A damaged body tells its calls as they were, or the answer fails: none runs with what another one was told, or
without what it was.

`tests/damage.py` says which damage this is. Each run of the suite tries a part of its bodies.
"""

from __future__ import annotations

import pytest

from damage import BASES, bodies
from profiles import MORE_IN_SOAK
from test_keys_told_twice import CALLS, made, read

#: One body of so many is tried; by `make soak` all are.
EVERY = [6, *(pytest.param(1, marks=mark) for mark in MORE_IN_SOAK)]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("wire", BASES)
def test_a_damaged_body_delivers_no_call_that_was_not_made(wire: str, every: int) -> None:
    tried = refused = 0
    for number, (how, body) in enumerate(bodies(wire, BASES[wire])):
        if number % every:
            continue
        reply = read(wire, [body])
        calls = made(reply)
        if reply.error is None:
            assert all(call in CALLS for call in calls), (how, calls)
            assert len(calls) <= len(CALLS), (how, calls)
        tried += 1
        refused += reply.error is not None
    assert tried > 30 and 0 < refused < tried
