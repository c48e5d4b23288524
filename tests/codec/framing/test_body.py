"""Where frames end, whatever the body turns out to be and however its bytes arrive."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bounds import AnswerBounds
from dragoman.codec.framing import event_stream
from dragoman.codec.framing.body import BodyReader, TooLarge, write_event
from dragoman.codec.framing.plain_keys import has_escaped_letters, may_have_escapes
from for_each import for_each
from growth import calls_made


def read(pieces, **settings):
    """Frames, deviation codes (each once) and the reader."""
    codes: list[str] = []
    settings.setdefault("of_calls", (b"call",))
    reader = BodyReader(lambda code, where, seen: None if code in codes else codes.append(code), **settings)
    frames = [frame for piece in pieces for frame in reader.feed(piece)]
    frames += reader.close()
    return frames, codes, reader


A, B, DONE = (b'{"a":1}', b""), (b'{"b":2}', b""), (b"[DONE]", b"")

BODIES = [
    # body, frames, deviations, kind
    (b'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n', [A, B, DONE], [], "events"),
    (b'data:{"a":1}\n\ndata:  {"b":2}\n\n', [A, (b' {"b":2}', b"")], [], "events"),
    (b'event: x\ndata: {"a":1}\n\nevent:y\ndata: {"b":2}\n\n', [(A[0], b"x"), (B[0], b"y")], [], "events"),
    (b'data: {"a":1}\r\n\r\ndata: {"b":2}\r\n\r\n', [A, B], [], "events"),
    (b'data: {"a":1}\r\rdata: {"b":2}\r\r', [A, B], [], "events"),
    (b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n', [A, B, DONE], ["single-newline"], "events"),
    (b'foo: bar\n\ndata: {"a":1}\n\n', [A], ["stray-text"], "events"),  # a field that nobody knows
    (b'comment\r\ndata: {"a":1}\r\n\r\n', [A], ["stray-text"], "events"),
    (b'data: {"a":1}\n\nda\n\ndata: {"b":2}\n\n', [A, (b"da", b""), B], ["stray-text"], "events"),
    (b'data: {"a":1}\n\neve\n\ndata: {"b":2}\n\n', [A, (b"eve", b""), B], ["stray-text"], "events"),
    (b'data: {"a":1}\nevent: call\n\ndata: {"b":2}\nevent: call\n\n', [A, B], [], "events"),  # Bedrock
    (b'event: ca\n\ndata: {"b":2}\n\n', [(b"event: ca", b""), B], [], "events"),
    (b'event: ping\n\nevent: call\ndata:\n\n', [(b"event: call", b"")], [], "events"),
    (b'data: {"a":\ndata: 1}\n\n', [(b'{"a":\n1}', b"")], [], "events"),
    (b'data: {\n"a": 1\n}\n\n', [(b'{\n"a": 1\n}', b"")], [], "events"),
    (b': ping\n\nid: 7\nretry: 9\ndata: {"a":1}\nevent: message\n\n: ping\n', [A], [], "events"),
    (b"event: alone\n\ndata: {}\n\n", [(b"{}", b"")], [], "events"),
    (b'data: \n\ndata: {"a":1}\n\n', [A], [], "events"),
    (b'data: data: {"a":1}\n\n', [A], ["double-data-prefix"], "events"),
    (b'data: {"a":1}\n\n{"b":2}\n', [A, B], ["bare-json-line"], "events"),
    (b'data: {"a":1}\n\nupstream said no\n', [A], ["stray-text"], "events"),
    (b'data: {"a":1}', [A], [], "events"),
    (b'data: {"a":1}\n\ndata: {"b', [A, (b'{"b', b"")], [], "events"),
    (b'\xef\xbb\xbfdata: {"a":1}\n\n', [A], ["byte-order-mark"], "events"),
    (b'\n\n  \ndata: {"a":1}\n\n', [A], [], "events"),
    (b"[DONE]\n", [DONE], ["bare-json-line"], "events"),
    (b'{"a":1}\n{"b":2}\n', [A, B], [], "lines"),
    (b'{"a":1}\r\n\r\n{"b":2}', [A, B], [], "lines"),
    (b'{"a":1}\ndata: {"b":2}\n', [A, B], ["stray-text"], "lines"),
    (b'{"a":1}', [A], [], "document"),
    (b'{"a":1}{"b":2}', [A, B], ["bare-json-line"], "document"),
    (b'{\n  "a": 1\n}\n', [(b'{\n  "a": 1\n}\n', b"")], [], "document"),
    (b'{"a":\n{"b":2}\n{"a":1}\n', [(b'{"a":', b""), B, A], [], "lines"),
    (b'[{"a":1},\r\n{"b":2}\n]', [A, B], [], "array"),
    (b'[{"a":"]},[\\""}\n,[1,2],3]', [(b'{"a":"]},[\\""}', b""), (b"[1,2]", b""), (b"3", b"")], [], "array"),
    (b'[{"a":1},{"b', [A, (b'{"b', b"")], [], "array"),
    (b"<html><h1>502</h1></html>", [], [], "text"),
    (b"no healthy upstream", [], [], "text"),
    (b"nope", [], [], "text"),
    (b"", [], [], "unknown"),
    (b" \n", [], [], "unknown"),
    (gzip.compress(b'data: {"a":1}\n\ndata: {"b":2}\n\n', mtime=0), [A, B], ["mislabelled-gzip"], "events"),
    ("data: \"a\u2028b\u2029c\u0085d\"\n\n".encode(), [("\"a\u2028b\u2029c\u0085d\"".encode(), b"")], [], "events"),
]  # fmt: skip


@for_each(("body", "frames", "codes", "kind"), BODIES, ids=[repr(row[0][:40]) for row in BODIES])
def test_what_a_body_holds(body, frames, codes, kind):
    found, reported, reader = read([body])
    assert (found, reported, reader.kind) == (frames, codes, kind)


@for_each("body", [row[0] for row in BODIES], ids=repr)
def test_the_cut_does_not_matter(body):
    whole, codes, reader = read([body])
    assert read([bytes([byte]) for byte in body])[:2] == (whole, codes)
    for cut in range(len(body) + 1):
        pieces = [body[:cut], body[cut:]]
        found, reported, other = read(pieces)
        assert (found, reported, other.kind, other.stray) == (whole, codes, reader.kind, reader.stray), pieces


PIECES = [
    b"data: ", b"{", b"}", b'"', b"\\", b"\n", b"\r", b"\n\n", b"[", b"]", b",", b"event: x", b'{"a":1}', b": c",
    b"\x1f\x8b", b"\xef\xbb\xbf", b"[DONE]", b"z", b"\xff",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)), st.data())
def test_no_bytes_make_it_fail_and_no_cut_changes_it(parts, data):
    body = b"".join(parts)
    whole = read([body])[:2]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    pieces = [body[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert read(pieces)[:2] == whole


@for_each(
    "pieces",
    [
        [b"data: " + b"x" * 2000],
        [b"data: " + b"x" * 600, b"y" * 600],
        [b"data: {\n" + b"data: 1,\n" * 600],
        [b'{"a":"' + b"x" * 2000],
        [b'[{"a":"', b"x" * 2000],
        [gzip.compress(b"x" * 100_000)],
    ],
    ids=["one", "two", "lines", "object", "array", "gzip"],
)
def test_a_frame_over_the_limit_is_refused(pieces):
    with pytest.raises(TooLarge):
        read(pieces, bounds=AnswerBounds(frame=1000))


@for_each("start", [b"data: {", b'{"a":"', b'[{"a":"'])
def test_a_long_frame_in_small_pieces_is_read_once(start):
    def pieces(number: int) -> list[bytes]:
        return [start, *[b"x" * 100] * number]

    assert calls_made(lambda: read(pieces(1200))) <= 4.1 * calls_made(lambda: read(pieces(300)))


def test_what_is_written_is_read_back():
    stream = write_event(b'{"a":1}') + write_event(b'{"b":2}', "name")
    assert read([stream])[0] == [A, (B[0], b"name")]
    assert read([b'{"a":1}\n{"b":2}\n'])[0] == [A, B]


def test_broken_gzip_says_the_same_however_it_is_cut() -> None:
    body = bytearray(gzip.compress(b'data: {"a":1}\n\n' * 40 + bytes(range(256)) * 4))
    body[-60] ^= 0xFF
    whole = read([bytes(body)])
    bytewise = read([bytes(body[at : at + 1]) for at in range(len(body))])
    assert whole[:2] == bytewise[:2]
    assert whole[0][0] == A
    assert "stray-text" in whole[1]


def test_gzip_that_grows_by_megabytes_says_the_same_however_it_is_cut() -> None:
    """It is unpacked in steps; a frame goes over their ends, and over the member's."""
    events = b"".join(b'data: {"n":%d,"text":"%b"}\n\n' % (number, b"x" * 3_000) for number in range(1_000))
    body = gzip.compress(events[:-1_000]) + gzip.compress(events[-1_000:])
    expected = read([events])[0]
    assert len(expected) == 1_000
    for size in (len(body), 700):
        found = read([body[place : place + size] for place in range(0, len(body), size)])
        assert found[:2] == (expected, ["mislabelled-gzip"])


def test_one_step_of_a_bomb_is_there_at_once() -> None:
    bomb = gzip.compress(b"{" + b"x" * (64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            read([bomb], bounds=AnswerBounds(frame=16 << 20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20


def test_gzip_in_many_members_is_bounded() -> None:
    body = gzip.compress(b'data: {"a":1}\n\n') + gzip.compress(b'data: {"b":2}\n\n')
    assert read([body])[0] == [A, B]
    assert read([gzip.compress(b"") * 20_000])[0] == []


#: (as it came, as it is given out): the letters of keys, and nothing of a value.
ESCAPED = [
    (rb'{"t\u006fol\u005Fcalls": [{"\u0061": "\u0061\\"}]}', rb'{"tool_calls": [{"a": "\u0061\\"}]}'),
    (rb'{"a\\u0061": 1, "\u0031": 2, "\u0022": 3}', rb'{"a\\u0061": 1, "\u0031": 2, "\u0022": 3}'),
    (rb'{"x": "\"\u0061\":1", "\u0078" :"\u0078"}', rb'{"x": "\"\u0061\":1", "x" :"\u0078"}'),
    (rb'{"x": "\u00e9\u003c", "\u00e9": "}"}', rb'{"x": "\u00e9\u003c", "\u00e9": "}"}'),
]


@pytest.mark.parametrize(("came", "given"), ESCAPED)
@pytest.mark.parametrize("form", ["events", "lines", "array", "document", "gzip"])
def test_no_frame_has_a_key_with_escaped_letters(
    came: bytes, given: bytes, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_SMALL", 0)  # few bytes are read together too
    plain = b'{"a": "\\n"}'
    many = [plain] * 9 + [came] + [plain] * 9
    events = b"".join(write_event(each) for each in many)
    body = {
        "events": events,
        "lines": b"".join(each + b"\n" for each in many),
        "array": b"[" + b",".join(many) + b"]",
        "document": came,
        "gzip": gzip.compress(events),
    }[form]
    wanted = [(each, b"") for each in ([given] if form == "document" else [given if x is came else x for x in many])]

    class TakesNoBatch:
        def read_batch(self, lines: list[bytes]) -> int:
            assert came == given or came not in lines, "the key slips past"
            return 0

    decoder = TakesNoBatch()
    for size in (1, 2, 3, 7, 50, len(body)):
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        frames, _, _ = read(pieces, decoder=weakref.ref(decoder))
        assert [(data.strip(), name) for data, name in frames] == wanted, size


#: What a server may write at once, by what a body is: usual ones, and those that a glance takes for usual ones.
WRITES = {
    "events": [
        b'data: {"a":1}\n\n', b'data: {"a":1}\r\n\r\n', b'data: {"a":\r1}\n\n', b'data: {"a":\n1}\n\n', b": c\n\n",
        b'event: x\ndata: {"a":1}\n\n', b'event: x\ndata: {"a":\r1}\n\n', b'data: {"a":1}\n\ndata: {"b":2}\n\n',
        b'event: x\ndata: {"a":1}\n\nevent: x\ndata: {"b":2}\n\n', b'data: {"a":1', b'2}\n\n',
    ],
    "lines": [
        b'{"a":1}\n', b'{"a":\r1}\n', b'{"a":1}\r\n', b'{"a":1}\n{"b":2}\n', b'{"a"', b":1}\n", b"\n",
    ],
}  # fmt: skip


@for_each("kind", WRITES)
def test_what_was_written_at_once_does_not_matter(kind: str) -> None:
    for writes in itertools.product(WRITES[kind], repeat=3):
        pieces = [WRITES[kind][0], *writes, WRITES[kind][0]]
        body = b"".join(pieces)
        frames, codes, _ = read(pieces)
        assert (frames, codes) == read([body[at : at + 1] for at in range(len(body))])[:2], pieces


LONG = b'{"a":"%b"}' % (b"x" * 5000)


@for_each("end", [b"\n\n", b"\r\n\r\n", b"\n", b"\r\n", b"\n\r\n"])
@for_each("long", [LONG, LONG.replace(b":", b":\r"), LONG.replace(b":", b":\n"), LONG[:-1], LONG + b"\nid: 1"])
def test_long_events_are_read_as_short_ones_in_their_order(end: bytes, long: bytes) -> None:
    class TakesAll:
        def read_batch(self, lines: list[bytes]) -> int:
            seen.extend(lines)
            return len(lines)

    decoder = TakesAll()
    events = [long, long, *[b'{"b":%d}' % number for number in range(400)]]
    body = b"".join(b"data: " + event + end for event in events)
    seen: list[bytes] = []
    reader = BodyReader(lambda code, where, what: None, decoder=weakref.ref(decoder))
    for frame, _ in reader.feed(body):
        seen.append(frame)
    seen += [frame for frame, _ in reader.close()]
    assert seen == [frame for frame, _ in read([body[at : at + 1] for at in range(len(body))])[0]]


@for_each("kind", WRITES)
def test_an_answer_over_its_limit_is_refused_however_it_is_written(kind: str) -> None:
    write = WRITES[kind][0]
    bounds = AnswerBounds(answer=len(write) * 4)
    assert len(read([write] * 4, bounds=bounds)[0]) == 4
    for pieces in ([write] * 5, [write * 5], [write * 4, write]):
        with pytest.raises(TooLarge):
            read(pieces, bounds=bounds)


@for_each("count", [0, 1, 15, 16, 17, 2000])
@for_each("escape", ["", "\\u006f", "\\u003c"])
@for_each("filling", ["a", "a" * 300])
@for_each("end", ["z", "\\"])
def test_escapes_of_letters_are_found_behind_few_and_many_others(
    count: int, escape: str, filling: str, end: str
) -> None:
    """Those of a long text are looked for one by one at first."""
    data = "".join([*[f"{filling}\\n"] * count, escape, "z" * 5000, end]).encode()
    assert has_escaped_letters(data) == (escape.endswith("6f"))
    assert may_have_escapes(data) == bool(escape)


@for_each("space", [b" ", b"\n", b"\r", b"\r\n", b"\t"])
@for_each("is_packed", [False, True], ids=["plain", "gzip"])
def test_white_space_before_a_body_takes_nothing(space: bytes, is_packed: bool) -> None:
    reader = BodyReader(lambda code, where, seen: None)
    lead = space * (2_000_000 // len(space))
    body = lead + b'data: {"a":1}\n\n'
    data = gzip.compress(body, mtime=0) if is_packed else body
    frames = []
    size = 500 if is_packed else 5_000
    tracemalloc.start()
    try:
        for start in range(0, len(data), size):
            frames += reader.feed(data[start : start + size])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert frames == [A]
    assert peak < (2_500_000 if is_packed else 100_000)  # what 500 bytes of gzip become is there at once


@for_each("size", [1, 7, 1_000_000])
def test_each_of_many_members_is_read_and_what_is_none_is_named(size: int) -> None:
    """A server that flushes each word writes hundreds into one read. Nothing behind the last one is lost silently."""
    members = b"".join(gzip.compress(b'data: {"a":%d}\n\n' % number, mtime=0) for number in range(600))
    for behind, codes in ((b"", []), (b"\0" * 9, []), (b"data: {}\n\n\x1f", ["stray-text"])):
        frames, told, *_ = read([(members + behind)[at : at + size] for at in range(0, len(members + behind), size)])
        assert frames == [(b'{"a":%d}' % number, b"") for number in range(600)]
        assert told == ["mislabelled-gzip", *codes]


def test_gzip_within_gzip_is_text() -> None:
    """There could be thousands of layers, each a level of the stack."""
    data = b'data: {"a":1}\n\n'
    for _ in range(1_200):
        data = gzip.compress(data, 1, mtime=0)
    for size in (len(data), 1_000):
        frames, codes, _ = read([data[start : start + size] for start in range(0, len(data), size)])[:3]
        assert not frames
        assert codes == ["mislabelled-gzip"]
