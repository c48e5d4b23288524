"""S1 and S4–S7: decoding bytes that are in memory, beside the JSON libraries alone on the same events."""

import json
from collections.abc import Callable, Iterator
from functools import partial

import jiter
import orjson
import streams
from measuring import Row, exponent, fastest

from dragoman._json import Raw
from dragoman.bounds import USUAL_BOUNDS
from dragoman.client.streaming.partial_arguments import PartialArguments
from dragoman.codec.framing.large_frames import LARGE
from dragoman.events import Event, ToolCallDelta
from dragoman.ids import new_id
from dragoman.pipe import Reader, WholeReader
from dragoman.protocol import NOTHING_EXPECTED, Decoder, ReadWhole, Stage
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, is_usual, stages_for, stay_as_they_are
from dragoman.types import Tool

COUNT = 2000
SIZES = (500, 2000, 8000)
#: Kind of stream → the argument that grows.
GROWING = {"arguments": "edits", "string": "content"}
MEGABYTE = 1024 * 1024

#: What a client offers in the streams of this bench.
TOOLS = (
    Tool(
        "get_weather", "", Raw(b'{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}')
    ),
    Tool("edit_file", "", Raw(b'{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array"}}}')),
)
NAMES = frozenset(tool.name for tool in TOOLS)
_OFFERED = {tool.name: tool for tool in TOOLS}


def decoder(protocol: str) -> Decoder:
    return PROTOCOLS[protocol].decoder(new_id=new_id, offered_names=NAMES)


def decode(protocol: str, pieces: list[bytes]) -> None:
    machine = decoder(protocol)
    for piece in pieces:
        machine.feed(piece)
    machine.close()


def decode_staged(protocol: str, pieces: list[bytes]) -> None:
    """With every stage that the client puts behind a decoder."""
    stages: list[Stage] = stages_for(TOOLS, Policy(), new_id=new_id)
    reader = Reader(decoder(protocol), stages)
    for piece in pieces:
        reader.feed(piece)
    reader.close()


def read_whole(protocol: str, at_once: ReadWhole, body: bytes, *, is_staged: bool) -> None:
    """A body that is no stream, as the client reads it."""

    def read(data: bytes) -> tuple[list[Event], list[Stage]] | None:
        events = at_once(data, offered_names=_OFFERED, bounds=USUAL_BOUNDS, new_id=new_id)
        if events is None:
            return None
        is_left = not is_staged or (is_usual(Policy(), NOTHING_EXPECTED) and stay_as_they_are(events, _OFFERED))
        return events, [] if is_left else stages_for(TOOLS, Policy(), new_id=new_id)

    def make() -> Reader:
        return Reader(decoder(protocol), stages_for(TOOLS, Policy(), new_id=new_id) if is_staged else ())

    reader = WholeReader(read, make, LARGE)
    reader.feed(body)
    reader.close()


def decode_looking(protocol: str, pieces: list[bytes], growing: str) -> int:
    """With the partial object looked at on every delta, down to the value that grows."""
    machine = decoder(protocol)
    arguments = PartialArguments()
    seen = 0
    for piece in pieces:
        for event in machine.feed(piece):
            if type(event) is ToolCallDelta:
                arguments.feed(event.text)
                seen += len(arguments.values().get(growing, ()))
    machine.close()
    return seen


def each(load: Callable[[bytes], object], events: list[bytes]) -> Callable[[], None]:
    def run() -> None:
        for event in events:
            load(event)

    return run


def against_orjson() -> Iterator[Row]:
    """S1: the full decoder against an orjson-only decode of the same events."""
    for protocol in streams.PROTOCOLS:
        target = 5 if protocol == "anthropic-messages" else 3
        for kind in ("text", "arguments"):
            written = streams.frames(protocol, kind, COUNT)
            pieces = streams.blocks(written)
            alone, whole, single, staged = fastest(
                each(orjson.loads, streams.payloads(protocol, written)),
                lambda: decode(protocol, pieces),  # noqa: B023
                lambda: decode(protocol, written),  # noqa: B023
                lambda: decode_staged(protocol, pieces),  # noqa: B023
            )
            note = f"{whole / COUNT * 1e5:.2f} CPU-s per 100k deltas; one event a feed × {single / alone:.1f}"
            if kind == "arguments" and protocol not in streams.GROWING:
                note = f"one call of {COUNT * streams.WIDTH} characters in one event"
            yield Row("S1", f"{protocol} {kind}: decode / orjson alone", target, whole / alone, note=note)
            yield Row("S1", f"{protocol} {kind}: with all stages / decode", 1.5, staged / whole)


def growth() -> Iterator[Row]:
    """S4: arguments of one call, 500 → 8,000 deltas."""
    for protocol in streams.GROWING:
        for kind, growing in GROWING.items():
            written = [streams.frames(protocol, kind, size) for size in SIZES]
            pieces = [streams.blocks(item) for item in written]
            for mode, run, fed in (
                ("decode", decode, pieces),
                ("one event a feed", decode, written),
                ("all stages", decode_staged, pieces),
                ("partial read on every delta", partial(decode_looking, growing=growing), written),
            ):
                seconds = fastest(*((lambda one=one: run(protocol, one)) for one in fed), repeats=5)  # noqa: B023
                yield Row("S4", f"{protocol} {kind}, {mode}: growth exponent", 1.1, exponent(SIZES, seconds), "")
    pieces_largest = streams.blocks(streams.frames("openai-chat", "arguments", SIZES[-1]))
    (ours,) = fastest(lambda: decode_looking("openai-chat", pieces_largest, "edits"), repeats=5)
    texts = streams.cut(streams.nested_arguments(SIZES[-1]), streams.WIDTH)
    (theirs,) = fastest(lambda: jiter_each(texts), repeats=1)
    what = "a call of 8,000 deltas, read on every delta: jiter on every delta / ours"
    yield Row("S4", what, 50, theirs / ours, at_least=True)


def jiter_each(texts: list[str]) -> None:
    whole = ""
    for text in texts:
        whole += text
        jiter.from_json(whole.encode(), partial_mode="trailing-strings")


def looking() -> Iterator[Row]:
    """S5: what a look at every delta adds, beside json.loads of every event."""
    for protocol in streams.GROWING:
        for kind, growing in GROWING.items():
            written = streams.frames(protocol, kind, COUNT)
            plain, looked, loads = fastest(
                lambda: decode(protocol, written),  # noqa: B023
                lambda: decode_looking(protocol, written, growing),  # noqa: B023
                each(json.loads, streams.payloads(protocol, written)),
            )
            what = f"{protocol} {kind}: added by a look at every delta / json.loads of every event"
            yield Row("S5", what, 0.5, (looked - plain) / loads)


def parallel() -> Iterator[Row]:
    """S6: 50 calls of 9 deltas, per delta, beside one call of as many deltas."""
    for protocol in streams.GROWING:
        count = streams.deltas(protocol, "parallel", 50)
        many, one = (streams.frames(protocol, *kind) for kind in (("parallel", 50), ("arguments", count)))
        pieces = streams.blocks(many), streams.blocks(one)
        of_many, of_one, loads_many, loads_one = fastest(
            *((lambda fed=fed: decode(protocol, fed)) for fed in pieces),  # noqa: B023
            *(each(orjson.loads, streams.payloads(protocol, written)) for written in (many, one)),
        )
        note = f"orjson alone × {loads_many / loads_one:.2f}"
        yield Row("S6", f"{protocol}: a delta of 50 calls / a delta of one call", 1.3, of_many / of_one, note=note)
    for protocol in streams.PROTOCOLS:
        if protocol not in streams.GROWING:
            fifty, four_hundred = (streams.blocks(streams.frames(protocol, "parallel", count)) for count in (50, 400))
            seconds = fastest(lambda: decode(protocol, fifty), lambda: decode(protocol, four_hundred))  # noqa: B023
            note = f"{seconds[0] / 50 * 1e6:.0f} CPU-µs a call"
            yield Row(
                "S6",
                f"{protocol}: 50 → 400 whole calls: growth exponent",
                1.1,
                exponent((50, 400), seconds),
                "",
                note=note,
            )


def extremes() -> Iterator[Row]:
    """S7: one event of up to 1 MB in packets of 1 KB; up to 100,000 events of a packet each."""
    for protocol in streams.PROTOCOLS:
        sizes = (MEGABYTE // 8, MEGABYTE // 2, MEGABYTE)
        packets = [in_packets(protocol, size) for size in sizes]
        seconds = fastest(*((lambda one=one: decode(protocol, one)) for one in packets), repeats=5)  # noqa: B023
        what = f"{protocol}: one event of 128 KB → 1 MB in 1 KB packets: growth exponent"
        yield Row("S7", what, 1.1, exponent(sizes, seconds), "", note=f"1 MB in {seconds[-1] * 1000:.1f} CPU-ms")
    counts = (10_000, 100_000)
    for protocol in streams.PROTOCOLS:
        tiny = [streams.frames(protocol, "text", count) for count in counts]
        seconds = fastest(*((lambda one=one: decode(protocol, one)) for one in tiny), repeats=3)  # noqa: B023
        what = f"{protocol}: 10,000 → 100,000 packets of one event: growth exponent"
        yield Row("S7", what, 1.1, exponent(counts, seconds), "", note=f"{seconds[-1]:.2f} CPU-s per 100k")


def in_packets(protocol: str, size: int) -> list[bytes]:
    written = streams.WRITERS[protocol](["x" * size], [])
    return streams.blocks(written, 1024)
