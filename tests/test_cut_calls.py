"""Every cut of every stream through the whole way of an answer: no call is delivered that the model had not closed.

The streams are our corpus, our captures and our calls written as text, and the corpora and captures beside the
checkout where they lie there. Each is cut at its bytes and within its texts, and ends with the body, with a reset, and
with the protocol's own `length` and `stop`; the tools are as offered, and again with nothing required, so that
optional parameters count. `make test` takes a sample that is the same in every run; `make soak` takes about half a
million cuts, so many of each stream, and prints the count: two to three minutes of one processor. All of them, 3.7
million in a quarter of an hour, are taken with `DRAGOMAN_EVERY_CUT=1`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from cases import counter
from cut_reference import Call, illegitimate
from cut_streams import (
    ENDINGS,
    Cuttable,
    Ending,
    cuts_of_bytes,
    cuts_of_texts,
    own_streams,
    shared_streams,
    with_ending,
    written_streams,
)
from dragoman import _json
from dragoman.events import Event, Failure, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import Tool

RESET = Failure("connection", "reset by peer")
POLICY = Policy(rescue=True, arguments="live")


def without_required(schema: Any) -> Any:
    """A schema in which no member is required, at any depth."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if not (key == "required" and isinstance(value, list))}
        return {key: without_required(value) for key, value in kept.items()}
    return [without_required(value) for value in schema] if isinstance(schema, list) else schema


def offered(stream: Cuttable, *, optional: bool) -> tuple[Tool, ...]:
    """The tools of a stream, as they were offered or with all of their parameters optional."""
    named = [tool for tool in stream.tools if tool.get("name")]
    schemas = [(tool["name"], tool.get("parameters") or {"type": "object"}) for tool in named]
    return tuple(
        Tool(name, schema=_json.raw(without_required(schema) if optional else schema)) for name, schema in schemas
    )


def delivered(stream: Cuttable, tools: tuple[Tool, ...], wire: bytes, *, reset: bool = False) -> list[Call]:
    """The calls that a program gets of this body."""
    new_id = counter()
    decoder = PROTOCOLS[stream.protocol].decoder(
        new_id=new_id,
        offered_names=frozenset(tool.name for tool in tools),
        takes_nothing=nothing_fits(tools),
        dialect=stream.dialect,
    )
    reader = Reader(decoder, stages_for(tools, POLICY, new_id=new_id, dialect=stream.dialect))
    events: list[Event] = [*reader.feed(wire), *(reader.fail(RESET) if reset else reader.close())]
    return [(call.name, call.arguments) for call in fold(events).tool_calls]


def endings_of(stream: Cuttable, step: int) -> Iterator[tuple[bytes, Ending]]:
    """Every body that a cut of the stream may be. A body that is one JSON value has no ending of its own to write."""
    for number, cut in enumerate(cuts_of_bytes(stream, step)):
        for ending in ENDINGS:
            if ending in ("end", "reset"):
                yield cut.wire, ending
            elif stream.is_stream and (cut.is_whole or number % 8 == 0):
                yield with_ending(stream, cut, ending), ending
    if stream.is_stream:
        for cut in cuts_of_texts(stream, step):
            yield with_ending(stream, cut, "length"), "length"
            yield with_ending(stream, cut, "stop"), "stop"


def play(stream: Cuttable, step: int) -> tuple[int, list[str]]:
    """The number of cuts, and what was delivered wrongly."""
    count, wrong = 0, []
    for optional in (False, True):
        tools = offered(stream, optional=optional)
        whole = delivered(stream, tools, stream.wire)
        for wire, ending in endings_of(stream, step):
            calls = delivered(stream, tools, wire, reset=ending == "reset")
            count += 1
            if found := illegitimate(calls, whole, stream, wire, ending):
                wrong.append(f"{stream.name}, {ending}, optional={optional}: {found} of ...{wire[-700:]!r}")
    return count, wrong


@cache
def streams() -> dict[str, Cuttable]:
    """All that are here."""
    return {stream.name: stream for stream in [*own_streams(), *written_streams(), *shared_streams()]}


#: Places in each stream at which `make soak` cuts it.
PLACES = 120
EVERY = bool(os.environ.get("DRAGOMAN_EVERY_CUT"))


def test_no_cut_makes_a_call():
    count, wrong = 0, []
    for stream in list(streams().values())[::3]:
        played, found = play(stream, 1201)
        count += played
        wrong += found
    assert wrong == []
    assert count > 3_000


@pytest.mark.parametrize("name", ["openai-responses/responses-custom-tool-call", "gemini-generate/streamed-arguments"])
def test_what_announces_more_is_not_whole(name: str):
    """Free text and values with paths close nothing themselves: each cut of them fails, a good end behind it too."""
    count, wrong = play(streams()[name], 3)
    assert wrong == []
    assert count > 200


def test_the_check_sees_a_half_call():
    """The reference finds what a reader that closes whatever is open would deliver."""
    chunk = b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"ring","arguments":"%s"}}]}}]}\n\n'
    stream = Cuttable("", "openai-chat", chunk % rb"{\"bell\":1", [])
    whole = [("ring", '{"bell":12}')]
    for ending in ENDINGS:
        assert illegitimate([("ring", '{"bell":1}')], whole, stream, stream.wire, ending)
        assert illegitimate([("ring", "{}")], whole, stream, stream.wire, ending)
        assert illegitimate(whole * 2, whole, stream, stream.wire, ending)
    assert not illegitimate([("ring", '{"bell":1}')], whole, stream, chunk % rb"{\"bell\":1}", "length")
    assert not illegitimate([("ring", "{}")], whole, stream, chunk % b"", "stop")
    assert illegitimate([("ring", "{}")], whole, stream, chunk % b"", "length")


@pytest.mark.soak
def test_many_cuts_of_every_stream(capsys):
    count, wrong = 0, []
    for stream in streams().values():
        played, found = play(stream, 1 if EVERY else len(stream.wire) // PLACES + 1)
        count += played
        wrong += found
    with capsys.disabled():
        print(f"\n{count} cuts of {len(streams())} streams, {len(wrong)} wrong")
    assert wrong[:20] == []
    assert count >= (2_500_000 if EVERY else 300_000)
