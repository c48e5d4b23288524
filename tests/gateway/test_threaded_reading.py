"""What is large in an answer is read in a thread: the loop's other work goes on, and nothing changes its place."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cases import counter
from dragoman.client.exchange import Exchange
from dragoman.client.passthrough.exchange import PassthroughExchange
from dragoman.client.streaming import threaded_reading
from dragoman.client.streaming.pouring import pour
from dragoman.client.streaming.threaded_reading import LONGEST, ThreadedReader
from dragoman.events import Event, Finish, Reply, TextDelta, TextStart, fold, unfold
from dragoman.gateway.stream_writer import StreamWriter
from dragoman.http.timeouts import Timeouts
from dragoman.protocols import PROTOCOLS
from dragoman.types import NO_USAGE, Text
from for_each import for_each
from gateway.running import gateway, stream_of, whole_of
from scripted import chunk, head
from test_bounds import asking

_LARGE = " ".join(map(str, range(400_000)))  # 2.6 MiB
_SAID = ("one ", _LARGE, " two", " three " * 20_000, " four")


def reply() -> Reply:
    return Reply("r", "m", 1, (Text("".join(_SAID)),), "stop", "stop", NO_USAGE, None, None, (), ())


def deltas() -> list[Event]:
    """The same, said in five pieces."""
    first, _, *last = (event for event in unfold(reply()) if type(event) is not TextDelta or event.text)
    return [first, TextStart(0), *(TextDelta(0, text) for text in _SAID), *last[1:]]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The thread and the size of each piece that was fed."""
    found: list[tuple[str, int]] = []
    for kind in (Exchange, PassthroughExchange):
        before = kind.feed

        def feed(self: Exchange, data: bytes, before=before) -> list[Event]:  # type: ignore[no-untyped-def]
            found.append((threading.current_thread().name, len(data)))
            return before(self, data)

        monkeypatch.setattr(kind, "feed", feed)
    return found


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The thread in which each batch of a stream was written, and how much came of it."""
    found: list[tuple[str, int]] = []

    def write(self: StreamWriter) -> object:
        encoder = before(self)

        def encode(events: list[Event]) -> bytes:
            data = encoder.encode(events)
            found.append((threading.current_thread().name, len(data)))
            return data

        rest = {name: getattr(encoder, name) for name in ("keepalive", "lost", "aborted")}
        self._encoder = SimpleNamespace(encode=encode, **rest) if not isinstance(encoder, SimpleNamespace) else encoder
        return self._encoder

    before = StreamWriter._write
    monkeypatch.setattr(StreamWriter, "_write", write)
    return found


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("provider", ["openai-chat", "ollama-chat", "gemini-generate"])
def test_a_large_frame_is_read_apart(
    tmp_path: Path,
    threads: list[tuple[str, int]],
    writers: list[tuple[str, int]],
    provider: str,
    client: str,
    is_stream: bool,
) -> None:
    """And what it is read into is written apart, each batch once."""
    with gateway(tmp_path) as running:
        loop_thread = running.run(name_of_thread())
        running.answer(stream_of(provider, deltas()) if is_stream else whole_of(provider, reply()))
        method, path, body = asking(client, f"via-{provider}")
        if is_stream:
            path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
            body = body.replace(b'"stream": false', b'"stream": true')
        code, _, answer = running.request(method, path, body)
    assert code == 200
    assert said(client, answer) == "".join(_SAID)
    assert {name for name, _ in threads} - {loop_thread}, "nothing was read apart"
    assert sum(size for name, size in threads if name == loop_thread) < 1024 * 1024
    assert max((size for name, size in writers if name == loop_thread), default=0) < 100_000, (
        "it was written in the loop"
    )


async def name_of_thread() -> str:
    return threading.current_thread().name


def said(client: str, answer: bytes) -> str:
    decoder = PROTOCOLS[client].decoder(new_id=counter())
    events = [*decoder.feed(answer), *decoder.close()]
    assert isinstance(events[-1], Finish), events[-1]
    return fold(events).text


def test_small_frames_are_read_in_the_loop(tmp_path: Path, threads: list[tuple[str, int]]) -> None:
    line = json.dumps({"model": "m", "message": {"role": "assistant", "content": "word "}, "done": False}) + "\n"
    end = '{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
    with gateway(tmp_path) as running:
        loop_thread = running.run(name_of_thread())
        data = (line * 150 + end).encode()
        running.answer([head(200, content_type="application/x-ndjson"), chunk(data), b"0\r\n\r\n"])
        method, path, body = asking("openai-chat", "via-ollama-chat")
        code, _, _ = running.request(method, path, body.replace(b'"stream": false', b'"stream": true'))
    assert code == 200 and {name for name, _ in threads} == {loop_thread}


@pytest.mark.parametrize("unit", ["#,", "x\n", "{}\n", "data: x\n\n"])
def test_what_is_much_work_is_read_apart(tmp_path: Path, threads: list[tuple[str, int]], unit: str) -> None:
    """Few bytes may hold many frames: of one read the loop takes what it reads in some milliseconds."""
    first = "[" if unit == "#," else '{"a":1}\n' if unit[-2] != "\n" else ""
    data = (first + unit * (120_000 // len(unit))).encode()
    with gateway(tmp_path) as running:
        loop_thread = running.run(name_of_thread())
        running.answer([head(200, content_type="text/event-stream"), chunk(data), b"0\r\n\r\n"])
        method, path, body = asking("openai-chat", "via-ollama-chat")
        code, _, _ = running.request(method, path, body.replace(b'"stream": false', b'"stream": true'))
    assert code == 502
    assert sum(size for _, size in threads) == len(data), "bytes were lost or read twice"
    in_the_loop = [size for name, size in threads if name == loop_thread]
    assert max(in_the_loop) < LONGEST and {name for name, _ in threads} != {loop_thread}


def test_bytes_in_slices_are_the_same_bytes() -> None:
    """Whatever is read apart, in order, and none is lost."""
    fed: list[bytes] = []
    apart = ThreadedReader(lambda data: fed.append(data) or [], most=100_000)  # type: ignore[func-returns-value]
    data = b"".join(b"%d\n" % number for number in range(12_000))
    events, rest = apart.some(data)
    assert not events and b"".join([*fed, rest]) == data and max(map(len, fed)) < LONGEST
    assert apart.unread + len(rest) == len(data)


_EVENT = (
    b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}],"id":"chatcmpl-1","object":"chat.completion.chunk"}\n\n'
)


@pytest.mark.parametrize(
    ("first", "event", "is_usual"),
    [
        pytest.param(b"", _EVENT % b"word", True, id="usual"),
        pytest.param(b"\n", _EVENT % b"word", False, id="a body that may be cut otherwise"),
        pytest.param(b"", b'data: {"x":1}\n\n', False, id="short events"),
        pytest.param(b"", _EVENT % (b"<" * 4), False, id="tags"),
        pytest.param(b"", _EVENT % (b">" * 8), False, id="ends of tags"),
        pytest.param(b"", _EVENT % (b'\\"' * 16), False, id="escapes"),
        pytest.param(b"", _EVENT % (b"{" * 16), False, id="objects"),
    ],
)
def test_only_usual_events_are_read_in_large_parts(first: bytes, event: bytes, is_usual: bool) -> None:
    """6 KiB of anything take some milliseconds, and so do 48 KiB of long events that hold little that may be a call."""
    fed: list[int] = []
    apart = ThreadedReader(lambda data: fed.append(len(data)) or [], most=1_000_000)  # type: ignore[func-returns-value]
    data = first + event * (45_000 // len(event))
    events, rest = apart.some(data[:20])
    assert not events and not rest
    _, rest = apart.some(data[20:])
    assert sum(fed) + len(rest) == len(data)
    assert max(fed) == len(data) - 20 if is_usual else max(fed) < LONGEST


@for_each("count", [0, 1, 40, 100, 101, 900])
def test_rare_bytes_are_counted(count: int) -> None:
    data = b"{".join([b"some text"] * (count + 1))
    assert data.count(b"{") == count
    assert threaded_reading._is_rare(b"{", data, 100) == (count <= 100)
    assert threaded_reading._is_rare(b"{", data, count)
    assert not count or not threaded_reading._is_rare(b"{", data, count - 1)


def test_a_client_that_goes_meanwhile_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread is at work when nobody waits any more: its answer is given to nobody."""
    started, goes_on, given = threading.Event(), threading.Event(), []
    before = ThreadedReader.stop
    stopped = threading.Event()

    def stop(self: ThreadedReader) -> None:
        before(self)
        stopped.set()

    feed = Exchange.feed

    def slow(self: Exchange, data: bytes) -> list[Event]:
        events = feed(self, data)
        if threading.current_thread().name != loop_thread:
            started.set()
            goes_on.wait(10)
            given.append(len(events))
        return events

    with gateway(tmp_path) as running:
        loop_thread = running.run(name_of_thread())
        monkeypatch.setattr(Exchange, "feed", slow)
        monkeypatch.setattr(ThreadedReader, "stop", stop)
        running.answer(stream_of("ollama-chat", deltas()))
        method, path, body = asking("openai-chat", "via-ollama-chat")
        with socket.create_connection(("127.0.0.1", running.gateway.port)) as plain:
            body = body.replace(b'"stream": false', b'"stream": true')
            head_lines = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
            plain.sendall(head_lines.encode() + body)
            assert started.wait(10)
        assert stopped.wait(10)
        goes_on.set()
        running.answer(stream_of("ollama-chat", deltas()))
        monkeypatch.undo()
        code, _, answer = running.request(method, path, body)
        assert code == 200 and said("openai-chat", answer) == "".join(_SAID)
    assert given


def test_what_takes_long_is_left_to_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the processor's clock, and by what came without an event."""
    data, fed = _EVENT * 1_500, list[int]()
    ticks = itertools.count()
    for seconds, most, parts in ((1.0, 1_000_000, 1), (0.0, 1_000_000, 0), (0.0, 60_000, 0)):
        monkeypatch.setattr(threaded_reading.time, "thread_time", lambda step=seconds: next(ticks) * step)
        fed.clear()
        apart = ThreadedReader(lambda data: fed.append(len(data)) or [], most=most)  # type: ignore[func-returns-value]
        assert apart.some(data[:20]) == ([], b"")
        _, rest = apart.some(data[20:])
        assert sum(fed) + len(rest) == len(data) and bool(rest) == (parts == 1 or most < len(data)), (seconds, most)
        assert not parts or len(fed) == 2, "more was read than one part"


def test_the_end_of_much_is_read_in_a_thread() -> None:
    async def end(size: int) -> str:
        apart = ThreadedReader(lambda data: [TextDelta(0, "a")])
        await apart.run(b"data: " + b"a" * size)
        threads: list[str] = []
        await apart.end(lambda: threads.append(threading.current_thread().name) or [])  # type: ignore[func-returns-value]
        return threads[0]

    here = threading.current_thread().name
    assert asyncio.run(end(100)) == here != asyncio.run(end(200_000))


@for_each("fed", [[[TextDelta(0, "ab")]], [[TextDelta(0, "ab"), TextDelta(0, "c")]], [[]]])
def test_what_is_poured_is_counted(fed: list[list[Event]]) -> None:
    """Text for the meter, all bytes for the end, and those without an event for the next ones."""
    read, given = 400, list[Event]()
    exchange = SimpleNamespace(feed=lambda data: list(fed[0]), ended=False)
    apart, meter, watch = (
        ThreadedReader(exchange.feed, most=5_000),
        SimpleNamespace(grown=0, usage=None),
        SimpleNamespace(),
    )
    watch.last_byte = watch.last_event = 0.0

    async def body(take: Callable[[bytes], None]) -> None:
        for _ in range(10):
            take(b"x" * read)

    response = SimpleNamespace(pour=body)
    timeouts = Timeouts()
    work = pour(response, exchange, None, apart, watch, give=given.extend, send=bytes, timeouts=timeouts, meter=meter)
    assert asyncio.run(work) is None
    assert given == fed[0] * 10 and meter.grown == sum(len(event.text) for event in given)
    assert apart.size == 10 * read and apart.unread == (0 if fed[0] else 10 * read)


@for_each("first", [1, 2, 100])
def test_what_is_packed_is_read_in_a_thread(first: int) -> None:
    """A few bytes of it may be a thousand times as many."""
    threads: list[str] = []
    apart = ThreadedReader(lambda data: threads.append(threading.current_thread().name) or [])  # type: ignore[func-returns-value]
    data = gzip.compress(_EVENT * 100)

    async def run() -> None:
        await apart.run(data[:first])
        await apart.run(data[first:])
        assert apart.is_due(1)

    asyncio.run(run())
    assert threading.current_thread().name not in threads and len(threads) == 2
