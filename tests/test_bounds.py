"""Answers that never end are ended: parts, bytes, and what is held of an answer that is given in one piece."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest

from cases import counter
from dragoman.assembly import MOST_PARTS
from dragoman.client import stream as stream_module
from dragoman.client.http1 import READ_SIZE, HttpConnection
from dragoman.contract import Decoder
from dragoman.events import Event, Failure, Finish, Reply, TextDelta, ToolCallEnd, unfold
from dragoman.framing import FRAME_LIMIT, RESPONSE_LIMIT
from dragoman.protocols import PROTOCOLS
from dragoman.types import NO_USAGE, Part, StopReason, Text, ToolCall
from gateway.running import gateway
from gateway.test_door import body_with, path_of
from scripted import chunk, head

MEBIBYTE = 1024 * 1024


def written(protocol: str, reply: Reply, *, whole: bool) -> bytes:
    if whole:
        return PROTOCOLS[protocol].render_response(reply, new_id=counter(), model="m", created=1)
    return PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1).encode(unfold(reply))


def calls(count: int) -> Reply:
    parts = tuple(ToolCall(f"call_{number}", "note", f'{{"n": {number}}}') for number in range(count))
    return said(parts, "tool_use")


def said(parts: tuple[Part, ...], reason: StopReason) -> Reply:
    return Reply("r", "m", 1, parts, reason, None, NO_USAGE, None, None, (), ())


def read(protocol: str, data: bytes) -> list[Event]:
    decoder: Decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=frozenset({"note"}))
    return [*decoder.feed(data), *decoder.close()]


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_of_an_answer_are_bounded(protocol: str, whole: bool) -> None:
    events = read(protocol, written(protocol, calls(MOST_PARTS + 50), whole=whole))
    assert sum(type(event) is ToolCallEnd for event in events) <= MOST_PARTS
    last = events[-1]
    assert isinstance(last, Failure) and last.kind == "too_large" and f"at most {MOST_PARTS} parts" in last.message
    events = read(protocol, written(protocol, calls(MOST_PARTS - 50), whole=whole))
    assert sum(type(event) is ToolCallEnd for event in events) == MOST_PARTS - 50 and isinstance(events[-1], Finish)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bytes_of_an_answer_are_bounded(protocol: str, is_packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of text without an end."""
    assert RESPONSE_LIMIT > FRAME_LIMIT
    monkeypatch.setattr("dragoman.framing.RESPONSE_LIMIT", MEBIBYTE)
    decoder = PROTOCOLS[protocol].decoder(new_id=counter())
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1)
    first = encoder.encode(unfold(said((Text("word"),), "stop"))[:2])
    events = decoder.feed(gzip.compress(first) if is_packed else first)
    size = 0
    for _ in range(1_000):
        data = encoder.encode([TextDelta(0, "word " * 1_000)])
        size += len(data)
        events += decoder.feed(gzip.compress(data) if is_packed else data)
        if events and isinstance(events[-1], Failure):
            break
    last = events[-1]
    assert isinstance(last, Failure) and last.kind == "too_large", last
    assert "the response is larger than" in last.message and size < 1.3 * MEBIBYTE


@pytest.mark.parametrize("client", PROTOCOLS)
def test_what_is_held_for_an_answer_in_one_piece_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    """A provider that streams all the same, to a client that asked for the answer in one piece."""
    monkeypatch.setattr(stream_module, "_MOST_EVENTS", 500)
    line = b'{"model":"m","message":{"role":"assistant","content":"word "},"done":false}\n'
    with gateway(tmp_path) as running:
        running.answer([head(200, content_type="application/x-ndjson"), *[chunk(line * 20)] * 200])
        code, _, answer = running.request(*asking(client, "via-ollama-chat"))
        assert code == 502 or code == 413, answer
        assert "too large" in PROTOCOLS[client].parse_error(code, answer).message


def asking(client: str, model: str) -> tuple[str, str, bytes]:
    body = json.loads(body_with(client, "{}")) | {"model": model, "stream": False}
    return "POST", path_of(client).replace("via-openai-chat", model), json.dumps(body).encode()


def test_after_each_full_read_others_have_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that sends as fast as it can: the loop's other work is done between two reads of it."""
    line = json.dumps({"model": "m", "message": {"role": "assistant", "content": "x" * 3_000}, "done": False}) + "\n"
    end = json.dumps(
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    )
    marks: list[str] = []
    done = threading.Event()
    before = HttpConnection.buffer_updated

    def noted(self: HttpConnection, nbytes: int) -> None:
        marks.append("full" if nbytes == READ_SIZE else "part")
        before(self, nbytes)

    with gateway(tmp_path) as running:

        def tick() -> None:
            marks.append("tick")
            if not done.is_set():
                running.loop.call_soon(tick)

        monkeypatch.setattr(HttpConnection, "buffer_updated", noted)
        data = line.encode() * 2_000 + end.encode() + b"\n"
        running.answer([head(200, content_type="application/x-ndjson"), chunk(data), b"0\r\n\r\n"])
        running.loop.call_soon_threadsafe(tick)
        method, path, body = asking("ollama-chat", "via-ollama-chat")
        code, _, answer = running.request(method, path, body.replace(b'"stream": false', b'"stream": true'))
        done.set()
    assert code == 200 and answer.count(b"x" * 3_000) == 2_000
    assert marks.count("full") > 5
    assert "full full" not in " ".join(marks)
