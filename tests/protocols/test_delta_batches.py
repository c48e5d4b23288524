"""Deltas that come together are read at once; the result is the one of reading them one by one."""

import itertools
import json
from collections.abc import Callable

import pytest

from dragoman.bounds import AnswerBounds
from dragoman.codec.delta_batch import LastFrame
from dragoman.events import Event, Failure, fold
from dragoman.protocols import PROTOCOLS
from for_each import for_each

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
Write = Callable[[str, int], tuple[str, dict[str, object]]]


def chat_text(text: str, index: int) -> tuple[str, dict[str, object]]:
    return "", {"id": "c", "model": "m", "choices": [{"index": index, "delta": {"content": text}}], "usage": None}


def chat_arguments(text: str, index: int) -> tuple[str, dict[str, object]]:
    call = {"index": index, "function": {"arguments": text}}
    return "", {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def responses_text(text: str, index: int) -> tuple[str, dict[str, object]]:
    kind = "response.output_text.delta"
    return kind, {"type": kind, "output_index": index, "content_index": 0, "delta": text}


def responses_arguments(text: str, index: int) -> tuple[str, dict[str, object]]:
    kind = "response.function_call_arguments.delta"
    return kind, {"type": kind, "output_index": index, "delta": text}


def messages_text(text: str, index: int) -> tuple[str, dict[str, object]]:
    kind = "content_block_delta"
    return kind, {"type": kind, "index": index, "delta": {"type": "text_delta", "text": text}}


def messages_thinking(text: str, index: int) -> tuple[str, dict[str, object]]:
    kind = "content_block_delta"
    return kind, {"type": kind, "index": index, "delta": {"type": "thinking_delta", "thinking": text}}


def messages_arguments(text: str, index: int) -> tuple[str, dict[str, object]]:
    kind = "content_block_delta"
    return kind, {"type": kind, "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


def chat_opening() -> list[tuple[str, dict[str, object]]]:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "note", "arguments": ""}}
    return [("", {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})]


def responses_opening(item: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
    created, added = "response.created", "response.output_item.added"
    return [
        (created, {"type": created, "response": {"id": "r", "object": "response", "model": "m", "output": []}}),
        (added, {"type": added, "output_index": 0, "item": item}),
    ]


def messages_opening(block: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    return [
        ("message_start", {"type": "message_start", "message": message}),
        ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}),
    ]


CASES: dict[str, tuple[str, list[tuple[str, dict[str, object]]], Write]] = {
    "chat text": (CHAT, [], chat_text),
    "chat arguments": (CHAT, chat_opening(), chat_arguments),
    "responses text": (RESPONSES, responses_opening({"type": "message", "id": "m", "content": []}), responses_text),
    "responses arguments": (
        RESPONSES,
        responses_opening({"type": "function_call", "id": "f", "call_id": "call_1", "name": "note", "arguments": ""}),
        responses_arguments,
    ),
    "messages text": (MESSAGES, messages_opening({"type": "text", "text": ""}), messages_text),
    "messages thinking": (MESSAGES, messages_opening({"type": "thinking", "thinking": ""}), messages_thinking),
    "messages arguments": (
        MESSAGES,
        messages_opening({"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}}),
        messages_arguments,
    ),
}
#: A few short events are never read together.
PADDING = "x" * 500
PIECES = ['{"list":[', '{"a":1},', '{"b":', "[2,{}]}", ',{"c":"}]"', "}", ",3,", '"é\\"}"', "]", ',"end":', "0", "}"]


def frame(name: str, value: dict[str, object], **changed: object) -> bytes:
    line = f"event: {name}\n" if name else ""
    padded = {**value, **changed, "obfuscation": PADDING}
    return f"{line}data: {json.dumps(padded, ensure_ascii=False)}\n\n".encode()


def decode(protocol: str, chunks: list[bytes]) -> list[Event]:
    numbers = iter(range(1000))
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: f"{next(numbers):024}", offered_names=frozenset({"note"}))
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


def same_either_way(protocol: str, frames: list[bytes]) -> list[Event]:
    """The events, which are the same when all frames come together and when each comes alone."""
    together = decode(protocol, [b"".join(frames)])
    alone = decode(protocol, frames)
    assert together == alone
    return together


@for_each("case", CASES)
def test_plain_deltas(case: str) -> None:
    protocol, opening, write = CASES[case]
    frames = [frame(*each) for each in opening] + [frame(*write(piece, 0)) for piece in PIECES]
    reply = fold(same_either_way(protocol, frames))
    said = reply.text or reply.thinking or "".join(call.arguments for call in reply.failed_calls)
    if reply.tool_calls:
        said = reply.tool_calls[0].arguments
    assert said == "".join(PIECES)


@for_each("place", [0, 5, 11])
@for_each("case", CASES)
def test_an_odd_one_among_them(case: str, place: int) -> None:
    protocol, opening, write = CASES[case]
    odd_ones = [
        frame(*write("", 0)),
        frame(*write("x", 1)),
        frame(*write("x", 0), error={"message": "overloaded"}),
        frame(*write("x", 0), error={}),
        frame(*write("x", 0), type="ping"),
        b": a comment\n\n",
        b'data: {"broken": \n\n',
        b"data: [DONE]\n\n",
    ]
    for odd in odd_ones:
        frames = [frame(*write(piece, 0)) for piece in PIECES]
        frames[place] = odd
        same_either_way(protocol, [frame(*each) for each in opening] + frames)


@for_each("case", CASES)
def test_broken_frames_never_make_a_whole_one(case: str) -> None:
    protocol, opening, write = CASES[case]
    whole = [frame(*write(piece, 0)) for piece in PIECES[:4]]
    line, _, body = whole[0].rstrip().rpartition(b"data: ")
    halves = [line + b'data: {"a": [{}\n\n', line + b"data: " + b"{}]," + body[1:] + b"\n\n"]
    open_end = [line + b'data: {"a":\n\n', line + b'data: {"a": [\n\n', line + b"data: " + body[:-1] + b",\n\n"]
    twice = [line + b"data: " + body + b"," + body + b"\n\n"]
    apart = [line + b"data: " + body + b" " + body + b"\n\n"]
    for odd in (halves, halves + twice, halves + apart, twice, apart, *([each, *apart] for each in open_end)):
        same_either_way(protocol, [frame(*each) for each in opening] + whole + odd + whole)


#: Frames of another kind than the deltas around them, or for another part; the strict reader refuses most.
OTHERS: dict[str, list[dict[str, object]]] = {
    CHAT: [
        {"choices": [{"index": "0", "delta": {"content": 7}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [{"index": "0", "delta": {}, "finish_reason": "stop"}]},
        {"choices": {"index": 0, "delta": {}, "finish_reason": "stop"}},
    ],
    RESPONSES: [
        {"type": "response.output_item.done", "output_index": 0, "item": {}},
        {"type": "response.output_item.done", "output_index": "0"},
        {"type": "response.completed", "response": "none"},
    ],
    MESSAGES: [
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_stop", "index": "0"},
        {"type": "content_block_start", "index": "1", "content_block": {"type": "text", "text": ""}},
        {"type": "message_delta", "delta": "none"},
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_what_grew_before_a_frame_of_another_kind_is_not_taken_to_grow_on(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol, opening, write = CASES[case]
    grown = [frame(*write("x", 0)) for _ in range(3)]
    streams = [
        [frame(*each) for each in opening] + grown + [frame(str(odd.get("type", "")), odd)] + grown
        for odd in OTHERS[protocol]
    ]
    read = [decode(protocol, stream) for stream in streams]
    monkeypatch.setattr(LastFrame, "read", lambda last, data: "")
    assert read == [decode(protocol, stream) for stream in streams]


#: What may come between two events, at a cut of its own.
BETWEEN = (b": ping\n\n", b"data: ", b"data: {", b"event: ping\n", b"\r", b"\n", b"x")


@for_each("case", CASES)
def test_an_event_is_not_taken_as_the_last_while_something_is_held(case: str) -> None:
    protocol, opening, write = CASES[case]
    begun, grown = [frame(*each) for each in opening], [frame(*write("x", 0)) for _ in range(3)]
    for between in (*BETWEEN, grown[0][:-1], grown[0][:30]):
        stream = [*begun, *grown, between, *grown, grown[0]]
        whole = b"".join(stream)
        assert decode(protocol, stream) == decode(protocol, [whole[at : at + 1] for at in range(len(whole))]), between


@for_each("case", CASES)
def test_events_that_are_taken_as_the_last_count_for_the_bound_of_the_answer(case: str) -> None:
    protocol, opening, write = CASES[case]
    begun, grown = [frame(*each) for each in opening], [frame(*write("x", 0)) for _ in range(6)]
    bounds = AnswerBounds(answer=len(b"".join([*begun, *grown])) - 1)
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: "id", bounds=bounds)
    events = [event for data in [*begun, *grown] for event in decoder.feed(data)] + decoder.close()
    assert isinstance(events[-1], Failure) and events[-1].kind == "answer_too_large"


@pytest.mark.parametrize("number", ["7", "8", "70", "07", "-7", "7.5", "7e1", "null", '"7"', "", "7 ", '7,"delta":"y"'])
def test_a_frame_that_differs_in_its_number_too(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = [
        frame("", {"type": "response.output_item.added", "output_index": index, "item": {"type": "message", "id": id}})
        for index, id in enumerate("mn")
    ]
    delta = b'data: {"type":"response.output_text.delta","sequence_number":%b,"output_index":0,"delta":"x"}\n\n'
    other = delta.replace(b'"output_index":0', b'"output_index":1') % b"6"
    stream = [*begun, delta % b"5", delta % b"5", delta % number.encode(), delta % b"5", delta % b"5", other]
    read = decode(RESPONSES, stream)
    monkeypatch.setattr(LastFrame, "read", lambda last, data: "")
    assert read == decode(RESPONSES, stream)


def in_turns() -> list[int]:
    """Which of two calls grows, or -1 for a text: runs of one, long turns, and runs once more."""
    return [0, 0, 0, -1, 0, 1, 1, 0, -1, -1, 1, 1, -1, 0, 0, *[0, 1] * 20, 0, 0, 1, 1, 1, -1, -1, 0, 0]


@pytest.mark.parametrize("protocol", [CHAT, MESSAGES])
def test_parts_that_grow_in_turns(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that is read as the one before it says what it says by itself."""
    begun = [
        {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": f"call_{index}",
         "name": "note", "input": {}}} for index in (0, 1)
    ] + [{"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}]  # fmt: skip
    if protocol == CHAT:
        function = {"name": "note", "arguments": ""}
        calls = [{"index": index, "id": f"call_{index}", "function": function} for index in (0, 1)]
        opening = [frame("", {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}) for call in calls]
        write = {0: chat_arguments, 1: chat_arguments, -1: chat_text}
    else:
        opening = [frame(str(event["type"]), event) for event in begun]
        write = {0: messages_arguments, 1: messages_arguments, -1: messages_text}
    places = in_turns()
    pieces = {0: ['{"a":"'] + ["x"] * (places.count(0) - 2) + ['"}'], -1: ["say "] * places.count(-1)}
    pieces[1] = ['{"b":"'] + ["y"] * (places.count(1) - 2) + ['"}']
    text_at = 0 if protocol == CHAT else 2
    frames = [
        frame(*write[place](pieces[place].pop(0), place if place >= 0 else text_at)) for place in places
    ]  # fmt: skip
    read = decode(protocol, opening + frames)
    monkeypatch.setattr(LastFrame, "read", lambda last, data: "")
    assert read == decode(protocol, opening + frames)
    reply = fold(read)
    said = [call.arguments for call in (*reply.tool_calls, *reply.failed_calls)]
    assert said == ['{"a":"%s"}' % ("x" * (places.count(0) - 2)), '{"b":"%s"}' % ("y" * (places.count(1) - 2))]


#: How many frames come in each order that is tried.
_IN_ORDER = 4


@pytest.mark.parametrize("protocol", [CHAT, RESPONSES, MESSAGES])
def test_frames_of_every_kind_in_every_order(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What grew last, and what begins or grows between, decide nothing about a frame that is like an earlier one."""
    cases = [(opening, write) for of, opening, write in CASES.values() if of == protocol]
    kinds = list(dict.fromkeys(frame(*write("x", 0)) for _, write in cases))
    kinds += dict.fromkeys(frame(*each) for opening, _ in cases for each in opening[-1:])
    starts = [frame(*each) for each in cases[-1][0]]
    streams = [starts + list(order) for order in itertools.product(kinds, repeat=_IN_ORDER)]
    read = [decode(protocol, stream) for stream in streams]
    monkeypatch.setattr(LastFrame, "read", lambda last, data: "")
    for stream, events in zip(streams, read, strict=True):
        assert events == decode(protocol, stream), stream


@for_each("pieces", [["{}"], ["{", "}"], [" ", "{", " ", " ", " ", "}"], ['{"a', '":1', "}"]])
@for_each("is_batch", [False, True])
def test_what_stands_beside_pieces_that_say_nothing_is_not_lost(pieces: list[str], is_batch: bool) -> None:
    """A call of Messages that begins with `{}` and has arguments under another key does not run without any."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": piece, "arguments": {"secret": 1}}
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    events += [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    decoder = PROTOCOLS[MESSAGES].decoder(new_id=lambda: "id")
    read = [each for frame in ([b"".join(frames)] if is_batch else frames) for each in decoder.feed(frame)]
    reply = fold([*read, *decoder.close()])
    is_said = '"' in "".join(pieces)
    assert [call.arguments for call in reply.tool_calls] == (["".join(pieces)] if is_said else [])
    assert len(reply.failed_calls) == (not is_said)


def taken_at_once(case: str, texts: list[str]) -> int:
    """How many deltas with these texts are taken at once, behind what opens their part."""
    protocol, opening, write = CASES[case]
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: "1", offered_names=frozenset({"note"}))
    for name, value in opening:
        decoder.feed(frame(name, value))
    taken: int = decoder.read_batch([json.dumps(write(text, 0)[1]).encode() for text in texts])  # type: ignore[attr-defined]
    return taken


def test_a_text_opens_within_what_is_taken_at_once() -> None:
    assert taken_at_once("responses text", [f"{number} " for number in range(100)]) == 100


@for_each("case", [case for case in CASES if case.endswith("arguments")])
def test_what_stands_behind_the_end_of_arguments_is_not_taken_with_them(case: str) -> None:
    """It may be another call's."""
    for count in (0, 1, 5, 50):
        pieces = ['{"list":["a"', *[',"b"'] * 20, "]}", *[" "] * count]
        assert taken_at_once(case, pieces) == 22
