"""A list of any request, answer or stream, each entry many times over, costs work in proportion.

`test_linear_time.py` repeats texts; this repeats structure, in the place of each list that the vendors' types have.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import vendor_answers
import vendor_streams
import vendor_types
from cases import counter
from dragoman.errors import DragomanError
from dragoman.events import fold
from dragoman.history import fit
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from growth import steps_of
from places import NAMES, TOOLS
from profiles import IS_SOAK
from test_linear_time import MOST_GROWTH, ONCE

_PATH = "/v1beta/models/m:generateContent"
_FEW = 20
#: Each so-many-th list; `make soak` takes them all.
_STEP = 1 if IS_SOAK else 97


def lists(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each list within a value."""
    if isinstance(value, list):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        yield from lists(each, (*path, step))


def repeated(body: Any, path: tuple[str | int, ...], times: int) -> Any:
    """The body with the entries of a list so many times over."""
    body = copy.deepcopy(body)
    found = body
    for step in path:
        found = found[step]
    found[:] = found * times
    return body


def each_list(cases: Iterable[Any]) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
    """A body and the path of one of its lists, once for each path of field names."""
    seen: set[str] = set()
    for case in cases:
        for path in lists(case.body):
            name = case.path + ".".join("[]" if isinstance(step, int) else step for step in path)
            if name not in seen:
                seen.add(name)
                if len(seen) % _STEP == 0:
                    yield case.body, path


def request(protocol: str, body: Any) -> Callable[[], None]:
    data = json.dumps(body).encode()

    def run() -> None:
        with suppress(DragomanError):
            parsed = PROTOCOLS[protocol].parse_request(data, path=_PATH)
            for target in PROTOCOLS.values():
                with suppress(DragomanError):
                    fitted, _ = fit(parsed.request, protocol=target.name)
                    target.render_request(fitted)

    return run


def answer(protocol: str, body: Any) -> Callable[[], None]:
    data = json.dumps(body).encode() if isinstance(body, dict) else vendor_streams.wire(body)

    def run() -> None:
        decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=NAMES)
        reader = Reader(decoder, stages_for(TOOLS, Policy(sequential=True), new_id=counter()))
        events = [event for at in range(0, len(data), 4096) for event in reader.feed(data[at : at + 4096])]
        events += reader.close()
        for target in PROTOCOLS.values():
            target.encoder(new_id=counter(), model="m", created=1).encode(events)
            with suppress(DragomanError):
                target.render_response(fold(events), new_id=counter(), model="m", created=1)

    return run


def steep(make: Callable[[str, Any], Callable[[], None]], protocol: str, cases: Iterable[Any]) -> list[object]:
    """The lists whose repetition costs more than its share."""
    found: list[object] = []
    count = 0
    for body, path in each_list(cases):
        few, many = (steps_of(make(protocol, repeated(body, path, times))) for times in (_FEW, 4 * _FEW))
        # A leap that is done once, where a bound is reached, is decided by the next step.
        if many > MOST_GROWTH * few + ONCE:
            most = steps_of(make(protocol, repeated(body, path, 16 * _FEW)))
            if most > MOST_GROWTH * many:
                found.append((path, few, many, most))
        count += 1
    assert count or _STEP > 1
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_request_of_repeated_entries_costs_its_share(protocol: str) -> None:
    assert not steep(request, protocol, vendor_types.cases(protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_of_repeated_entries_costs_its_share(protocol: str) -> None:
    assert not steep(answer, protocol, vendor_answers.cases(protocol))


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic-messages"])
def test_a_stream_of_repeated_events_costs_its_share(protocol: str) -> None:
    assert not steep(answer, protocol, vendor_streams.cases(protocol))


def test_a_slow_reader_is_found() -> None:
    def slow(protocol: str, body: Any) -> Callable[[], None]:
        def run() -> None:
            for number in range(len(body["a"])):
                for _ in body["a"][:number]:
                    PROTOCOLS["openai-chat"].parse_error(400, b"{}")

        return run

    few, many = (steps_of(slow("", {"a": [1] * size})) for size in (_FEW, 4 * _FEW))
    assert many > MOST_GROWTH * few + ONCE
