"""Large frames of very many small values are refused before anything is made of them, in every list of every wire."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import counter
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.codec.framing import large_frames
from dragoman.codec.framing.body import BodyReader, Frame, TooLarge
from dragoman.codec.framing.large_frames import LARGE, has_large_line
from dragoman.codec.framing.outline import has_wide_object
from dragoman.events import Failure
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from many_items import Many, answers, stream_of, streams
from profiles import one

SIZE = LARGE + 20_000
READ = 64 * 1024
MEBIBYTE = 1024 * 1024
#: Each so-many-th place, others for each protocol.
_STEP, _STEP_OF_STREAMS = 1511, 113
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def values_in(value: Any) -> int:
    """How many there are; an empty list or object counts for two."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_in, inner)) + (isinstance(value, dict | list) and not value)


def values_of(many: Many, count: int) -> int:
    """The values of a body with so many members: each one brings as many as the second."""
    one, two = (values_in(json.loads(many.text(number))) for number in (1, 2))
    return one + (count - 1) * (two - one)


def large_bodies(protocol: str, size: int = SIZE, share: int = 1) -> Iterator[tuple[str, bytes, int]]:
    """Name, body, and the values of its largest frame, of one of so many places more."""
    place = list(PROTOCOLS).index(protocol) * 5
    for number, many in enumerate(answers(protocol)):
        if number % (share * _STEP) == place:
            count = size // len(many.unit) + 1
            yield many.name, many.text(count).encode(), values_of(many, count)
    for number, many in enumerate(streams(protocol)):
        if number % (share * _STEP_OF_STREAMS) == place:
            count = size // len(many.unit) + 1
            values = max(values_of(many._replace(body=event), count) for event in many.body)
            yield many.name, stream_of(many, protocol, count), values


def message_of(protocol: str, body: bytes, most: int, size: int) -> str:
    """Why an answer fails that comes in reads of a size; "" where it does not."""
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), bounds=AnswerBounds(frame_values=most))
    events = []
    for begin in range(0, len(body), size):
        events += decoder.feed(body[begin : begin + size])
    events += decoder.close()
    last = events[-1]
    return last.message if isinstance(last, Failure) else ""


@each_protocol
def test_a_frame_has_as_many_values_as_are_allowed_and_no_more(protocol: str) -> None:
    wrong, count = [], 0
    for name, body, most in large_bodies(protocol):
        for size in one((READ, len(body)), name):
            count += 1
            refused = message_of(protocol, body, most - 1, size)
            if f"at most {most - 1} JSON values (setting server.limits.frame_values), got {most}" not in refused:
                wrong.append((name, size, refused))
            if "frame_values" in (taken := message_of(protocol, body, most, size)):
                wrong.append((name, size, taken))
    assert count and not wrong


@each_protocol
def test_a_frame_with_too_many_values_takes_no_more_than_its_bytes(protocol: str) -> None:
    """As it came, as it is held, and as it is cut. What is looked at of it at once is of a fixed size."""
    wrong, count = [], 0
    for name, body, most in large_bodies(protocol, 2 * SIZE, share=2):
        count += 1
        tracemalloc.start()
        try:
            message_of(protocol, body, most // 2, READ)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        if peak > 4.5 * len(body) + MEBIBYTE:
            wrong.append((name, peak / len(body)))
    assert count and not wrong


@each_protocol
def test_commas_in_a_text_are_no_values(protocol: str) -> None:
    many = next(found for found in answers(protocol) if not found.is_object)
    body = many._replace(unit=json.dumps(',[{"' * (LARGE // 4))).text(1).encode()
    for size in (READ, len(body)):
        assert "frame_values" not in message_of(protocol, body, 1_000, size)


@for_each(
    ("protocol", "field"), [("openai-chat", "choices"), ("gemini-generate", "candidates")]
)  # fmt: skip
@for_each("unit", ["{}", '{"a":1}', '{"index":%d}'])
def test_answers_beside_each_other_are_counted_before_they_are_read(protocol: str, field: str, unit: str) -> None:
    body = Many("", {"id": "a", field: "@many@"}, unit, False).text(4 * SIZE // (len(unit) + 1)).encode()
    tracemalloc.start()
    try:
        told = message_of(protocol, body, USUAL_BOUNDS.frame_values, READ)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert told == f"expected at most 128 {field} at once, got 129 or more"
    assert peak < 4.5 * len(body) + 2 * MEBIBYTE


def test_parts_are_counted_before_they_are_looked_at() -> None:
    for unit in ('{"a":1}', '{"functionCall":{"name":"f"},"a%d":1}'):
        content = {"candidates": [{"content": {"parts": "@many@"}}]}
        body = Many("", content, unit, False).text(USUAL_BOUNDS.parts + 1).encode()
        told = message_of("gemini-generate", body, USUAL_BOUNDS.frame_values, READ)
        assert told.endswith("(setting server.limits.parts), got 4097")


@each_protocol
def test_an_object_has_as_many_members_as_are_allowed_and_no_more(protocol: str) -> None:
    """Nobody else has a turn while one is read at once."""
    wrong, count = [], 0
    objects = [many for many in answers(protocol) if many.is_object]
    for many in objects[:: len(objects) // 3]:
        count += 1
        for members in (most := USUAL_BOUNDS.members, most + 1):
            message = message_of(protocol, many.text(members).encode(), USUAL_BOUNDS.frame_values, READ)
            if (members > most) is not message.startswith("expected objects of at most"):
                wrong.append((many.name, members, message))
    assert count and not wrong


_JSON_VALUES = st.recursive(
    st.sampled_from([1, "", ",:{", '"\\', None]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("ab:,{", max_size=3), inner, max_size=7),
    max_leaves=25,
)


def widest(value: Any) -> int:
    """The members of its object that has most."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max([len(value) if isinstance(value, dict) else 0, *map(widest, inner)])


@given(_JSON_VALUES, st.integers(1, 7))
def test_wide_objects_are_found_without_reading(value: Any, most: int) -> None:
    assert has_wide_object(json.dumps(value).encode(), most, 100) is (widest(value) > most)


# ---------------------------------------------------------------- the ways in which a frame comes

_SMALL = b'{"a":1}'
_EVENTS = (b"data: " + _SMALL + b"\n\n") * 9
_MANY = b'{"a":[%s1]}' % (b"1," * (LARGE // 2))
_MOST = LARGE // 2 + 2
#: Way → a body of it, with a place for the large frame.
WAYS = {
    "a document": b"%s",
    "a document of several lines": b"\n%s\n\n",
    "documents": b'{\n"a":1}%s',
    "an array": b"[" + _SMALL + b",%s," + _SMALL + b"]",
    "an array that is cut": b"[%s",
    "an event": b"data: %s\n\n",
    "an event with a name": b"event: a\ndata: %s\n\n",
    "an event among small ones": _EVENTS + b"data: %s\n\n" + _EVENTS,
    "an event of two lines": b"data: \ndata: %s\n\n",
    "an event behind an odd one": b"data: \n" + b"data: " + _SMALL + b"\n\ndata: %s\n\n",
    "an event that is cut": b"data: " + _SMALL + b"\n\ndata: %s",
    "an event with carriage returns": b"data: %s\r\n\r\n",
    "an event without its field": b"data: " + _SMALL + b"\n\n%s\n\n",
    "a line": _SMALL + b"\n%s\n" + _SMALL + b"\n",
    "a line that is cut": _SMALL + b"\n%s",
    "an event in lines": _SMALL + b"\ndata: %s\n",
    "behind an escaped key": b'data: {"\\u0061":1}\n\ndata: %s\n\n',
}  # fmt: skip


def frames_of(body: bytes, most: int, size: int) -> list[Frame]:
    reader = BodyReader(lambda code, where, seen: None, bounds=AnswerBounds(frame_values=most))
    frames: list[Frame] = []
    for begin in range(0, len(body), size):
        frames += reader.feed(body[begin : begin + size])
    return [*frames, *reader.close()]


@for_each("way", WAYS)
def test_however_a_frame_comes_its_values_are_counted(way: str) -> None:
    plain = WAYS[way] % _MANY
    frames = frames_of(plain, 1 << 30, 1 << 30)
    assert any(data.strip().removeprefix(b"data: ").endswith(_MANY) for data, _ in frames)
    bodies = {"plain": plain, "compressed": gzip.compress(plain, 1)}
    for kind, size in one([*itertools.product(bodies, (1_000, READ, 1 << 30))], way):
        with pytest.raises(TooLarge, match="frame_values"):
            frames_of(bodies[kind], _MOST - 10, size)
        assert frames_of(bodies[kind], _MOST + 10, size) == frames, (kind, size)


@for_each("before", [0, LARGE - 1, LARGE, LARGE + 1])
def test_a_read_that_is_one_large_event_is_counted_wherever_it_comes(before: int) -> None:
    """The quick ways of a reader are left in time."""
    small, large = b"data: " + _SMALL + b"\n\n", b"data: %s\n\n" % _MANY
    for usual in (small, b"event: a\n" + small):
        reader = BodyReader(lambda code, where, seen: None, bounds=AnswerBounds(frame_values=_MOST - 10))
        for _ in range(before // len(usual)):
            assert len(list(reader.feed(usual))) == 1
        with pytest.raises(TooLarge, match="frame_values"):
            list(reader.feed(large))


@given(st.text("a\n", max_size=40).map(str.encode), st.integers(1, 6))
def test_large_lines_are_found(data: bytes, large: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(large_frames, "LARGE", large)
        assert has_large_line(data) == any(len(line) > large for line in data.split(b"\n"))
