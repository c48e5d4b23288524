"""Bytes that pass between a client and a clean target of its own protocol, and what makes them pass no more."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cases import counter
from conversations import SHAPES, reply
from dragoman.events import Failure, Reply, fold
from dragoman.protocols import PROTOCOLS
from dragoman.types import Request
from for_each import for_each
from gateway.running import Running, gateway, stream_of, whole_of, wire
from gateway.test_matrix import QUESTION, TOOLS, ask, content, read
from gateway.test_relay import spoken
from grammar import check
from scripted import END, Step, chunk, head, streamed, whole

CLEAN = "\n".join(f'[models."{name}/model-1"]\nclean = true' for name in PROTOCOLS)
#: Fields that we do not model, in the frames of each protocol.
EXTRA = {
    "ollama-chat": (b'"done":false', b'"done":false,"lab_note":[1, 2]'),
    "openai-chat": (b'"delta":{', b'"lab_note": [1, 2],"delta":{'),
    "openai-responses": (b'"sequence_number":', b'"lab_note": [1, 2],"sequence_number":'),
    "anthropic-messages": (b'"type":"content_block_delta"', b'"lab_note": [1, 2],"type":"content_block_delta"'),
    "gemini-generate": (b'"candidates":', b'"lab_note": [1, 2],"candidates":'),
}


@pytest.fixture
def clean(tmp_path: Path) -> Iterator[Running]:
    """A gateway whose providers are declared clean. A new one each time: what is withdrawn stays withdrawn."""
    with gateway(tmp_path, CLEAN) as found:
        yield found


def asked(protocol: str, *, stream: bool = True) -> tuple[str, bytes]:
    """A request with odd spaces and a field that nobody knows."""
    path, body = spoken(protocol, protocol, stream=stream)
    fields = {"lab_field": {"b": 1.0, "a": None}} | json.loads(body)
    if protocol == "openai-responses":
        fields["store"] = False
    return path, json.dumps(fields, indent=1).encode()


def odd(protocol: str, data: bytes) -> bytes:
    """A stream with fields that we do not model."""
    changed = data.replace(*EXTRA[protocol])
    assert changed != data
    return changed


def post(running: Running, path: str, body: bytes) -> tuple[int, bytes, bool]:
    """Status, body as far as it came, and whether it ended well."""
    connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
    try:
        connection.request("POST", path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        try:
            return response.status, response.read(), True
        except http.client.IncompleteRead as broken:
            return response.status, broken.partial, False
    finally:
        connection.close()


# ---------------------------------------------------------------- both ways untouched


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_passes_byte_for_byte(clean: Running, protocol: str) -> None:
    for shape in SHAPES:
        data = odd(protocol, wire(protocol, reply(shape))) if shape == "text" else wire(protocol, reply(shape))
        third = len(data) // 3
        pieces = (data[:third], data[third : 2 * third], data[2 * third :])
        clean.answer(streamed(*pieces, content_type=PROTOCOLS[protocol].stream_type))
        path, body = asked(protocol)
        assert post(clean, path, body) == (200, data, True), shape
        [seen] = clean.provider.requests
        sent = json.loads(body)
        assert json.loads(seen.body)["lab_field"] == {"b": 1.0, "a": None}
        assert b'"b": 1.0' in seen.body, "only the model's name was touched"
        if "model" in sent:
            assert seen.json["model"] == "model-1"
        else:
            assert seen.body == body


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_whole_answer_passes_byte_for_byte(clean: Running, protocol: str) -> None:
    for shape in SHAPES:
        steps = whole_of(protocol, reply(shape))
        assert isinstance(steps[0], bytes)
        data = steps[0].partition(b"\r\n\r\n")[2]
        data = data.replace(b"{", b'{"lab_note": [1, 2],', 1)
        clean.answer(whole(data))
        path, body = asked(protocol, stream=False)
        assert post(clean, path, body) == (200, data, True), shape


@for_each("protocol", PROTOCOLS)
def test_nothing_passes_where_nobody_says_that_it_is_clean(running: Running, protocol: str) -> None:
    data = odd(protocol, wire(protocol, reply("text")))
    running.answer(streamed(data, content_type=PROTOCOLS[protocol].stream_type))
    path, body = asked(protocol)
    status, answer, _ = post(running, path, body)
    assert (status, answer == data) == (200, False)
    assert content(read(protocol, answer)) == content(reply("text"))


@pytest.mark.parametrize(
    "more",
    ["strict = true", "options = { temperature = 0.5 }", 'tools = "prompted"', 'arguments = "whole"'],
    ids=["strict", "options", "tools", "arguments"],
)
def test_nothing_passes_that_the_configuration_wants_changed(tmp_path: Path, more: str) -> None:
    table = '[models."openai-chat/model-1"]\nclean = true\n'
    route = '[routes.mine]\ntargets = ["openai-chat/model-1"]\n'
    lines = table + route + more if more.startswith("arguments") else table + more + "\n" + route
    with gateway(tmp_path, lines) as running:
        data = odd("openai-chat", wire("openai-chat", reply("text")))
        running.answer(streamed(data))
        body = json.dumps({"model": "mine", "stream": True, "messages": [{"role": "user", "content": "Hi"}]})
        status, answer, _ = post(running, "/v1/chat/completions", body.encode())
    assert (status, answer == data) == (200, False)


def test_headers_that_belong_to_the_body_go_with_it(clean: Running) -> None:
    clean.answer(stream_of("anthropic-messages", reply("text")))
    path, body = asked("anthropic-messages")
    clean.request("POST", path, body, {"anthropic-beta": "lab-2026", "x-other": "1", "x-a-token": "2"})
    [seen] = clean.provider.requests
    assert seen.headers["anthropic-beta"] == "lab-2026"
    assert seen.headers["x-other"] == "1"
    assert "x-a-token" not in seen.headers


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("agent", ["litellm/1.106.2", "Zed/0.211.4 (linux)"])
def test_only_ollamas_answers_are_written_in_a_clients_own_style(clean: Running, protocol: str, agent: str) -> None:
    data = odd(protocol, wire(protocol, reply("text")))
    clean.answer(streamed(data, content_type=PROTOCOLS[protocol].stream_type))
    path, body = asked(protocol)
    _, _, answer = clean.request("POST", path, body, {"user-agent": agent})
    assert (answer == data) == (protocol != "ollama-chat")


# ---------------------------------------------------------------- usage that only we asked for


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"], ids=["lf", "crlf"])
def test_usage_that_the_client_did_not_ask_for_is_not_passed_on(clean: Running, size: int, end: bytes) -> None:
    data = wire("openai-chat", reply("single")).replace(b"\n\n", end)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    clean.answer(streamed(*pieces))
    path, body = asked("openai-chat")
    fields = json.loads(body)
    fields.pop("stream_options", None)
    status, answer, is_whole = post(clean, path, json.dumps(fields).encode())
    [usage] = [frame for frame in data.split(end) if b'"choices":[]' in frame]
    assert (status, is_whole) == (200, True)
    assert answer == data.replace(usage + end, b"")
    [seen] = clean.provider.requests
    assert seen.json["stream_options"] == {"include_usage": True}


# ---------------------------------------------------------------- what does not keep to its protocol


def without_an_id(data: bytes) -> bytes:
    """A chat stream whose call has no id."""
    return data.replace(b'"id":"call_000000000000000000000001",', b"")


def test_what_deviates_before_its_first_word_is_mended_and_passes_no_more(clean: Running) -> None:
    data = without_an_id(wire("openai-chat", reply("single")))
    path, body = asked("openai-chat")
    clean.answer(streamed(data))
    _, answer, _ = post(clean, path, body)
    [call] = read("openai-chat", answer).tool_calls
    assert call.id.startswith("call_")
    assert b'"id":"call_' in answer
    text = odd("openai-chat", wire("openai-chat", reply("text")))
    clean.answer(streamed(text))
    assert post(clean, path, body)[1] != text


def test_what_deviates_later_passes_to_its_end_and_then_no_more(clean: Running) -> None:
    intact = wire("openai-chat", reply("text-call"))
    data = without_an_id(intact)
    assert data != intact
    half = data.index(b"data: ", data.index(b"Let me look."))
    path, body = asked("openai-chat")
    rest = threading.Semaphore(0)  # leaves when the client has what came before
    clean.answer([head(), chunk(data[:half]), rest, chunk(data[half:]), END])
    with closing(http.client.HTTPConnection("127.0.0.1", clean.gateway.port, timeout=20)) as connection:
        connection.request("POST", path, body)
        response = connection.getresponse()
        begun = response.read(half)
        rest.release()
        assert (response.status, begun + response.read()) == (200, data)
    text = odd("openai-chat", wire("openai-chat", reply("text")))
    clean.answer(streamed(text))
    assert post(clean, path, body)[1] != text


def test_a_whole_answer_that_deviates_is_mended(clean: Running) -> None:
    steps = whole_of("openai-chat", reply("single"))
    assert isinstance(steps[0], bytes)
    data = without_an_id(steps[0].partition(b"\r\n\r\n")[2])
    clean.answer(whole(data))
    path, body = asked("openai-chat", stream=False)
    _, answer, _ = post(clean, path, body)
    assert json.loads(answer)["choices"][0]["message"]["tool_calls"][0]["id"].startswith("call_")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_errors_reach_the_client_in_its_form(clean: Running, protocol: str, stream: bool) -> None:
    clean.answer(whole(b'{"error":{"message":"slow down"}}', 429, "application/json", "retry-after: 7"))
    path, body = asked(protocol, stream=stream)
    status, headers, answer = clean.request("POST", path, body)
    assert (status, headers["retry-after"]) == (429, "7")
    told = PROTOCOLS[protocol].parse_error(status, answer).message
    assert told.startswith(f"slow down ({protocol}: POST {clean.provider.url}/") and told.endswith(" answered 429)")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_in_another_form_is_translated(clean: Running, protocol: str) -> None:
    original = reply("parallel")
    path, body = asked(protocol)
    whole_body = whole_of(protocol, original)
    packed = gzip.compress(wire(protocol, original))
    kind = PROTOCOLS[protocol].stream_type
    for steps in (whole_body, [head(200, kind, "content-encoding: gzip"), chunk(packed), END]):
        clean.answer(steps)
        assert content(read(protocol, post(clean, path, body)[1])) == content(original)


def test_a_body_that_is_not_the_protocol_is_400(clean: Running) -> None:
    status, answer, _ = post(clean, "/v1/chat/completions", b'{"model":"via-openai-chat","messages":3')
    assert (status, "error" in json.loads(answer)) == (400, True)


def test_the_next_target_gets_the_request_translated(tmp_path: Path) -> None:
    route = '[routes.two]\ntargets = ["openai-chat/model-1", "anthropic-messages/model-1"]\n'
    with gateway(tmp_path, CLEAN + "\n" + route) as running:
        running.answer(whole(b"{}", 503), stream_of("anthropic-messages", reply("single")))
        body = {"model": "two", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        status, answer, _ = post(running, "/v1/chat/completions", json.dumps(body).encode())
        assert status == 200
        assert content(read("openai-chat", answer)) == content(reply("single"))
        assert [seen.path for seen in running.provider.requests] == ["/v1/chat/completions", "/v1/messages"]


# ---------------------------------------------------------------- cuts


FRAME_END = dict.fromkeys(PROTOCOLS, b"\n\n") | {"ollama-chat": b"\n", "gemini-generate": b"\r\n\r\n"}


@pytest.mark.parametrize("shape", ["text-call-text-call", "parallel", "long"])
@pytest.mark.parametrize("end", ["close", "reset", END], ids=["close", "reset", "end"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_that_is_cut_is_told_and_no_half_call_is_whole(
    clean: Running, protocol: str, end: Step, shape: str
) -> None:
    path, body = asked(protocol)
    data = wire(protocol, reply(shape))
    intact = read_any(protocol, data)
    for step in range(1, 24):
        cut = len(data) * step // 24
        clean.answer([head(200, PROTOCOLS[protocol].stream_type), chunk(data[:cut]), 0.004, end])
        status, answer, _ = post(clean, path, body)
        if read_any(protocol, data[:cut]).error is None:  # the protocol's own end was before the cut
            break
        told = PROTOCOLS[protocol].parse_error(status, answer) if status != 200 else read_any(protocol, answer).error
        assert told is not None, (cut, answer)
        found = read_any(protocol, answer).tool_calls if status == 200 else []
        for call in found:
            assert (call.name, call.values()) in [(one.name, one.values()) for one in intact.tool_calls], (cut, answer)


def read_any(protocol: str, body: bytes) -> Reply:
    decoder = PROTOCOLS[protocol].decoder(new_id=counter())
    return fold(check([*decoder.feed(body), *decoder.close()]))


#: A call of a stream that is cut within its arguments, or tells a key of them twice where they are an object.
BREAKS = dict.fromkeys(PROTOCOLS, (b"-2e3}", b"-2e3")) | dict.fromkeys(
    ("ollama-chat", "gemini-generate"), (b'"n":-2e3', b'"n":1,"n":-2e3')
)


def broken_while_it_flows(
    clean: Running, protocol: str, change: tuple[bytes, bytes] | None = None
) -> tuple[bytes, bytes]:
    """What a provider sends whose call breaks when text has left, and what the client gets."""
    data = wire(protocol, reply("text-call"))
    broken = data.replace(*BREAKS[protocol])
    if change is not None:
        broken = broken.replace(*change)
    frames = [frame + FRAME_END[protocol] for frame in broken.split(FRAME_END[protocol]) if frame]
    assert broken != data
    steps: list[Step] = [head(200, PROTOCOLS[protocol].stream_type)]
    for frame in frames:
        steps += [chunk(frame), 0.02]
    clean.answer([*steps, END])
    status, answer, is_whole = post(clean, *asked(protocol))
    assert (status, is_whole) == (200, True)
    return broken, answer


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_that_breaks_while_bytes_flow_does_not_end_well(clean: Running, protocol: str) -> None:
    broken, answer = broken_while_it_flows(clean, protocol)
    assert answer[:200] == broken[:200], "bytes flowed"
    told = read_any(protocol, answer)
    assert told.tool_calls == [] and b'"error"' in answer, answer
    assert "after-end" not in [deviation.code for deviation in told.deviations], answer


def again(protocol: str, intact: bytes) -> bytes:
    """A frame that tells the call of an answer once more, and otherwise than it came."""
    call = next(iter(read_any(protocol, intact).tool_calls))
    if protocol == "openai-chat":
        function = {"name": call.name, "arguments": '{"other": 1}'}
        message = {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]}
        return json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
    delta = {"type": "input_json_delta", "partial_json": ', "other": 1}'}
    return b'{"type": "content_block_delta", "index": 1, "delta": %b}' % json.dumps(delta).encode()


REASONS = {"openai-chat": b'"finish_reason":"tool_calls"', "anthropic-messages": b'"stop_reason":"tool_use"'}


@pytest.mark.parametrize("place", ["before the reason", "behind it"])
@pytest.mark.parametrize("ending", ["end mark", "none"])
@pytest.mark.parametrize("space", [b"", b" "], ids=["compact", "spaced"])
@pytest.mark.parametrize("protocol", REASONS)
def test_no_reason_leaves_where_a_whole_call_is_contradicted(
    clean: Running, protocol: str, space: bytes, ending: str, place: str
) -> None:
    """A client runs its calls when it is told why the answer ended: that waits until the end was read."""
    data = wire(protocol, reply("text-call"))
    frames = [frame for frame in data.split(b"\n\n") if frame]
    at = next(number for number, frame in enumerate(frames) if REASONS[protocol] in frame)
    frames[at] = frames[at].replace(REASONS[protocol], REASONS[protocol].replace(b":", b":" + space))
    reason = REASONS[protocol].replace(b":", b":" + space)
    frames.insert(at + (place == "behind it"), b"data: " + again(protocol, data))
    if ending == "none":
        del frames[-1]
    steps: list[Step] = [head(200, PROTOCOLS[protocol].stream_type)]
    for frame in frames:
        steps += [chunk(frame + b"\n\n"), 0.01]
    clean.answer([*steps, END])
    status, answer, is_whole = post(clean, *asked(protocol))
    assert (status, is_whole) == (200, True)
    assert answer.startswith(frames[0]), "bytes flowed"
    assert read_any(protocol, answer).error is not None, answer
    assert reason not in answer, answer


@pytest.mark.parametrize("protocol", REASONS)
def test_a_good_end_that_comes_in_pieces_leaves_whole(clean: Running, protocol: str) -> None:
    data = wire(protocol, reply("text-call"))
    steps: list[Step] = [head(200, PROTOCOLS[protocol].stream_type)]
    for frame in data.split(b"\n\n"):
        steps += [chunk(frame + b"\n\n"), 0.01] if frame else []
    end = threading.Semaphore(0)  # the body's end, behind that of the answer
    clean.answer([*steps, end, END])
    path, body = asked(protocol)
    with closing(http.client.HTTPConnection("127.0.0.1", clean.gateway.port, timeout=20)) as connection:
        connection.request("POST", path, body)
        response = connection.getresponse()
        assert response.read(len(data)) == data, "what ends well does not wait for the end of the body"
        end.release()
        assert response.read() == b""


@pytest.mark.parametrize(
    ("protocol", "change"),
    [
        ("openai-chat", (b'"finish_reason":"tool_calls"', b'"finish_reason":"length"')),
        ("anthropic-messages", (b'"stop_reason":"tool_use"', b'"stop_reason":"max_tokens"')),
        ("ollama-chat", (b'"done_reason":"stop"', b'"done_reason":"length"')),
        ("gemini-generate", (b'"finishReason":"STOP"', b'"finishReason":"MAX_TOKENS"')),
    ],
)
def test_a_limit_explains_a_call_that_it_cuts_and_no_other(
    clean: Running, protocol: str, change: tuple[bytes, bytes]
) -> None:
    broken, answer = broken_while_it_flows(clean, protocol, change)
    if protocol in REASONS:
        assert answer == broken
    else:  # it tells a key twice, which no limit does
        assert read_any(protocol, answer).error is not None and b'"error"' in answer


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_half_a_frame_does_not_leave(clean: Running, protocol: str) -> None:
    data = wire(protocol, reply("text-call"))
    end = FRAME_END[protocol]
    cut = len(data) - len(data.rpartition(end)[0].rpartition(end)[2]) // 2 - len(end)
    clean.answer([head(200, PROTOCOLS[protocol].stream_type), chunk(data[:cut]), "close"])
    path, body = asked(protocol)
    _, answer, _ = post(clean, path, body)
    stop = PROTOCOLS[protocol].stop_mark
    reason = stop.search(data) if stop is not None else None  # it waits for the end
    last = min(cut, reason.start()) if reason is not None else cut
    passed = data[: data.rindex(end, 0, last) + len(end)]
    assert answer.startswith(passed)
    rest = read_any(protocol, answer)
    assert isinstance(rest.error, Failure) or rest.failed_calls


def test_a_request_that_passes_is_asked_with_its_own_model(clean: Running) -> None:
    clean.answer(stream_of("ollama-chat", reply("text")))
    ask(clean, "ollama-chat", Request("ollama-chat/model-1", (QUESTION,), TOOLS, stream=True))
    assert clean.provider.requests[0].json["model"] == "model-1"


@pytest.mark.parametrize("model", ["via-openai-chat", "via-ollama-chat"])
def test_a_client_that_goes_at_the_end_mark_has_had_all(clean: Running, model: str) -> None:
    """Many close there, before the end of the body: what the answer cost counts all the same."""
    protocol = model.removeprefix("via-")
    steps = stream_of(protocol, reply("text"))
    clean.answer([*steps[:-1], "hold"])  # the body does not end
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    connection = http.client.HTTPConnection("127.0.0.1", clean.gateway.port, timeout=20)
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    while b"DONE" not in (line := response.readline()) and (protocol != "ollama-chat" or b"stop" not in line):
        assert line
    connection.close()
    response.close()
    done = f'dragoman_attempts_total{{provider="{protocol}",outcome="done",reason=""}} 1'
    cancelled = f'dragoman_attempts_total{{provider="{protocol}",outcome="cancelled",reason=""}} 1'
    while not any(line in (text := clean.request("GET", "/metrics")[2].decode()) for line in (done, cancelled)):
        time.sleep(0.01)
    assert done in text
    assert f'dragoman_tokens_total{{provider="{protocol}",kind="output"}}' in text
