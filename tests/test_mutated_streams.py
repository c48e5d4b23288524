"""A frame of a stream that is lost, comes twice, or comes behind the next ones: a call that is delivered is one of the
stream, or an error or a deviation tells that the stream was odd; no answer raises, or breaks the grammar."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from cases import load_cases
from dragoman import _json
from dragoman.events import Reply, fold
from dragoman.pipe import Reader
from dragoman.protocol import PLAIN, Dialect
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import Tool
from found_answers import TOOLS
from found_streams import CHAT
from found_streams_elsewhere import ELSEWHERE
from found_streams_of_gateways import GATEWAYS
from grammar import check
from profiles import some

Row = tuple[str, str, bytes, tuple[Tool, ...], Dialect]
#: Streams that say nothing by which a frame of a call could be missed: pieces of one value, in no form of their own.
UNPROVEN = {
    "streamed-arguments", "custom-tool-call", "arguments-later-that-may-be-either", "arguments-later-without-index",
    "responses-deltas-without-a-place", "responses-deltas-without-a-place-told-at-the-end",
    "responses-index-and-id-disagree",
}  # fmt: skip
#: Streams of which a call is refused because of the very frame that is lost or moved.
REFUSED = {
    "responses: other arguments at the end", "frame-that-is-no-json", "responses-malformed-event",
    "chat: pieces of a call without an opening among those of another",
}  # fmt: skip


def rows() -> Iterator[Row]:
    for stream in (*CHAT, *ELSEWHERE, *GATEWAYS):
        yield stream.name, stream.protocol, stream.body, TOOLS, PLAIN
    for case in load_cases():
        tools = tuple(Tool(tool["name"], schema=_json.raw(tool["parameters"])) for tool in case.tools)
        if case.status < 400 and 3 < case.wire.count(b"\n") < 160:
            yield case.name, case.protocol, case.wire, tools, case.dialect


def read(row: Row, body: bytes) -> Reply:
    _, protocol, _, tools, dialect = row
    numbers = itertools.count()

    def new_id() -> str:
        return f"{next(numbers):024d}"

    names = frozenset(tool.name for tool in tools)
    decoder = PROTOCOLS[protocol].decoder(
        new_id=new_id, offered_names=names, takes_nothing=nothing_fits(tools), dialect=dialect
    )
    reader = Reader(decoder, stages_for(tools, Policy(), new_id=new_id, dialect=dialect))
    return fold(check([*reader.feed(body), *reader.close()]))


def mutated(body: bytes) -> Iterator[tuple[str, bytes]]:
    end = next((end for end in (b"\r\n\r\n", b"\n\n") if end in body), b"\n")
    frames = body.split(end)
    for at, frame in enumerate(frames):
        if frame.strip():
            before, behind = frames[:at], frames[at + 1 :]
            yield f"{at} lost", end.join([*before, *behind])
            yield f"{at} twice", end.join([*before, frame, frame, *behind])
            for late in (1, 2):
                if len(behind) > late:
                    yield f"{at} late by {late}", end.join([*before, *behind[:late], frame, *behind[late:]])


def calls_of(reply: Reply) -> list[tuple[str, Any]]:
    return [
        (call.name, call.arguments if call.kind == "custom" else json.loads(call.arguments))
        for call in reply.tool_calls
    ]


def oddities(reply: Reply) -> set[tuple[str, str]]:
    return {(deviation.code, deviation.where) for deviation in reply.deviations}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_call_comes_of_a_frame_that_is_lost_or_moved_unless_that_is_told(protocol: str) -> None:
    tried = 0
    for row in rows():
        if row[1] != protocol or row[0] in UNPROVEN | REFUSED:
            continue
        base = read(row, row[2])
        for what, body in some(mutated(row[2]), row[0], 2):
            reply = read(row, body)
            is_told = reply.error is not None or bool(oddities(reply) - oddities(base))
            assert is_told or all(call in calls_of(base) for call in calls_of(reply)), (row[0], what, calls_of(reply))
            tried += 1
    assert tried > 60


def test_a_tool_that_the_provider_runs_names_no_call_of_the_client() -> None:
    """Its start comes behind the first piece of its input."""
    row = next(row for row in rows() if row[0] == "server-tool-blocks")
    for what, body in mutated(row[2]):
        assert calls_of(read(row, body)) == [], what
