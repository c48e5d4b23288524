"""A frame that has a key twice, with different values, has two readings: readers differ in which of the two counts.

Every member of every frame that holds some of a call is told twice, the other value before its own and behind it. Then
the answer says that it failed, and no call is delivered that was not made; or all calls are, where only one of the two
can be meant: an index of no call, or what later events tell again. With the same value twice there is one reading.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from cases import counter
from conversations import reply
from dragoman.codec import repeated_keys
from dragoman.codec.framing import event_stream
from dragoman.events import Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.openai_chat.response import calls as chat_calls
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import Text, Tool, ToolCall
from plain_clients import run_by

Frame = dict[str, Any]
Path = tuple[str | int, ...]
TOOLS = tuple(Tool(name, "") for name in ("ring", "toll"))
CALLS = [("ring", {"bell": "a", "loud": 2}), ("toll", {"bell": "b"})]
PIECES = [('{"bell": "a",', ' "loud": 2}'), ('{"bell"', ': "b"}')]


#: All arguments of a call in one piece, so that who does not read it has `{}`.
AT_ONCE = [(json.dumps(arguments),) for _, arguments in CALLS]


def chat(told: Sequence[tuple[str, ...]] = PIECES) -> tuple[list[Frame], list[Path]]:
    frames: list[Frame] = []
    for at, (name, _) in enumerate(CALLS):
        function = {"name": name, "arguments": ""}
        pieces: list[Frame] = [{"index": at, "id": f"c{at}", "type": "function", "function": function}]
        pieces += [{"index": at, "function": {"arguments": text}} for text in told[at]]
        frames += [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    return [*frames, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}], [("choices",)]


def chat_whole() -> tuple[list[Frame], list[Path]]:
    calls = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(CALLS)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return [{"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}], [("choices",)]


def chat_at_once() -> tuple[list[Frame], list[Path]]:
    frames: list[Frame] = []
    for at, (name, arguments) in enumerate(CALLS):
        function = {"name": name, "arguments": json.dumps(arguments)}
        piece = {"index": at, "id": f"c{at}", "type": "function", "function": function}
        frames.append({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})
    return [*frames, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}], [("choices",)]


def chat_piece() -> tuple[list[Frame], list[Path]]:
    return chat(AT_ONCE)


def messages_piece() -> tuple[list[Frame], list[Path]]:
    return messages(AT_ONCE)


def messages(told: Sequence[tuple[str, ...]] = PIECES) -> tuple[list[Frame], list[Path]]:
    frames: list[Frame] = [{"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}]
    for at, (name, _) in enumerate(CALLS):
        block = {"type": "tool_use", "id": f"c{at}", "name": name, "input": {}}
        frames.append({"type": "content_block_start", "index": at, "content_block": block})
        for text in told[at]:
            delta = {"type": "input_json_delta", "partial_json": text}
            frames.append({"type": "content_block_delta", "index": at, "delta": delta})
        frames.append({"type": "content_block_stop", "index": at})
    end = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}, {"type": "message_stop"}]
    return [*frames, *end], [("content_block",), ("delta",), ("index",), ("type",)]


def messages_whole() -> tuple[list[Frame], list[Path]]:
    content = [
        {"type": "tool_use", "id": f"c{at}", "name": name, "input": arguments}
        for at, (name, arguments) in enumerate(CALLS)
    ]
    body = {"type": "message", "id": "m", "role": "assistant", "model": "m"}
    return [{**body, "content": content, "stop_reason": "tool_use"}], [("content",)]


def responses() -> tuple[list[Frame], list[Path]]:
    frames: list[Frame] = [{"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}]
    output = []
    for at, (name, _) in enumerate(CALLS):
        item = {"type": "function_call", "id": f"i{at}", "call_id": f"c{at}", "name": name, "arguments": ""}
        place = {"output_index": at, "item_id": f"i{at}"}
        frames.append({"type": "response.output_item.added", "output_index": at, "item": item})
        for text in PIECES[at]:
            frames.append({"type": "response.function_call_arguments.delta", **place, "delta": text})
        whole = "".join(PIECES[at])
        frames.append({"type": "response.function_call_arguments.done", **place, "arguments": whole})
        output.append({**item, "arguments": whole, "status": "completed"})
        frames.append({"type": "response.output_item.done", "output_index": at, "item": output[-1]})
    final = {"id": "r", "object": "response", "status": "completed", "output": output}
    frames.append({"type": "response.completed", "response": final})
    return frames, [
        ("item",),
        ("output_index",),
        ("item_id",),
        ("delta",),
        ("arguments",),
        ("type",),
        ("response", "output"),
    ]


def responses_deltas() -> tuple[list[Frame], list[Path]]:
    """Of each call nothing but its beginning and its pieces: nothing later tells them again."""
    frames, places = responses()
    told = ("response.function_call_arguments.done", "response.output_item.done")
    kept = [frame for frame in frames[:-1] if frame["type"] not in told]
    end = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    return [*kept, end], places


def responses_items() -> tuple[list[Frame], list[Path]]:
    frames: list[Frame] = [{"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}]
    for at, (name, arguments) in enumerate(CALLS):
        item = {"type": "function_call", "id": f"i{at}", "call_id": f"c{at}", "name": name, "status": "completed"}
        whole = {**item, "arguments": json.dumps(arguments)}
        frames.append({"type": "response.output_item.done", "output_index": at, "item": whole})
    end = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    return [*frames, end], [("item",)]


def responses_whole() -> tuple[list[Frame], list[Path]]:
    frames, _ = responses()
    return [frames[-1]["response"]], [("output",)]


#: Pieces of calls that come in turns: each may stand in the other's place, and both are as whole then.
LETTERS = [['{"bell": "', *"abcdefghijkl", '"}'], ['{"bell": "', *"mnopqrstuvwx", '"}']]


def in_turns(write: Callable[[int, str], Frame]) -> list[Frame]:
    """Some pieces of the one call and the other by turns, most of the rest one call at a time, so that they come
    together, and both ends."""
    pairs = [(at, LETTERS[at][step]) for step in range(4) for at in (0, 1)]
    pairs += [(at, text) for at in (0, 1) for text in LETTERS[at][4:-1]]
    pairs += [(at, LETTERS[at][-1]) for at in (0, 1)]
    return [write(at, text) for at, text in pairs]


def chat_in_turns() -> tuple[list[Frame], list[Path]]:
    def write(at: int, text: str) -> Frame:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": at, "function": {"arguments": text}}]}}]}

    frames, _ = chat()
    starts = [frame for frame in frames if '"name"' in json.dumps(frame)]
    return [*starts, *in_turns(write), frames[-1]], [("choices", 0, "delta")]


def messages_in_turns() -> tuple[list[Frame], list[Path]]:
    def write(at: int, text: str) -> Frame:
        delta = {"type": "input_json_delta", "partial_json": text}
        return {"type": "content_block_delta", "index": at, "delta": delta}

    frames, _ = messages()
    starts, stops = ([one for one in frames if one["type"] == f"content_block_{kind}"] for kind in ("start", "stop"))
    return [frames[0], *starts, *in_turns(write), *stops, *frames[-2:]], [("delta",), ("index",)]


def responses_in_turns() -> tuple[list[Frame], list[Path]]:
    def write(at: int, text: str) -> Frame:
        return {"type": "response.function_call_arguments.delta", "output_index": at, "delta": text}

    frames, _ = responses_deltas()
    starts = [frame for frame in frames if frame["type"] == "response.output_item.added"]
    return [frames[0], *starts, *in_turns(write), frames[-1]], [("delta",), ("output_index",)]


def gemini() -> tuple[list[Frame], list[Path]]:
    frames = [
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": name, "args": arguments}}]}}]}
        for name, arguments in CALLS
    ]
    end = {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}
    return [*frames, end], [("candidates", 0, "content")]


def gemini_pieces() -> tuple[list[Frame], list[Path]]:
    calls: list[Frame] = []
    for name, arguments in CALLS:
        calls.append({"name": name, "willContinue": True})
        for key, value in arguments.items():
            said = {"stringValue": value} if isinstance(value, str) else {"numberValue": value}
            calls.append({"partialArgs": [{"jsonPath": f"$.{key}", **said}], "willContinue": True})
        calls.append({})
    frames = [{"candidates": [{"content": {"parts": [{"functionCall": call}]}}]} for call in calls]
    end = {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}
    return [*frames, end], [("candidates", 0, "content")]


def ollama() -> tuple[list[Frame], list[Path]]:
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    frames = [
        {
            **head,
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{at}", "function": {"name": name, "arguments": arguments}}],
            },
            "done": False,
        }
        for at, (name, arguments) in enumerate(CALLS)
    ]
    end = {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    return [*frames, end], [("message",)]


WIRES = {
    "openai-chat": chat, "openai-chat, a piece": chat_piece, "anthropic-messages, a piece": messages_piece,
    "openai-chat, at once": chat_at_once, "openai-chat, whole": chat_whole,
    "anthropic-messages": messages, "anthropic-messages, whole": messages_whole, "openai-responses": responses,
    "openai-responses, items": responses_items, "openai-responses, deltas": responses_deltas,
    "openai-responses, whole": responses_whole,
    "gemini-generate": gemini, "gemini-generate, pieces": gemini_pieces, "ollama-chat": ollama,
}  # fmt: skip


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


def value_at(frame: object, path: Path) -> object:
    for step in path:
        frame = frame[step]  # type: ignore[index]
    return frame


def body_of(wire: str, lines: list[str]) -> bytes:
    if wire == "ollama-chat":
        return "".join(f"{line}\n" for line in lines).encode()
    if wire.endswith("whole"):
        return lines[0].encode()
    end = "data: [DONE]\n\n" if wire.startswith("openai-chat") else ""
    return ("".join(f"data: {line}\n\n" for line in lines) + end).encode()


def read(wire: str, pieces: list[bytes]) -> Reply:
    protocol = PROTOCOLS[wire.split(",")[0]]  # type: ignore[index]
    new_id = counter()
    names = frozenset(tool.name for tool in TOOLS)
    decoder = protocol.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(TOOLS))
    reader = Reader(decoder, stages_for(TOOLS, Policy(), new_id=new_id))
    return fold([*itertools.chain.from_iterable(map(reader.feed, pieces)), *reader.close()])


def made(reply: Reply) -> list[tuple[str, Any]]:
    """The calls that were delivered: of a custom one its text."""
    return [
        (call.name, json.loads(call.arguments) if call.kind == "function" else call.arguments)
        for call in reply.tool_calls
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_a_key_told_twice_delivers_nothing_that_was_not_said(wire: str):
    frames, places = WIRES[wire]()
    lines = [json.dumps(frame) for frame in frames]
    assert made(read(wire, [body_of(wire, lines)])) == CALLS
    tried = 0
    for number, frame in enumerate(frames):
        paths = [
            path
            for path in members(frame, ())
            if any(path[: len(place)] == place or place[: len(path)] == path for place in places)
        ]
        if not any("all" in line or "tool_use" in line or "_json" in line for line in lines[number : number + 1]):
            paths = []  # nothing of a call
        for path, is_last, joint in itertools.product(paths, (True, False), (":", ": ", ESCAPED)):
            own = value_at(frame, path)
            others = [other_than(own), *less_than(own)] if joint == ":" else [other_than(own)]
            for other, is_same in (*((other, False) for other in others), (own, True)):
                if other == own and not is_same:
                    continue
                told = [*lines]
                told[number] = doubled(frame, path, other, is_last=is_last, joint=joint)
                body = body_of(wire, told)
                sent = [f"{line}\n".encode() for line in body.decode().split("\n")]
                for pieces in ([body], sent):
                    reply = read(wire, pieces)
                    if is_same:
                        assert made(reply) == CALLS and reply.error is None, told[number]
                    else:
                        assert reply.error is not None or made(reply) == CALLS, told[number]
                        assert all(call in CALLS for call in made(reply)), (told[number], made(reply))
                    tried += 1
    assert tried > 50


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
                body = body_of(wire, told)
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
    assert tried > 50


#: What makes a frame one that only the lenient reader reads, by the text at its end; the last is no JSON at all.
ODDITIES = {
    "nothing": "", "a bare control character": ', "note": "a\x01b"', "no number": ', "note": NaN',
    "half a surrogate pair": ', "note": "\\ud800"', "another type": ', "created": "y", "usage": "x"',
    "no JSON": ', "note": ]',
}  # fmt: skip


@pytest.mark.parametrize("wire", [wire for wire in WIRES if "pieces" not in wire])
@pytest.mark.parametrize("oddity", ODDITIES)
def test_a_call_whose_frame_is_refused_is_told_by_its_name(wire: str, oddity: str):
    frames, _ = WIRES[wire]()
    whole = [json.dumps(frame) for frame in frames]
    for number, text in enumerate(whole):
        if '"name": "ring"' not in text:
            continue
        lines = list(whole)
        lines[number] = '{"said": 1, "said": 2, ' + text[1:-1] + ODDITIES[oddity] + "}"
        reply = read(wire, [body_of(wire, lines)])
        assert reply.error is not None, lines[number]
        if not (oddity == "no JSON" and wire.endswith("whole")):  # then there is no answer
            assert "ring" in [call.name for call in reply.failed_calls], lines[number]
        assert all(call in CALLS for call in made(reply))


TURNS = {
    "openai-chat, in turns": chat_in_turns, "anthropic-messages, in turns": messages_in_turns,
    "openai-responses, in turns": responses_in_turns,
}  # fmt: skip


@pytest.mark.parametrize("wire", TURNS)
def test_a_key_told_twice_in_pieces_that_come_together(wire: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_stream, "_SMALL", 0)  # few bytes are read together too
    frames, places = TURNS[wire]()
    lines = [json.dumps(frame) for frame in frames]
    calls = [(name, {"bell": "".join(LETTERS[at][1:-1])}) for at, (name, _) in enumerate(CALLS)]
    assert made(read(wire, [body_of(wire, lines)])) == calls
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
                body = body_of(wire, told)
                events = [event + b"\n\n" for event in body.split(b"\n\n")[:-1]]
                runs = [b"".join(events[begin:end]) for begin, end in itertools.pairwise((0, *ends, len(events)))]
                for pieces in ([body], events, runs):
                    reply = read(wire, pieces)
                    assert reply.error is not None or made(reply) == calls, (told[number], made(reply))
                    assert all(call in calls for call in made(reply)), (told[number], made(reply))
                    tried += 1
    assert tried > 20
