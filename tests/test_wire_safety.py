"""What makes a delivered call legitimate, over generated streams of all protocols and dialects, cut anywhere.

The reference knows what the model said, because it wrote the stream: it shares no code with the decoders. A delivered
call is one that was said, each at most once, and all of its arguments had been sent before the cut. A call without
arguments may stand for one of which nothing but its name was sent, at an end that the wire calls good.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import counter
from dragoman import _json
from dragoman.events import Failure, Finish, Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import Tool
from grammar import check
from profiles import examples

NAMES = ("set_sail", "set_anchor", "ring")
TEXT = {"type": "string"}


class Said(NamedTuple):
    """A call that the model made: its arguments as text, in the pieces in which they are sent."""

    name: str
    pieces: list[str]

    def arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads("".join(self.pieces))
        return found


class Frame(NamedTuple):
    """Bytes of the stream, the call that they are of (-1: none), and how many of its pieces they end."""

    data: bytes
    call: int = -1
    pieces: int = 0


class Stream(NamedTuple):
    calls: list[Said]
    frames: list[Frame]
    ends: dict[str, bytes]


@st.composite
def said(draw: st.DrawFn) -> list[Said]:
    """Calls with a required and optional arguments, each with texts of its own, cut at random."""
    calls = []
    for number in range(draw(st.integers(1, 3))):
        values: dict[str, Any] = {"where": f"<{number}>" + draw(st.sampled_from(["", "a}b", '"{', "\\", "é ]", "{}"]))}
        if draw(st.booleans()):
            values["force"] = draw(st.sampled_from([number, [f"{number}"], {"at": {"n": number}}]))
        separators = draw(st.sampled_from([(",", ":"), None]))
        text = json.dumps(values, ensure_ascii=draw(st.booleans()), separators=separators)
        cuts = sorted(draw(st.sets(st.integers(1, len(text) - 1), max_size=4)))
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        calls.append(Said(draw(st.sampled_from(NAMES)), pieces))
    return calls


def in_order(calls: list[Said], draw: st.DrawFn, *, in_turns: bool) -> list[tuple[int, int]]:
    """(call, piece) in the order in which they are sent; piece -1 is the call's beginning."""
    waiting = [[(number, piece) for piece in range(-1, len(call.pieces))] for number, call in enumerate(calls)]
    if not in_turns:
        return [step for steps in waiting for step in steps]
    starts = [steps.pop(0) for steps in waiting]
    order: list[tuple[int, int]] = []
    while any(waiting):
        steps = draw(st.sampled_from([steps for steps in waiting if steps]))
        order.append(steps.pop(0))
    return [*starts, *order]


def event(value: dict[str, Any]) -> bytes:
    head = f"event: {value['type']}\n" if "type" in value else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


@st.composite
def chat(draw: st.DrawFn) -> Stream:
    calls = draw(said())
    ids, indices = draw(st.sampled_from(["first", "every", "none"])), draw(st.sampled_from(["right", "zero", "none"]))
    in_turns = draw(st.booleans()) and (ids == "every" or indices == "right")
    repeats_name = draw(st.booleans()) and ids == "every" and not in_turns
    cumulative = draw(st.booleans())

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    frames = []
    for number, piece in in_order(calls, draw, in_turns=in_turns):
        pieces = calls[number].pieces
        function = {"arguments": "" if piece < 0 else "".join(pieces[: piece + 1]) if cumulative else pieces[piece]}
        entry: dict[str, Any] = {"function": function}
        if piece < 0 or repeats_name:
            function["name"] = calls[number].name
        if ids == "every" or (ids == "first" and piece < 0):
            entry["id"] = f"call_{number}"
        if indices != "none":
            entry["index"] = number if indices == "right" else 0
        frames.append(Frame(chunk({"tool_calls": [entry]}), number, piece + 1))
    done = b"data: [DONE]\n\n"
    return Stream(calls, frames, {"good": chunk({}, "tool_calls") + done, "length": chunk({}, "length") + done})


@st.composite
def messages(draw: st.DrawFn) -> Stream:
    calls = draw(said())
    in_turns, is_stopped = draw(st.booleans()), draw(st.booleans())
    indices = draw(st.sampled_from(["right", "right", "zero"])) if not in_turns else "right"
    frames = [Frame(event({"type": "message_start", "message": {"id": "msg_1", "model": "m"}}))]
    for number, piece in in_order(calls, draw, in_turns=in_turns):
        at = {"index": number if indices == "right" else 0}
        if piece < 0:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": calls[number].name, "input": {}}
            frames.append(Frame(event({"type": "content_block_start", **at, "content_block": block}), number))
            continue
        delta = {"type": "input_json_delta", "partial_json": calls[number].pieces[piece]}
        frames.append(Frame(event({"type": "content_block_delta", **at, "delta": delta}), number, piece + 1))
        if is_stopped and piece == len(calls[number].pieces) - 1:
            frames.append(Frame(event({"type": "content_block_stop", **at})))
    ends = {
        end: event({"type": "message_delta", "delta": {"stop_reason": word}}) + event({"type": "message_stop"})
        for end, word in (("good", "tool_use"), ("length", "max_tokens"))
    }
    return Stream(calls, frames, ends)


@st.composite
def responses(draw: st.DrawFn) -> Stream:
    calls = draw(said())
    keys = draw(st.sets(st.sampled_from(["output_index", "item_id", "call_id"])))
    wrong = draw(st.sampled_from(["", "", "output_index", "item_id"]))
    is_done = draw(st.booleans())
    frames = [Frame(event({"type": "response.created", "response": {"id": "resp_1", "model": "m"}}))]
    # with nothing but the name of another call, deltas of calls in turns are that call's: no reader can tell
    in_turns = draw(st.booleans()) and not (wrong and keys <= {wrong})
    for number, piece in in_order(calls, draw, in_turns=in_turns):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": calls[number].name}
        if piece < 0:
            added = {"type": "response.output_item.added", "output_index": number, "item": item | {"arguments": ""}}
            frames.append(Frame(event(added), number))
            continue
        places = {"output_index": number, "item_id": f"fc_{number}", "call_id": f"call_{number}"}
        if wrong:
            places[wrong] = 0 if wrong == "output_index" else "fc_0"
        place = {key: value for key, value in places.items() if key in keys}
        delta = {"type": "response.function_call_arguments.delta", "delta": calls[number].pieces[piece], **place}
        frames.append(Frame(event(delta), number, piece + 1))
        if is_done and piece == len(calls[number].pieces) - 1:
            item["arguments"] = "".join(calls[number].pieces)
            done = {"type": "response.output_item.done", "output_index": number, "item": item}
            frames.append(Frame(event(done), number, piece + 1))
    ends = {}
    for end, word, details in (("good", "completed", None), ("length", "incomplete", {"reason": "max_output_tokens"})):
        response = {"id": "resp_1", "status": word, "output": [], "incomplete_details": details}
        ends[end] = event({"type": f"response.{word}", "response": response})
    return Stream(calls, frames, ends)


@st.composite
def ollama(draw: st.DrawFn) -> Stream:
    calls = draw(said())
    form: Literal["whole", "text", "object"] = draw(st.sampled_from(["whole", "text", "object"]))
    place = draw(st.sampled_from(["function", "entry", "none", "zero"]))
    key = draw(st.sampled_from(["message", "delta"]))

    def line(calls: list[Any], **end: Any) -> bytes:
        message = {"role": "assistant", "content": "", "tool_calls": calls}
        return json.dumps({"model": "m", key: message, **({"done": False} | end)}).encode() + b"\n"

    if form != "text":
        calls = [Said(call.name, ["".join(call.pieces)]) for call in calls]
    frames = []
    for number, piece in in_order(calls, draw, in_turns=draw(st.booleans()) and place in ("function", "entry")):
        function: dict[str, Any] = {"name": calls[number].name} if piece < 0 else {}
        if form == "whole":
            if piece < 0:
                continue
            function = {"name": calls[number].name, "arguments": calls[number].arguments()}
        elif piece < 0:
            function |= draw(st.sampled_from([{}, {"arguments": ""}, {"arguments": {}}, {"arguments": None}]))
        else:
            function["arguments"] = calls[number].pieces[piece] if form == "text" else calls[number].arguments()
        entry: dict[str, Any] = {"function": function}
        if place != "none":
            (entry if place == "entry" else function)["index"] = 0 if place == "zero" else number
        frames.append(Frame(line([entry]), number, piece + 1))
    return Stream(calls, frames, {end: line([], done=True, done_reason=end) for end in ("stop", "length")})


@st.composite
def gemini(draw: st.DrawFn) -> Stream:
    calls = [Said(call.name, ["".join(call.pieces)]) for call in draw(said())]

    def chunk(parts: list[Any], **end: Any) -> bytes:
        return event({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **end}]})

    frames = [
        Frame(chunk([{"functionCall": {"name": call.name, "args": call.arguments()}}]), number, 1)
        for number, call in enumerate(calls)
    ]
    return Stream(calls, frames, {word: chunk([], finishReason=word) for word in ("STOP", "MAX_TOKENS")})


STREAMS = {
    "openai-chat": chat(), "anthropic-messages": messages(), "openai-responses": responses(), "ollama-chat": ollama(),
    "gemini-generate": gemini(),
}  # fmt: skip
GOOD_ENDS = ("good", "stop", "STOP")


def tools(*, is_needy: bool) -> tuple[Tool, ...]:
    schema = {"type": "object", "properties": {"where": TEXT, "force": {}}, "required": ["where"] if is_needy else []}
    return tuple(Tool(name, schema=_json.raw(schema)) for name in NAMES)


def read(protocol: str, pieces: list[bytes], offered: tuple[Tool, ...], *, reset: bool) -> Reply:
    decoder = PROTOCOLS[protocol].decoder(
        new_id=counter(), offered_names=frozenset(NAMES), takes_nothing=nothing_fits(offered)
    )
    reader = Reader(decoder, stages_for(offered, Policy(), new_id=counter()))
    events = [event for piece in pieces for event in reader.feed(piece)]
    return fold(check([*events, *(reader.fail(Failure("connection", "reset")) if reset else reader.close())]))


def violations(stream: Stream, sent: int, reply: Reply, *, is_good: bool) -> list[str]:
    """What was delivered that the model had not said, or not yet."""
    pieces = [max([0, *(f.pieces for f in stream.frames[:sent] if f.call == n)]) for n in range(len(stream.calls))]
    named = {frame.call for frame in stream.frames[:sent]}
    legitimate = [(call.name, call.arguments()) for n, call in enumerate(stream.calls) if pieces[n] == len(call.pieces)]
    if is_good:  # only their names came, and then the wire said that nothing more does
        legitimate += [(call.name, {}) for n, call in enumerate(stream.calls) if n in named and not pieces[n]]
    found = []
    for call in reply.tool_calls:
        if (call.name, call.values()) in legitimate:
            legitimate.remove((call.name, call.values()))
        else:
            found.append(f"{call.name}({call.arguments}) after {sent} of {len(stream.frames)} frames")
    return found


def judge(protocol: str, stream: Stream, data: st.DataObject, *, is_needy: bool) -> None:
    offered = tools(is_needy=is_needy)
    frames = [frame.data for frame in stream.frames]
    for sent in range(len(frames) + 1):
        for end, last in stream.ends.items():
            reply = read(protocol, [*frames[:sent], last], offered, reset=False)
            assert violations(stream, sent, reply, is_good=end in GOOD_ENDS) == [], (sent, end)
    whole = b"".join(frames)
    for reset in (True, False):
        cut = data.draw(st.integers(0, len(whole)))
        step = data.draw(st.integers(1, 80))
        sent, size = 0, 0
        while sent < len(frames) and size + len(frames[sent]) - 2 <= cut:  # its line is whole, its blank one is not
            size += len(frames[sent])
            sent += 1
        pieces = [whole[at : min(at + step, cut)] for at in range(0, cut, step)]
        reply = read(protocol, pieces, offered, reset=reset)
        assert violations(stream, sent, reply, is_good=False) == [], (cut, reset)


@pytest.mark.parametrize("is_needy", [True, False], ids=["required", "optional"])
@pytest.mark.parametrize("protocol", STREAMS)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_only_what_was_said_is_delivered(protocol: str, is_needy: bool, data: st.DataObject):
    judge(protocol, data.draw(STREAMS[protocol]), data, is_needy=is_needy)


@pytest.mark.soak
@pytest.mark.parametrize("is_needy", [True, False], ids=["required", "optional"])
@pytest.mark.parametrize("protocol", STREAMS)
@settings(max_examples=4_000)
@given(data=st.data())
def test_only_what_was_said_is_delivered_for_long(protocol: str, is_needy: bool, data: st.DataObject):
    judge(protocol, data.draw(STREAMS[protocol]), data, is_needy=is_needy)


@pytest.mark.parametrize("protocol", STREAMS)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_a_whole_stream_is_a_whole_answer(protocol: str, data: st.DataObject):
    """The streams are worth reading: where each piece says whose it is, all calls are delivered."""
    stream = data.draw(STREAMS[protocol])
    (end, last), *_ = stream.ends.items()
    reply = read(protocol, [*(frame.data for frame in stream.frames), last], tools(is_needy=True), reset=False)
    if not reply.failed_calls:
        assert sorted((call.name, str(call.values())) for call in reply.tool_calls) == sorted(
            (call.name, str(call.arguments())) for call in stream.calls
        ), end
    assert isinstance(reply, Reply) and Finish


#: What a frame may become on a bad wire: nothing that a strict reader takes for one.
WRECKS = (
    b"\xef\xbb\xbfdata: {", b" data: {", b"DATA: {", b"data : {", b"data= {", b"xdata: {", b"data: <", b"data: ",
)  # fmt: skip


@pytest.mark.parametrize("is_needy", [True, False], ids=["required", "optional"])
@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic-messages", "openai-responses", "gemini-generate"])
@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_frame_that_nobody_can_read_makes_no_other_call(protocol: str, is_needy: bool, data: st.DataObject):
    """One frame of the stream is wrecked: its call fails, or is what the model said."""
    stream = data.draw(STREAMS[protocol])
    frames = [frame.data for frame in stream.frames]
    at = data.draw(st.sampled_from([at for at, frame in enumerate(stream.frames) if frame.call >= 0] or [0]))
    if data.draw(st.booleans()):
        frames[at] = frames[at][: data.draw(st.integers(1, len(frames[at].rstrip()) - 1))] + b"\n\n"  # cut in it
    else:
        head, _, text = frames[at].partition(b"data: {")
        frames[at] = head + data.draw(st.sampled_from(WRECKS)) + text
    (end, last), *_ = stream.ends.items()
    reply = read(protocol, [*frames, last], tools(is_needy=is_needy), reset=False)
    legitimate = [(call.name, call.arguments()) for call in stream.calls]
    for call in reply.tool_calls:
        assert (call.name, call.values()) in legitimate, end
        legitimate.remove((call.name, call.values()))
