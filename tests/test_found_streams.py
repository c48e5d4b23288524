"""Streams as they were reported: each read as it is meant, whole, byte by byte, and in pieces of other sizes."""

from __future__ import annotations

import itertools
import json
import re

from cases import counter
from dragoman.events import Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from for_each import for_each
from found_answers import TOOLS
from found_streams import CHAT, Stream
from found_streams_combined import COMBINED
from found_streams_elsewhere import ELSEWHERE
from found_streams_later import LATER
from found_streams_of_gateways import GATEWAYS
from found_streams_of_servers import SERVERS
from grammar import check
from profiles import some
from translating import Pipe

WRITTEN = Policy(sequential=True)
TRANSLATED = (*COMBINED, *LATER, *SERVERS)
STREAMS = (*CHAT, *ELSEWHERE, *GATEWAYS, *TRANSLATED)
TYPE_OF_DELTA = re.compile(rb'"delta": {"type": "(?:text|thinking|input_json|signature|citations)_delta", ')
#: Only its type says that it is no text.
KEY_OF_A_TEXT = "messages: arguments under the key of a text"


def reader_of(protocol: str, policy: Policy) -> Reader:
    numbers = itertools.count()

    def new_id() -> str:
        return f"{next(numbers):024d}"

    names = frozenset(tool.name for tool in TOOLS)
    decoder = PROTOCOLS[protocol].decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(TOOLS))  # type: ignore[index]
    return Reader(decoder, stages_for(TOOLS, policy, new_id=new_id))


def read(stream: Stream, size: int) -> Reply:
    reader = reader_of(stream.protocol, Policy())
    events = [
        event for start in range(0, len(stream.body), size) for event in reader.feed(stream.body[start : start + size])
    ]
    return fold(check([*events, *reader.close()]))


def differences(stream: Stream, reply: Reply) -> list[str]:
    calls = tuple((call.name, json.loads(call.arguments)) for call in reply.tool_calls)
    usage = reply.usage
    seen = {
        "calls": (calls, stream.calls),
        "text": (reply.text.strip(), stream.text.strip()),
        "thinking": (reply.thinking.strip(), stream.thinking.strip()),
        "stop": (reply.stop_reason, stream.stop),
        "error": (reply.error is not None, stream.error),
        "ids": (tuple(call.id for call in reply.tool_calls)[: len(stream.ids)], stream.ids),
    }
    if stream.usage is not None:
        seen["usage"] = ((usage.input, usage.output, usage.cache_read or 0), stream.usage)
    found = [f"{key}: {got!r} instead of {meant!r}" for key, (got, meant) in seen.items() if got != meant]
    codes = {deviation.code for deviation in reply.deviations}
    found += [f"no {code} among {sorted(codes)}" for code in stream.told if code not in codes]
    ids = [call.id for call in reply.tool_calls]
    return found + (["two calls of one id"] if len(set(ids)) < len(ids) else [])


def test_there_are_many():
    assert len(STREAMS) >= 700
    assert len({stream.name for stream in STREAMS}) == len(STREAMS)


@for_each("stream", STREAMS, ids=lambda stream: stream.name)
def test_each_stream_is_read_as_it_is_meant(stream: Stream):
    for size in (len(stream.body) or 1, *some((1, 7, 100), stream.name, 2)):
        assert differences(stream, read(stream, size)) == [], size


@for_each("stream", [one for one in STREAMS if one.protocol == "openai-chat"], ids=lambda stream: stream.name)
def test_each_is_read_as_it_is_meant_when_each_event_comes_alone(stream: Stream):
    reader = reader_of(stream.protocol, Policy())
    events = [event for told in stream.body.split(b"\n\n") if told for event in reader.feed(told + b"\n\n")]
    assert differences(stream, fold(check([*events, *reader.close()]))) == []


def _untyped(stream: Stream) -> Stream:
    """The same, its deltas of blocks without their type."""
    return stream._replace(body=TYPE_OF_DELTA.sub(rb'"delta": {', stream.body))


UNTYPED = [
    told
    for one in STREAMS
    if one.protocol == "anthropic-messages" and (told := _untyped(one)) != one and one.name != KEY_OF_A_TEXT
]


@for_each("stream", UNTYPED, ids=lambda stream: stream.name)
def test_a_delta_of_a_block_says_without_its_type_what_it_says_with_it(stream: Stream):
    """A call above all: one that waits, that several deltas may be for, or whose start told its arguments."""
    assert differences(stream._replace(told=()), read(stream, len(stream.body))) == []


@for_each("number, stream", list(enumerate(TRANSLATED)), ids=lambda value: getattr(value, "name", ""))
def test_each_is_written_in_another_protocol_as_it_is_meant(number: int, stream: Stream):
    """Calls, text, and whether it failed; a limit says of itself that what it cut did."""
    target = list(PROTOCOLS)[number % len(PROTOCOLS)]
    pipe = Pipe(reader_of(stream.protocol, WRITTEN), PROTOCOLS[target].encoder(new_id=counter(), model="m", created=7))
    reader = reader_of(target, Policy())
    reply = fold([*reader.feed(pipe.feed(stream.body) + pipe.close()), *reader.close()])
    found = [text.partition(":")[0] for text in differences(stream, reply)]
    assert {"calls", "text"}.isdisjoint(found) and ("error" not in found or stream.stop == "length"), target
