"""Answers made of known calls, with slips of servers, and with an accident beside one: no call is delivered that the
answer did not make, none of a sound answer is lost, and nothing depends on how the bytes are cut.

`make soak` tries all of them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from dragoman.events import Reply, fold
from dragoman.response_stages import Policy
from grammar import check
from profiles import MORE_IN_SOAK, some
from slipped_wires import FORMS, SETS, TEXT, Call, Form, chat, messages, responses
from test_found_streams import reader_of
from wires import Frame, body_of

pytestmark = MORE_IN_SOAK
#: Forms whose calls take several frames, so that the loss of one shows.
PIECEWISE = [form for form in FORMS if form.make in (chat, messages, responses)]
#: Slips that together leave no label: of two calls alike, one may be the other again.
UNLABELLED = [{"no id", "no index"}, {"an empty id", "no index"}]


def read(protocol: str, body: bytes, size: int) -> Reply:
    reader = reader_of(protocol, Policy())
    events = [event for start in range(0, len(body), size) for event in reader.feed(body[start : start + size])]
    return fold(check([*events, *reader.close()]))


def calls_of(reply: Reply) -> list[Call]:
    return [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]


def told(form: Form, body: bytes, beside: str) -> Reply:
    """What a body tells, whole and in pieces of another size."""
    reply, other = read(form.protocol, body, len(body) or 1), read(form.protocol, body, len(beside) % 97 + 1)
    assert (calls_of(reply), reply.text, reply.error) == (calls_of(other), other.text, other.error), beside
    return reply


def wires(slips: int, share: int) -> Iterator[tuple[Form, list[Call], tuple[str, ...]]]:
    for number, form in enumerate(FORMS):
        for names in itertools.permutations(form.slips, slips):
            for calls in some(SETS, f"{number}{names}", share):
                yield form, calls, names


def test_a_slip_changes_no_call():
    tried = 0
    for form, calls, slips in wires(1, 2):
        reply = told(form, form.body(calls, *slips), f"{slips}{calls}")
        seen = (calls_of(reply), reply.text, reply.stop_reason, reply.error)
        assert seen == (calls, TEXT, "tool_use", None), (form.make, slips)
        tried += 1
    assert tried > 200


def test_two_slips_change_no_call_unless_that_is_told():
    for form, calls, slips in wires(2, 24):
        reply = told(form, form.body(calls, *slips), f"{slips}{calls}")
        seen = calls_of(reply)
        assert all(seen.count(call) <= calls.count(call) for call in seen), (form.make, slips, seen)
        if not (set(slips) in UNLABELLED and len(seen) < len(calls) and {*map(str, seen)} == {*map(str, calls)}):
            assert (seen, reply.error, reply.text) == (calls, None, TEXT), (form.make, slips, calls)


def accidents(frames: list[Frame]) -> Iterator[tuple[str, list[Frame]]]:
    for at, frame in enumerate(frames):
        before, behind = frames[:at], frames[at + 1 :]
        yield f"{at} lost", [*before, *behind]
        yield f"{at} twice", [*before, frame, frame, *behind]
        for late in range(1, min(3, len(behind)) + 1):
            yield f"{at} late by {late}", [*before, *behind[:late], frame, *behind[late:]]


def test_an_accident_makes_no_call():
    """A call that is lost, or comes twice, is told."""
    for form, calls, slips in wires(1, 8):
        if form.is_whole:
            continue
        frames = form.slips[slips[0]](form.make(calls))
        usual = {(one.code, one.where) for one in read(form.protocol, form.body(calls, *slips), 10**6).deviations}
        for what, damaged in some(accidents(frames), f"{slips}{calls}", 4):
            reply = told(form, body_of(form.protocol, damaged), f"{slips}{calls}{what}")
            seen = calls_of(reply)
            is_told = reply.error or {(one.code, one.where) for one in reply.deviations} - usual
            assert all(call in calls for call in seen) or is_told, (form.make, slips, what, seen)
            is_whole = len(seen) == len(calls) and all(call in seen for call in calls)
            assert is_whole or is_told or form not in PIECEWISE or "twice" in what, (form.make, slips, what, seen)


def test_a_cut_makes_no_call():
    for form, calls, slips in wires(1, 6):
        body = form.body(calls, *slips)
        for at in some(range(len(body)), f"{slips}{calls}", len(body) // 4):
            reply = told(form, body[:at], f"{slips}{at}")
            assert all(call in calls for call in calls_of(reply)), (form.make, slips, body[:at])
            assert reply.error or calls_of(reply) == calls, (form.make, slips, body[:at])
