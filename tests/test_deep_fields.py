"""A value that is nested deeply, in the place of any value of a request or an answer: no RecursionError anywhere.

Depth 950 is less than what the JSON reader refuses, and more than a function that calls itself can stand.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import vendor_answers
import vendor_streams
import vendor_types
from cases import counter
from dragoman._json import Raw
from dragoman.codec.hosted.told_results import with_results_told
from dragoman.errors import DragomanError
from dragoman.events import fold
from dragoman.history import fit
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Message, Opaque, Request, Text
from places import NAMES, TOOLS
from profiles import IS_SOAK, some

DEPTHS = (120, 480, 950, 100_000)
_PATH = "/v1beta/models/m:generateContent"
_MARK = "@deep@"
#: Each so-many-th place; `make soak` takes them all.
_STEP = 1 if IS_SOAK else 29


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each value within one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        yield (*path, step)
        yield from places(each, (*path, step))


def put(value: Any, path: tuple[str | int, ...], new: str) -> Any:
    """The value with another one at a path."""
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = put(value[path[0]], path[1:], new)
    return value


def marked(cases: Iterable[Any]) -> Iterator[Any]:
    """Bodies with the mark in the place of a value, once for each path of field names."""
    seen: set[str] = set()
    for case in cases:
        for path in places(case.body):
            name = ".".join("[]" if isinstance(step, int) else step for step in path)
            if name not in seen:
                seen.add(name)
                if len(seen) % _STEP == 0:
                    yield put(case.body, path, _MARK)


def nested(body: bytes) -> Iterator[bytes]:
    """With lists and objects of each depth in the place of the mark."""
    shapes = (("[", "]"), ('{"a":', "}"), ('{"type":', "}"), ('{"content":', "}"))
    for depth, (first, last) in some(itertools.product(DEPTHS, shapes), body.decode(), 1):
        yield body.replace(f'"{_MARK}"'.encode(), f"{first * depth}1{last * depth}".encode())


def request(protocol: str, body: bytes) -> None:
    """Read, and written in every protocol."""
    with suppress(DragomanError):
        parsed = PROTOCOLS[protocol].parse_request(body, path=_PATH)
        for target in PROTOCOLS.values():
            with suppress(DragomanError):
                fitted, _ = fit(parsed.request, protocol=target.name)
                target.render_request(fitted)


def answer(protocol: str, data: bytes) -> None:
    """Decoded with all stages, and written in every protocol, in pieces and as a whole."""
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=NAMES)
    reader = Reader(decoder, stages_for(TOOLS, Policy(sequential=True), new_id=counter()))
    events = [*reader.feed(data), *reader.close()]
    for target in PROTOCOLS.values():
        target.encoder(new_id=counter(), model="m", created=1).encode(events)
        with suppress(DragomanError):
            target.render_response(fold(events), new_id=counter(), model="m", created=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_request_nested_anywhere_is_read_or_refused(protocol: str) -> None:
    count = 0
    for body in marked(vendor_types.cases(protocol)):
        for data in nested(json.dumps(body).encode()):
            request(protocol, data)
            count += 1
    assert count


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_nested_anywhere_is_read_or_fails(protocol: str) -> None:
    count = 0
    for body in marked(vendor_answers.cases(protocol)):
        for data in nested(json.dumps(body).encode()):
            answer(protocol, data)
            count += 1
    assert count


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic-messages"])
def test_a_stream_nested_anywhere_is_read_or_fails(protocol: str) -> None:
    count = 0
    for events in marked(vendor_streams.cases(protocol)):
        if all(isinstance(event, dict) for event in events):
            for data in nested(vendor_streams.wire(events)):
                answer(protocol, data)
                count += 1
    assert count


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("openai-responses", '{"model":"m","input":"x","instructions":"%s"}'),
        ("openai-responses", '{"model":"m","input":"x","tools":[{"type":"function","name":"%s","parameters":{}}]}'),
        ("gemini-generate", '{"contents":[],"generationConfig":{"responseSchema":{"type":"%s"}}}'),
    ],
)  # fmt: skip
def test_what_was_found_is_mended(protocol: str, body: str) -> None:
    for data in nested((body % _MARK).encode()):
        request(protocol, data)


def test_what_a_tool_found_is_told_however_deep_it_stands() -> None:
    told = []
    for start, end in (('{"a":', "}"), ("[", "]")):
        for depth in (
            *range(800, 1000),
            100_000,
        ):  # some of these can be decoded, but not by a function that calls itself
            raw = Raw(f'{{"type":"mcp_call","name":"n","output":{start * depth}1{end * depth}}}'.encode())
            answer = Message("assistant", (Opaque("openai-responses", raw),))
            request, _ = with_results_told(Request("m", (answer,)), "openai-chat")
            told.append(type(request.messages[0].parts[0]) is Text)
    assert True in told and False in told
