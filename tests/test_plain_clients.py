"""What we read without a word is what clients read that know the specification alone.

A gateway passes the bytes of a target that keeps to its protocol. So whatever our readers take that the specification
does not have is a deviation: else its client, which gets the same bytes, would run another call, or none.
"""

from __future__ import annotations

import json

import pytest

from damage import BASES, bodies
from plain_clients import run_by
from profiles import MORE_IN_SOAK
from test_keys_told_twice import CALLS, body_of, made, read

#: Forms that are deviations from the first call on.
NEVER_PLAIN = {
    "openai-responses, deltas", "openai-chat, all at index 0", "openai-chat, without an index",
    "openai-chat, whole ones at index 0", "openai-chat, flat", "ollama-chat, as texts",
}  # fmt: skip
#: One body of so many is tried; by `make soak` all are.
EVERY = [4, *(pytest.param(1, marks=mark) for mark in MORE_IN_SOAK)]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("wire", BASES)
def test_what_is_read_without_a_deviation_is_what_clients_read(wire: str, every: int) -> None:
    plain = 0
    for number, (how, body) in enumerate([("undamaged", undamaged(wire)), *bodies(wire, BASES[wire])]):
        if number % every:
            continue
        told = read(wire, [body])
        if told.error is None and all(deviation.severity == "note" for deviation in told.deviations):
            assert run_by(wire, body) == made(told), how
            plain += 1
    assert bool(plain) is (wire not in NEVER_PLAIN)


@pytest.mark.parametrize("wire", BASES)
def test_clients_read_what_keeps_to_the_specification(wire: str) -> None:
    """Else the other test would say nothing."""
    assert (run_by(wire, undamaged(wire)) == CALLS) is (wire not in NEVER_PLAIN)


def undamaged(wire: str) -> bytes:
    return body_of(wire, [json.dumps(frame) for frame in BASES[wire]])
