"""A frame that has a key twice, with different values, has two readings: readers differ in which of the two counts.

Every member of every frame that holds some of a call is told twice, the other value before its own and behind it. Then
the answer says that it failed, and no call is delivered that was not made; or all calls are, where only one of the two
can be meant: an index of no call, or what later events tell again. With the same value twice there is one reading.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import wires
from cases import counter
from conversations import reply
from dragoman.client.streaming.reply_so_far import ReplySoFar
from dragoman.codec import repeated_keys
from dragoman.codec.framing import event_stream
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.openai_chat.response import calls as chat_calls
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Text, ToolCall
from for_each import for_each
from plain_clients import run_by
from profiles import one, some
from two_calls import CALLS, LETTERS, TOOLS, TURNS, WIRES, Path, made, read, value_at, wire_body


def members(value: object, path: Path) -> Iterator[Path]:
    """The places of all members that hold something, from a place on."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict) and inner not in ({}, [], None):
                yield (*path, key)
            yield from members(inner, (*path, key))


def other_than(value: object) -> object:
    match value:
        case bool():
            return not value
        case int():
            return 1 - value
        case str():
            # Of arguments others that are as whole, so that nothing else gives them away.
            told = value.translate(str.maketrans("abe2", "yzo3")) if set(value) & set('{}"') else f"{value}x"
            return {"ring": "toll", "toll": "ring"}.get(value, told)
        case list():
            return [other_than(item) for item in value]
        case dict():
            return {key: other_than(item) for key, item in value.items()}
    return "x"


def less_than(value: object) -> list[object]:
    """What says less: nothing, another type, text in place of a call, or the value without one of its members."""
    less: list[object] = [None, "x", [{"index": 0}]]
    match value:
        case list():
            less += [value[:at] + value[at + 1 :] for at in range(len(value))]
        case dict():
            less += [{name: inner for name, inner in value.items() if name != key} for key in value]
            less.append({"content": "x"})
    return less


ESCAPED = " :"  # the joint behind keys that are written otherwise where they come again


def escaped(key: str) -> str:
    """A key as a reader of JSON knows it, and a search for its bytes does not."""
    return f'"{key[:1]}' + "".join(f"\\u{ord(character):04x}" for character in key[1:]) + '"'


def doubled(value: object, path: Path, other: object, *, is_last: bool, joint: str) -> str:
    """JSON text in which the member at a path stands twice."""
    if not path:
        return json.dumps(value)
    if isinstance(value, list):
        texts = [
            doubled(item, path[1:] if at == path[0] else (), other, is_last=is_last, joint=joint)
            for at, item in enumerate(value)
        ]
        return f"[{', '.join(texts)}]"
    assert isinstance(value, dict)
    told = []
    for key, item in value.items():
        own = (
            json.dumps(key)
            + joint
            + doubled(item, path[1:] if key == path[0] else (), other, is_last=is_last, joint=joint)
        )
        again = (escaped(key) if joint == ESCAPED else json.dumps(key)) + joint + json.dumps(other)
        told += [own] if (key,) != path else [own, again] if is_last else [again, own]
    return f"{{{', '.join(told)}}}"


@for_each("wire", WIRES)
def test_a_key_told_twice_delivers_nothing_that_was_not_said(wire: str):
    frames, places = WIRES[wire]()
    lines = [json.dumps(frame) for frame in frames]
    assert made(read(wire, [wire_body(wire, lines)])) == CALLS
    tried = 0
    for number, frame in enumerate(frames):
        paths = [
            path
            for path in members(frame, ())
            if any(path[: len(place)] == place or place[: len(path)] == path for place in places)
        ]
        if not any("all" in line or "tool_use" in line or "_json" in line for line in lines[number : number + 1]):
            paths = []  # nothing of a call
        for path, is_last, joint in some(
            itertools.product(paths, (True, False), (":", ": ", ESCAPED)), f"{wire}{number}", 1
        ):
            own = value_at(frame, path)
            others = [other_than(own), *less_than(own)] if joint == ":" else [other_than(own)]
            for other, is_same in (*((other, False) for other in others), (own, True)):
                if other == own and not is_same:
                    continue
                told = [*lines]
                told[number] = doubled(frame, path, other, is_last=is_last, joint=joint)
                body = wire_body(wire, told)
                sent = [f"{line}\n".encode() for line in body.decode().split("\n")]
                for pieces in one(([body], sent), body.decode()):
                    reply = read(wire, pieces)
                    if is_same:
                        assert made(reply) == CALLS and reply.error is None, told[number]
                    else:
                        assert reply.error is not None or made(reply) == CALLS, told[number]
                        assert all(call in CALLS for call in made(reply)), (told[number], made(reply))
                    tried += 1
    assert tried > 30


def first_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as those read it that take a key the first time it comes."""
    told: dict[str, Any] = {}
    for key, value in pairs:
        told.setdefault(key, value)
    return told


#: "deltas": without whole items, which a client reads.
@pytest.mark.parametrize("wire", [wire for wire in WIRES if not wire.endswith("deltas")])
def test_readers_of_the_first_and_of_the_last_value_run_the_same_calls(wire: str, monkeypatch: pytest.MonkeyPatch):
    """Of an answer that passes without an error."""
    frames = WIRES[wire]()[0]
    lines, loads, tried = [json.dumps(frame) for frame in frames], json.loads, 0
    for number, frame in enumerate(frames):
        for path in members(frame, ()):
            for other, is_last in itertools.product((None, [], {}, other_than(value_at(frame, path))), (True, False)):
                told = [*lines]
                told[number] = doubled(frame, path, other, is_last=is_last, joint=":")
                body = wire_body(wire, told)
                if read(wire, [body]).error is None:
                    ran = [run_by(wire, body)]
                    with monkeypatch.context() as patched:
                        patched.setattr("plain_clients.loads", lambda text: loads(text, object_pairs_hook=first_of))
                        ran.append(run_by(wire, body))
                    assert all(isinstance(one, str) or one == CALLS for one in ran), (told[number], ran)
                    tried += 1
    assert tried > 5 or wire.endswith("whole")


#: Where the calls of a whole answer stand.
CALLS_OF = {
    "ollama-chat": ("message", "tool_calls"), "openai-chat": ("choices", 0, "message", "tool_calls"),
    "openai-responses": ("output",), "anthropic-messages": ("content",),
    "gemini-generate": ("candidates", 0, "content", "parts"),
}  # fmt: skip


@pytest.mark.parametrize("is_apart", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_whole_answer_with_a_key_told_twice_does_not_pass(
    protocol: str, is_apart: bool, monkeypatch: pytest.MonkeyPatch
):
    """`is_apart`: short arguments too are looked at apart from what is around them."""
    for place in (repeated_keys, chat_calls):
        monkeypatch.setattr(place, "SHORT", 0 if is_apart else repeated_keys.SHORT)
    parts = (Text("Both."), *(ToolCall(f"call_{at}", name, json.dumps(said)) for at, (name, said) in enumerate(CALLS)))
    answered = msgspec.structs.replace(reply("text-call"), parts=parts if protocol != "gemini-generate" else parts[1:])
    found = PROTOCOLS[protocol]  # type: ignore[index]
    body = found.render_response(answered, new_id=counter(), model="m", created=1_750_000_000)
    body = body.replace(b',"cache_write_tokens":0', b"")  # it is not in every answer
    assert found.check_whole(body) is not None, "as it is, it passes"
    whole, place, tried = json.loads(body), CALLS_OF[protocol], 0
    for path in members(whole, ()):
        if path[: len(place)] != place[: len(path)]:
            continue
        own = value_at(whole, path)
        for other, is_last, joint in itertools.product(
            [other_than(own), *less_than(own)], (True, False), (":", ESCAPED)
        ):
            told = doubled(whole, path, other, is_last=is_last, joint=joint)
            assert other == own or found.check_whole(told.encode()) is None, told
            tried += 1
    assert tried > 30


#: What makes a frame one that only the lenient reader reads, by the text at its end; the last is no JSON at all.
ODDITIES = {
    "nothing": "", "a bare control character": ', "note": "a\x01b"', "no number": ', "note": NaN',
    "half a surrogate pair": ', "note": "\\ud800"', "another type": ', "created": "y", "usage": "x"',
    "no JSON": ', "note": ]',
}  # fmt: skip


@for_each("wire", [wire for wire in WIRES if "pieces" not in wire])
@for_each("oddity", ODDITIES)
def test_a_call_whose_frame_is_refused_is_told_by_its_name(wire: str, oddity: str):
    frames, _ = WIRES[wire]()
    whole = [json.dumps(frame) for frame in frames]
    for number, text in enumerate(whole):
        if '"name": "ring"' not in text:
            continue
        lines = list(whole)
        lines[number] = '{"said": 1, "said": 2, ' + text[1:-1] + ODDITIES[oddity] + "}"
        reply = read(wire, [wire_body(wire, lines)])
        assert reply.error is not None, lines[number]
        if not (oddity == "no JSON" and wire.endswith("whole")):  # then there is no answer
            assert "ring" in [call.name for call in reply.failed_calls], lines[number]
        assert all(call in CALLS for call in made(reply))


@pytest.mark.parametrize("wire", TURNS)
def test_a_key_told_twice_in_pieces_that_come_together(wire: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_stream, "_SMALL", 0)  # few bytes are read together too
    frames, places = TURNS[wire]()
    lines = [json.dumps(frame) for frame in frames]
    calls = [(name, {"bell": "".join(LETTERS[at][1:-1])}) for at, (name, _) in enumerate(CALLS)]
    assert made(read(wire, [wire_body(wire, lines)])) == calls
    begin = next(at for at, line in enumerate(lines) if f'"{LETTERS[0][4]}"' in line)
    run = len(LETTERS[0]) - 5  # pieces of one call in a row
    ends = [begin, begin + run, begin + 2 * run]
    tried = 0
    for number, frame in enumerate(frames):
        if not any(f'"{text}"' in lines[number] for text in "adhmpx"):  # of the pieces a few
            continue
        for path in members(frame, ()):
            if not any(path[: len(place)] == place for place in places):
                continue
            for is_last, is_alike in itertools.product((True, False), (True, False)):
                told = list(lines)
                for at in range(number, number + run) if is_alike else [number]:
                    if (
                        at < len(frames)
                        and lines[at] != lines[-1]
                        and set(members(frames[at], ())) == set(members(frame, ()))
                    ):
                        other = other_than(value_at(frames[at], path))
                        told[at] = doubled(frames[at], path, other, is_last=is_last, joint=":")
                body = wire_body(wire, told)
                events = [event + b"\n\n" for event in body.split(b"\n\n")[:-1]]
                runs = [b"".join(events[begin:end]) for begin, end in itertools.pairwise((0, *ends, len(events)))]
                for pieces in ([body], events, runs):
                    reply = read(wire, pieces)
                    assert reply.error is not None or made(reply) == calls, (told[number], made(reply))
                    assert all(call in calls for call in made(reply)), (told[number], made(reply))
                    tried += 1
    assert tried > 20


def test_what_is_seen_of_a_key_told_twice_does_not_depend_on_the_cut():
    """The arguments of a call that fails so, as they are shown while they come."""
    for text in (
        '{"a": "x", "a": "y"}',
        '{"a": "x", "b": 1, "a": "y"}',
        '{"b": {"c": 1, "c": 2}}',
        '{"b": 1, "\\u0062": 2}',
    ):
        seen = set()
        for cut in range(1, len(text) + 1):
            pieces = [text[:cut], *text[cut:]]
            frames = wires.chat_stream(wires.chat_call("ring"), *(wires.chat_piece(piece) for piece in pieces if piece))
            view, new_id = ReplySoFar(), counter()
            decoder = PROTOCOLS["openai-chat"].decoder(new_id=new_id, offered_names=frozenset({"ring"}))
            reader = Reader(decoder, stages_for(TOOLS, Policy(), new_id=new_id))
            view.unread += [*reader.feed(wires.body_of("openai-chat", frames)), *reader.close()]
            seen.add(json.dumps(dict(view.arguments(0)), default=str))
            assert [one.kind for one in view.reply().failed_calls] == ["contradicted"]
        assert len(seen) == 1, (text, seen)
