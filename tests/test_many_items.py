"""However many members one list or object of a request or an answer has, each is read for what it takes alone.

`make test` tries one of some hundred places, others for each protocol, `make soak` all. How long the gateway's event
loop is held is measured by the row S19.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

import vendor_streams
from cases import counter
from dragoman.errors import DragomanError
from dragoman.events import Event, fold
from dragoman.history import fit
from dragoman.protocols import PROTOCOLS
from growth import json_bytes_of, steps_of
from many_items import Many, answers, requests, stream_of, streams
from places import reader_of
from profiles import IS_SOAK

_PATH = "/v1beta/models/m:generateContent"
FEW, TIMES = 60, 4
#: What so many times the members may cost, and what is done once.
MOST_GROWTH, ONCE = TIMES**1.2, 2_000
#: Each so-many-th place of requests and answers, and of streams, of which there are fewer.
_STEP, _STEP_OF_STREAMS = (1, 1) if IS_SOAK else (1213, 97)

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def picked(found: Iterator[Many], step: int, first: str) -> Iterator[Many]:
    """Some of them, others for each protocol."""
    place = list(PROTOCOLS).index(first) * 5 % step
    return (many for number, many in enumerate(found) if number % step == place)


def answer(protocol: str, data: bytes) -> list[Event]:
    """Decoded with all stages."""
    reader = reader_of(protocol)
    return [*reader.feed(data), *reader.close()]


def written(events: list[Event]) -> None:
    """In every protocol, in pieces and as a whole."""
    for target in PROTOCOLS.values():
        target.encoder(new_id=counter(), model="m", created=1).encode(events)
        with suppress(DragomanError):
            target.render_response(fold(events), new_id=counter(), model="m", created=1)


def request(protocol: str, body: bytes) -> None:
    """Looked at, read, and written in every protocol."""
    wire = PROTOCOLS[protocol]
    for look in (wire.peek, wire.check_whole):
        with suppress(DragomanError):
            look(body, path=_PATH) if look == wire.peek else look(body)
    with suppress(DragomanError):
        parsed = wire.parse_request(body, path=_PATH)
        for target in PROTOCOLS.values():
            with suppress(DragomanError):
                target.render_request(fit(parsed.request, protocol=target.name)[0])


def too_much(run: Callable[[int], object], first: int = FEW) -> str:
    """How the work grows by more than its members; "" where it does not. Where a bound is reached it leaps once, and
    the next step decides."""
    few, many = (work_of(run, count) for count in (first, TIMES * first))
    if _has_grown(few, many):
        most = work_of(run, TIMES * TIMES * first)
        if _has_grown(few, many) & _has_grown(many, most):
            return f"lines, bytes of JSON read, and written: {few}, {many}, {most}"
    return ""


def work_of(run: Callable[[int], object], count: int) -> tuple[int, int, int]:
    """Lines that ran, and bytes of JSON that were read and written."""
    return (steps_of(lambda: run(count)), *json_bytes_of(lambda: run(count)))


def _has_grown(few: tuple[int, ...], many: tuple[int, ...]) -> set[int]:
    """Which kinds of work."""
    return {kind for kind, work in enumerate(many) if work > MOST_GROWTH * few[kind] + ONCE}


@each_protocol
def test_members_of_an_answer_are_read_once_each(protocol: str) -> None:
    wrong, count = [], 0
    for many in picked(answers(protocol), _STEP, protocol):
        count += 1
        if grown := too_much(lambda number, many=many: answer(protocol, many.text(number).encode())):  # type: ignore[misc]
            wrong.append((many.name, grown))
    assert count and not wrong


@each_protocol
def test_members_of_an_event_are_read_once_each(protocol: str) -> None:
    wrong, count = [], 0
    for many in picked(streams(protocol), _STEP_OF_STREAMS, protocol):
        count += 1
        if grown := too_much(lambda number, many=many: answer(protocol, stream_of(many, protocol, number))):  # type: ignore[misc]
            wrong.append((many.name, grown))
    assert count and not wrong


def kinds_of_events(protocol: str) -> Iterator[tuple[list[Any], int]]:
    """Streams, and which of their events comes again and again: each kind of the vendors', and of servers' own."""
    seen = set[str]()
    own = [[_chat({"content": "a"}), _chat(delta)] for delta in DELTAS] if protocol == "openai-chat" else []
    for events in (*own, *(case.body for case in vendor_streams.cases(protocol))):
        for place, event in enumerate(events):
            kind = re.sub(r"\d+", "", str(event))
            if kind not in seen:
                seen.add(kind)
                if IS_SOAK or events in own or len(seen) % 30 == 0:
                    yield events, place


def _chat(delta: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}


#: What servers of Chat say beside a text, in pieces that are gathered.
DELTAS: Final[list[dict[str, Any]]] = [
    {"annotations": [{"type": "url_citation", "url_citation": {"url": "u", "start_index": 0, "end_index": 1}}]},
    {"reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]},
    {"extra_content": {"google": {"grounding": ["a"]}}},
    {"audio": {"id": "a", "data": "AAAA", "transcript": "a"}},
]


@each_protocol
def test_events_that_come_again_are_read_once_each(protocol: str) -> None:
    """Whatever gathers from event to event is written out once."""
    wrong = []
    for events, place in kinds_of_events(protocol):

        def run(count: int, events: list[Any] = events, place: int = place) -> object:
            many = [*events[:place], *[events[place]] * count, *events[place + 1 :]]
            return answer(protocol, vendor_streams.stream(many, protocol))

        if grown := too_much(run, FEW // TIMES):
            wrong.append((events[place], grown))
    assert not wrong


@each_protocol
def test_members_of_an_answer_are_written_once_each(protocol: str) -> None:
    wrong, count = [], 0
    for many in picked(answers(protocol), _STEP * 2, protocol):
        events = {number: answer(protocol, many.text(number).encode()) for number in (FEW, 4 * FEW, 16 * FEW)}
        count += 1
        if grown := too_much(lambda number, events=events: written(events[number])):  # type: ignore[misc]
            wrong.append((many.name, grown))
    assert count and not wrong


@each_protocol
def test_members_of_a_request_are_read_once_each(protocol: str) -> None:
    wrong, count = [], 0
    for many in picked(requests(protocol), _STEP, protocol):
        count += 1
        if grown := too_much(lambda number, many=many: request(protocol, many.text(number).encode())):  # type: ignore[misc]
            wrong.append((many.name, grown))
    assert count and not wrong


CALLS = (
    '{"index":0,"id":"c","function":{"name":"f","arguments":" "}}', "{}", '{"text":"a"}', '{"index":%d,"id":"c%d"}',
    '{"index":%d,"function":{"name":"f"}}', '{"id":"a","index":0,"type":"function","function":{"name":"f"}}',
)  # fmt: skip


@pytest.mark.parametrize("unit", CALLS)
def test_calls_of_one_chunk_are_not_judged_by_the_whole_chunk_each(unit: str) -> None:
    """15,000 in a frame of 1 MiB took half a minute: for each one the frame was read."""
    delta = {"tool_calls": "@many@"}
    event = {"id": "c", "model": "m", "arguments": {}, "choices": [{"index": 0, "delta": delta}]}
    many = Many(unit, [event], unit, False)
    assert not too_much(lambda count: answer("openai-chat", stream_of(many, "openai-chat", count)))


def test_a_chunk_of_more_candidates_than_can_be_asked_for_is_refused() -> None:
    unit = '{"index":%d,"content":{"parts":[{"text":"a"}]}}'
    for count in (128, 129):
        body = Many("", {"candidates": "@many@"}, unit, False).text(count).encode()
        last = answer("gemini-generate", body)[-1]
        words = "expected at most 128 candidates at once, got 129"
        assert getattr(last, "message", "") == (words if count > 128 else "")


def test_the_growth_of_what_json_is_read_is_seen() -> None:
    """What is read anew for each member."""

    def again(count: int) -> None:
        body = Many("", {"choices": "@many@"}, "{}", False).text(count).encode()
        for _ in range(count):
            PROTOCOLS["openai-chat"].check_whole(body)

    assert too_much(again)
