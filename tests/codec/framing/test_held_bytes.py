"""What is held of a body does not depend on how a network cut it, and neither does the time."""

from __future__ import annotations

import ast
import gc
import random
import re
import time
import tracemalloc
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from dragoman.client.passthrough.frames import Frames
from dragoman.codec.framing.body import BodyReader
from dragoman.codec.framing.json_array import ArrayItems
from dragoman.gathered import Gathered
from for_each import for_each
from patterns import ROOT
from profiles import some

SIZE = 12_000
#: Bodies of which nothing leaves before their ends.
BODIES = {
    "a document": b'{\n"a":"',
    "an object": b'{"a":"',
    "a list": b'[{"a":"',
    "an event": b'data: {"a":"',
    "an event's name": b"event: ",
    "a line": b'{"a":1}\n{"a":"',
    "a text": b"Sorry! ",
    "a word": b"w",
    "a mark of the byte order": b"\xef\xbb\xbf",
}
FILLS = {
    "letters": b"x",
    "spaces": b" ",
    "line ends": b"\n",
    "carriage returns": b"\r",
    "backslashes": b"\\",
    "zeros": b"\0",
}


def held(feed: Callable[[bytes], object], data: bytes, size: int) -> int:
    """The most bytes that were held while a body came in packets of a size."""
    gc.collect()
    tracemalloc.start()
    try:
        for start in range(0, len(data), size):
            feed(data[start : start + size])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reader() -> Callable[[bytes], object]:
    body = BodyReader(lambda code, where, seen: None)
    return lambda data: list(body.feed(data))


@for_each("fill", FILLS)
@for_each("kind", BODIES)
def test_a_body_in_small_packets_takes_at_most_twice_its_bytes(kind: str, fill: str) -> None:
    data = BODIES[kind] + FILLS[fill] * (SIZE // 3)
    for size in some((1, 3, 64), f"{kind} {fill}", 2):
        assert held(reader(), data, size) <= 2 * len(data) + 8_192, size


def test_every_keeper_of_bytes_holds_at_most_twice_of_them() -> None:
    items, passed = ArrayItems(), Frames(by_lines=False)
    for keep in (Gathered().add, lambda data: list(items.feed(data)), passed.feed):
        for size in (1, 2, 3, 7, 64, 1023, 1024, 1025):
            assert held(keep, b"[" + b"x" * SIZE, size) <= 2 * SIZE + 8_192, size


def test_pieces_come_back_as_they_were() -> None:
    data = bytes(range(256)) * 40
    for size in (1, 2, 1023, 1024, 1025, 5000):
        kept = Gathered()
        for start in range(0, len(data), size):
            kept.add(data[start : start + size])
        assert kept and kept.size == len(data)
        assert kept.joined() == kept.take() == data
        assert not kept and kept.take() == b""


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"x", b"data: 1", b"\r\n\r\n"]), max_size=12),
    st.randoms(),
)
def test_frames_that_pass_are_cut_where_their_bytes_say(pieces: list[bytes], chance: random.Random) -> None:
    """However a stream is cut: what leaves is what a search over all that is held gives."""
    data = b"".join(pieces)
    for by_lines in (False, True):
        ends = (b"\n",) if by_lines else (b"\n\n", b"\r\n\r\n")
        passed, left, at = Frames(by_lines=by_lines), b"", 0
        while at < len(data):
            size = chance.randrange(1, 5)
            packet = data[at : at + size]
            held = data[len(left) : at] + packet
            whole = max((held.rfind(end) + len(end) for end in ends if end in held), default=0)
            assert passed.feed(packet) == held[:whole]
            left, at = left + held[:whole], at + size
        assert left + passed.close() == data


@for_each("fill", FILLS)
@for_each("kind", ["a document", "a list", "an event", "a line", "a mark of the byte order"])
def test_small_packets_take_linear_time(kind: str, fill: str) -> None:
    """Four times as many packets: a bound between four and sixteen times the time, the best of three."""
    few, many = (BODIES[kind] + FILLS[fill] * (64 * count) for count in (750, 3_000))
    most = 9 * min(seconds(few) for _ in range(3))
    assert any(seconds(many) <= most for _ in range(3))


def seconds(data: bytes) -> float:
    feed = reader()
    began = time.process_time()
    for start in range(0, len(data), 64):
        feed(data[start : start + 64])
    return time.process_time() - began


#: Lists of bytes and texts of ours in which pieces of what others sent may wait, and why small pieces do not fill them.
LISTS = {
    "client/streaming/threaded_reading.py _kept": "of one read: the response is paused meanwhile",
    "client/passthrough/exchange.py _kept_back": "the last frames of an answer, whole ones",
    "client/passthrough/read_along.py _kept": "of some milliseconds, 32 KiB at most",
    "codec/framing/event_stream.py alike": "data of events in one read",
    "codec/parts/response_end.py odd_frames": "frames of an answer that has said nothing, 32 of 16 KiB at most",
    "gateway/pages/stored_turn.py _held": "written by us: the end of an answer",
    "gateway/request_bodies.py pieces": "64 KiB each, of one body that is unpacked",
    "gateway/server/connection.py _body": "joined from 256 pieces on",
    "gateway/server/connection.py _lines": "fields of a head, whose number is bounded",
    "gateway/telemetry/metrics.py buffers": "of this machine's workers",
    "gathered.py _pieces": "1 KiB each at least",
    "http/connection.py _lines": "fields of a head, whose bytes are bounded",
    "http/connection.py _pieces": "of one read; of a response that waits, joined from 64 on",
    "ledger/limits/seeding.py by_month": "of our own ledger",
    "protocols/anthropic/response/encode.py out": "written by us, for the events of one read",
    "protocols/gemini/response/encode.py out": "written by us, for the events of one read",
    "protocols/gemini/response/unmodelled.py _others": "frames without a candidate, each longer than its object",
    "protocols/ollama/legacy.py out": "written by us, for the events of one read",
    "protocols/ollama/response/encode.py out": "written by us, for the events of one read",
    "protocols/openai_chat/legacy.py out": "written by us, for the events of one read",
    "protocols/openai_chat/passthrough.py kept": "frames of one read",
    "protocols/openai_chat/response/calls.py _frames": "whole frames of calls that have no arguments yet, 64 at most",
    "protocols/openai_chat/response/encode.py out": "written by us, for the events of one read",
    "protocols/openai_responses/response/encode.py out": "written by us, for the events of one read",
}


def test_every_list_of_bytes_is_known() -> None:
    """One that is added is looked at: pieces as the network cut them belong into `Gathered`."""
    found = {
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for path in ROOT.rglob("*.py")
        if "list[bytes" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.AnnAssign) and re.match(r"(dict\[\w+, )?list\[bytes", ast.unparse(node.annotation))
        for name in [node.target.attr if isinstance(node.target, ast.Attribute) else ast.unparse(node.target)]
    }
    assert found == LISTS.keys()
