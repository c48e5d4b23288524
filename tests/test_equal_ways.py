"""Every way to read an answer gives the same events, whatever stands in whichever field.

Each name that a protocol's Structs know is put into each object of the wire, with values of every type (one change at
a time, then several): the result is read event by event, together, alike and not alike, in pieces, byte by byte, and
by the reader that takes field by field. A whole answer of which something is told without reading must be read as told.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
import operator
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from dragoman._json import Malformed
from dragoman.bounds import USUAL_BOUNDS
from dragoman.codec.framing import event_stream
from dragoman.codec.parts.call_matching import CallSlots
from dragoman.events import Deviation, Event, Failure, Finish, ToolCallFailed
from dragoman.proofs import is_of_the_wire
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.gemini.response.calls import CallReader
from dragoman.protocols.ollama.response.calls import CallReader as OllamaCalls
from dragoman.protocols.openai_chat.response.delta_batch import Growth
from for_each import for_each
from wire_bases import BASES, RARE_VALUES, WHOLE, Base, candidate, event, line
from wire_shapes import (
    FOLDERS,
    UNKNOWN,
    VALUES,
    Path,
    changed,
    changes,
    filled,
    keys_of,
    names_of,
    objects_in,
    values_in,
)

#: What the strict reader is called where a decoder uses it; each hands what it refuses to the reader field by field.
STRICT = {
    "openai-chat": ("decode_chunk",),
    "anthropic-messages": ("decode_event",),
    "ollama-chat": ("decode_line", "decode_known"),
}
PIECE = 61
KEY = "some_key"  # stands for every key
OF_A_TYPE = ({"text": "t"}, [{"text": "t"}], "x", 3)
SEVERAL = 400  # of several changes at a time, for each base
#: `make test` takes one of each 180 changes in a row, by chance; `make soak` takes all, with more values.
STEPS = [pytest.param(180, id="some"), pytest.param(1, marks=pytest.mark.soak, id="all")]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes are read together too."""
    monkeypatch.setattr(event_stream, "_SMALL", 0)


def decode(protocol: str, chunks: list[bytes]) -> list[Event]:
    numbers = iter(range(1000))
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: f"{next(numbers):024}", offered_names=frozenset({"note"}))
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


def decode_slowly(protocol: str, chunks: list[bytes]) -> list[Event]:
    """Without the quick ways of a lone chunk and of a piece that is its argument text alone: these are taken by chunks
    that come together, too, so that a drift in them would be the same in both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Growth, "expect", lambda growth, kind: None)
        patch.setattr(CallSlots, "grow", lambda slots, index, arguments: False)
        patch.setattr(CallReader, "takes_frame", lambda calls, frame, candidate: None)
        patch.setattr(OllamaCalls, "takes_line", lambda calls, frame: False)
        return decode(protocol, chunks)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def streams(base: Base, odd: dict[str, Any]) -> list[list[bytes]]:
    """Streams with an odd event among plain ones, and of odd ones alone: alike, and not alike."""
    plain = [base.frame(text) for text in base.texts]
    lone = base.written(odd)
    return [
        [*plain[:3], lone, *plain[3:]],
        [base.written(odd, text) for text in base.texts],
        [lone, *plain],
        [base.written({**odd, "obfuscation": "x" * number}, text) for number, text in enumerate(base.texts)],
    ]


def values_for(protocol: str, value: Any, step: int = 1) -> list[Any]:
    """What is put into objects; where all is tried, also what stands in any answer of the protocol."""
    if step > 1:
        return [*VALUES, *values_in(value)]
    others = [base.value for base in BASES if base.protocol == protocol]
    others += [whole for name, whole in WHOLE if name == protocol]
    return [*VALUES, *values_in({"": [value, *others]})[2:], *RARE_VALUES.get(protocol, ())]


def check(base: Base, odd: dict[str, Any], number: int, *, step: int = 1) -> None:
    """The ways take turns: each of them sees each name in each object, with some of the values; where all is tried,
    with all."""
    together = streams(base, odd) if base.is_batched else streams(base, odd)[:1]
    for frames in together[number % 2 :: 2] if step > 1 else together:
        alone = decode_slowly(base.protocol, [*base.opening, *frames, *base.ending])
        assert decode(base.protocol, [*base.opening, *frames, *base.ending]) == alone, odd
        assert decode(base.protocol, [*base.opening, b"".join(frames), *base.ending]) == alone, odd
        # What the first one opened grows by the others, which come together.
        assert decode(base.protocol, [*base.opening, frames[0], b"".join(frames[1:]), *base.ending]) == alone, odd
        if number % 7 == 0:
            data = b"".join([*base.opening, *frames, *base.ending])
            assert decode(base.protocol, [data]) == alone, odd
            assert decode(base.protocol, cut(data, PIECE)) == alone, odd
            if number % 49 == 0:
                assert decode(base.protocol, cut(data, 1)) == alone, odd


def some(protocol: str, value: Any, step: int) -> Iterator[Any]:
    """One of each `step` changes in a row, by chance, the same in every run."""
    chance = random.Random(protocol)
    row: list[Any] = []
    for odd in changes(protocol, value, values_for(protocol, value, step)):
        row.append(odd)
        if len(row) == step:
            yield chance.choice(row)
            row = []
    yield from row


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("base", BASES, ids=str)
def test_a_field_that_says_something(base: Base, step: int) -> None:
    count = 0
    for count, odd in enumerate(some(base.protocol, base.value, step)):
        check(base, odd, count, step=step)
    assert count > 500 // step


@for_each("base", BASES)
def test_a_call_where_none_is_read(base: Base) -> None:
    """An event or a part of the protocol with a call, under a name that nobody knows."""
    others = [one.value for one in BASES if one.protocol == base.protocol and "call" in json.dumps(one.value)]
    calls = [call for call in values_in({"": others})[2:] if "call" in json.dumps(call)]
    for number, place in enumerate(objects_in(base.value)):
        for call in calls[number % 12 :: 12]:
            check(base, changed(base.value, place, UNKNOWN, call), 1)


_CALL = {"functionCall": {"name": "note", "args": {"a": 1}}}
_ENTRY = {"function": {"name": "note", "arguments": {"a": 1}}}
#: Frames behind a call that are almost as one with a call alone.
ALMOST: list[tuple[str, dict[str, Any]]] = [
    *(("gemini-generate", candidate(_CALL, **more)) for more in ({"index": 1}, {"finishReason": "STOP"})),
    *(("gemini-generate", {**candidate(_CALL), "createTime": said}) for said in ("2026-11-28T04:00:00Z", _CALL)),
    *(("gemini-generate", {**candidate(_CALL), "responseId": said}) for said in ("r", "s")),
    ("gemini-generate", candidate({**_CALL, "thought_signature": "cw=="})),
    ("gemini-generate", candidate({"functionCall": {"name": "", "args": {"a": 1}}})),
    *(("ollama-chat", line({"content": said, "tool_calls": [_ENTRY]})) for said in ("x", None)),
    ("ollama-chat", line({"content": "", "tool_calls": [_ENTRY, _ENTRY]})),
    ("ollama-chat", line({"content": "", "tool_calls": [_ENTRY]}, done=True)),
    ("ollama-chat", line({"content": "", "tool_calls": [{"function": {"name": "", "arguments": {"a": 1}}}]})),
]


@for_each(("protocol", "odd"), ALMOST)
def test_what_is_almost_a_call_alone_is_read_by_all_that_it_says(protocol: str, odd: dict[str, Any]) -> None:
    plain = line({"content": "", "tool_calls": [_ENTRY]}) if protocol == "ollama-chat" else candidate(_CALL)
    frames = [event(protocol, value, "") for value in (plain, plain, odd, plain)]
    assert decode(protocol, frames) == decode_slowly(protocol, frames)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("base", BASES, ids=str)
def test_several_fields_that_say_something(base: Base, step: int) -> None:
    for number, odd in enumerate(islice(several(base.protocol, base.value), SEVERAL // step)):
        check(base, odd, number, step=step)


def several(protocol: str, value: Any) -> Iterator[Any]:
    chance = random.Random(protocol)
    names, values = names_of(protocol), [*VALUES, *values_in(value)]
    for _ in range(SEVERAL):
        odd = value
        for _ in range(chance.randint(2, 4)):
            odd = changed(odd, chance.choice(list(objects_in(odd))), chance.choice(names), chance.choice(values))
        yield odd


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("base", [base for base in BASES if base.protocol in STRICT], ids=str)
def test_the_reader_field_by_field_reads_what_the_strict_one_does(base: Base, step: int) -> None:
    """It says more of what is odd; all else is the same."""
    for odd in some(base.protocol, base.value, step):
        check_leniently(base, odd)


#: Values that an object of an answer may have under any name: a call, and what is none.
CALLS = ({"name": "note", "arguments": "{}"}, {"name": "note", "arguments": {"a": 1}}, {"name": "note"})


@for_each("base", [base for base in BASES if base.protocol in STRICT])
def test_a_call_under_a_name_that_another_event_has(base: Base) -> None:
    for place in objects_in(base.value):
        for number, name in enumerate(names_of(base.protocol)):
            check_leniently(base, changed(base.value, place, name, CALLS[number % len(CALLS)]))


@for_each("protocol, value", WHOLE)
def test_a_call_under_a_name_that_a_whole_answer_has(protocol: str, value: dict[str, Any]) -> None:
    for place in objects_in(value):
        for name in names_of(protocol):
            check_told(protocol, changed(value, place, name, CALLS[0]))


def check_leniently(base: Base, odd: dict[str, Any]) -> None:
    module = importlib.import_module(f"dragoman.protocols.{FOLDERS[base.protocol]}.response.decode")
    names = STRICT[base.protocol]
    if isinstance(getattr(module, names[-1])(json.dumps(odd).encode()), Malformed):
        return
    frames = [*base.opening, base.frame("a"), base.written(odd), base.frame("b"), *base.ending]
    exact = without_deviations(decode(base.protocol, frames))
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(module, name, lambda frame: Malformed("not read strictly"))
        loose = without_deviations(decode(base.protocol, frames))
    assert loose == exact, odd


def without_deviations(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Deviation)]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("protocol", "value"), WHOLE, ids=lambda value: value if isinstance(value, str) else "")
def test_a_whole_answer_is_as_it_is_told(protocol: str, value: dict[str, Any], step: int) -> None:
    every = changes(protocol, value, filled(protocol)) if step == 1 else ()
    many = islice(several(protocol, value), SEVERAL // min(step, 8))
    told = [check_told(protocol, odd) for odd in [*some(protocol, value, step), *every, *many]]
    assert any(told) and not all(told)


def check_told(protocol: str, value: dict[str, Any]) -> bool:
    """Whether something is told of it; then it is as it is read."""
    body = json.dumps(value).encode()
    check_read_at_once(protocol, body)
    told = PROTOCOLS[protocol].check_whole(body)
    if told is None:
        return False
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: "0" * 24)
    events = [*decoder.feed(body), *decoder.close()]
    assert not [event for event in events if isinstance(event, Failure | ToolCallFailed)], value
    faults = [event for event in events if isinstance(event, Deviation) and event.severity == "fault"]
    assert not [event for event in faults if is_of_the_wire(event.code)], value
    end = events[-1]
    assert isinstance(end, Finish)
    assert (told.reason, told.native_reason, told.usage, told.cost) == (
        end.reason, end.native_reason, end.usage, end.cost,
    ), value  # fmt: skip
    return True


def check_read_at_once(protocol: str, body: bytes) -> list[Event] | None:
    """What is read at once, if anything is: the same as the decoder reads."""
    read = PROTOCOLS[protocol].read_whole
    numbers = (f"{number:024}" for number in range(1000))
    events = None
    if read is not None:
        events = read(body, offered_names={"note"}, bounds=USUAL_BOUNDS, new_id=lambda: next(numbers))
    assert events is None or events == decode(protocol, [body]), body
    return events


@pytest.mark.parametrize(("protocol", "value"), WHOLE, ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_whole_answer_may_have_without_being_read_says_nothing(protocol: str, value: dict[str, Any]) -> None:
    """Every key that the protocol's code knows, in every object, with a value of each type: those with which something
    is told without reading, all at once."""
    assert sum(check_let_pass(protocol, value, path, new) for path in objects_in(value) for new in OF_A_TYPE) > 20


def check_let_pass(protocol: str, value: dict[str, Any], path: Path, new: Any) -> int:
    """Return how many keys of an object may have a value."""
    tell, whole = PROTOCOLS[protocol].check_whole, copy.deepcopy(value)
    frame = json.dumps(changed(value, path, KEY, new))
    passing = [name for name in keys_of(protocol) if tell(frame.replace(KEY, name).encode()) is not None]
    functools.reduce(operator.getitem, path, whole).update(dict.fromkeys(passing, new))
    assert check_told(protocol, whole), (path, new)
    return len(passing)


# ---------------------------------------------------------------- all of it for some fields (`scripts/mutants.py`)


def check_streams(protocol: str, names: Sequence[str]) -> None:
    """Every change of these fields, or of all, in every way to read a stream."""
    for base in BASES:
        if base.protocol != protocol:
            continue
        for number, odd in enumerate(changes(protocol, base.value, values_for(protocol, base.value), names)):
            check(base, odd, number, step=1)
            if protocol in STRICT:
                check_leniently(base, odd)
        for number, odd in enumerate(several(protocol, base.value) if not names else ()):
            check(base, odd, number, step=1)


def check_whole_answers(protocol: str, names: Sequence[str]) -> None:
    """The same for whole answers."""
    for name, value in WHOLE:
        if name == protocol:
            for odd in changes(protocol, value, [*values_for(protocol, value), *filled(protocol)], names):
                check_told(protocol, odd)
