"""Arguments whose owner is in doubt: no call runs with those of another, or without its own. Many calls at once do."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

import wires
from dragoman.decoding import decode
from dragoman.events import Reply

TOOLS = [
    {"name": "add", "parameters": {"type": "object", "properties": {"n": {}}}},
    {"name": "find", "parameters": {"type": "object", "properties": {"city": {}}}},
]
Entry = tuple[str, str | None, dict[str, Any], int | None]


def ollama(*entries: Entry) -> bytes:
    """Each entry of `tool_calls` in a line of its own: id, name, arguments, index."""
    calls = []
    for id, name, arguments, index in entries:
        function = {"name": name, "arguments": arguments, "index": index}
        calls.append({"id": id, "function": {key: value for key, value in function.items() if value is not None}})
    return wires.body_of("ollama-chat", wires.ollama_stream(*calls))


def messages(*events: dict[str, Any], is_good: bool = True) -> bytes:
    *frames, reason, end = wires.messages_stream(*events)
    return wires.body_of("anthropic-messages", [*frames, *([reason] if is_good else []), end])


def block(name: str, id: str, input: dict[str, Any] | None = None) -> dict[str, Any]:
    return wires.block_start(wires.tool_use(name, input, id=id))


def delta(text: str) -> dict[str, Any]:
    return wires.block_delta(wires.json_delta(text))


def read(protocol: str, body: bytes) -> list[tuple[str, Any]]:
    reply = decode(body, protocol, tools=TOOLS)
    return [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]


@pytest.mark.parametrize("index", [None, 0])
def test_arguments_under_the_id_of_no_call_are_nobodys(index: int | None):
    assert read("ollama-chat", ollama(("b", "add", {}, index), ("a", None, {"city": "A"}, None))) == []


@pytest.mark.parametrize("indexes", [(None, None), (0, 1), (1, 0)])
def test_a_held_call_gets_what_comes_under_its_id(indexes: tuple[int | None, int | None]):
    first, second = indexes
    body = ollama(("a", "find", {}, first), ("b", "add", {}, second), ("a", "find", {"city": "A"}, first))
    assert read("ollama-chat", body) == [("find", {"city": "A"}), ("add", {})]


def test_a_name_behind_its_arguments_does_not_run_without_them():
    assert read("ollama-chat", ollama(("a", None, {"n": 1}, None), ("a", "add", {}, None))) == []


def test_pieces_without_a_label_go_to_none_of_two_calls_that_wait():
    begun: list[Entry] = [("a", "find", '{"city": "x', None), ("b", "add", '{"n": "y', None)]  # type: ignore[list-item]
    rest: list[Entry] = [(None, None, '1"}', None), (None, None, '2"}', None)]  # type: ignore[list-item]
    for entries in ([*begun, *rest], [*begun, rest[0]]):
        assert read("ollama-chat", ollama(*entries)) == []
    assert read("ollama-chat", ollama(begun[0], rest[0], begun[1], rest[1])) == [
        ("find", {"city": "x1"}),
        ("add", {"n": "y2"}),
    ]


@pytest.mark.parametrize("first", ["", "{}", '{"city": '])
def test_an_index_and_an_id_that_name_a_call_each_name_none(first: str):
    piece = wires.chat_piece('"A"}' if first.endswith(" ") else '{"city": "A"}', at=1) | {"id": "c0"}
    calls = wires.chat_call("find", first), wires.chat_call("add", at=1), piece
    reply = decode(wires.body_of("openai-chat", wires.chat_stream(*calls)), "openai-chat", tools=TOOLS)
    assert not reply.tool_calls and reply.error is not None


def test_a_call_without_arguments_is_not_run_where_some_came_behind_those_of_another():
    calls = wires.chat_call("find", '{"city": "A"}'), wires.chat_call("add", at=1), wires.chat_piece('{"n": 1}')
    body = wires.body_of("openai-chat", wires.chat_stream(*calls))
    reply = decode(body, "openai-chat", tools=TOOLS)
    assert [call.name for call in reply.tool_calls] == ["find"] and reply.error is not None


def test_a_start_that_had_arguments_does_not_run_without_them():
    assert read("anthropic-messages", messages(block("add", "a", {"n": 1}), is_good=False)) == []
    assert read("anthropic-messages", messages(block("add", "a", {"n": 1}))) == [("add", {"n": 1})]


@pytest.mark.parametrize("cut", range(1, len('{"n": 1}')))
def test_a_call_in_the_place_of_one_that_is_cut_is_not_run(cut: int):
    """Whose the further pieces are, nobody knows."""
    text = '{"n": 1}'
    pieces = [
        block("add", "a"),
        delta(text[:cut]),
        block("find", "b"),
        delta('{"city": "'),
        delta(text[cut:]),
        delta('B"}'),
    ]
    assert read("anthropic-messages", messages(*pieces, {"type": "content_block_stop", "index": 0})) == []


@pytest.mark.parametrize(
    ("has_index", "has_id", "in_pieces"),
    [labels for labels in itertools.product([True, False], repeat=3) if any(labels[:2]) or not labels[2]],
)
@pytest.mark.parametrize("arguments", ["{}", '{"n": 1}'])
def test_two_hundred_calls_at_once_are_delivered(has_index: bool, has_id: bool, in_pieces: bool, arguments: str):
    calls: list[dict[str, Any]] = []
    for number in range(200):
        labels: dict[str, Any] = {"index": number} if has_index else {}
        head = {**labels, "type": "function", **({"id": f"c{number}"} if has_id else {})}
        calls.append({**head, "function": {"name": "add", "arguments": "" if in_pieces else arguments}})
        if in_pieces:
            calls.append({**labels, "function": {"arguments": arguments}})
    body = wires.body_of("openai-chat", wires.chat_stream(*calls))
    assert read("openai-chat", body) == [("add", json.loads(arguments))] * 200


# ---------------------------------------------------------------- an opening that never came

#: Pieces of two calls; a blank of one is as good as a word in the other.
OF_ONE, OF_OTHER = ['{"city": "', "New", " ", "York", '"}'], ["a", " ", '", "n": "', "  ", "b"]


def interleavings(first: list[str], second: list[str]) -> Iterator[list[tuple[str, int]]]:
    for places in itertools.combinations(range(len(first) + len(second)), len(second)):
        own, other = iter(first), iter(second)
        yield [(next(other), 1) if at in places else (next(own), 0) for at in range(len(first) + len(second))]


@pytest.mark.parametrize("opening", ["never sent", "unreadable"])
@pytest.mark.parametrize("is_last_known", [False, True])
def test_pieces_at_an_index_that_nobody_opened_reach_no_call_that_goes_on_at_its_own(opening: str, is_last_known: bool):
    """`is_last_known`: each piece brings the id of its call."""
    tried = 0
    for count in range(1, len(OF_OTHER) + 1):
        for told in interleavings(OF_ONE, OF_OTHER[:count]):
            if told[-1][1]:
                continue  # nothing tells them from a call whose index counts its pieces
            pieces = [wires.chat_piece(text, at) for text, at in told]
            if is_last_known:
                pieces = [piece | ({"id": "call_0"} if not piece["index"] else {}) for piece in pieces]
            frames = [json.dumps(frame) for frame in wires.chat_stream(wires.chat_call("find", id="call_0"), *pieces)]
            if opening == "unreadable":
                torn = json.dumps(wires.chat_chunk({"tool_calls": [wires.chat_call("add", at=1)]}))[:-8]
                frames.insert(0, torn)
            reply = decode(wires.body_of("openai-chat", frames), "openai-chat", tools=TOOLS)
            assert reply.error is not None, told
            for call in reply.tool_calls:
                assert json.loads(call.arguments) == {"city": "New York"}, told
            tried += 1
    assert tried > 100


def test_a_call_whose_index_counts_its_pieces_is_one():
    pieces = [wires.chat_piece(text, at) for at, text in enumerate(OF_ONE)]
    body = wires.body_of("openai-chat", wires.chat_stream(wires.chat_call("find"), *pieces))
    assert read("openai-chat", body) == [("find", {"city": "New York"})]


# ---------------------------------------------------------------- a name, and its arguments without it

NAMED = {"name": "find", "args": {}}, {"name": "add", "args": {}}
TOLD = {"city": "A"}, {"n": 1}


def gemini(*calls: dict[str, Any], reason: str = "STOP") -> Reply:
    chunks = [*({"functionCall": call} for call in calls)]
    frames = [
        wires.gemini_chunk(chunk, reason=reason if at == len(chunks) - 1 else None) for at, chunk in enumerate(chunks)
    ]
    return decode(wires.body_of("gemini-generate", frames), "gemini-generate", tools=TOOLS)


@pytest.mark.parametrize("reason", ["STOP", "MAX_TOKENS"])
def test_arguments_behind_a_name_are_its_own(reason: str):
    for order in itertools.permutations([0, 1]):
        parts = [part for at in order for part in (NAMED[at], {"args": TOLD[at]})]
        reply = gemini(*parts, reason=reason)
        assert [json.loads(call.arguments) for call in reply.tool_calls] == [TOLD[at] for at in order]
        assert reply.error is None
    alone = gemini(*NAMED, reason=reason)
    assert [call.arguments for call in alone.tool_calls] == ["{}", "{}"] and alone.error is None


def test_arguments_that_may_be_those_of_two_names_fail():
    for parts in (
        (*NAMED, {"args": TOLD[0]}, {"args": TOLD[1]}),
        ({"args": TOLD[0]}, NAMED[0]),
        (NAMED[0], {"args": TOLD[0]}, {"args": TOLD[0]}),
    ):
        assert gemini(*parts).error is not None
    assert gemini({**NAMED[0], "id": "a"}, {"args": TOLD[0], "id": "b"}).error is not None
