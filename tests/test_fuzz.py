"""Bad input: whatever comes, a response ends once, a request is read or refused, and memory stays bounded.

`make test` takes a few bodies of each protocol, `make soak` many; both are the same in every run.
"""

from __future__ import annotations

import gc
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import counter, load_cases
from conversations import SHAPES, reply
from dragoman import _json
from dragoman.bounds import AnswerBounds
from dragoman.errors import WireError
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
    fold,
    unfold,
)
from dragoman.pipe import Reader
from dragoman.protocol import Decoder, Encoder, Parsed
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import (
    Media,
    Message,
    Named,
    Opaque,
    Params,
    Reasoning,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from grammar import check, check_sequential
from mutations import mutated, pieces
from test_captures import EXPECTED, load_response
from test_cuts import written
from translating import Pipe

TOOLS = (
    Tool("get_weather", "Weather.", _json.raw({"type": "object", "properties": {"city": {"type": "string"}}})),
    Tool("write_file", "", _json.raw({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})),
    Tool("ping"),
)
NAMES = frozenset(tool.name for tool in TOOLS)

each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def decoder(protocol: str, *, limit: int = 32 * 1024 * 1024) -> Decoder:
    return PROTOCOLS[protocol].decoder(new_id=made_up(), offered_names=NAMES, bounds=AnswerBounds(frame=limit))


def made_up() -> Callable[[], str]:
    """Ids that our encoders have not used in the same test."""
    numbers = counter()
    return lambda: f"X{numbers()[1:]}"


def encoder(protocol: str) -> Encoder:
    return PROTOCOLS[protocol].encoder(new_id=counter(), model="model-1", created=1_750_000_000)


def reader(protocol: str, *, sequential: bool = False) -> Reader:
    """A decoder with every stage behind it."""
    return Reader(decoder(protocol), stages_for(TOOLS, Policy(sequential=sequential), new_id=made_up()))


def read(machine: Decoder | Reader, body: list[bytes]) -> list[Event]:
    return [event for piece in body for event in machine.feed(piece)] + machine.close()


# ---------------------------------------------------------------- responses


def bodies(protocol: str) -> list[bytes]:
    """Good and odd bodies of a protocol: our corpus, real servers' answers, what our encoders write."""
    found = [case.wire for case in load_cases() if case.protocol == protocol]
    found += [b"".join(load_response(name).pieces) for name in EXPECTED if EXPECTED[name]["protocol"] == protocol]
    found += [written(protocol, shape) for shape in SHAPES]
    for shape in SHAPES:
        whole = PROTOCOLS[protocol].render_response(reply(shape), new_id=counter(), model="m", created=0)
        found.append(whole)
    return found


def play_response(protocol: str, body: list[bytes], target: str) -> None:
    """Decode it alone, with all stages, and into another protocol's stream."""
    check(read(decoder(protocol), body))
    check(read(reader(protocol), body))
    pipe = Pipe(reader(protocol, sequential=True), encoder(target))
    seen: list[Event] = []
    out = []
    for piece in body:
        out.append(pipe.feed(piece))
        seen += pipe.read_along
    out.append(pipe.close())
    seen = check_sequential([*seen, *pipe.read_along])
    again = check(read(decoder(target), out))
    if pipe.aborted or type(seen[-1]) is Failure:
        assert type(again[-1]) is Failure, f"an end was invented: {again[-1]!r:.200}"


def play_responses(protocol: str, seed: int, count: int) -> None:
    chance = random.Random(f"{protocol} {seed}")
    good = bodies(protocol)
    others = [body for name in PROTOCOLS for body in bodies(name)[:5]] + good
    for number in range(count):
        body = mutated(chance.choice(good), others, chance)
        cut, target = pieces(body, chance), chance.choice(list(PROTOCOLS))
        try:
            play_response(protocol, cut, target)
        except Exception as problem:
            raise AssertionError(f"body {number} → {target}: {problem!r:.500}\n{body[:3000]!r}") from problem


@each_protocol
def test_mutated_responses_end_once(protocol: str):
    play_responses(protocol, seed=0, count=100)


@pytest.mark.soak
@each_protocol
def test_many_mutated_responses_end_once(protocol: str):
    play_responses(protocol, seed=1, count=5000)


def test_late_ids_of_two_calls_are_not_the_same():
    delta = {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"city":"Ulm"}'}}
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    start = {"type": "content_block_start", "content_block": block}
    events = [{**event, "index": index} for event in (delta, start) for index in (0, 1)]
    answer = fold(
        check(read(decoder("anthropic-messages"), [b"data: %b\n\n" % _json.encode(event) for event in events]))
    )
    assert answer.error is not None and "duplicate-id" in {deviation.code for deviation in answer.deviations}


def test_half_a_character_in_a_delta_that_is_a_string_leaves_no_half():
    deltas = [b'{"type":"text_delta","text":"sun \\ud83c"}', b'"\\ud800"']
    body = [b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n']
    body += [b'data: {"type":"content_block_delta","index":0,"delta":%b}\n\n' % delta for delta in deltas]
    assert fold(check(read(decoder("anthropic-messages"), body))).text == "sun \ufffd\ufffd"


# ---------------------------------------------------------------- requests

RICH = Request(
    model="model-1",
    messages=(
        Message("system", (Text("Be brief."),)),
        Message("user", (Text("What is this?"), Media("image", "image/png", "aGVsbG8="))),
        Message(
            "assistant",
            (
                Thinking("Hm.", "c2VhbA=="),
                Text("Let me look."),
                ToolCall("call_abcdefghijklmnopqrstuvwx", "get_weather", '{"city":"Zürich","days":3}'),
                ToolCall("call_abcdefghijklmnopqrstuvwy", "ping", "{}"),
            ),
        ),
        Message(
            "tool",
            (
                ToolResult("call_abcdefghijklmnopqrstuvwx", "get_weather", (Text("rain"),)),
                ToolResult("call_abcdefghijklmnopqrstuvwy", "ping", (Text("no"),), is_error=True),
            ),
        ),
        Message("user", (Text("And tomorrow?"),)),
    ),
    tools=TOOLS,
    tool_choice=Named("get_weather"),
    params=Params(
        max_tokens=9000, temperature=0.5, top_p=0.9, top_k=40, stop=("END",), seed=7, presence_penalty=0.1,
        frequency_penalty=0.2, reasoning=Reasoning("low"), parallel_tools=False, cache="short",
        response_schema=ResponseSchema(_json.raw({"type": "object"}), "answer", True),
    ),
    session_id="session-1",
)  # fmt: skip
PATHS = ("", "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:generateContent", "/x?%ff=1&&")


def requests(protocol: str) -> list[bytes]:
    """Bodies that a client sends: with everything in them, and small ones."""
    small = Request("m", (Message("user", (Text("hi"),)),), stream=False)
    budget = Params(max_tokens=4096, reasoning=Reasoning(budget=2048))
    asked = (RICH, small, Request("m", RICH.messages, TOOLS, "any", budget))
    return [PROTOCOLS[protocol].render_request(request).http.body for request in asked]


def play_requests(protocol: str, seed: int, count: int) -> int:
    """Read mutated requests; those that can be read are written for every provider. Gives how many could."""
    chance = random.Random(f"{protocol} request {seed}")
    good = requests(protocol)
    others = [body for name in PROTOCOLS for body in requests(name)]
    understood = 0
    for number in range(count):
        body = mutated(chance.choice(good), others, chance)
        path = chance.choice(PATHS[1:3] if protocol == "gemini-generate" and chance.random() < 0.9 else PATHS)
        try:
            try:
                parsed = PROTOCOLS[protocol].parse_request(body, path=path)
            except WireError:
                continue
            assert isinstance(parsed, Parsed)
            understood += 1
            for target in PROTOCOLS.values():
                target.render_request(parsed.request)
        except Exception as problem:
            raise AssertionError(f"request {number} {path}: {problem!r:.500}\n{body[:3000]!r}") from problem
    return understood


@each_protocol
def test_mutated_requests_are_read_or_refused(protocol: str):
    assert play_requests(protocol, seed=0, count=200) > 20


@pytest.mark.soak
@each_protocol
def test_many_mutated_requests_are_read_or_refused(protocol: str):
    assert play_requests(protocol, seed=1, count=5000) > 500


# ---------------------------------------------------------------- memory

LIMIT = 64 * 1024
ENDLESS = {
    "event": (b"data: {", b'"a":"x"' * 1000),
    "event without a space": (b"data:", b"x" * 5000),
    "lines of one event": (b"", b"data: " + b"x" * 5000 + b"\n"),
    "broken JSON over lines": (b'data: {"a":\n', b'"x",\n' * 1000),
    "line": (b'{"a":1}\n', b'{"a":"' + b"x" * 5000),
    "document": (b'{\n"a":"', b"x" * 5000 + b"\n"),
    "object without an end": (b'{"a":"', b"x" * 5000),
    "item of an array": (b'[{"a":"', b"x" * 5000),
    "event's name": (b"event: ", b"x" * 5000),
    "white space": (b" ", b" \n" * 2500),
    "text": (b"<html>", b"<p>words</p>\n" * 400),
    "gzip": (b"", b""),
}


def endless(name: str) -> Iterator[bytes]:
    """Two megabytes of a frame that never ends."""
    first, more = ENDLESS[name]
    if name == "gzip":
        packer = zlib.compressobj(wbits=31)
        packed = packer.compress(b'{"a":"' + bytes(8 * 1024 * 1024)) + packer.flush()
        yield from (packed[start : start + 1000] for start in range(0, len(packed), 1000))
        return
    yield first
    for _ in range(2 * 1024 * 1024 // len(more)):
        yield more


@each_protocol
@pytest.mark.parametrize("name", ENDLESS)
def test_a_frame_without_an_end_stays_within_the_limit(protocol: str, name: str):
    machine = decoder(protocol, limit=LIMIT)
    feed = list(endless(name)) if name == "gzip" else endless(name)
    gc.collect()
    tracemalloc.start()
    try:
        events = [event for piece in feed for event in machine.feed(piece)]
        events += machine.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    check(events)
    assert type(events[-1]) is Failure
    assert peak < 8 * LIMIT, f"{peak} bytes at the most"


def drop_streams(count: int) -> int:
    """Decode streams and drop each somewhere in the middle; gives by how many bytes memory has grown."""
    chance = random.Random("dropped")
    streams = [(protocol, written(protocol, shape)) for protocol in PROTOCOLS for shape in SHAPES]

    def one(protocol: str, wire: bytes) -> None:
        pipe = Pipe(reader(protocol, sequential=True), encoder(protocol))
        cut = chance.randrange(len(wire))
        for piece in pieces(wire[:cut], chance):
            pipe.feed(piece)

    for protocol, wire in streams:  # caches fill once
        one(protocol, wire)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(count):
            one(*chance.choice(streams))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_dropped_streams_leave_nothing():
    assert drop_streams(300) < 100_000


@pytest.mark.soak
def test_many_dropped_streams_leave_nothing(capsys: pytest.CaptureFixture[str]):
    grown = drop_streams(10_000)
    with capsys.disabled():
        print(f"\n10,000 streams dropped: memory grew by {grown} bytes")
    assert grown < 1024 * 1024


# ---------------------------------------------------------------- any events, in every protocol

texts = st.text(min_size=1, max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8)
objects = st.dictionaries(st.text(max_size=5), scalars | st.lists(scalars, max_size=3), max_size=4)


@st.composite
def text_parts(draw, index: int) -> list[Event]:
    signature = draw(st.none() | st.just("c2VhbA=="))
    deltas = [TextDelta(index, text) for text in draw(st.lists(texts, max_size=3))]
    return [TextStart(index), *deltas, TextEnd(index, draw(st.booleans()), signature)]


@st.composite
def thinking_parts(draw, index: int) -> list[Event]:
    deltas = [ThinkingDelta(index, text) for text in draw(st.lists(texts, max_size=3))]
    redacted = draw(st.none() | st.just("c2VhbGVk")) if not deltas else None
    return [ThinkingStart(index), *deltas, ThinkingEnd(index, draw(st.none() | st.just("c2VhbA==")), redacted)]


@st.composite
def call_parts(draw, index: int) -> list[Event]:
    arguments = _json.to_text(draw(objects))
    name, call_id = draw(st.sampled_from(["get_weather", "ping", "a.b-c_d"])), f"call_{index:024d}"
    end = draw(st.sampled_from(["whole", "whole", "whole", "failed", "cut", "nameless"]))
    if end == "nameless":
        return [ToolCallFailed(index, "", "", "nameless", "a tool call has no name", arguments)]
    size = draw(st.integers(1, 12))
    deltas = [ToolCallDelta(index, arguments[at : at + size]) for at in range(0, len(arguments), size)]
    start = ToolCallStart(index, call_id, name)
    if end == "whole":
        return [start, *deltas, ToolCallEnd(index, ToolCall(call_id, name, arguments))]
    left = deltas[: draw(st.integers(0, len(deltas) - 1))] if end == "cut" else []
    return [start, *left, ToolCallFailed(index, call_id, name, "cut", f"tool call {name}: cut", arguments)]


@st.composite
def other_parts(draw, index: int) -> list[Event]:
    media = Media(draw(st.sampled_from(["image", "audio", "document"])), "image/png", "aGVsbG8=")
    opaque = [Opaque(protocol, _json.raw({"type": "odd", "x": index})) for protocol in PROTOCOLS]
    return [PartEvent(index, draw(st.sampled_from([media, *opaque])))]


@st.composite
def responses(draw) -> list[Event]:
    """Events in the grammar, one part open at a time."""
    kinds = draw(
        st.lists(st.sampled_from([text_parts, thinking_parts, call_parts, call_parts, other_parts]), max_size=5)
    )
    between = st.lists(
        st.sampled_from([Deviation("missing-id", "x", "y"), UsageUpdate(Usage(3, 4)), UsageUpdate(Usage(output=9))]),
        max_size=1,
    )
    reason = draw(st.sampled_from(["stop", "length", "tool_use", "content_filter", "other"]))
    failed = Failure(draw(st.sampled_from(["rate", "connection", "wire", "internal"])), "it broke", 500, 1.5)
    end: Event = draw(st.sampled_from([Finish(reason, None, Usage(3, 4)), Finish(reason), failed]))
    events: list[Event] = [Start("id-1", "m", 1_750_000_000) if draw(st.booleans()) else Start()]
    for index, kind in enumerate(kinds):
        events += [*draw(between), *draw(kind(index))]
    return check_sequential([*events, *draw(between), end])


@each_protocol
@given(events=responses(), size=st.integers(1, 30))
def test_any_events_are_written_and_read_back(protocol: str, events: list[Event], size: int):
    machine = encoder(protocol)
    out = [machine.encode(events[start : start + size]) for start in range(0, len(events), size)]
    seen = fold(check(read(decoder(protocol), out)))
    original = fold(events)
    said, called = ([(call.name, call.values()) for call in answer.tool_calls] for answer in (original, seen))
    if original.failed_calls or original.stop_reason not in ("stop", "tool_use", "other"):
        # where no block ends, a limit or a failure may have cut the arguments off behind `{}`
        said, called = ([row for row in rows if row[1]] for rows in (said, called))
    is_cut = all(failed.kind == "cut" for failed in original.failed_calls)  # what these reasons say themselves
    is_standing = original.stop_reason in ("length", "content_filter") and is_cut and not machine.aborted
    if type(original.error) is Failure or (original.failed_calls and not is_standing):
        assert type(seen.error) is Failure
        assert called == said[: len(called)]
    else:
        assert type(seen.error) is not Failure, seen.error
        assert called == said
        assert set(original.text) - set(seen.text) == set(), "text is lost"


@each_protocol
@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_is_the_same_however_it_is_encoded(protocol: str, shape: str):
    """Event by event or all at once: the same bytes."""
    events = unfold(reply(shape))
    one, whole = encoder(protocol), encoder(protocol)
    assert b"".join(one.encode([event]) for event in events) == whole.encode(events)
