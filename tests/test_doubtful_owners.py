"""Arguments whose owner is in doubt: no call runs with those of another, or without its own. Many calls at once do."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.decoding import decode
from test_contradictions import frames

TOOLS = [
    {"name": "add", "parameters": {"type": "object", "properties": {"n": {}}}},
    {"name": "find", "parameters": {"type": "object", "properties": {"city": {}}}},
]
Entry = tuple[str, str | None, dict[str, Any], int | None]


def ollama(*entries: Entry) -> bytes:
    """Each entry of `tool_calls` in a line of its own: id, name, arguments, index."""
    lines: list[dict[str, Any]] = []
    for id, name, arguments, index in entries:
        function = {"name": name, "arguments": arguments, "index": index}
        call = {"id": id, "function": {key: value for key, value in function.items() if value is not None}}
        lines.append({"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False})
    lines.append({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"})
    return b"".join(
        json.dumps({"model": "m", "created_at": "2026-11-23T00:00:00Z", **line}).encode() + b"\n" for line in lines
    )


def messages(*events: dict[str, Any], is_good: bool = True) -> bytes:
    start = {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}
    reason = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}]
    return frames(start, *events, *(reason if is_good else []), {"type": "message_stop"})


def block(name: str, id: str, input: dict[str, Any] | None = None) -> dict[str, Any]:
    call = {"type": "tool_use", "id": id, "name": name, "input": input or {}}
    return {"type": "content_block_start", "index": 0, "content_block": call}


def delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}


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
    rows: list[dict[str, Any]] = []
    for number in range(200):
        labels: dict[str, Any] = {"index": number} if has_index else {}
        head = {**labels, "type": "function", **({"id": f"c{number}"} if has_id else {})}
        told = [{**head, "function": {"name": "add", "arguments": "" if in_pieces else arguments}}]
        if in_pieces:
            told.append({**labels, "function": {"arguments": arguments}})
        rows += [{"index": 0, "delta": {"tool_calls": [call]}} for call in told]
    rows.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    body = frames(*({"id": "x", "choices": [row]} for row in rows), named=False) + b"data: [DONE]\n\n"
    assert read("openai-chat", body) == [("add", json.loads(arguments))] * 200
