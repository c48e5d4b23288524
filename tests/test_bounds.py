"""Answers that never end are ended: parts, bytes, and what is held of an answer that is given in one piece."""

from __future__ import annotations

import gzip
import json
import re
import threading
import tracemalloc
from pathlib import Path

import pytest

from cases import counter
from dragoman import _json
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.config import LimitsConfig
from dragoman.errors import RETRYABLE
from dragoman.events import (
    Event,
    Failure,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
    unfold,
)
from dragoman.http.connection import READ_SIZE, HttpConnection
from dragoman.pipe import Reader
from dragoman.protocol import Decoder
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.routing.circuit_breaker import COUNTED
from dragoman.routing.fallback import MOVES
from dragoman.types import NO_USAGE, Part, StopReason, Text, Tool, ToolCall
from for_each import for_each
from gateway.running import gateway
from gateway.test_door import body_with, path_of
from profiles import IS_SOAK
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


_NOTE = frozenset({"note"})


def read(protocol: str, data: bytes, bounds: AnswerBounds) -> list[Event]:
    decoder: Decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=_NOTE, bounds=bounds)
    return [*decoder.feed(data), *decoder.close()]


@for_each("whole", [False, True], ids=["streamed", "whole"])
@for_each("protocol", PROTOCOLS)
@for_each("bounds", [USUAL_BOUNDS, AnswerBounds(calls=200), AnswerBounds(parts=150)])
def test_calls_of_an_answer_are_bounded(bounds: AnswerBounds, protocol: str, whole: bool) -> None:
    if bounds is USUAL_BOUNDS and protocol != "openai-chat" and not IS_SOAK:
        return  # the usual ones are only larger
    most = min(bounds.calls, bounds.parts)
    events = read(protocol, written(protocol, calls(most + 50), whole=whole), bounds)
    assert sum(type(event) is ToolCallEnd for event in events) <= most
    last = events[-1]
    assert isinstance(last, Failure) and last.kind == "answer_too_large" and f"at most {most} " in last.message
    events = read(protocol, written(protocol, calls(most - 50), whole=whole), bounds)
    assert sum(type(event) is ToolCallEnd for event in events) == most - 50 and isinstance(events[-1], Finish)


@for_each("is_joined", [False, True])
@for_each("protocol", PROTOCOLS)
def test_nothing_is_told_behind_the_bound_of_parts(protocol: str, is_joined: bool) -> None:
    """Of parts that go on behind it no delta comes: the stages know no such part, and broke."""
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=_NOTE, bounds=AnswerBounds(parts=8))
    reader = Reader(decoder, stages_for((Tool("note", "", _json.raw({"type": "object"})),), Policy(), new_id=counter()))
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1)
    pieces = [encoder.encode([Start("r", "m", 1)])]
    for index in range(0, 24, 2):
        for event in (
            *(ThinkingStart(index), ThinkingDelta(index, "so"), ThinkingDelta(index, "on"), ThinkingEnd(index)),
            *(TextStart(index + 1), TextDelta(index + 1, "so"), TextDelta(index + 1, "on"), TextEnd(index + 1)),
        ):
            pieces.append(encoder.encode([event]))
    pieces.append(encoder.encode([Finish("stop")]))
    events = [event for data in ([b"".join(pieces)] if is_joined else pieces) for event in reader.feed(data)]
    events += reader.close()
    last = events[-1]
    assert isinstance(last, Failure) and last.kind == "answer_too_large" and "at most 8 parts" in last.message
    assert [type(event) for event in events].count(Failure) == 1


def test_notes_of_a_text_are_bounded():
    """300,000 of them took 247 MiB, in an answer of 45 MB."""
    chat = b'data: {"id":"r","choices":[{"index":0,"delta":{"content":"a","annotations":[{"type":"x"}]}}]}\n\n'
    cited = b'"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"x"}}}\n\n'
    start = b'data: {"type":"message_start","message":{"id":"r","content":[]}}\n\n'
    opened = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    early = b'data: {"id":"r","choices":[{"index":0,"delta":{"annotations":[{"type":"x"}]}}]}\n\n'
    sound = b'data: {"id":"r","choices":[{"index":0,"delta":{"audio":{"%x":1,"%x":1}}}]}\n\n'
    for protocol, first, more in (
        ("openai-chat", chat, chat),
        ("openai-chat", early, early),
        ("anthropic-messages", start + opened, b'data: {"type":' + cited),
    ):
        decoder = PROTOCOLS[protocol].decoder(new_id=counter(), bounds=AnswerBounds(parts=8))
        events = decoder.feed(first + more * 7)
        assert not any(isinstance(event, Failure) for event in events), protocol
        last = decoder.feed(more * 2)[-1]
        assert isinstance(last, Failure) and last.kind == "answer_too_large" and "at most 8 parts" in last.message
    decoder = PROTOCOLS["openai-chat"].decoder(new_id=counter(), bounds=AnswerBounds(parts=8))
    fields = [b"".join([sound % (number, number + 1) for number in range(start, start + 5, 2)]) for start in (1, 7)]
    assert not any(isinstance(event, Failure) for event in decoder.feed(fields[0]))
    last = decoder.feed(fields[1])[-1]
    assert isinstance(last, Failure) and last.kind == "answer_too_large" and "at most 8 parts" in last.message


def test_items_without_content_are_bounded():
    """300,000 of them took 380 MiB, in an answer of 34 MB: none was a part."""
    decoder = PROTOCOLS["openai-responses"].decoder(new_id=counter(), bounds=AnswerBounds(parts=8))
    start = b'data: {"type":"response.created","response":{"id":"r","output":[]}}\n\n'
    item = b'data: {"type":"response.output_item.done","output_index":%d,"item":{"type":"message","id":"m%d"}}\n\n'
    items = [item % (number, number) for number in range(9)]
    assert not any(isinstance(event, Failure) for event in decoder.feed(start + b"".join(items[:8])))
    last = decoder.feed(items[8])[-1]
    assert isinstance(last, Failure) and last.kind == "answer_too_large" and "at most 8 parts" in last.message


def test_fields_beside_the_usual_ones_are_bounded():
    """In objects as in objects of these; lists stay JSON, because log probabilities come with each token."""
    chat = b'data: {"id":"r","choices":[{"index":0,"delta":{%b},%b"finish_reason":null}]%b}\n\n'
    more = b"".join(b'"k%d":[{}],' % number for number in range(9))[:-1]
    deep = b'"x":{"y":[{"index":0,%b}]}' % more
    thought = b'"extra_content":{"google":{%b}}' % more
    late = b'data: {"id":"r","choices":[],"usage":{"prompt_tokens":1},%b}\n\n'
    for frame in (
        *(chat % (more, b"", b""), chat % (b"", more + b",", b""), chat % (deep, b"", b"")),
        *(chat % (thought, b"", b""), late % more),
    ):
        for most in (8, 32):
            decoder = PROTOCOLS["openai-chat"].decoder(new_id=counter(), bounds=AnswerBounds(members=most))
            events = decoder.feed(chat % (b'"content":"a"', b"", b"") + frame * 3)
            failed = [event for event in events if isinstance(event, Failure)]
            assert len(failed) == (most == 8), frame
            assert all(names_what_was_seen(event.message, "members") for event in failed)
    line = b'{"model":"m","message":{"role":"assistant","content":"a"%b}%b,"done":false}\n'
    gemini = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},%b}]}\n\n' % more
    told = (line % (b"," + more, b""), line % (b"", b"," + more), gemini)
    for frame in told:
        for most in (8, 32):
            protocol = "gemini-generate" if frame is gemini else "ollama-chat"
            decoder = PROTOCOLS[protocol].decoder(new_id=counter(), bounds=AnswerBounds(members=most))
            failed = [event for event in decoder.feed(frame * 3) if isinstance(event, Failure)]
            assert len(failed) == (most == 8), frame
            assert all(names_what_was_seen(event.message, "members") for event in failed)


def test_a_list_beside_the_usual_fields_takes_what_came():
    """Log probabilities took four times as much, and lists of small items 30 times."""
    items = b",".join([b'{"":1}'] * 2_000)
    chat = b'data: {"id":"r","choices":[{"index":0,"delta":{"xs":[%b]},"logprobs":{"content":[%b]}}]}\n\n'
    line = b'{"model":"m","message":{"role":"assistant","content":"a","xs":[%b]},"logprobs":[%b],"done":false}\n'
    for protocol, frame in (("openai-chat", chat % (items, items)), ("ollama-chat", line % (items, items))):
        decoder = PROTOCOLS[protocol].decoder(new_id=counter())
        decoder.feed(frame)
        tracemalloc.start()
        try:
            for _ in range(20):
                decoder.feed(frame)
            kept = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert kept < 2 * 20 * len(frame), protocol


@for_each("is_packed", [False, True])
@for_each("protocol", PROTOCOLS)
def test_bytes_of_an_answer_are_bounded(protocol: str, is_packed: bool) -> None:
    """Pieces of text without an end."""
    assert USUAL_BOUNDS.answer > USUAL_BOUNDS.frame
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), bounds=AnswerBounds(answer=MEBIBYTE))
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
    assert isinstance(last, Failure) and last.kind == "answer_too_large", last
    assert f"at most {MEBIBYTE} bytes" in last.message and size < 1.3 * MEBIBYTE


@for_each("protocol", PROTOCOLS)
def test_an_answer_beyond_a_bound_is_not_the_clients_fault(protocol: str) -> None:
    """Whole and in a stream it is told as an error of the server, and no program takes it for a request's."""
    wire, failure = PROTOCOLS[protocol], Failure("answer_too_large", "expected an answer of at most 1 bytes")
    status, body = wire.render_error(failure)
    assert status == 502
    stream = wire.encoder(new_id=counter(), model="m", created=1).encode([*unfold(calls(0))[:1], failure])
    for told in (body, stream):
        assert not any(word in told for word in (b"request_too_large", b"invalid", b"INVALID", b"413")), told
    assert wire.parse_error(status, body).kind in ("answer_too_large", "overloaded", "internal")


def test_no_other_try_is_paid_for_an_answer_beyond_a_bound() -> None:
    """Not at the same target, and no client's question keeps others from it; another target may do better."""
    assert "answer_too_large" not in RETRYABLE | COUNTED and "answer_too_large" in MOVES


# ---------------------------------------------------------------- every setting of [server.limits]

_LINE = '{"model":"m","message":{"role":"assistant","content":%s},"done":false}\n'
_CALL = '{"model":"m","message":{"role":"assistant","content":"","tool_calls":[%s]},"done":false}\n'


def _text(count: int) -> bytes:
    return (_LINE % json.dumps("word " * 200)).encode() * count


def _calls(count: int) -> bytes:
    call = '{"function":{"name":"note","arguments":{"n":%d}}}'
    return "".join(_CALL % (call % number) for number in range(count)).encode()


def _parts(count: int) -> bytes:
    thought = '{"model":"m","message":{"role":"assistant","thinking":"a","content":""},"done":false}\n'
    return (thought + _LINE % '"b"').encode() * count


def _body(**fields: object) -> bytes:
    question = {"role": "user", "content": "Hi"}
    return json.dumps({"model": "via-ollama-chat", "messages": [question], "stream": True} | fields).encode()


def _nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_ASKED = _body()
#: Setting → its value here, the body that breaks it (or the provider's answer to an ordinary one).
BREAKS: dict[str, tuple[int, bytes, bytes]] = {
    "body_mib": (1, _body(more="x" * MEBIBYTE), b""),
    "depth": (8, _body(more=_nested(9)), b""),
    "values": (100, _body(more=[1] * 200), b""),
    "members": (10, _body(more=dict.fromkeys("abcdefghijk", 1), also="x" * 300_000), b""),
    "messages": (3, _body(messages=[{"role": "user", "content": "Hi"}] * 4), b""),
    "tools": (2, _body(tools=[_TOOL] * 3), b""),
    "media_mib": (1, _body(more="A" * (MEBIBYTE // 3 * 4 + 8)), b""),
    "parts": (3, _ASKED, _parts(4)),
    "calls": (3, _ASKED, _calls(4)),
    "arguments_mib": (
        1,
        _ASKED,
        (_CALL % ('{"function":{"name":"note","arguments":{"n":"%s"}}}' % ("x" * MEBIBYTE))).encode(),
    ),
    "argument_values": (  # the call alone fails
        1_000,
        _ASKED.replace(b"true", b"false"),
        (_CALL % ('{"function":{"name":"note","arguments":{"n":[%s1]}}}' % ("1," * 1_000))).encode(),
    ),
    "frame_mib": (1, _ASKED, (_LINE % json.dumps("x" * (MEBIBYTE + 10))).encode()),
    "frame_values": (1_000, _ASKED, _LINE.replace("}\n", ',"more":[%s]}\n' % ("1," * 200_000 + "1")).encode() % b'""'),
    "answer_mib": (1, _ASKED, _text(1_200)),
    "whole_mib": (1, _ASKED.replace(b"true", b"false"), _text(1_200)),
}
#: Of these nothing of a chat is refused: tests/gateway/test_threaded_reading.py, and test_other_forms.py beside it.
NO_REFUSAL = {"apart_kib", "embeddings_mib", "embedding_kib"}


def test_every_setting_has_a_row() -> None:
    assert BREAKS.keys() | NO_REFUSAL == set(LimitsConfig.__struct_fields__)


@pytest.mark.parametrize("setting", BREAKS)
def test_a_broken_bound_names_itself_in_the_clients_form(tmp_path: Path, setting: str) -> None:
    """What breaks a setting is refused with its name; with the usual settings it is answered."""
    most, body, answer = BREAKS[setting]
    answered = [head(200, content_type="application/x-ndjson"), *([chunk(answer)] if answer else []), chunk(_END)]
    for table in (f"[server.limits]\n{setting} = {most}\n", ""):
        with gateway(tmp_path, table) as running:
            running.answer([*answered, b"0\r\n\r\n"])
            code, _, said_back = running.request("POST", "/v1/chat/completions", body)
        if not table:
            assert code == 200 and b"server.limits" not in said_back, said_back[-500:]
        elif b'"stream": true' in body and answer and code == 200:  # it had begun
            message = said_back.split(b"\n\n")[-2].decode()
            assert names_what_was_seen(message, setting), said_back[-500:]
        else:
            assert code in ((502,) if answer else (400, 413)), (code, said_back)
            message = PROTOCOLS["openai-chat"].parse_error(code, said_back).message
            assert names_what_was_seen(message, setting), message


def names_what_was_seen(message: str, setting: str) -> bool:
    """Whether it says the bound and by how much it was broken, as numbers of one unit."""
    found = re.search(rf"expected .*at most (\d+) .*\(setting server\.limits\.{setting}\), got (\d+)", message)
    return found is not None and int(found[2]) > int(found[1])


_END = b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'


@pytest.mark.parametrize("client", PROTOCOLS)
def test_what_is_held_for_an_answer_in_one_piece_is_bounded(tmp_path: Path, client: str) -> None:
    """A provider that streams all the same, to a client that asked for the answer in one piece."""
    with gateway(tmp_path, "[server.limits]\nwhole_mib = 1\n") as running:
        running.answer([head(200, content_type="application/x-ndjson"), *[chunk(_text(20))] * 200])
        code, headers, answer = running.request(*asking(client, "via-ollama-chat"))
        assert code == 502 and headers["x-should-retry"] == "false", answer
        assert "server.limits.whole_mib" in PROTOCOLS[client].parse_error(code, answer).message


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
